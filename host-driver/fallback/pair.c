/* One end of a pair; see pair.h. */
#include "host-driver/fallback/pair.h"

#include <string.h>

#define LATER     3u  /* transmissions that overtake one which is lost */
#define ANSWER_AT 16u /* parcels: an acknowledgement for so many at least */

enum slot_state { SLOT_SENT = 1, SLOT_LOST, SLOT_ARRIVED };

static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static struct by_pair_slot *slot_of(struct by_host_pair *pair, uint32_t seq)
{
    return &pair->out.slot[seq & (pair->config.slot_count - 1)];
}

static uint8_t *memory_of(const struct by_host_pair *pair, uint8_t *memory, uint32_t seq)
{
    return memory + (size_t)(seq & (pair->config.slot_count - 1)) * pair->config.slot_bytes;
}

size_t by_pair_bytes(const struct by_pair_config *config)
{
    return (size_t)2 * config->slot_count * config->slot_bytes;
}

void by_pair_open(struct by_host_pair *pair, const struct by_pair_config *config, void *memory)
{
    memset(pair, 0, sizeof(*pair));
    pair->config = *config;
    by_tempo_begin(&pair->tempo, BY_PAIR_FIRST);
    pair->out.memory = memory;
    pair->out.first = pair->out.next = pair->out.end = pair->out.order = BY_PAIR_FIRST;
    pair->out.limit = BY_PAIR_FIRST + config->peer_window;
    pair->out.timer_ns = UINT64_MAX;
    pair->in.memory = (uint8_t *)memory + (size_t)config->slot_count * config->slot_bytes;
    pair->in.first = pair->in.come = BY_PAIR_FIRST;
    pair->in.newest = BY_PAIR_FIRST - 1;
    pair->in.told = BY_PAIR_FIRST + config->window;
}

/* ---- writing and reading */

static void close_slot(struct by_host_pair *pair)
{
    slot_of(pair, pair->out.end)->bytes = (uint16_t)pair->out.filled;
    pair->out.end++;
    pair->out.filled = 0;
}

size_t by_pair_write(struct by_host_pair *pair, const void *bytes, size_t size)
{
    const uint8_t *from = bytes;
    size_t taken = 0;

    while (taken < size && pair->out.end - pair->out.first < pair->config.slot_count) {
        size_t part = pair->config.peer_bytes - pair->out.filled;

        if (size - taken < part)
            part = size - taken;
        memcpy(memory_of(pair, pair->out.memory, pair->out.end) + pair->out.filled, from + taken, part);
        pair->out.filled += (uint32_t)part;
        taken += part;
        if (pair->out.filled == pair->config.peer_bytes)
            close_slot(pair);
    }
    return taken;
}

void by_pair_flush(struct by_host_pair *pair)
{
    if (pair->out.filled > 0)
        close_slot(pair);
}

bool by_pair_settled(const struct by_host_pair *pair)
{
    return pair->out.first == pair->out.end && pair->out.filled == 0;
}

void by_pair_abandon(struct by_host_pair *pair)
{
    pair->out.first = pair->out.next = pair->out.end;
    pair->out.filled = pair->out.flight = pair->out.lost = 0;
    pair->out.timer_ns = UINT64_MAX;
}

/* Where the other end has used half of the room that it knows of, it hears of a quarter that is
 * new. */
static void offer_room(struct by_host_pair *pair)
{
    uint32_t window = pair->config.window, limit = pair->in.first + window;

    if ((int32_t)(pair->in.told - pair->in.come) <= (int32_t)(window / 2) &&
        limit - pair->in.told >= (window + 3) / 4)
        pair->in.answer = true;
}

size_t by_pair_read(struct by_host_pair *pair, void *bytes, size_t size)
{
    uint8_t *to = bytes;
    size_t given = 0;

    while (given < size && pair->in.first != pair->in.come) {
        uint16_t *have = &pair->in.bytes[pair->in.first & (pair->config.slot_count - 1)];
        size_t part = *have - pair->in.read;

        if (size - given < part)
            part = size - given;
        memcpy(to + given, memory_of(pair, pair->in.memory, pair->in.first) + pair->in.read, part);
        pair->in.read += (uint32_t)part;
        given += part;
        if (pair->in.read == *have) {
            *have = 0;
            pair->in.read = 0;
            pair->in.first++;
        }
    }
    offer_room(pair);
    return given;
}

/* ---- what comes */

/* Number `seq` has arrived; 1 when that is news. The transmission that the acknowledgement answers
 * tells what it took. */
