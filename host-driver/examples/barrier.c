/* No rank continues before all have entered. Run one process per rank, with BANYAN_TABLE set to the
 * rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "barrier: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    for (int round = 0; round < 3; round++)
        if (banyan_barrier(comm) != BANYAN_OK)
            return failed();
    printf("rank %u: all ranks passed three barriers over %s\n", banyan_comm_rank(comm),
           banyan_comm_transport(comm));

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
