/* Buffers of calls; see work.h. */
#include "host-driver/plugin/mpi/work.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/plugin/mpi/comms.h"

/* ---- blocks of an allgather ---- */

static int is_unequal(const struct by_shim_gathering *g)
{
    return g->counts.narrow != NULL || g->counts.wide != NULL;
}

int64_t by_shim_count_at(struct by_shim_counts counts, int rank)
{
    return counts.wide != NULL ? counts.wide[rank] : counts.narrow[rank];
}

int64_t by_shim_count_of(const struct by_shim_gathering *g, int rank)
{
    return is_unequal(g) ? by_shim_count_at(g->counts, rank) : g->recv_count;
}

int64_t by_shim_place_at(const struct by_shim_gathering *g, int rank)
{
    if (!is_unequal(g))
        return rank * g->recv_count;
    return g->places.wide != NULL ? g->places.wide[rank] : g->places.narrow[rank];
}

void *by_shim_place_of(const struct by_shim_gathering *g, int rank)
{
    return (char *)g->recv + by_shim_place_at(g, rank) * g->extent;
}

int64_t by_shim_count_before(const struct by_shim_gathering *g, int rank, int64_t most)
{
    int64_t sum = 0;

    for (int r = 0; r < rank; r++) {
        int64_t count = by_shim_count_of(g, r);

        if (count < 0)
            return -1;
        sum = count > most - sum ? most : sum + count;
    }
    return sum;
}

/* ---- packing ---- */

/* Elements whose type has absolute addresses are at MPI_BOTTOM, a null pointer, which MPI_Pack of
 * MPICH 4.0 refuses. The same elements as one of another type, whose addresses are relative to
 * `base`; the caller frees the type. */
static int relative_to(const void *base, int64_t count, MPI_Datatype type, MPI_Datatype *relative)
{
    MPI_Aint address, place;
    int code = PMPI_Get_address(base, &address);

    place = -address;
    if (code == MPI_SUCCESS)
        code = PMPI_Type_create_hindexed_block(1, (int)count, &place, type, relative);
    if (code != MPI_SUCCESS)
        return code;
    code = PMPI_Type_commit(relative);
    if (code != MPI_SUCCESS)
        PMPI_Type_free(relative);
    return code;
}

/* Packs at most INT_MAX bytes, so a larger count can only be of empty elements. */
static int pack(const void *from, int64_t count, MPI_Datatype type, void *to, int bytes)
{
    int at = 0, code;
    MPI_Datatype relative;

    if (bytes == 0)
        return MPI_SUCCESS;
    if (from != MPI_BOTTOM)
        return PMPI_Pack(from, (int)count, type, to, bytes, &at, MPI_COMM_SELF);
    code = relative_to(to, count, type, &relative);
    if (code != MPI_SUCCESS)
        return code;
    code = PMPI_Pack(to, 1, relative, to, bytes, &at, MPI_COMM_SELF);
    PMPI_Type_free(&relative);
    return code;
}

static int unpack(const void *from, int bytes, void *to, int64_t count, MPI_Datatype type)
{
    int at = 0, code;
    MPI_Datatype relative;

    if (bytes == 0)
        return MPI_SUCCESS;
    if (to != MPI_BOTTOM)
        return PMPI_Unpack(from, bytes, &at, to, (int)count, type, MPI_COMM_SELF);
    code = relative_to(from, count, type, &relative);
    if (code != MPI_SUCCESS)
        return code;
    code = PMPI_Unpack(from, bytes, &at, (void *)(uintptr_t)from, 1, relative, MPI_COMM_SELF);
    PMPI_Type_free(&relative);
    return code;
}

/* The own block of an allgather, to its place among the blocks of all ranks. */
static int pack_block(const struct by_shim_gathering *g, void *mine)
{
    int bytes = (int)(by_shim_count_of(g, g->rank) * g->size);

    if (g->send == MPI_IN_PLACE)
        return pack(by_shim_place_of(g, g->rank), by_shim_count_of(g, g->rank), g->recv_type, mine, bytes);
    return pack(g->send, g->send_count, g->send_type, mine, bytes);
}

static int unpack_blocks(const struct by_shim_gathering *g, const char *whole)
{
    int code = MPI_SUCCESS;

    for (int r = 0; r < g->ranks && code == MPI_SUCCESS; r++) {
        int bytes = (int)(by_shim_count_of(g, r) * g->size);

        if (r != g->rank || g->send != MPI_IN_PLACE)
            code = unpack(whole, bytes, by_shim_place_of(g, r), by_shim_count_of(g, r), g->recv_type);
        whole += bytes;
    }
    return code;
}

/* ---- blocks of an exchange ---- */

int64_t by_shim_side_count(const struct by_shim_side *side, int block)
{
    return side->counts.narrow != NULL || side->counts.wide != NULL ? by_shim_count_at(side->counts, block)
                                                                    : side->count;
}

