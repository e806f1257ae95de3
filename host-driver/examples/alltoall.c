/* Every rank sends every other a share: an all-to-all of equal shares, and one of unequal ones. Run
 * one process per rank, where ranks can meet: with RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT,
 * or under a launcher. With a table set BANYAN_FALLBACK, which connects the ranks. */
#include <banyan/banyan.h>
#include <stdio.h>

#define RANKS_MAX 64
#define COUNT     3

static int failed(void)
{
    fprintf(stderr, "alltoall: %s\n", banyan_last_error());
    return 1;
}

/* Rank s sends rank r the number 100 s + r, r + 1 times. */
static int send_unequal(struct banyan_comm *comm, uint32_t rank, uint32_t size)
{
    static int32_t send[RANKS_MAX * (RANKS_MAX + 1) / 2], recv[RANKS_MAX * RANKS_MAX];
    uint64_t sent[RANKS_MAX], received[RANKS_MAX], at = 0;
    struct banyan_request *request;

    for (uint32_t r = 0; r < size; r++) {
        sent[r] = r + 1;
        received[r] = rank + 1;
        for (uint32_t i = 0; i <= r; i++)
            send[at++] = (int32_t)(100 * rank + r);
    }
    /* Without offsets, the shares follow each other. */
    if (banyan_alltoallv_init(comm, send, sent, NULL, recv, received, NULL, BANYAN_I32, &request) !=
            BANYAN_OK ||
        banyan_post(request) != BANYAN_OK || banyan_wait(request) != BANYAN_OK ||
        banyan_free(request) != BANYAN_OK)
        return failed();
    for (uint32_t s = 0; s < size; s++)
        if (recv[s * (rank + 1)] != (int32_t)(100 * s + rank))
            return 1;
    return banyan_alltoallv(comm, send, sent, NULL, recv, received, NULL, BANYAN_I32) == BANYAN_OK ? 0
                                                                                                   : failed();
}

int main(void)
{
    static int32_t send[RANKS_MAX * COUNT], recv[RANKS_MAX * COUNT];
    struct banyan_context *context;
    struct banyan_request *request;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    uint32_t rank = banyan_comm_rank(comm);
    uint32_t size = banyan_comm_size(comm);

    if (size > RANKS_MAX)
        return 1;
    for (uint32_t i = 0; i < size * COUNT; i++)
        send[i] = (int32_t)(1000 * rank + i);
    if (banyan_alltoall_init(comm, send, recv, COUNT, BANYAN_I32, &request) != BANYAN_OK ||
        banyan_post(request) != BANYAN_OK || banyan_wait(request) != BANYAN_OK ||
        banyan_free(request) != BANYAN_OK)
        return failed();
    for (uint32_t s = 0; s < size; s++)
        if (recv[s * COUNT] != (int32_t)(1000 * s + rank * COUNT))
            return 1;

    /* The blocking form, in place. */
    if (banyan_alltoall(comm, send, send, COUNT, BANYAN_I32) != BANYAN_OK)
        return failed();
    printf("rank %u: rank %u sent it %d\n", rank, size - 1, send[(size - 1) * COUNT]);

    if (send_unequal(comm, rank, size) != 0 || banyan_comm_destroy(comm) != BANYAN_OK ||
        banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
