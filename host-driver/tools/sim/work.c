/*
 * Reads a folder that `banyan sim` has written: NODE.table for each node, and `work`, whose lines
 * are a word and its numbers:
 *
 *   arc FROM PORT TO PORT NUM DEN LATENCY
 *                      one direction of a cable: a byte takes NUM / DEN ps; LATENCY is in ps
 *   lose ARC PART      a direction (numbered as the arc lines are) that loses PART / 2^32 of its
 *                      packets
 *   node ID NUM DEN    a node with limited additions: a byte takes NUM / DEN ps
 *   WORD NUMBER        see SIM_WORD_LIST
 *
 * Nodes are numbered by id, consecutively from 0. Single-threaded.
 */
#include "host-driver/tools/sim/work.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"
#include "host-driver/image_file.h"

#define SUFFIX      ".table"
#define NUMBERS_MAX 7
#define NODES_MAX   65535u

static int is_table(const char *name)
{
    size_t bytes = strlen(name);

    return bytes > strlen(SUFFIX) && strcmp(name + bytes - strlen(SUFFIX), SUFFIX) == 0;
}

/* Stores a table at the index of its node's id. */
static int add_table(struct sim_work *work, const char *path)
{
    struct by_image_header header;
    uint8_t *image = NULL;
    size_t bytes = 0;
    int error = by_host_image_read(path, &image, &bytes);

    if (error != 0)
        return error;
    by_image_header(image, &header);
    if (header.node >= work->fabric.node_count) {
        struct by_world_node *more = realloc(work->fabric.nodes, (header.node + 1u) * sizeof(*more));

        if (more == NULL) {
            free(image);
            return by_fail(BY_ENOMEM, "no memory for %u nodes", header.node + 1u);
        }
        memset(more + work->fabric.node_count, 0,
               (header.node + 1u - work->fabric.node_count) * sizeof(*more));
        work->fabric.nodes = more;
        work->fabric.node_count = header.node + 1u;
    }
    if (work->fabric.nodes[header.node].image != NULL) {
        free(image);
        return by_fail(BY_EINVAL, "%s: a second table for node %u", path, header.node);
    }
    work->fabric.nodes[header.node].image = image;
    work->fabric.nodes[header.node].image_bytes = bytes;
    return 0;
}

static int read_tables(const char *folder, struct sim_work *work)
{
    DIR *directory = opendir(folder);
    const struct dirent *entry;
    int error = 0;

    if (directory == NULL)
        return by_fail(BY_ENOENT, "%s: %s; create the folder with 'banyan sim --keep'", folder,
                       strerror(errno));
    while (error == 0 && (entry = readdir(directory)) != NULL) {
        char path[4096];

        if (!is_table(entry->d_name))
            continue;
        if (snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name) >= (int)sizeof(path))
            error = by_fail(BY_EINVAL, "%s/%s: the path is too long", folder, entry->d_name);
        else
            error = add_table(work, path);
    }
    closedir(directory);
    for (uint32_t n = 0; error == 0 && n < work->fabric.node_count; n++)
        if (work->fabric.nodes[n].image == NULL)
            error = by_fail(BY_ENOENT, "%s: no table of node %u; is a file missing?", folder, n);
    if (error == 0 && work->fabric.node_count == 0)
        error = by_fail(BY_ENOENT, "%s: no table; create the folder with 'banyan sim --keep'", folder);
    return error;
}

static uint32_t port_count(const struct sim_work *work, uint64_t node)
{
    struct by_image_header header;

    if (node >= work->fabric.node_count)
        return 0;
    by_image_header(work->fabric.nodes[node].image, &header);
    return header.count[BY_SECTION_PORT];
}

static int add_arc(struct sim_work *work, const uint64_t *number, uint32_t *room)
{
    if (number[1] >= port_count(work, number[0]) || number[3] >= port_count(work, number[2]) ||
        number[4] == 0 || number[5] == 0)
        return -1;
    if (work->fabric.arc_count == *room) {
        uint32_t larger = *room > 0 ? 2 * *room : 256;
        struct by_world_arc *more = realloc(work->fabric.arcs, larger * sizeof(*more));

        if (more == NULL)
            return -1;
        work->fabric.arcs = more;
        *room = larger;
    }
    work->fabric.arcs[work->fabric.arc_count++] = (struct by_world_arc){.from = (uint32_t)number[0],
                                                                        .from_port = (uint16_t)number[1],
                                                                        .to = (uint32_t)number[2],
                                                                        .to_port = (uint16_t)number[3],
                                                                        .ps_num = number[4],
                                                                        .ps_den = number[5],
                                                                        .latency_ps = number[6]};
    return 0;
}

