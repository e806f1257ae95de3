/* Each rank sends two numbers; all ranks receive all numbers in rank order. Run one process per
 * rank, with BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "allgather: %s\n", banyan_last_error());
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
    uint16_t mine[2] = {(uint16_t)rank, (uint16_t)(rank * rank)};
    uint16_t all[128];

    if (size > 64)
        return 1;
    /* Without a reduction only the size of the element type matters: F16 has two bytes as well. */
    if (banyan_allgather(comm, mine, all, 2, BANYAN_F16) != BANYAN_OK)
        return failed();
    for (uint32_t r = 0; r < size; r++)
        if (all[2 * r] != r || all[2 * r + 1] != r * r)
            return 1;
    printf("rank %u: the square of the last rank is %u\n", rank, all[2 * size - 1]);

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
