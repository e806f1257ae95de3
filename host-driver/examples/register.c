/* A buffer whose pages are loaded and locked before the first operation, which then causes no page
 * faults. Run one process per rank, with BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

#define COUNT 16384

static float data[COUNT];

static int failed(void)
{
    fprintf(stderr, "register: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;
    banyan_status_t status;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    /* Registration is optional: if the system refuses it, the buffer still works. */
    status = banyan_register(comm, data, sizeof(data));
    if (status != BANYAN_OK)
        printf("not registered: %s\n", banyan_last_error());
    for (int i = 0; i < COUNT; i++)
        data[i] = 1;
    if (banyan_allreduce(comm, data, data, COUNT, BANYAN_F32, BANYAN_SUM) != BANYAN_OK)
        return failed();
    if (data[COUNT - 1] != (float)banyan_comm_size(comm))
        return 1;
    if (status == BANYAN_OK && banyan_deregister(comm, data) != BANYAN_OK)
        return failed();

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
