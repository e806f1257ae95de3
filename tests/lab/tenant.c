/*
 * lab-tenant: a rank of a job that sums until it is told to stop, and checks every element.
 * BANYAN_TABLE and BANYAN_JOB say which. All ranks stop with the same operation, because the
 * request to stop is summed as well.
 *
 *   lab-tenant PROGRESS STOP
 *       PROGRESS   a file that holds the number of completed operations
 *       STOP       a file whose existence ends the rank
 *
 * Prints operations, wrong elements and the packets that keys have kept out. Exit 0: all right; 1:
 * wrong elements; 3: an operation failed. Single-threaded.
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <banyan/banyan.h>

#define ELEMENTS 65536u

static int failed(void)
{
    fprintf(stderr, "lab-tenant: %s\n", banyan_last_error());
    return 3;
}

static uint64_t counter(const struct banyan_comm *comm, const char *wanted)
{
    const char *name;
    uint64_t value;

    for (uint32_t i = 0; banyan_comm_counter(comm, i, &name, &value) == BANYAN_OK; i++)
        if (strcmp(name, wanted) == 0)
            return value;
    return 0;
}

/* Element k of a rank's input is 7 rank + operation + k; the first one is its request to stop. */
static void fill(uint32_t *values, uint32_t rank, uint32_t operation, int stop)
{
    values[0] = stop ? 1 : 0;
    for (uint32_t k = 1; k < ELEMENTS; k++)
        values[k] = 7 * rank + operation + k;
}

static uint32_t count_wrong(const uint32_t *sum, uint32_t size, uint32_t operation)
{
    uint32_t wrong = sum[0] > size;

    for (uint32_t k = 1; k < ELEMENTS; k++)
        wrong += sum[k] != 7 * size * (size - 1) / 2 + size * (operation + k);
    return wrong;
}

int main(int argc, char **argv)
{
    static uint32_t values[ELEMENTS], sum[ELEMENTS];
    struct banyan_context *context;
    struct banyan_comm *comm;
    uint32_t operation = 0, wrong = 0;
    char text[16];
    int progress = argc == 3 ? open(argv[1], O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;

    if (progress < 0) {
        fputs("usage: lab-tenant PROGRESS STOP\n", stderr);
        return 2;
    }
    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();
    do {
        int bytes;

        fill(values, banyan_comm_rank(comm), operation, access(argv[2], F_OK) == 0);
        if (banyan_allreduce(comm, values, sum, ELEMENTS, BANYAN_U32, BANYAN_SUM) != BANYAN_OK)
            return failed();
        wrong += count_wrong(sum, banyan_comm_size(comm), operation++);
        bytes = snprintf(text, sizeof(text), "%" PRIu32 "\n", operation);
        if (pwrite(progress, text, (size_t)bytes, 0) != bytes)
            return 3;
    } while (sum[0] == 0);
    printf("%" PRIu32 " operations, %" PRIu32 " wrong elements, drop_key %" PRIu64 "\n", operation, wrong,
           counter(comm, "endpoint/drop_key"));
    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    close(progress);
    return wrong != 0;
}
