/*
 * Timers. A timeout sends only a lane's oldest chunk again, so one timer for each lane suffices. A
 * wheel holds the timers of all lanes: a list for each of the next 64 ticks, for each of the next
 * 64 times 64 ticks, and once more (Varghese and Lauck, SOSP 1987, scheme 7). Most timers never
 * expire, but are postponed with each result. Such a lane stays in its list and is moved when it is
 * checked too early; it is moved at once only when its new time is earlier. Times are rounded up to
 * ticks, so that no timer expires early. Pure; the endpoint's thread.
 */
#include "offload/endpoint/state.h"

/* Numbers of lists: 0 is none; the wheel's start at 1; then the lanes that are due. */
#define LIST_NONE 0u
#define LIST_COME (BY_WHEEL_LEVELS * BY_WHEEL_SLOTS + 1)

static uint16_t *head_of(struct by_wheel *wheel, uint32_t list)
{
    return &wheel->head[list - 1];
}

static void link_first(struct by_endpoint *endpoint, struct by_ep_lane *lane, uint32_t list)
{
    uint16_t index = (uint16_t)(lane - endpoint->lanes);
    uint16_t *head = head_of(&endpoint->wheel, list);

    lane->timer_list = (uint16_t)list;
    lane->timer_prior = BY_LANE_NONE;
    lane->timer_next = *head;
    if (*head != BY_LANE_NONE)
        endpoint->lanes[*head].timer_prior = index;
    *head = index;
    if (list != LIST_COME)
        endpoint->wheel.used[(list - 1) / BY_WHEEL_SLOTS] |= UINT64_C(1) << (list - 1) % BY_WHEEL_SLOTS;
}

static void unlink_lane(struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    uint32_t list = lane->timer_list;
    uint16_t *head = head_of(&endpoint->wheel, list);

    if (lane->timer_next != BY_LANE_NONE)
        endpoint->lanes[lane->timer_next].timer_prior = lane->timer_prior;
    if (lane->timer_prior != BY_LANE_NONE)
        endpoint->lanes[lane->timer_prior].timer_next = lane->timer_next;
    else
        *head = lane->timer_next;
    if (*head == BY_LANE_NONE && list != LIST_COME)
        endpoint->wheel.used[(list - 1) / BY_WHEEL_SLOTS] &= ~(UINT64_C(1) << (list - 1) % BY_WHEEL_SLOTS);
    lane->timer_list = LIST_NONE;
}

void by_timer_init(struct by_endpoint *endpoint)
{
    by_zero(&endpoint->wheel, sizeof(endpoint->wheel));
    for (uint32_t list = 1; list <= LIST_COME; list++)
        *head_of(&endpoint->wheel, list) = BY_LANE_NONE;
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        endpoint->lanes[l].timer_list = LIST_NONE;
    endpoint->deadline_ns = UINT64_MAX;
}

uint64_t by_timer_due(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    uint64_t stalled_ns = by_lane_waits_since(lane) + endpoint->config.stall_ns;
    uint64_t due_ns = by_pace_due(endpoint, lane);

    /* A call that waits for absent ranks is past this time, and goes on asking. */
    if (stalled_ns < endpoint->now_ns && endpoint->config.absent_ns > endpoint->config.stall_ns)
        return due_ns;
    return stalled_ns < due_ns ? stalled_ns : due_ns;
}

/* Returns the ticks of a level, counted from time 0. */
static uint64_t tick_at(uint64_t tick, uint32_t level)
{
    return tick >> BY_WHEEL_BITS * level;
}

/* Files the lane under its tick, as finely as the wheel allows; times beyond the wheel's end go to
 * its end. */
static void file(struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    struct by_wheel *wheel = &endpoint->wheel;
    uint64_t looked_ns;
    uint64_t at = 0;
    uint32_t level = 0;

    if (lane->timer_tick <= wheel->tick) {
        link_first(endpoint, lane, LIST_COME);
        endpoint->deadline_ns = 0;
        return;
    }
    for (; level < BY_WHEEL_LEVELS; level++) {
        at = tick_at(lane->timer_tick, level);
        if (at - tick_at(wheel->tick, level) < BY_WHEEL_SLOTS)
            break;
    }
    if (level == BY_WHEEL_LEVELS) {
        level--;
        at = tick_at(wheel->tick, level) + BY_WHEEL_SLOTS - 1;
    }
    link_first(endpoint, lane, 1 + level * BY_WHEEL_SLOTS + (uint32_t)(at % BY_WHEEL_SLOTS));
    looked_ns = at << (BY_WHEEL_TICK + BY_WHEEL_BITS * level);
    if (looked_ns < endpoint->deadline_ns)
        endpoint->deadline_ns = looked_ns;
}

