/*
 * Other traffic on a cable: TCP streams that always have data to send, and streams with a fixed
 * part of the cable's rate. A TCP stream is what a sender puts on this one cable: segments queue
 * with banyan's packets, and are acknowledged a fixed time after they have been sent. It follows
 * CUBIC in its TCP-friendly region (RFC 9438, section 4.3), which holds where a window is regained
 * within milliseconds, or DCTCP (RFC 8257), and halts like RFC 6298 if all of its segments are
 * lost. A lost segment counts as another one that is sent. Single-threaded.
 */
#include <stdlib.h>
#include <string.h>

#include "host-driver/sim/inside.h"

/* Windows are in 1/256 segments. */
#define SEGMENT    256u
#define WINDOW_MIN (2 * SEGMENT)
#define WINDOW_MAX (65535u * SEGMENT)
/* Segments of a new stream in flight (RFC 6928). */
#define WINDOW_FIRST (10 * SEGMENT)
/* Part of the window that a loss or mark leaves, and the growth in each round trip that gives the
 * rate of a sender that halves its window and grows by one segment: 3 (1 - b) / (1 + b). */
#define DECREASE(window) ((window) / 10 * 7)
#define INCREASE         (SEGMENT * 9u / 17u)
/* DCTCP's mean of marks: 1, and the weight of a new value as a power of 1/2. */
#define ALPHA_ONE  1024
#define ALPHA_GAIN 4
#define TIMEOUT_PS UINT64_C(200000000000)

void by_streams_make(struct by_world *world)
{
    const struct by_world_config *config = &world->config;

    world->streams = calloc(config->stream_count + 1, sizeof(*world->streams));
    if (world->streams == NULL)
        abort();
    for (uint32_t s = 0; s < config->stream_count; s++) {
        struct by_sim_stream *stream = &world->streams[s];

        *stream = (struct by_sim_stream){
            .given = config->streams[s], .window = WINDOW_FIRST, .threshold = WINDOW_MAX};
        if (stream->given.arc >= world->direction_count)
            abort();
        by_heap_push(&world->heap, by_sim_ps(stream->given.begin_ns), BY_EVENT_STREAM, s, NULL);
    }
    world->config.streams = NULL; /* the caller's */
}

void by_streams_free(struct by_world *world)
{
    for (uint32_t s = 0; s < world->config.stream_count; s++)
        free(world->streams[s].acks);
    free(world->streams);
}

uint64_t by_world_stream_bytes(const struct by_world *world, uint32_t stream)
{
    return world->streams[stream].sent_bytes;
}

/* ---- a fixed rate ---- */

static void send_next(struct by_world *world, uint32_t index)
{
    struct by_sim_stream *stream = &world->streams[index];
    const struct by_world_arc *arc = &world->directions[stream->given.arc].arc;
    uint64_t gap_ps =
        (uint64_t)(((unsigned __int128)BY_WORLD_STREAM_BYTES * world->config.batch * arc->ps_num << 32) /
                   arc->ps_den / stream->given.part);

    by_cable_send_stream(world, stream->given.arc, index, 0);
    by_heap_push(&world->heap, world->now_ps + by_prng_below(&world->prng, 2 * gap_ps + 1), BY_EVENT_STREAM,
                 index, NULL);
}

/* ---- TCP ---- */

static void remember(struct by_sim_stream *stream, struct by_sim_ack ack)
{
    if (stream->ack_count == stream->ack_room) {
        uint32_t room = stream->ack_room > 0 ? 2 * stream->ack_room : 64;
        struct by_sim_ack *acks = malloc(room * sizeof(*acks));

        if (acks == NULL)
            abort();
        for (uint32_t i = 0; i < stream->ack_count; i++)
            acks[i] = stream->acks[(stream->ack_first + i) % stream->ack_room];
        free(stream->acks);
        stream->acks = acks;
        stream->ack_room = room;
        stream->ack_first = 0;
    }
    stream->acks[(stream->ack_first + stream->ack_count++) % stream->ack_room] = ack;
}

/* Sends what the window allows. If all segments in flight are lost, waits for the timeout. */
static void fill_window(struct by_world *world, uint32_t index)
{
    struct by_sim_stream *stream = &world->streams[index];

    while ((stream->next - stream->expected + 1) * SEGMENT <= stream->window) {
        enum by_cable_fate fate = by_cable_send_stream(world, stream->given.arc, index, stream->given.ecn);

        if (fate != BY_FATE_DROPPED)
            remember(stream, (struct by_sim_ack){stream->next, fate == BY_FATE_MARKED});
        stream->next++;
    }
    if (stream->ack_count == 0)
        by_heap_push(&world->heap, world->now_ps + TIMEOUT_PS, BY_EVENT_STREAM, index, NULL);
}

static void narrow(struct by_sim_stream *stream, uint32_t window)
{
    stream->window = stream->threshold = window > WINDOW_MIN ? window : WINDOW_MIN;
}

/* DCTCP: once for each window, the part of its segments that were marked enters a mean, of which
 * the window loses half. */
static void weigh_marks(struct by_sim_stream *stream, const struct by_sim_ack *ack)
{
    stream->seen++;
    stream->seen_marked += ack->marked;
    if ((int32_t)(ack->number - stream->round) < 0)
        return;
    stream->alpha += ((ALPHA_ONE * stream->seen_marked / stream->seen) - stream->alpha) >> ALPHA_GAIN;
    if (stream->seen_marked > 0)
        narrow(stream, (uint32_t)((uint64_t)stream->window * (2 * ALPHA_ONE - (uint32_t)stream->alpha) /
                                  (2 * ALPHA_ONE)));
    stream->seen = stream->seen_marked = 0;
    stream->round = stream->next;
}

static void take_ack(struct by_sim_stream *stream)
{
    struct by_sim_ack ack = stream->acks[stream->ack_first];
    bool is_lost = ack.number != stream->expected;

    stream->ack_first = (stream->ack_first + 1) % stream->ack_room;
    stream->ack_count--;
    stream->expected = ack.number + 1;
    if (stream->given.ecn == BY_WORLD_DCTCP) {
        weigh_marks(stream, &ack);
        ack.marked = false;
    }
    if (is_lost || ack.marked) {
        if ((int32_t)(ack.number - stream->recover) < 0)
            return; /* the window has been narrowed for this round trip */
        narrow(stream, DECREASE(stream->window));
        stream->recover = stream->next;
    } else if (stream->window < stream->threshold) {
        stream->window += SEGMENT;
    } else if (stream->window < WINDOW_MAX) {
        stream->window += SEGMENT * INCREASE / stream->window + 1;
    }
}

void by_stream_on_event(struct by_world *world, uint32_t index)
{
    struct by_sim_stream *stream = &world->streams[index];

    if (stream->given.part > 0) {
        send_next(world, index);
        return;
    }
    if (stream->ack_count > 0) {
        take_ack(stream);
    } else if (stream->next != stream->expected) { /* the timeout */
        stream->expected = stream->recover = stream->next;
        narrow(stream, DECREASE(stream->window));
        stream->window = SEGMENT;
    }
    fill_window(world, index);
}

void by_stream_on_sent(struct by_world *world, uint32_t index, uint64_t at_ps)
{
    struct by_sim_stream *stream = &world->streams[index];

    stream->sent_bytes += (uint64_t)BY_WORLD_STREAM_BYTES * world->config.batch;
    if (stream->given.part == 0)
        by_heap_push(&world->heap, at_ps + by_sim_ps(stream->given.trip_ns), BY_EVENT_STREAM, index, NULL);
}
