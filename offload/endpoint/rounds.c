/*
 * Rounds of levelling. In each round a rank writes into its own region
 *   the bytes that it still has to send (4), then messages:
 *   length (2), rank to which it is sent, or BY_RANK_NONE (2), the message of resume.c.
 * A length of 0 ends the list; the regions of all other ranks are 0. The size of a region in the
 * next round follows from this round's result, so it is the same at all ranks. Neighbours: resume.c
 * writes and evaluates messages, retain.c holds the data. Pure; the endpoint's thread.
 *
 * A holder keeps a bit for each chunk that is requested from it. However many ranks lack the chunk,
 * one COPY in a round serves all of them, and requests for it in the same round are void.
 */
#include "offload/endpoint/rounds.h"
#include "offload/endpoint/levelling.h"

/* Bytes of a region in the first round, at least: the report of a few trees. */
#define REGION_FIRST 256u
/* The least bytes of a region: such that all together have REGIONS_LEAST, some ten packets, within
 * these bounds. */
#define REGIONS_LEAST (16u << 10)
#define REGION_SHORT  64u
#define REGION_ROOMY  2048u
/* The most bytes of a region: such that all together have REGIONS_MOST, but at least
 * REGION_LARGE. */
#define REGIONS_MOST (4u << 20)
#define REGION_LARGE (16u << 10)
/* Bytes in front of the messages of a region, and in front of a message. */
#define SIZE_BYTES 4u
#define FORE_BYTES 4u

struct by_level_rounds {
    struct by_resume *resume;
    struct by_endpoint *tree;
    uint8_t *regions;   /* of the ranks, in their order */
    uint32_t *place_at; /* offset of each lane's places among the bits of `wanted` */
    uint8_t *wanted;    /* a bit for each chunk of two windows of each lane: it is requested */
    uint8_t *staged;    /* a message, of staged_bytes if it had no room in the last round, else 0 */
    uint32_t staged_bytes;
    uint16_t staged_to;
    uint16_t rank, rank_count;
    uint8_t running; /* round `call` is on its way */
    uint8_t over;
    uint32_t call;
    uint32_t region_bytes;
    uint32_t level_count; /* ranks that have reported in a round that they are level */
    uint32_t count;       /* complete rounds */
};

static size_t align_up(size_t bytes)
{
    return (bytes + 63) & ~(size_t)63;
}

/* Return the least and the most bytes of a region: functions of the number of ranks, because all
 * must agree. */
static uint32_t region_least(uint32_t rank_count)
{
    uint32_t bytes = REGIONS_LEAST / rank_count & ~63u;

    return bytes < REGION_SHORT ? REGION_SHORT : bytes > REGION_ROOMY ? REGION_ROOMY : bytes;
}

static uint32_t region_most(uint32_t rank_count)
{
    uint32_t bytes = REGIONS_MOST / rank_count & ~63u;

    return bytes > REGION_LARGE ? bytes : REGION_LARGE;
}

static uint32_t place_count(const struct by_endpoint *endpoint)
{
    uint32_t count = 0;

    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        count += 2 * (endpoint->lanes[l].mask + 1);
    return count;
}

size_t by_level_rounds_size(const struct by_endpoint *endpoint)
{
    if (SIZE_BYTES + FORE_BYTES + by_resume_message_max(endpoint) > region_most(endpoint->rank_count))
        return 0;
    return align_up(sizeof(struct by_level_rounds)) + align_up(endpoint->lane_count * sizeof(uint32_t)) +
           align_up((place_count(endpoint) + 7) / 8) + align_up(by_resume_message_max(endpoint)) +
           (size_t)endpoint->rank_count * region_most(endpoint->rank_count);
}

/* ---- chunks that are requested ---- */

static uint32_t place_of(const struct by_level_rounds *rounds, uint32_t l, uint32_t seq)
{
    return rounds->place_at[l] + (seq & (2 * rounds->resume->endpoint->lanes[l].mask + 1));
}

/* Returns the lane of a NEED or COPY, with its chunk; lane_count: it is not of this endpoint. */
static uint32_t chunk_of(const struct by_level_rounds *rounds, const uint8_t *message, uint32_t *seq)
{
    const struct by_endpoint *endpoint = rounds->resume->endpoint;
    uint32_t l = by_get16(message + BY_LEVELLING_HEAD_BYTES + 2);

    *seq = by_get32(message + BY_LEVELLING_HEAD_BYTES + 4);
    if (by_get16(message + BY_LEVELLING_HEAD_BYTES) != endpoint->gen || l >= endpoint->lane_count)
        return endpoint->lane_count;
    return l;
}

/*
 * Notes a request. The owner of a chunk that goes to it alone requires the inputs of all ranks in
 * their order, and names the first one that it lacks: all others from there on answer too.
 */
