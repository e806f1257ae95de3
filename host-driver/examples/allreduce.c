/* Each rank sends its number; all ranks receive the sum. Run one process per rank, with
 * BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "allreduce: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    uint32_t rank = banyan_comm_rank(comm);
    uint32_t size = banyan_comm_size(comm);
    float mine = (float)rank;
    float sum = 0;

    if (banyan_allreduce(comm, &mine, &sum, 1, BANYAN_F32, BANYAN_SUM) != BANYAN_OK)
        return failed();
    printf("rank %u of %u: the sum of all ranks is %g\n", rank, size, (double)sum);
    if (2 * sum != (float)(size * (size - 1)))
        return 1;

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
