/* A list of lanes, the oldest first; see kept.h. */
#include "host-driver/plugin/mpi/kept.h"

#include <search.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static struct {
    struct by_mpi_lane *oldest;
    uint32_t count;
    void *served; /* a tree of struct by_mpi_served (tsearch) */
} kept;

void by_mpi_lane_free(struct by_mpi_lane *lane)
{
    if (lane != NULL)
        free(lane->member);
    free(lane);
}

void by_mpi_kept_put(struct by_mpi_lane *lane, uint64_t now_ns)
{
    struct by_mpi_lane **at = &kept.oldest;

    if (lane->left_ns == 0)
        lane->left_ns = now_ns;
    while (*at != NULL && (*at)->left_ns <= lane->left_ns)
        at = &(*at)->newer;
    lane->newer = *at;
    *at = lane;
    kept.count++;
}

static struct by_mpi_lane *take(struct by_mpi_lane **at)
{
    struct by_mpi_lane *lane = *at;

    *at = lane->newer;
    lane->newer = NULL;
    kept.count--;
    return lane;
}

struct by_mpi_lane *by_mpi_kept_oldest(uint64_t now_ns, int any)
{
    if (kept.oldest == NULL ||
        (!any && kept.count <= BY_MPI_KEPT_MAX && now_ns - kept.oldest->left_ns < BY_MPI_KEPT_NS))
        return NULL;
    return take(&kept.oldest);
}

int by_mpi_kept_any(void)
{
    return kept.count > 0;
}

static bool is_of(const struct by_mpi_lane *lane, const uint32_t *member, uint32_t size)
{
    return lane->size == size && memcmp(lane->member, member, size * sizeof(*member)) == 0;
}

/* Finds the lane of these ranks with the least number. */
static struct by_mpi_lane **least(const uint32_t *member, uint32_t size)
{
    struct by_mpi_lane **found = NULL;

    for (struct by_mpi_lane **at = &kept.oldest; *at != NULL; at = &(*at)->newer)
        if (is_of(*at, member, size) && (found == NULL || (*at)->id < (*found)->id))
            found = at;
    return found;
}

uint32_t by_mpi_kept_take(const uint32_t *member, uint32_t size, struct by_mpi_lane *lane[BY_MPI_OFFER_MAX])
{
    uint32_t count = 0;

    while (count < BY_MPI_OFFER_MAX) {
        struct by_mpi_lane **at = least(member, size);

        if (at == NULL)
            break;
        lane[count++] = take(at);
    }
    return count;
}

void by_mpi_kept_clear(void)
{
    tdestroy(kept.served, free);
    kept.oldest = NULL;
    kept.count = 0;
    kept.served = NULL;
}

/* ---- ranks that have had communicators */

/* Two hashes of ranks in their order: the ranks themselves would take more memory. */
static void make_key(const uint32_t *member, uint32_t size, uint64_t key[2])
{
    key[0] = UINT64_C(0xcbf29ce484222325);
    key[1] = UINT64_C(0x9e3779b97f4a7c15);
    for (uint32_t i = 0; i < size; i++) {
        key[0] = (key[0] ^ member[i]) * UINT64_C(0x100000001b3);
        key[1] = (key[1] + member[i] + 1) * UINT64_C(0xff51afd7ed558ccd);
        key[1] ^= key[1] >> 33;
    }
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(((struct by_mpi_served *)0)->key)); /* the first member */
}

struct by_mpi_served *by_mpi_served_of(const uint32_t *member, uint32_t size)
{
    struct by_mpi_served *added = calloc(1, sizeof(*added)), **found;

    if (added == NULL)
        return NULL;
    make_key(member, size, added->key);
    found = tsearch(added, &kept.served, compare_keys);
    if (found == NULL || *found != added)
        free(added);
    return found != NULL ? *found : NULL;
}

/* ---- offers */

static bool offers(const struct by_mpi_offer *offer, uint64_t id)
{
    for (uint32_t i = 0; i < BY_MPI_OFFER_MAX; i++)
        if (offer->id[i] == id)
            return true;
    return false;
}

uint64_t by_mpi_offer_choose(const struct by_mpi_offer *all, uint32_t count, int *few)
{
    *few = 1;
    for (uint32_t rank = 0; rank < count; rank++)
        *few &= all[rank].alive <= BY_MPI_OFFER_MAX;
    for (uint32_t i = 0; i < BY_MPI_OFFER_MAX && all[0].id[i] != 0; i++) {
        uint32_t rank = 1;

        while (rank < count && offers(&all[rank], all[0].id[i]))
            rank++;
        if (rank == count)
            return all[0].id[i];
    }
    return 0;
}
