/* Rank 0 sends a text; all ranks receive it. Run one process per rank, with BANYAN_TABLE set to the
 * rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "broadcast: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    char text[32] = "";

    if (banyan_comm_rank(comm) == 0)
        snprintf(text, sizeof(text), "hello from rank 0");
    if (banyan_broadcast(comm, text, sizeof(text), BANYAN_U8, 0) != BANYAN_OK)
        return failed();
    printf("rank %u: %s\n", banyan_comm_rank(comm), text);
    if (text[0] != 'h')
        return 1;

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
