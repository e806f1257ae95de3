/* Requests that are described once and posted many times, with work between the post and the end.
 * Run one process per rank, with BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "persistent: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    float gradient[1000];
    int32_t shares[64], share, all[64];
    struct banyan_request *sum, *scatter, *gather, *cast, *least, *barrier;
    uint32_t size = banyan_comm_size(comm);
    uint32_t word = 7;
    uint32_t smallest;

    if (size > 64)
        return 1;
    for (uint32_t r = 0; r < size; r++)
        shares[r] = (int32_t)r;
    share = (int32_t)banyan_comm_rank(comm);
    if (banyan_allreduce_init(comm, gradient, gradient, 1000, BANYAN_F32, BANYAN_SUM, &sum) != BANYAN_OK ||
        banyan_reduce_scatter_init(comm, shares, &share, 1, BANYAN_I32, BANYAN_MAX, &scatter) != BANYAN_OK ||
        banyan_allgather_init(comm, &share, all, 1, BANYAN_I32, &gather) != BANYAN_OK ||
        banyan_broadcast_init(comm, &word, 1, BANYAN_U32, 0, &cast) != BANYAN_OK ||
        banyan_reduce_init(comm, &word, &smallest, 1, BANYAN_U32, BANYAN_MIN, 0, &least) != BANYAN_OK ||
        banyan_barrier_init(comm, &barrier) != BANYAN_OK)
        return failed();
    for (int step = 0; step < 10; step++) {
        unsigned long worked = 0;
        int done = 0;

        for (int i = 0; i < 1000; i++)
            gradient[i] = (float)step;
        if (banyan_post(sum) != BANYAN_OK)
            return failed();
        while (!done) {
            worked++; /* something useful; every test moves packets */
            if (banyan_test(sum, &done) != BANYAN_OK)
                return failed();
        }
        if (gradient[999] != (float)(step * (int)size) || worked == 0)
            return 1;
    }
    /* They run in the order of their posts, and overlap. scatter writes the data that gather reads,
     * so scatter must end first. */
    if (banyan_post(scatter) != BANYAN_OK || banyan_post(cast) != BANYAN_OK ||
        banyan_wait(scatter) != BANYAN_OK || banyan_post(gather) != BANYAN_OK ||
        banyan_wait(cast) != BANYAN_OK || banyan_post(least) != BANYAN_OK ||
        banyan_post(barrier) != BANYAN_OK || banyan_wait(gather) != BANYAN_OK ||
        banyan_wait(least) != BANYAN_OK || banyan_wait(barrier) != BANYAN_OK)
        return failed();
    for (uint32_t r = 0; r < size; r++)
        if (all[r] != (int32_t)r)
            return 1;
    if (banyan_free(sum) != BANYAN_OK || banyan_free(scatter) != BANYAN_OK ||
        banyan_free(gather) != BANYAN_OK || banyan_free(cast) != BANYAN_OK ||
        banyan_free(least) != BANYAN_OK || banyan_free(barrier) != BANYAN_OK)
        return failed();

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