static void take_need(struct by_level_rounds *rounds, const uint8_t *message, uint16_t to)
{
    const struct by_endpoint *endpoint = rounds->resume->endpoint;
    uint32_t seq, bytes, l = chunk_of(rounds, message, &seq);

    if (l == endpoint->lane_count || by_retain_held(endpoint, &endpoint->lanes[l], seq, &bytes) == NULL)
        return;
    if (to == rounds->rank ||
        (to < rounds->rank && by_trace_at(&endpoint->lanes[l], seq)->kind == BY_CHUNK_TO))
        rounds->wanted[place_of(rounds, l, seq) / 8] |= (uint8_t)(1u << place_of(rounds, l, seq) % 8);
}

static void end_need(struct by_level_rounds *rounds, const uint8_t *message)
{
    uint32_t seq, l = chunk_of(rounds, message, &seq);

    rounds->wanted[place_of(rounds, l, seq) / 8] &= (uint8_t) ~(1u << place_of(rounds, l, seq) % 8);
}

/* ---- a region out ---- */

/* Returns whether a message of so many bytes has room behind `used` bytes of the region. */
static int fits(const struct by_level_rounds *rounds, uint32_t used, uint32_t bytes)
{
    return used + FORE_BYTES + bytes <= rounds->region_bytes;
}

/*
 * Adds the messages of by_resume_say; returns the bytes used, and adds to *left the bytes of those
 * without room. A report, or LEVEL, waits for the next round. Requests are written afresh in each
 * round, because chunks may have arrived meanwhile.
 */
static uint32_t put_messages(struct by_level_rounds *rounds, uint8_t *region, uint32_t used, uint32_t *left)
{
    by_resume_repeat(rounds->resume);
    for (;; rounds->staged_bytes = 0) {
        uint32_t bytes = rounds->staged_bytes;

        if (bytes == 0)
            bytes = (uint32_t)by_resume_say(rounds->resume, rounds->staged, &rounds->staged_to);
        if (bytes == 0)
            return used;
        if (!fits(rounds, used, bytes)) {
            *left += FORE_BYTES + bytes;
            if (rounds->staged[1] == BY_LEVELLING_NEED)
                continue;
            rounds->staged_bytes = bytes;
            return used;
        }
        by_put16(region + used, (uint16_t)bytes);
        by_put16(region + used + 2, rounds->staged_to);
        by_copy(region + used + FORE_BYTES, rounds->staged, bytes);
        used += FORE_BYTES + bytes;
    }
}

/* Adds copies of requested chunks; adds to *left the bytes of those without room. */
static uint32_t put_copies(const struct by_level_rounds *rounds, uint8_t *region, uint32_t used,
                           uint32_t *left)
{
    const struct by_endpoint *endpoint = rounds->resume->endpoint;

    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        for (uint32_t i = 0; i < 2 * (endpoint->lanes[l].mask + 1); i++) {
            uint32_t place = rounds->place_at[l] + i, seq = endpoint->lanes[l].traces[i].seq, bytes;

            if (!(rounds->wanted[place / 8] >> place % 8 & 1))
                continue;
            (void)by_retain_held(endpoint, &endpoint->lanes[l], seq, &bytes);
            bytes += BY_LEVELLING_COPY_BYTES;
            if (!fits(rounds, used, bytes)) {
                *left += FORE_BYTES + bytes;
                continue;
            }
            by_put16(region + used, (uint16_t)bytes);
            by_put16(region + used + 2, BY_RANK_NONE);
            (void)by_resume_put_copy(rounds->resume, (uint16_t)l, seq, region + used + FORE_BYTES);
            used += FORE_BYTES + bytes;
        }
    return used;
}

/* Posts the next round. */
static int post(struct by_level_rounds *rounds)
{
    uint8_t *own = rounds->regions + (size_t)rounds->rank * rounds->region_bytes;
    struct by_call call = {.collective = BY_COLLECTIVE_ALLREDUCE,
                           .op = BY_OP_BOR,
                           .dtype = BY_DTYPE_U8,
                           .mode = BY_MODE_FAST,
                           .count = (uint64_t)rounds->rank_count * rounds->region_bytes,
                           .send = rounds->regions,
                           .recv = rounds->regions};
    uint32_t used, left = 0;
    int error;

    by_zero(rounds->regions, call.count);
    used = put_messages(rounds, own, SIZE_BYTES, &left);
    (void)put_copies(rounds, own, used, &left);
    by_put32(own, left);
    error = by_endpoint_post(rounds->tree, &call, &rounds->call, NULL);
    rounds->running = error == 0;
    return error;
}

/* ---- a region in ---- */

