/* A sum in buffers of the library: if this host shares memory with its switch, the switch reads
 * them in place. Run one process per rank, with BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

#define COUNT 100000

static int failed(void)
{
    fprintf(stderr, "alloc: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;
    void *memory;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK ||
        banyan_alloc(comm, COUNT * sizeof(float), &memory) != BANYAN_OK)
        return failed();

    uint32_t size = banyan_comm_size(comm);
    float *value = memory;
    int wrong = 0;

    for (int i = 0; i < COUNT; i++)
        value[i] = (float)i;
    if (banyan_allreduce(comm, value, value, COUNT, BANYAN_F32, BANYAN_SUM) != BANYAN_OK)
        return failed();
    for (int i = 0; i < COUNT; i++)
        wrong += value[i] != (float)size * (float)i;
    printf("rank %u: %d of %d elements are wrong\n", banyan_comm_rank(comm), wrong, COUNT);

    if (banyan_dealloc(comm, memory) != BANYAN_OK || banyan_comm_destroy(comm) != BANYAN_OK ||
        banyan_finalize(context) != BANYAN_OK)
        return failed();
    return wrong > 0;
}
