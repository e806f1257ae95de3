/* Reads table images, and formats names from them. offload/table defines and validates the
 * format. */
#include "host-driver/image_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"

static int read_whole(const char *path, uint8_t **bytes, size_t *size)
{
    FILE *file = fopen(path, "rbe");
    size_t capacity = 1u << 16;
    size_t used = 0;
    uint8_t *data;

    if (file == NULL)
        return by_fail(errno == EACCES ? BY_EPERM : BY_ENOENT,
                       "%s: %s; set BANYAN_TABLE to this host's table image", path, strerror(errno));
    data = malloc(capacity);
    while (data != NULL) {
        size_t got = fread(data + used, 1, capacity - used, file);

        used += got;
        if (got == 0 || used > BY_IMAGE_BYTES_MAX)
            break;
        if (used == capacity) {
            uint8_t *larger = realloc(data, capacity * 2);

            if (larger == NULL) {
                free(data);
                data = NULL;
                break;
            }
            data = larger;
            capacity *= 2;
        }
    }
    if (data == NULL || ferror(file) || used > BY_IMAGE_BYTES_MAX) {
        int status = data == NULL ? BY_ENOMEM : ferror(file) ? BY_EIO : BY_ELIMIT;

        fclose(file);
        free(data);
        return by_fail(status, "%s: cannot be read: %s (at most %u bytes)", path, by_error_text(status),
                       BY_IMAGE_BYTES_MAX);
    }
    fclose(file);
    *bytes = data;
    *size = used;
    return 0;
}

int by_host_image_read(const char *path, uint8_t **image, size_t *bytes)
{
    struct by_image_limits limits = {0};
    struct by_image_fault fault = {0};
    int error = read_whole(path, image, bytes);

    if (error != 0)
        return error;
    error = by_image_check(*image, *bytes, &limits, &fault);
    if (error == 0)
        error = by_image_addresses_check(*image, &fault);
    if (error != 0) {
        free(*image);
        *image = NULL;
        return by_fail(error, "%s: %s %u: %s (%llu); make it again with 'banyan tables'", path,
                       fault.section != NULL ? fault.section : "file", fault.index,
                       fault.what != NULL ? fault.what : by_error_text(error),
                       (unsigned long long)fault.value);
    }
    return 0;
}

int by_image_job_find(const uint8_t *image, uint32_t job, struct by_image_job *found)
{
    struct by_image_header header;
    char list[160] = "";
    size_t used = 0;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_JOB]; i++) {
        by_image_job(image, i, found);
        if (found->job == job || (job == 0 && header.count[BY_SECTION_JOB] == 1)) {
            if (found->rank != BY_RANK_NONE)
                return 0;
            return by_fail(BY_ENOENT, "according to its table, %s is not a rank of job %u", header.name,
                           found->job);
        }
        if (used < sizeof(list) - 16)
            used +=
                (size_t)snprintf(list + used, sizeof(list) - used, "%s%u", used > 0 ? ", " : "", found->job);
    }
    if (job == 0)
        return by_fail(BY_ENOENT, "the table of %s holds %u jobs (%s); choose one with BANYAN_JOB",
                       header.name, header.count[BY_SECTION_JOB], list[0] != 0 ? list : "none");
    return by_fail(BY_ENOENT, "the table of %s has no job %u; it has: %s", header.name, job,
                   list[0] != 0 ? list : "none");
}

void by_image_node_name(const uint8_t *image, uint16_t node, char *text, size_t bytes)
{
    struct by_image_header header;
    struct by_image_name name;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_NAME]; i++) {
        by_image_name(image, i, &name);
        if (name.node != node)
            continue;
        if (name.rank == BY_RANK_NONE)
            snprintf(text, bytes, "%s", name.name);
        else
            snprintf(text, bytes, "%s (rank %u)", name.name, name.rank);
        return;
    }
    snprintf(text, bytes, "node %u", node);
}

int by_image_ports_check(const uint8_t *image)
{
    struct by_image_header header;

    by_image_header(image, &header);
    if (header.count[BY_SECTION_PORT] <= BY_PORTS_MAX)
        return 0;
    return by_fail(BY_ELIMIT,
                   "%s has %u ports; this program supports %u: use fewer, wider links, or 'banyan sim'",
                   header.name, header.count[BY_SECTION_PORT], BY_PORTS_MAX);
}