static int is_empty(const struct by_wheel *wheel)
{
    uint64_t used = 0;

    for (uint32_t level = 0; level < BY_WHEEL_LEVELS; level++)
        used |= wheel->used[level];
    return used == 0 && wheel->head[LIST_COME - 1] == BY_LANE_NONE;
}

void by_timer_set(struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    uint64_t tick = (by_timer_due(endpoint, lane) + (UINT64_C(1) << BY_WHEEL_TICK) - 1) >> BY_WHEEL_TICK;

    if (lane->timer_list != LIST_NONE) {
        if (lane->timer_tick <= tick)
            return;
        unlink_lane(endpoint, lane);
    }
    if (is_empty(&endpoint->wheel))
        endpoint->wheel.tick = endpoint->now_ns >> BY_WHEEL_TICK; /* nothing was missed in between */
    lane->timer_tick = tick;
    file(endpoint, lane);
}

/* Returns the used lists of a level after the one processed last, the next one in bit 0. */
static uint64_t used_from(const struct by_wheel *wheel, uint32_t level)
{
    uint32_t first = (uint32_t)(tick_at(wheel->tick, level) + 1) % BY_WHEEL_SLOTS;
    uint64_t used = wheel->used[level];

    return used >> first | used << (BY_WHEEL_SLOTS - first) % BY_WHEEL_SLOTS;
}

/* Advances to `tick`: the lanes of all lists up to it are due. */
static void advance(struct by_endpoint *endpoint, uint64_t tick)
{
    struct by_wheel *wheel = &endpoint->wheel;

    for (uint32_t level = 0; level < BY_WHEEL_LEVELS; level++) {
        uint64_t from = tick_at(wheel->tick, level) + 1, passed = tick_at(tick, level) + 1 - from;
        uint64_t used = used_from(wheel, level);

        if (passed < BY_WHEEL_SLOTS)
            used &= (UINT64_C(1) << passed) - 1;
        for (; used != 0; used &= used - 1) {
            uint32_t slot = (uint32_t)(from + (uint32_t)__builtin_ctzll(used)) % BY_WHEEL_SLOTS;
            uint32_t list = 1 + level * BY_WHEEL_SLOTS + slot;

            while (*head_of(wheel, list) != BY_LANE_NONE) {
                struct by_ep_lane *lane = &endpoint->lanes[*head_of(wheel, list)];

                unlink_lane(endpoint, lane);
                link_first(endpoint, lane, LIST_COME);
            }
        }
    }
    wheel->tick = tick;
}

struct by_ep_lane *by_timer_pop(struct by_endpoint *endpoint)
{
    struct by_wheel *wheel = &endpoint->wheel;
    uint64_t tick = endpoint->now_ns >> BY_WHEEL_TICK;
    struct by_ep_lane *lane;

    if (tick > wheel->tick)
        advance(endpoint, tick);
    if (*head_of(wheel, LIST_COME) == BY_LANE_NONE)
        return NULL;
    lane = &endpoint->lanes[*head_of(wheel, LIST_COME)];
    unlink_lane(endpoint, lane);
    return lane;
}

uint64_t by_timer_next(const struct by_endpoint *endpoint)
{
    const struct by_wheel *wheel = &endpoint->wheel;
    uint64_t next_ns = UINT64_MAX;

    if (wheel->head[LIST_COME - 1] != BY_LANE_NONE)
        return 0;
    for (uint32_t level = 0; level < BY_WHEEL_LEVELS; level++) {
        uint64_t used = used_from(wheel, level), ns;

        if (used == 0)
            continue;
        ns = (tick_at(wheel->tick, level) + 1 + (uint32_t)__builtin_ctzll(used))
             << (BY_WHEEL_TICK + BY_WHEEL_BITS * level);
        next_ns = ns < next_ns ? ns : next_ns;
    }
    return next_ns;
}
