/* Rank 0 scatters shares of work and gathers the results, with equal shares and with unequal ones.
 * Run one process per rank, where ranks can meet: with RANK, WORLD_SIZE, MASTER_ADDR and
 * MASTER_PORT, or under a launcher. With a table set BANYAN_FALLBACK, which connects the ranks. */
#include <banyan/banyan.h>
#include <stdio.h>

#define RANKS_MAX 64
#define COUNT     4

static int failed(void)
{
    fprintf(stderr, "scatter_gather: %s\n", banyan_last_error());
    return 1;
}

static int run(struct banyan_request *request)
{
    return banyan_post(request) == BANYAN_OK && banyan_wait(request) == BANYAN_OK &&
           banyan_free(request) == BANYAN_OK;
}

/* Rank r gets r + 1 numbers. Counts are used at rank 0 only. */
static int unequal(struct banyan_comm *comm, uint32_t rank, uint32_t size)
{
    static double work[RANKS_MAX * (RANKS_MAX + 1) / 2], result[RANKS_MAX * (RANKS_MAX + 1) / 2];
    double own[RANKS_MAX];
    uint64_t counts[RANKS_MAX];
    struct banyan_request *request;

    for (uint32_t r = 0; r < size; r++)
        counts[r] = r + 1;
    for (uint32_t i = 0; i < size * (size + 1) / 2; i++)
        work[i] = i;
    if (banyan_scatterv_init(comm, work, counts, NULL, own, rank + 1, BANYAN_F64, 0, &request) != BANYAN_OK ||
        !run(request) || banyan_scatterv(comm, work, counts, NULL, own, rank + 1, BANYAN_F64, 0) != BANYAN_OK)
        return failed();
    for (uint32_t i = 0; i <= rank; i++)
        own[i] *= 2;
    if (banyan_gatherv_init(comm, own, rank + 1, result, counts, NULL, BANYAN_F64, 0, &request) !=
            BANYAN_OK ||
        !run(request) ||
        banyan_gatherv(comm, own, rank + 1, result, counts, NULL, BANYAN_F64, 0) != BANYAN_OK)
        return failed();
    for (uint32_t i = 0; rank == 0 && i < size * (size + 1) / 2; i++)
        if (result[i] != 2 * work[i])
            return 1;
    return 0;
}

int main(void)
{
    double work[RANKS_MAX * COUNT], own[COUNT];
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
        work[i] = i;
    if (banyan_scatter_init(comm, rank == 0 ? work : NULL, own, COUNT, BANYAN_F64, 0, &request) !=
            BANYAN_OK ||
        !run(request))
        return failed();
    for (int i = 0; i < COUNT; i++)
        own[i] = own[i] * own[i];
    if (banyan_gather_init(comm, own, rank == 0 ? work : NULL, COUNT, BANYAN_F64, 0, &request) != BANYAN_OK ||
        !run(request))
        return failed();
    for (uint32_t i = 0; rank == 0 && i < size * COUNT; i++)
        if (work[i] != (double)i * i)
            return 1;

    /* The blocking forms. */
    if (banyan_scatter(comm, work, own, COUNT, BANYAN_F64, 0) != BANYAN_OK ||
        banyan_gather(comm, own, work, COUNT, BANYAN_F64, 0) != BANYAN_OK)
        return failed();
    if (rank == 0)
        printf("the last of %u squares is %g\n", size * COUNT, work[size * COUNT - 1]);

    if (unequal(comm, rank, size) != 0 || banyan_comm_destroy(comm) != BANYAN_OK ||
        banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
