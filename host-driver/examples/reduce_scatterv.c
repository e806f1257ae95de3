/* The vectors of all ranks are added; rank 0 receives nothing, and each further rank r the next
 * r elements of the sum. Run one process per rank, with BANYAN_TABLE set to the rank's table
 * image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "reduce_scatterv: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_request *request;
    struct banyan_comm *comm;
    uint64_t counts[64];
    float data[64 * 63 / 2], mine[64] = {0};

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    uint32_t rank = banyan_comm_rank(comm);
    uint32_t size = banyan_comm_size(comm);

    if (size > 64)
        return 1;
    for (uint32_t r = 0; r < size; r++)
        counts[r] = r;
    for (uint32_t i = 0; i < size * (size - 1) / 2; i++)
        data[i] = (float)(i + rank);

    uint32_t first = rank * (rank - 1) / 2; /* of this rank's elements */

    /* A rank with an empty share needs no buffer for it. */
    float *recv = counts[rank] > 0 ? mine : NULL;

    if (banyan_reduce_scatterv(comm, data, recv, counts, BANYAN_F32, BANYAN_SUM) != BANYAN_OK)
        return failed();
    for (uint32_t i = 0; i < counts[rank]; i++)
        for (uint32_t r = 0; r < size; r++)
            mine[i] -= (float)(first + i + r);
    for (uint32_t i = 0; i < counts[rank]; i++)
        if (mine[i] != 0)
            return 1;
    printf("rank %u: %u elements of the sum\n", rank, (unsigned)counts[rank]);

    /* The same as a request, with the maximum of the elements. */
    if (banyan_reduce_scatterv_init(comm, data, recv, counts, BANYAN_F32, BANYAN_MAX, &request) != BANYAN_OK)
        return failed();
    if (banyan_post(request) != BANYAN_OK || banyan_wait(request) != BANYAN_OK ||
        banyan_free(request) != BANYAN_OK)
        return failed();
    for (uint32_t i = 0; i < counts[rank]; i++)
        if (mine[i] != (float)(first + i + size - 1))
            return 1;

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
