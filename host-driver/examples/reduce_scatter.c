/* Each rank sends one number for every rank; rank r receives the sum of the r-th numbers. Run one
 * process per rank, with BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "reduce_scatter: %s\n", banyan_last_error());
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
    int32_t mine[64];
    int32_t sum = 0;

    if (size > 64)
        return 1;
    for (uint32_t r = 0; r < size; r++)
        mine[r] = (int32_t)(10 * r + rank);
    if (banyan_reduce_scatter(comm, mine, &sum, 1, BANYAN_I32, BANYAN_SUM) != BANYAN_OK)
        return failed();
    printf("rank %u: the sum of my shares is %d\n", rank, sum);
    if (sum != (int32_t)(10 * rank * size + size * (size - 1) / 2))
        return 1;

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