MPI_Datatype by_shim_side_type(const struct by_shim_side *side, int block)
{
    return side->types != NULL ? side->types[block] : side->type;
}

int64_t by_shim_side_place(const struct by_shim_side *side, int block)
{
    int64_t unit = side->types != NULL ? 1 : side->extent;

    if (side->places.wide != NULL)
        return side->places.wide[block] * unit;
    return (side->places.narrow != NULL ? side->places.narrow[block] : block * side->count) * unit;
}

int64_t by_shim_side_block(const struct by_shim_side *side, int block)
{
    int64_t count = by_shim_side_count(side, block);
    MPI_Count size = side->size;

    if (side->types != NULL && count > 0)
        PMPI_Type_size_x(side->types[block], &size);
    return count * size;
}

uint64_t by_shim_side_bytes(const struct by_shim_side *side)
{
    uint64_t bytes = 0;

    for (int r = 0; r < side->blocks; r++)
        bytes += (uint64_t)by_shim_side_block(side, r);
    return bytes;
}

/* Packs the blocks one after another, or unpacks them. */
static int move_side(const struct by_shim_side *side, char *room, int is_packing)
{
    int code = MPI_SUCCESS;

    for (int r = 0; r < side->blocks && code == MPI_SUCCESS; r++) {
        int64_t count = by_shim_side_count(side, r), bytes = by_shim_side_block(side, r);
        char *block = (char *)side->buffer + by_shim_side_place(side, r);
        MPI_Datatype type = by_shim_side_type(side, r);

        if (bytes > INT_MAX)
            return MPI_ERR_COUNT; /* MPI_Pack takes no more */
        code = is_packing ? pack(block, count, type, room, (int)bytes)
                          : unpack(room, (int)bytes, block, count, type);
        room += bytes;
    }
    return code;
}

/* ---- a work's way ---- */

int by_shim_prepare(struct by_shim_work *work, size_t room_bytes)
{
    struct by_mpi_call *call = &work->flight.call;
    int status;

    work->code = MPI_SUCCESS;
    work->kept[0] = work->kept[1] = MPI_DATATYPE_NULL;
    work->kept_all[0] = work->kept_all[1] = NULL;
    memset(work->lists, 0, sizeof(work->lists));
    work->room = work->form == BY_SHIM_IN_PLACE ? NULL : malloc(room_bytes > 0 ? room_bytes : 1);
    if (work->room == NULL && work->form != BY_SHIM_IN_PLACE) {
        fprintf(stderr, "banyan: no memory for a temporary buffer of %zu bytes\n", room_bytes);
        work->code = MPI_ERR_NO_MEM;
        return 1;
    }
    call->send = work->send;
    call->recv = work->recv;
    if (work->form == BY_SHIM_SHAPED) {
        call->send = work->room;
        call->recv =
            work->recv != NULL ? (char *)work->room + work->sent * by_mpi_wire_bytes(&work->shape) : NULL;
    } else if (work->form == BY_SHIM_GATHERED) {
        const struct by_shim_gathering *g = &work->gathering;

        call->send = (char *)work->room + by_shim_count_before(g, g->rank, INT64_MAX) * g->size;
        call->recv = work->room;
    } else if (work->form == BY_SHIM_SHARES) {
        call->send = work->room;
        call->recv = (char *)work->room + by_shim_side_bytes(&work->side[0]);
    } else if (work->form != BY_SHIM_IN_PLACE) {
        call->recv = work->room;
    }
    status = by_mpi_open(&work->flight);
    if (status != BANYAN_OK)
        work->code = by_shim_code(work->flight.text);
    return 1;
}

/* A type of one such element holds what the user may free, and copies no attributes. */
static MPI_Datatype keep(MPI_Datatype type)
{
    MPI_Datatype kept = MPI_DATATYPE_NULL;

    if (PMPI_Type_contiguous(1, type, &kept) == MPI_SUCCESS)
        PMPI_Type_commit(&kept);
    return kept;
}

/* The same for a type of each block. Without memory the user's handles stay in use. */
static MPI_Datatype *keep_all(const struct by_shim_side *side)
{
    MPI_Datatype *kept = malloc((size_t)side->blocks * sizeof(*kept));

    for (int r = 0; kept != NULL && r < side->blocks; r++)
        kept[r] = by_shim_side_count(side, r) > 0 ? keep(side->types[r]) : MPI_DATATYPE_NULL;
    return kept;
}

/* Returns a copy of a list, or without memory the list. */
static const void *copy(const void *list, size_t bytes, void **kept)
{
    *kept = list != NULL ? malloc(bytes) : NULL;
    return *kept != NULL ? memcpy(*kept, list, bytes) : list;
}