static int set_word(struct sim_work *work, const char *word, uint64_t number)
{
#define X(name, least, most, help)                                                                           \
    if (strcmp(word, #name) == 0) {                                                                          \
        work->name = number;                                                                                 \
        return number - (uint64_t)(least) <= (uint64_t)(most) - (uint64_t)(least) ? 0 : -1;                  \
    }
    SIM_WORD_LIST(X)
#undef X
    return -1;
}

/* Parses a line's numbers; -1 if one is invalid. */
static int read_numbers(char *text, uint64_t number[NUMBERS_MAX])
{
    char *rest = NULL;
    int count = 0;

    for (char *word = strtok_r(text, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest)) {
        char *end;

        if (count == NUMBERS_MAX || word[0] < '0' || word[0] > '9')
            return -1;
        errno = 0;
        number[count++] = strtoull(word, &end, 10);
        if (*end != 0 || errno != 0)
            return -1;
    }
    return count;
}

static int read_line(struct sim_work *work, char *line, uint32_t *room)
{
    uint64_t number[NUMBERS_MAX];
    size_t length = strcspn(line, " \n");
    int count;

    if (length == 0 || line[length] != ' ')
        return -1;
    line[length] = 0;
    count = read_numbers(line + length + 1, number);
    if (strcmp(line, "arc") == 0)
        return count == 7 ? add_arc(work, number, room) : -1;
    if (strcmp(line, "node") == 0) {
        if (count != 3 || number[0] >= work->fabric.node_count || number[2] == 0)
            return -1;
        work->fabric.nodes[number[0]].add_num = number[1];
        work->fabric.nodes[number[0]].add_den = number[2];
        return 0;
    }
    if (strcmp(line, "lose") == 0) {
        if (count != 2 || number[0] >= work->fabric.arc_count || number[1] > UINT32_MAX)
            return -1;
        work->fabric.arcs[number[0]].loss = (uint32_t)number[1];
        return 0;
    }
    return count == 1 ? set_word(work, line, number[0]) : -1;
}

static int read_work(const char *path, struct sim_work *work)
{
    FILE *file = fopen(path, "re");
    char line[512];
    uint32_t room = 0, at = 0;
    int error = 0;

    if (file == NULL)
        return by_fail(BY_ENOENT, "%s: %s; create it with 'banyan sim --keep'", path, strerror(errno));
    while (error == 0 && fgets(line, sizeof(line), file) != NULL) {
        at++;
        if (read_line(work, line, &room) != 0)
            error = by_fail(BY_EINVAL, "%s:%u: unknown word, or number out of range", path, at);
    }
    fclose(file);
    return error;
}

/* Collects the jobs of the hosts. */
static int find_jobs(struct sim_work *work)
{
    struct by_image_header header;

    by_image_header(work->fabric.nodes[0].image, &header);
    if (header.count[BY_SECTION_JOB] == 0 || header.count[BY_SECTION_JOB] > BY_WORLD_JOBS_MAX)
        return by_fail(BY_ELIMIT, "%u jobs; a simulated world has 1 to %u", header.count[BY_SECTION_JOB],
                       BY_WORLD_JOBS_MAX);
    for (uint32_t j = 0; j < header.count[BY_SECTION_JOB]; j++) {
        struct by_image_job job;

        by_image_job(work->fabric.nodes[0].image, j, &job);
        work->fabric.jobs[work->fabric.job_count++] = job.job;
    }
    return 0;
}

int sim_work_read(const char *folder, struct sim_work *work)
{
    char path[4096];
    int error;

    *work = (struct sim_work){.batch = 1, .limit_ns = UINT64_C(600000000000), .hold_ns = 20000};
    if (snprintf(path, sizeof(path), "%s/work", folder) >= (int)sizeof(path))
        return by_fail(BY_EINVAL, "%s: the path is too long", folder);
    error = read_tables(folder, work);
    if (error == 0)
        error = find_jobs(work);
    if (error == 0)
        error = read_work(path, work);
    if (error == 0 && work->collective == 0)
        error = by_fail(BY_EINVAL, "%s: the collective is missing", path);
    return error;
}

void sim_work_free(struct sim_work *work)
{
    free(work->fabric.nodes);
    free(work->fabric.arcs);
}
