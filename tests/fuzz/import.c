/* Implements import.h. */
#include "tests/fuzz/import.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "control/fabric/import/import.h"

#define FILES_MAX 3u
/* First descriptor of the files, fixed because importers derive names from the ends of paths. */
#define FIRST_FILE 100

/* Puts the parts of the input into files. Returns their number. */
static unsigned make_files(const uint8_t *data, size_t size, char paths[FILES_MAX][32])
{
    unsigned count = 0;

    for (size_t at = 0; count < FILES_MAX && (at < size || count == 0); count++) {
        const uint8_t *end = at < size && count + 1 < FILES_MAX ? memchr(data + at, 0, size - at) : NULL;
        size_t bytes = end ? (size_t)(end - (data + at)) : size - at;
        int file = memfd_create("import", MFD_CLOEXEC);

        FUZZ_CHECK(file >= 0 && write(file, data + at, bytes) == (ssize_t)bytes);
        FUZZ_CHECK(dup2(file, FIRST_FILE + (int)count) >= 0);
        close(file);
        snprintf(paths[count], sizeof(paths[count]), "/proc/self/fd/%d", FIRST_FILE + (int)count);
        at += bytes + 1;
    }
    return count;
}

static void check_written(const struct by_topology *topology)
{
    struct by_topology *again = NULL;
    struct by_problem problem = {0};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    FUZZ_CHECK(out != NULL && by_topology_write(topology, out) == 0);
    fclose(out);
    FUZZ_CHECK(by_topology_parse(text, bytes, &again, &problem) == 0);
    FUZZ_CHECK(again->node_count == topology->node_count && again->link_count == topology->link_count);
    by_topology_free(again);
    free(text);
}

int fuzz_import(const char *format, const uint8_t *data, size_t size)
{
    char paths[FILES_MAX][32];
    unsigned count = make_files(data, size, paths);
    const char *const list[FILES_MAX] = {paths[0], paths[1], paths[2]};

    for (int with = 0; with < 2; with++) {
        struct by_import_options options = {
            .rate = {with ? 25 : 0, 1}, .nvlink = {0, 1}, .cpu = {0, 1}, .hosts = with, .rails = with};
        struct by_topology *topology = NULL;
        struct by_import_report report;
        struct by_problem problem = {0};
        size_t file = 0;

        options.capable = with ? "all" : NULL;
        options.copies = with ? 2 : 0;
        if (by_import(format, list, count, &options, &topology, &report, &problem, &file) == 0)
            check_written(topology);
        else
            FUZZ_CHECK(topology == NULL && problem.text[0] != 0 && file < count);
        by_topology_free(topology);
    }
    for (unsigned i = 0; i < count; i++)
        close(FIRST_FILE + (int)i);
    return 0;
}
