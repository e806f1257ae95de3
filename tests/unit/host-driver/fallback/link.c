/* A simulated network for two ends; see link.h. */
#include "tests/unit/host-driver/fallback/link.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NONCE 0x5eed0000u

/* Byte `at` of what end `from` writes. */
static uint8_t byte_of(const struct fallback_link *link, uint32_t from, uint64_t at)
{
    uint64_t z = (link->seed ^ from ^ at / 8) * UINT64_C(0x9e3779b97f4a7c15);

    return (uint8_t)((z ^ z >> 31) >> 8 * (at % 8));
}

void link_open(struct fallback_link *link, uint64_t seed, uint32_t slots, uint32_t window)
{
    memset(link, 0, sizeof(*link));
    link->seed = link->prng.state = seed;
    link->now_ns = 1000000;
    link->latency_ns = 50000;
    link->packet_ns = 1000;
    link->queue = LINK_PACKETS_MAX;
    link->packet = malloc(LINK_PACKETS_MAX * sizeof(*link->packet));
    assert_non_null(link->packet);
    for (uint32_t i = 0; i < 2; i++) {
        struct by_pair_config config = {.slot_count = slots,
                                        .slot_bytes = LINK_BYTES,
                                        .window = window,
                                        .peer_bytes = LINK_BYTES,
                                        .peer_window = window,
                                        .peer_nonce = NONCE + 1 - i,
                                        .rank = (uint16_t)i};

        link->end[i].memory = malloc(by_pair_bytes(&config));
        assert_non_null(link->end[i].memory);
        by_pair_open(&link->end[i].pair, &config, link->end[i].memory);
    }
}

void link_close(struct fallback_link *link)
{
    free(link->end[0].memory);
    free(link->end[1].memory);
    free(link->packet);
}

static bool happens(struct fallback_link *link, uint32_t of_1000)
{
    return by_prng_below(&link->prng, 1000) < of_1000;
}

static void put(struct fallback_link *link, uint32_t from, const uint8_t *data, uint32_t bytes)
{
    struct link_end *end = &link->end[from];
    uint64_t begin_ns = end->free_ns > link->now_ns ? end->free_ns : link->now_ns;
    struct link_packet *packet;

    if (begin_ns - link->now_ns > link->queue * link->packet_ns || link->count == LINK_PACKETS_MAX) {
        link->dropped++;
        return;
    }
    end->free_ns = begin_ns + link->packet_ns;
    packet = &link->packet[link->count++];
    packet->at_ns = end->free_ns + link->latency_ns;
    if (happens(link, link->late))
        packet->at_ns += by_prng_below(&link->prng, 10 * link->latency_ns);
    packet->to = 1 - from;
    packet->bytes = bytes;
    memcpy(packet->data, data, bytes);
    if (happens(link, link->damaged))
        packet->data[by_prng_below(&link->prng, BY_PARCEL_HEADER_BYTES)] ^=
            (uint8_t)(1u << by_prng_below(&link->prng, 8));
}

uint32_t link_send(struct fallback_link *link, uint32_t from, bool lost)
{
    uint8_t data[BY_PARCEL_HEADER_BYTES + LINK_BYTES];
    struct by_parcel parcel;
    uint32_t count = 0;

    for (; by_pair_next(&link->end[from].pair, link->now_ns, &parcel); count++) {
        by_parcel_write(&parcel, data);
        memcpy(data + BY_PARCEL_HEADER_BYTES, parcel.payload, parcel.bytes);
        if (lost || happens(link, link->loss))
            continue;
        put(link, from, data, BY_PARCEL_HEADER_BYTES + parcel.bytes);
        if (happens(link, link->doubled))
            put(link, from, data, BY_PARCEL_HEADER_BYTES + parcel.bytes);
    }
    return count;
}

/* Reads what has come, and writes what there is room for, in pieces of any size. */
static void use(struct fallback_link *link, uint32_t index)
{
    struct link_end *end = &link->end[index];
    uint8_t buffer[3 * LINK_BYTES];
    size_t size, got;

    do {
        size = 1 + by_prng_below(&link->prng, sizeof(buffer));
        got = link->deaf[index] ? 0 : by_pair_read(&end->pair, buffer, size);
        for (size_t i = 0; i < got; i++)
            if (buffer[i] != byte_of(link, 1 - index, end->read + i))
                fail_msg("byte %" PRIu64 " is wrong; seed %" PRIu64, end->read + i, link->seed);
        end->read += got;
    } while (got > 0);
    do {
        size = 1 + by_prng_below(&link->prng, sizeof(buffer));
        size = size < end->want - end->written ? size : (size_t)(end->want - end->written);
        for (size_t i = 0; i < size; i++)
            buffer[i] = byte_of(link, index, end->written + i);
        got = by_pair_write(&end->pair, buffer, size);
        end->written += got;
        if (end->written == end->want || happens(link, 100))
            by_pair_flush(&end->pair);
    } while (got > 0);
}

static void deliver(struct fallback_link *link, uint32_t index)
{
    struct link_packet packet = link->packet[index];
    struct by_parcel parcel;
    struct link_end *end = &link->end[packet.to];

    link->packet[index] = link->packet[--link->count];
    if (by_parcel_read(packet.data, packet.bytes, &parcel) != 0)
        return;
    if (parcel.nonce != NONCE + packet.to || parcel.rank != 1 - packet.to)
        fail_msg("a damaged packet was read; seed %" PRIu64, link->seed);
    by_pair_take(&end->pair, &parcel, link->now_ns);
}

/* The first that is due: a packet's index, or `count` for a timer. */
static uint32_t next_event(const struct fallback_link *link, uint64_t *at_ns)
{
    uint32_t first = link->count;

    *at_ns = UINT64_MAX;
    for (uint32_t i = 0; i < 2; i++)
        if (by_pair_deadline(&link->end[i].pair) < *at_ns)
            *at_ns = by_pair_deadline(&link->end[i].pair);
    for (uint32_t i = 0; i < link->count; i++)
        if (link->packet[i].at_ns < *at_ns) {
            *at_ns = link->packet[i].at_ns;
            first = i;
        }
    return first;
}

static bool is_done(const struct fallback_link *link)
{
    for (uint32_t i = 0; i < 2; i++)
        if (link->end[i].read != link->end[1 - i].want || !by_pair_settled(&link->end[i].pair))
            return false;
    return true;
}

bool link_run(struct fallback_link *link, uint64_t limit_ns)
{
    uint64_t end_ns = link->now_ns + limit_ns;

    for (;;) {
        uint64_t at_ns;
        uint32_t index;

        for (uint32_t i = 0; i < 2; i++) {
            use(link, i);
            link_send(link, i, false);
        }
        if (is_done(link))
            return true;
        index = next_event(link, &at_ns);
        if (at_ns >= end_ns) {
            link->now_ns = end_ns;
            return false;
        }
        link->now_ns = at_ns > link->now_ns ? at_ns : link->now_ns;
        if (index < link->count)
            deliver(link, index);
    }
}