static uint32_t settle(struct by_host_pair *pair, uint32_t seq, const struct by_parcel *parcel,
                       uint64_t now_ns)
{
    struct by_pair_slot *slot = slot_of(pair, seq);

    if (slot->state == SLOT_ARRIVED)
        return 0;
    if (slot->state == SLOT_SENT)
        pair->out.flight--;
    else
        pair->out.lost--;
    slot->state = SLOT_ARRIVED;
    if (parcel->kind == BY_PARCEL_ACK && slot->order == parcel->order && now_ns >= slot->sent_ns)
        by_tempo_sample(&pair->tempo, now_ns - slot->sent_ns);
    return 1;
}

/* What left long before `newest`, which has arrived, is lost. */
static void find_lost(struct by_host_pair *pair, uint32_t newest)
{
    for (uint32_t seq = pair->out.first; seq != pair->out.next; seq++) {
        struct by_pair_slot *slot = slot_of(pair, seq);

        if (slot->state != SLOT_SENT || is_before(newest, slot->order + LATER))
            continue;
        slot->state = SLOT_LOST;
        pair->out.flight--;
        pair->out.lost++;
        by_tempo_lost(&pair->tempo, slot->order, pair->out.order);
    }
}

/* The time was out for nothing: what counts as lost is on its way. */
static void find_again(struct by_host_pair *pair)
{
    for (uint32_t seq = pair->out.first; seq != pair->out.next; seq++) {
        struct by_pair_slot *slot = slot_of(pair, seq);

        if (slot->state != SLOT_LOST)
            continue;
        slot->state = SLOT_SENT;
        pair->out.lost--;
        pair->out.flight++;
    }
}

static void start_timer(struct by_host_pair *pair, uint64_t now_ns)
{
    pair->out.timer_ns = pair->out.first == pair->out.end ? UINT64_MAX : now_ns + pair->tempo.timeout_ns;
}

static void take_ack(struct by_host_pair *pair, const struct by_parcel *parcel, uint64_t now_ns)
{
    bool answers = parcel->kind == BY_PARCEL_ACK && is_before(parcel->order, pair->out.order);
    bool full = pair->out.flight + pair->out.lost >= pair->tempo.window;
    uint32_t bits = answers ? 8u * parcel->bytes : 0;
    uint32_t arrived = 0;

    if (is_before(parcel->ack, pair->out.first) || is_before(pair->out.next, parcel->ack) ||
        parcel->room > BY_PAIR_SLOTS_MAX)
        return;
    if (is_before(pair->out.limit, parcel->ack + parcel->room))
        pair->out.limit = parcel->ack + parcel->room;
    for (; pair->out.first != parcel->ack; pair->out.first++)
        arrived += settle(pair, pair->out.first, parcel, now_ns);
    for (uint32_t i = 0; i < bits && is_before(parcel->ack + 1 + i, pair->out.next); i++)
        if ((parcel->payload[i / 8] >> i % 8 & 1) != 0)
            arrived += settle(pair, parcel->ack + 1 + i, parcel, now_ns);
    if (arrived > 0 && answers && by_tempo_answer(&pair->tempo, parcel->order))
        find_again(pair);
    if (answers)
        find_lost(pair, parcel->order);
    if (arrived == 0)
        return;
    by_tempo_arrived(&pair->tempo, arrived, full);
    start_timer(pair, now_ns);
}

static void take_data(struct by_host_pair *pair, const struct by_parcel *parcel)
{
    uint32_t mask = pair->config.slot_count - 1;

    if (parcel->bytes > pair->config.slot_bytes)
        return;
    if (is_before(pair->in.newest, parcel->order))
        pair->in.newest = parcel->order;
    if (is_before(parcel->seq, pair->in.come) || parcel->seq - pair->in.first >= pair->config.window ||
        pair->in.bytes[parcel->seq & mask] != 0) {
        pair->counters.doubled++;
        pair->in.answer = true;
        return;
    }
    memcpy(memory_of(pair, pair->in.memory, parcel->seq), parcel->payload, parcel->bytes);
    pair->in.bytes[parcel->seq & mask] = parcel->bytes;
    pair->in.beyond++;
    while (pair->in.come - pair->in.first < pair->config.slot_count &&
           pair->in.bytes[pair->in.come & mask] != 0) {
        pair->in.come++;
        pair->in.beyond--;
    }
    pair->counters.come++;
    pair->in.silent++;
    if (parcel->push || pair->in.silent >= ANSWER_AT || pair->in.beyond > 0)
        pair->in.answer = true;
}

void by_pair_take(struct by_host_pair *pair, const struct by_parcel *parcel, uint64_t now_ns)
{
    take_ack(pair, parcel, now_ns);
    if (parcel->kind == BY_PARCEL_DATA)
        take_data(pair, parcel);
}

