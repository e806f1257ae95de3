/* Prints a communicator's counters: packets on each port, retransmitted chunks, added
 * contributions. Run one process per rank, with BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>
#include <string.h>

static int failed(void)
{
    fprintf(stderr, "counters: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    const char *name;
    uint64_t value;
    uint64_t sent = 0;

    if (banyan_barrier(comm) != BANYAN_OK)
        return failed();
    for (uint32_t i = 0; banyan_comm_counter(comm, i, &name, &value) == BANYAN_OK; i++) {
        if (value > 0)
            printf("rank %u: %s %llu\n", banyan_comm_rank(comm), name, (unsigned long long)value);
        if (strcmp(name, "endpoint/tx") == 0)
            sent = value;
    }
    if (sent == 0)
        return 1;

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