static void keep_lists(struct by_shim_counts *counts, struct by_shim_places *places, int blocks,
                       void *kept[2])
{
    const size_t count = (size_t)blocks;

    if (counts->wide != NULL)
        counts->wide = copy(counts->wide, count * sizeof(*counts->wide), &kept[0]);
    else
        counts->narrow = copy(counts->narrow, count * sizeof(*counts->narrow), &kept[0]);
    if (places->wide != NULL)
        places->wide = copy(places->wide, count * sizeof(*places->wide), &kept[1]);
    else
        places->narrow = copy(places->narrow, count * sizeof(*places->narrow), &kept[1]);
}

void by_shim_keep(struct by_shim_work *work)
{
    struct by_shim_gathering *g = &work->gathering;

    if (work->code != MPI_SUCCESS)
        return;
    if (work->form == BY_SHIM_PACKED) {
        work->type = work->kept[0] = keep(work->type);
    } else if (work->form == BY_SHIM_GATHERED) {
        keep_lists(&g->counts, &g->places, g->ranks, &work->lists[0]);
        g->recv_type = work->kept[0] = keep(g->recv_type);
        if (g->send != MPI_IN_PLACE)
            g->send_type = work->kept[1] = keep(g->send_type);
    } else if (work->form == BY_SHIM_SHARES) {
        for (int i = 0; i < 2; i++) {
            struct by_shim_side *side = &work->side[i];

            if (side->blocks > 0)
                keep_lists(&side->counts, &side->places, side->blocks, &work->lists[2 * i]);
            if (side->types != NULL)
                work->kept_all[i] = keep_all(side);
            else if (side->blocks > 0)
                side->type = work->kept[i] = keep(side->type);
            if (work->kept_all[i] != NULL)
                side->types = work->kept_all[i];
        }
    }
}

/* Fills the temporary buffer with what is sent. */
static int fill(struct by_shim_work *work)
{
    const struct by_mpi_call *call = &work->flight.call;

    if (work->form == BY_SHIM_SHAPED)
        by_mpi_encode(&work->shape, work->send, work->sent, work->room);
    else if (work->form == BY_SHIM_PACKED && work->is_root)
        return pack(work->recv, (int64_t)work->got, work->type, work->room, (int)call->count);
    else if (work->form == BY_SHIM_GATHERED)
        return pack_block(&work->gathering, (void *)(uintptr_t)call->send);
    else if (work->form == BY_SHIM_SHARES)
        return move_side(&work->side[0], work->room, 1);
    return MPI_SUCCESS;
}

int by_shim_start(struct by_shim_work *work)
{
    if (work->code == MPI_SUCCESS)
        work->code = fill(work);
    if (work->code == MPI_SUCCESS)
        by_mpi_start(&work->flight);
    return work->code;
}

int by_shim_finish(struct by_shim_work *work)
{
    const struct by_mpi_call *call = &work->flight.call;

    if (work->flight.status != BANYAN_OK)
        work->code = by_shim_code(work->flight.text);
    else if (work->form == BY_SHIM_SHAPED && work->recv != NULL)
        by_mpi_decode(&work->shape, call->recv, work->got, work->recv);
    else if (work->form == BY_SHIM_MOVED)
        memcpy(work->recv, work->room, work->got);
    else if (work->form == BY_SHIM_PACKED && !work->is_root)
        work->code = unpack(work->room, (int)call->count, work->recv, (int64_t)work->got, work->type);
    else if (work->form == BY_SHIM_GATHERED)
        work->code = unpack_blocks(&work->gathering, work->room);
    else if (work->form == BY_SHIM_SHARES && !work->side[1].is_kept)
        work->code = move_side(&work->side[1], call->recv, 0);
    return work->code;
}

void by_shim_release(struct by_shim_work *work)
{
    for (int i = 0; i < 2; i++)
        if (work->kept[i] != MPI_DATATYPE_NULL)
            PMPI_Type_free(&work->kept[i]);
    for (int i = 0; i < 2; i++) {
        for (int r = 0; work->kept_all[i] != NULL && r < work->side[i].blocks; r++)
            if (work->kept_all[i][r] != MPI_DATATYPE_NULL)
                PMPI_Type_free(&work->kept_all[i][r]);
        free(work->kept_all[i]);
        work->kept_all[i] = NULL;
    }
    for (int i = 0; i < 4; i++) {
        free(work->lists[i]);
        work->lists[i] = NULL;
    }
    by_mpi_close(&work->flight);
    free(work->room);
    work->room = NULL;
}

int by_shim_run(struct by_shim_work *work)
{
    int code;

    if (work->code == MPI_SUCCESS)
        work->code = fill(work);
    if (work->code == MPI_SUCCESS) {
        by_mpi_run(&work->flight, by_shim_idle);
        by_shim_finish(work);
    }
    code = work->code;
    by_shim_release(work);
    return code;
}