/* ---- what goes */

static void fill_ack(struct by_host_pair *pair, struct by_parcel *parcel)
{
    uint32_t mask = pair->config.slot_count - 1, found = 0;

    *parcel = (struct by_parcel){.nonce = pair->config.peer_nonce,
                                 .rank = pair->config.rank,
                                 .kind = BY_PARCEL_ACK,
                                 .order = pair->in.newest,
                                 .payload = pair->in.map};
    memset(pair->in.map, 0, sizeof(pair->in.map));
    for (uint32_t i = 0; found < pair->in.beyond; i++) {
        if (pair->in.bytes[(pair->in.come + 1 + i) & mask] == 0)
            continue;
        pair->in.map[i / 8] |= (uint8_t)(1u << i % 8);
        parcel->bytes = (uint16_t)(i / 8 + 1);
        found++;
    }
    pair->counters.acks++;
}

static void fill_data(struct by_host_pair *pair, uint32_t seq, uint64_t now_ns, struct by_parcel *parcel)
{
    struct by_pair_slot *slot = slot_of(pair, seq);

    slot->state = SLOT_SENT;
    slot->order = pair->out.order++;
    slot->sent_ns = now_ns;
    pair->out.flight++;
    *parcel = (struct by_parcel){.nonce = pair->config.peer_nonce,
                                 .rank = pair->config.rank,
                                 .kind = BY_PARCEL_DATA,
                                 .seq = seq,
                                 .order = slot->order,
                                 .bytes = slot->bytes,
                                 .payload = memory_of(pair, pair->out.memory, seq)};
    pair->counters.sent++;
    if (pair->out.timer_ns == UINT64_MAX)
        start_timer(pair, now_ns);
}

static bool may_repeat(const struct by_host_pair *pair)
{
    return pair->out.lost > 0 && pair->out.flight < pair->tempo.window;
}

static bool may_begin(const struct by_host_pair *pair)
{
    return pair->out.next != pair->out.end &&
           (pair->out.probe ||
            (pair->out.flight < pair->tempo.window && is_before(pair->out.next, pair->out.limit)));
}

/* The time is out: what is on its way counts as lost; where nothing is, the other end has had no
 * room, and is asked again. */
static void expire(struct by_host_pair *pair, uint64_t now_ns)
{
    uint32_t flight = pair->out.flight;

    pair->counters.timeouts++;
    pair->out.probe = flight == 0 && pair->out.lost == 0;
    for (uint32_t seq = pair->out.first; seq != pair->out.next; seq++) {
        struct by_pair_slot *slot = slot_of(pair, seq);

        if (slot->state != SLOT_SENT)
            continue;
        slot->state = SLOT_LOST;
        pair->out.flight--;
        pair->out.lost++;
    }
    if (pair->out.probe)
        by_tempo_wait(&pair->tempo);
    else
        by_tempo_timeout(&pair->tempo, flight, pair->out.order);
    start_timer(pair, now_ns);
}

static uint32_t first_lost(struct by_host_pair *pair)
{
    uint32_t seq = pair->out.first;

    while (slot_of(pair, seq)->state != SLOT_LOST)
        seq++;
    return seq;
}

bool by_pair_next(struct by_host_pair *pair, uint64_t now_ns, struct by_parcel *parcel)
{
    if (now_ns >= pair->out.timer_ns)
        expire(pair, now_ns);
    if (pair->in.answer) {
        fill_ack(pair, parcel);
    } else if (may_repeat(pair)) {
        fill_data(pair, first_lost(pair), now_ns, parcel);
        pair->out.lost--;
        pair->counters.repeated++;
    } else if (may_begin(pair)) {
        fill_data(pair, pair->out.next, now_ns, parcel);
        pair->out.next++;
        pair->out.probe = false;
    } else {
        if (pair->out.timer_ns == UINT64_MAX)
            start_timer(pair, now_ns); /* there may be what has no room at the other end */
        return false;
    }
    parcel->ack = pair->in.come;
    pair->in.told = pair->in.first + pair->config.window;
    parcel->room = (uint16_t)(pair->in.told - pair->in.come);
    if (parcel->kind == BY_PARCEL_ACK) {
        pair->in.answer = false;
        pair->in.silent = 0;
    } else {
        parcel->push = !may_repeat(pair) && !may_begin(pair);
    }
    return true;
}

uint64_t by_pair_deadline(const struct by_host_pair *pair)
{
    return pair->in.answer || may_repeat(pair) || may_begin(pair) ? 0 : pair->out.timer_ns;
}