static int take_message(struct by_level_rounds *rounds, uint32_t rank, uint16_t to, const uint8_t *message,
                        uint32_t bytes)
{
    uint8_t type = message[1];
    int error;

    rounds->level_count += type == BY_LEVELLING_LEVEL;
    if (rank == rounds->rank) {
        if (type == BY_LEVELLING_COPY)
            end_need(rounds, message);
        return 0;
    }
    if (type == BY_LEVELLING_NEED) {
        if (bytes == BY_LEVELLING_NEED_BYTES)
            take_need(rounds, message, to);
        return 0;
    }
    error = by_resume_take(rounds->resume, message, bytes);
    return error == BY_ESTATE ? error : 0;
}

static int take_region(struct by_level_rounds *rounds, uint32_t rank)
{
    const uint8_t *region = rounds->regions + (size_t)rank * rounds->region_bytes;
    uint32_t at = SIZE_BYTES, bytes;

    while (fits(rounds, at, 0) && (bytes = by_get16(region + at)) > 0) {
        int error;

        if (bytes < BY_LEVELLING_HEAD_BYTES || !fits(rounds, at, bytes))
            return BY_EFORMAT;
        error = take_message(rounds, rank, by_get16(region + at + 2), region + at + FORE_BYTES, bytes);
        if (error != 0)
            return error;
        at += FORE_BYTES + bytes;
    }
    return 0;
}

/* Returns the size of a region in the next round: what the rank with most requires, within
 * bounds. */
static uint32_t next_bytes(const struct by_level_rounds *rounds)
{
    uint32_t limit = region_most(rounds->rank_count), most = region_least(rounds->rank_count) - SIZE_BYTES;

    for (uint32_t rank = 0; rank < rounds->rank_count; rank++) {
        uint32_t bytes = by_get32(rounds->regions + (size_t)rank * rounds->region_bytes);

        most = bytes > most ? bytes : most;
    }
    return most < limit - SIZE_BYTES ? (uint32_t)align_up(most + SIZE_BYTES) : limit;
}

/* Evaluates a complete round. This rank's region is last: what it has answered in this round is no
 * longer requested. */
static int take_round(struct by_level_rounds *rounds)
{
    rounds->count++;
    for (uint32_t rank = 0; rank < rounds->rank_count; rank++) {
        int error = rank != rounds->rank ? take_region(rounds, rank) : 0;

        if (error != 0)
            return error;
    }
    (void)take_region(rounds, rounds->rank);
    rounds->over = rounds->level_count == rounds->rank_count;
    rounds->region_bytes = next_bytes(rounds);
    return 0;
}

/* ---- the rounds ---- */

int by_level_rounds_begin(struct by_level_rounds **rounds, void *memory, struct by_resume *resume,
                          struct by_endpoint *tree)
{
    const struct by_endpoint *endpoint = resume->endpoint;
    struct by_level_rounds *r = memory;
    uint8_t *at = (uint8_t *)memory + align_up(sizeof(*r));
    uint32_t places = 0;

    if (tree->gen != resume->attempt || tree->rank != resume->rank ||
        tree->rank_count != resume->rank_count || tree->config.job != resume->job)
        return BY_EINVAL;
    if (by_level_rounds_size(endpoint) == 0)
        return BY_EUNSUPPORTED;
    by_zero(memory, by_level_rounds_size(endpoint));
    r->resume = resume;
    r->tree = tree;
    r->rank = resume->rank;
    r->rank_count = resume->rank_count;
    r->place_at = (uint32_t *)at;
    at += align_up(endpoint->lane_count * sizeof(uint32_t));
    r->wanted = at;
    at += align_up((place_count(endpoint) + 7) / 8);
    r->staged = at;
    r->regions = at + align_up(by_resume_message_max(endpoint));
    for (uint32_t l = 0; l < endpoint->lane_count; l++) {
        r->place_at[l] = places;
        places += 2 * (endpoint->lanes[l].mask + 1);
    }
    r->region_bytes = region_least(r->rank_count);
    if (r->region_bytes < REGION_FIRST)
        r->region_bytes = REGION_FIRST;
    by_resume_share(resume);
    *rounds = r;
    return post(r);
}

int by_level_rounds_step(struct by_level_rounds *rounds)
{
    int error;

    if (rounds->over || !rounds->running)
        return 0;
    error = by_endpoint_test(rounds->tree, rounds->call, NULL);
    if (error == BY_EAGAIN)
        return 0;
    rounds->running = 0;
    if (error == 0)
        error = take_round(rounds);
    if (error != 0 || rounds->over)
        return error;
    error = post(rounds);
    return error == 0 ? 1 : error;
}

int by_level_rounds_is_over(const struct by_level_rounds *rounds)
{
    return rounds->over;
}

uint32_t by_level_rounds_count(const struct by_level_rounds *rounds)
{
    return rounds->count;
}
