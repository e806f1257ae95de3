/* Each rank sends a temperature; the last rank receives the highest. Run one process per rank, with
 * BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "reduce: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    uint32_t rank = banyan_comm_rank(comm);
    uint32_t root = banyan_comm_size(comm) - 1;
    double mine = 20.5 + rank;
    double highest = 0;

    /* Only the root needs a buffer for the result. */
    if (banyan_reduce(comm, &mine, rank == root ? &highest : NULL, 1, BANYAN_F64, BANYAN_MAX, root) !=
        BANYAN_OK)
        return failed();
    if (rank == root)
        printf("rank %u: the highest is %g\n", rank, highest);
    if (rank == root && highest != 20.5 + root)
        return 1;

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
