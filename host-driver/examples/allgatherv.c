/* Rank r sends r + 1 numbers; all ranks receive all numbers in rank order. Run one process per
 * rank, with BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "allgatherv: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_request *request;
    struct banyan_comm *comm;
    uint64_t counts[64], first = 0;
    int32_t all[64 * 65 / 2];

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    uint32_t rank = banyan_comm_rank(comm);
    uint32_t size = banyan_comm_size(comm);

    if (size > 64)
        return 1;
    for (uint32_t r = 0; r < size; r++) {
        counts[r] = r + 1;
        first += r < rank ? counts[r] : 0;
    }
    /* In place: this rank's numbers are at their final position in the receive buffer. */
    if (banyan_allgatherv_init(comm, all + first, all, counts, BANYAN_I32, &request) != BANYAN_OK)
        return failed();
    for (int round = 0; round < 3; round++) {
        for (uint32_t i = 0; i < counts[rank]; i++)
            all[first + i] = (int32_t)rank * 100 + round;
        if (banyan_post(request) != BANYAN_OK || banyan_wait(request) != BANYAN_OK)
            return failed();
        for (uint32_t r = 0, at = 0; r < size; at += (uint32_t)counts[r++])
            if (all[at] != (int32_t)r * 100 + round)
                return 1;
    }
    if (banyan_free(request) != BANYAN_OK)
        return failed();

    /* The blocking form, for an operation that is not repeated. */
    if (banyan_allgatherv(comm, all + first, all, counts, BANYAN_I32) != BANYAN_OK)
        return failed();
    printf("rank %u: the first number of the last rank is %d\n", rank, all[size * (size - 1) / 2]);

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
