/* A sum of floats whose bits depend neither on the order of packets nor on the trees. The program
 * does other work while it waits. Run one process per rank, with BANYAN_TABLE set to the rank's
 * table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "modes: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_request *request;
    struct banyan_comm *comm;
    float mine[100], sum[100] = {0};
    unsigned long turns = 0;
    int done = 0;

    if (!banyan_supports_mode(BANYAN_EXACT, BANYAN_SUM, BANYAN_F32))
        return 1;
    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();
    for (int i = 0; i < 100; i++)
        mine[i] = 1.0f / (float)(i + 1);
    if (banyan_allreduce_init(comm, mine, sum, 100, BANYAN_F32, BANYAN_SUM, &request) != BANYAN_OK ||
        banyan_request_mode(request, BANYAN_EXACT) != BANYAN_OK || banyan_post(request) != BANYAN_OK)
        return failed();
    while (!done) {
        if (banyan_wait_for(request, 1000, &done) != BANYAN_OK) /* at most a millisecond */
            return failed();
        turns++; /* other messages could be moved here */
    }
    if (sum[0] != (float)banyan_comm_size(comm))
        return 1;
    printf("mode %s instead of %s: the last sum is %a, after %lu waits\n", banyan_mode_name(BANYAN_EXACT),
           banyan_mode_name(banyan_comm_mode(comm)), (double)sum[99], turns);
    if (banyan_free(request) != BANYAN_OK || banyan_comm_destroy(comm) != BANYAN_OK ||
        banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
