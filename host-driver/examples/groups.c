/*
 * Communicators of some ranks: rows of two ranks, and a copy of the whole. They require a
 * controller (BANYAN_CONTROLLER); without one, all ranks get the same refusal and go on with what
 * they have.
 */
#include <banyan/banyan.h>
#include <stdio.h>
#include <string.h>

struct groups_row {
    struct banyan_comm *world;
    uint32_t first; /* of its two ranks */
};

/* The allgather of a row over the world, for banyan_comm_create_group. */
static int gather(void *context, const void *mine, void *all, size_t bytes)
{
    static unsigned char every[64 * 1024];
    const struct groups_row *row = context;

    if (bytes * banyan_comm_size(row->world) > sizeof(every) ||
        banyan_allgather(row->world, mine, every, bytes, BANYAN_U8) != BANYAN_OK)
        return -1;
    memcpy(all, every + row->first * bytes, 2 * bytes);
    return 0;
}

/* Sums over a communicator, while another one is moved as well. */
static int use(struct banyan_comm *comm, struct banyan_comm *other)
{
    int32_t one = 1, sum = 0;

    if (banyan_allreduce(comm, &one, &sum, 1, BANYAN_I32, BANYAN_SUM) != BANYAN_OK ||
        banyan_comm_progress(other) != BANYAN_OK)
        return 1;
    return sum != (int32_t)banyan_comm_size(comm);
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *world, *row, *copy;
    struct groups_row place;
    struct banyan_bootstrap ranks = {
        .size = sizeof(ranks), .rank_count = 2, .context = &place, .allgather = gather};
    banyan_status_t status;
    int wrong = 0;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &world) != BANYAN_OK) {
        fprintf(stderr, "groups: %s\n", banyan_last_error());
        return 1;
    }
    status = banyan_comm_split(world, (int)(banyan_comm_rank(world) / 2), 0, &row);
    if (status == BANYAN_OK) {
        wrong += use(row, world);
        banyan_comm_destroy(row);
    } else {
        printf("no row: %s\n", banyan_last_error());
    }
    if (banyan_comm_dup(world, &copy) == BANYAN_OK) {
        wrong += use(copy, world);
        banyan_comm_destroy(copy);
    }
    place.world = world;
    place.first = banyan_comm_rank(world) / 2 * 2;
    ranks.rank = banyan_comm_rank(world) % 2;
    if (banyan_comm_create_group(world, &ranks, &row) == BANYAN_OK) {
        wrong += use(row, world);
        banyan_comm_destroy(row);
    }
    wrong += use(world, world); /* a refusal leaves the parent as it was */
    banyan_comm_destroy(world);
    banyan_finalize(context);
    return wrong != 0 || (status != BANYAN_OK && status != BANYAN_EUNSUPPORTED);
}
