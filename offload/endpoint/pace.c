/*
 * Congestion control: round-trip times and timeouts of each lane (RFC 6298 in integers, Karn's
 * rule), and one congestion window over all lanes: additive increase, multiplicative decrease (Chiu
 * and Jain, Computer Networks 17(1), 1989, explain why two flows that share a cable converge to
 * equal shares). Pure; the endpoint's thread.
 *
 * A tree carries one packet per chunk on each link whatever the number of ranks, so there is no
 * incast, and the trees' windows bound the load. Loss alone is therefore weak evidence of
 * congestion: a cut is slight unless the round trips have grown as well (TCP Veno's test; Fu and
 * Liew, IEEE JSAC 21(2), 2003), the network marked a packet, or a lane became silent.
 */
#include "offload/endpoint/state.h"

/* Length of an epoch of the minimum round trip. */
#define EPOCH_NS 1000000000u
/* The initial timeout (ns), before any round-trip sample. */
#define RTO_FIRST_NS 10000000u
/* A controller finds a blackhole by the frames that vanish in it, six of them in 48 ms, as the
 * counters of both ends of a link show. For this many timeouts in a row the pauses grow only to
 * this time (count, ns). */
#define BRISK_COUNT 24u
#define BRISK_NS    UINT64_C(8000000)
/* The initial timeout of the roll call, in minimum timeouts. It is short because nothing else is in
 * flight that could show a loss, one small packet costs nothing, and everything waits for the roll
 * call. */
#define RTO_ROLL 4u
/*
 * Limit of round-trip samples: PATH_NS or PATH_LOWS minimum round trips, whichever is longer. Time
 * beyond it was spent waiting for other ranks and is no property of the path. A timeout that
 * included it would leave a loss unrepaired for as long again, and other ranks would wait in turn.
 */
#define PATH_NS   (RTO_FIRST_NS / 2)
#define PATH_LOWS 4u
/* log2 of the samples in which the recent minimum round trip grows to e times its value where none
 * is lower. A queue delays all chunks, and the repair of a loss only some. */
#define NEAR_LOG 4u
/* Chunks to which losses cut the window, at first and at most (compare_losses). Hosts send and
 * receive in batches, and each batch adds the same to a round trip, so in windows of a few batches
 * round trips do not show the queue. */
#define LOSS_LEAST (BY_WINDOW_START / 2)
#define LOSS_MOST  (BY_WINDOW_START * 4)
/* Results in a period, after which the losses of two periods are compared. */
#define LOSS_PERIOD 512u
/* Losses of two periods differ by more than chance where the square of their difference exceeds
 * this many times their sum, which is its variance (Poisson). */
#define LOSS_VARIANCES 6u
/* Periods without a trial after one that lost more (count). */
#define LOSS_PATIENCE 16u
/* Where the configuration states that queues mark, losses narrow windows all the same after
 * DOUBT_PERIODS periods in a row in which a quarter of the chunks is lost and none is marked, for
 * DOUBT_LASTS periods from the last such one, or until a mark arrives (count). Chance that loses 1
 * % of the packets at each of three switches loses less than an eighth of the chunks of an
 * allreduce among eight hosts. */
#define DOUBT_LOST    (LOSS_PERIOD / 4)
#define DOUBT_PERIODS 4u
#define DOUBT_LASTS   64u
/* Chunks of each lane that remain in flight where the maximum fits the path (count): only a later
 * chunk of the same lane shows that one was lost. */
#define LANE_LEAST 4u
/* Silence after which the last chunks of a lane count as lost where the maximum fits the path, in
 * minimum round trips, besides two usual intervals between answers. No later chunk shows a loss
 * there. */
#define TAIL_LOWS 3u

void by_pace_init(struct by_endpoint *endpoint, uint64_t windows)
{
    uint32_t max = windows < UINT32_MAX ? (uint32_t)windows : UINT32_MAX, least;

    if (endpoint->config.inflight_max > 0 && endpoint->config.inflight_max < max)
        max = endpoint->config.inflight_max;
    endpoint->window_max = max;
    endpoint->window = max < BY_WINDOW_START ? max : BY_WINDOW_START;
    least = endpoint->config.fitted && LANE_LEAST * endpoint->lane_count > BY_WINDOW_FLOOR
                ? LANE_LEAST * endpoint->lane_count
                : BY_WINDOW_FLOOR;
    endpoint->window_floor = max < least ? max : least;
    endpoint->window_goal = max;
    endpoint->loss_least = LOSS_LEAST;
}

static void smooth(struct by_ep_lane *lane, uint32_t rtt)
{
    uint32_t smooth_ns = lane->srtt >> 3;
    uint32_t error = rtt > smooth_ns ? rtt - smooth_ns : smooth_ns - rtt;

    lane->rttvar += error - (lane->rttvar >> 2);
    lane->srtt += rtt - smooth_ns;
    if (lane->srtt == 0)
        lane->srtt = 1;
}

void by_pace_sample(struct by_ep_lane *lane, uint64_t now_ns, uint64_t rtt_ns)
{
    uint32_t rtt = rtt_ns < 1u << 28 ? (uint32_t)rtt_ns : (1u << 28) - 1; /* 268 ms: x 8 fits */
    uint32_t path_max;

    if (rtt == 0)
        rtt = 1;
    if (lane->srtt == 0) {
        lane->srtt = rtt << 3;
        lane->rttvar = rtt << 1;
        lane->rtt_low = lane->rtt_low_next = lane->rtt_near = rtt;
        lane->rtt_epoch_ns = now_ns;
        return;
    }
    if (now_ns - lane->rtt_epoch_ns > EPOCH_NS) {
        lane->rtt_low = lane->rtt_low_next;
        lane->rtt_low_next = rtt;
        lane->rtt_epoch_ns = now_ns;
    }
    if (rtt < lane->rtt_low_next)
        lane->rtt_low_next = rtt;
    if (rtt < lane->rtt_low)
        lane->rtt_low = rtt;
    lane->rtt_near += (lane->rtt_near >> NEAR_LOG) + 1;
    if (rtt < lane->rtt_near)
        lane->rtt_near = rtt;
    path_max = lane->rtt_low < PATH_NS / PATH_LOWS ? PATH_NS : lane->rtt_low * PATH_LOWS;
    smooth(lane, rtt < path_max ? rtt : path_max);
}

static void set_window(struct by_endpoint *endpoint, uint32_t window)
{
    endpoint->window = endpoint->window_goal = window;
    endpoint->window_earned = 0;
    endpoint->silent_goal = 0;
}

/*
 * Chance takes the same part of the chunks whatever the window; a full queue takes more from a
 * wider one. So while losses keep the window at their least, one period in a while has twice of
 * that, and keeps it where it does not lose more. A window that marks have cut further stays so.
 */
static void compare_losses(struct by_endpoint *endpoint)
{
    uint64_t lost = endpoint->loss_count, usual = endpoint->loss_usual;
    int more = lost > usual && (lost - usual) * (lost - usual) > LOSS_VARIANCES * (lost + usual);

    if (more && endpoint->loss_least > LOSS_LEAST) {
        endpoint->loss_patience = LOSS_PATIENCE;
        endpoint->loss_least /= 2;
        if (endpoint->window > endpoint->loss_least)
            set_window(endpoint, endpoint->loss_least);
        return;
    }
    if (endpoint->loss_least == LOSS_LEAST)
        endpoint->loss_usual = (uint32_t)lost;
    if (endpoint->loss_patience > 0) {
        endpoint->loss_patience--;
    } else if (lost > 0 && lost < LOSS_PERIOD / 8 && endpoint->loss_least < LOSS_MOST &&
               2 * endpoint->loss_least <= endpoint->window_max && endpoint->window >= endpoint->loss_least &&
               endpoint->window <= endpoint->loss_least + BY_WINDOW_STEP) {
        endpoint->loss_usual = (uint32_t)lost;
        endpoint->loss_least *= 2;
        set_window(endpoint, endpoint->loss_least);
    }
}

/* Counts the periods that contradict config.marked: a queue that drops packets without marks would
 * stay full if losses narrowed no window. */
static void doubt_marks(struct by_endpoint *endpoint)
{
    if (endpoint->mark_seen)
        endpoint->doubt = 0;
    else if (endpoint->loss_count >= DOUBT_LOST)
        endpoint->doubt = endpoint->doubt < DOUBT_PERIODS ? (uint8_t)(endpoint->doubt + 1) : DOUBT_PERIODS;
    else if (endpoint->doubt < DOUBT_PERIODS || endpoint->doubt >= DOUBT_PERIODS + DOUBT_LASTS)
        endpoint->doubt = 0;
    else
        endpoint->doubt++;
    endpoint->mark_seen = 0;
}

/* Whether a loss is no sign of a queue, since a queue would have marked packets. */
static int trusts_marks(const struct by_endpoint *endpoint)
{
    return endpoint->config.marked && endpoint->doubt < DOUBT_PERIODS;
}

static void end_period(struct by_endpoint *endpoint)
{
    if (endpoint->config.marked)
        doubt_marks(endpoint);
    if (!trusts_marks(endpoint))
        compare_losses(endpoint);
    endpoint->loss_count = endpoint->loss_results = 0;
}

void by_pace_accepted(struct by_endpoint *endpoint, struct by_ep_lane *lane)
{
    uint64_t silent_ns = endpoint->now_ns - lane->timer_ns;

    lane->interval += (uint32_t)(silent_ns < PATH_NS ? silent_ns : PATH_NS) - (lane->interval >> 3);
    if (++endpoint->loss_results >= LOSS_PERIOD)
        end_period(endpoint);
    /* An unused window is no evidence for a wider one. */
    if (endpoint->window >= endpoint->window_max || endpoint->inflight < endpoint->window / 2)
        return;
    endpoint->window_earned++;
    if (endpoint->window < endpoint->window_goal) {
        endpoint->window++;
    } else if (endpoint->window_earned >= endpoint->window) {
        endpoint->window_earned = 0;
        endpoint->window += BY_WINDOW_STEP;
    }
    if (endpoint->window > endpoint->window_max)
        endpoint->window = endpoint->window_max;
}

/*
 * Returns the cut for a lost chunk: a quarter of the distance to 5/4 of the chunks that fill the
 * path, at least LOSS_LEAST. A tree whose root is on this host shows no path: its chunks wait there
 * for ranks that send later. Without a queue that is zero. With a queue it gains time: a repair
 * waits behind the chunks in flight, and the tree's window must not run out before it returns.
 * Where queues mark, a quarter of the maximum is enough for that. If the maximum fits the path
 * (config.fitted) there is no cut.
 */
static uint32_t cut_for_loss(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    uint64_t fills =
        lane->srtt > 0 ? (uint64_t)endpoint->window * lane->rtt_low / lane->rtt_near : endpoint->window;
    uint64_t target = fills + fills / 4 + 1;

    if (target < endpoint->loss_least)
        target = endpoint->loss_least;
    if (endpoint->config.fitted || lane->parent_port == BY_PORT_LOCAL)
        return 0;
    if (trusts_marks(endpoint) && target < endpoint->window_max - endpoint->window_max / 4)
        target = endpoint->window_max - endpoint->window_max / 4;
    return endpoint->window > target ? (uint32_t)(endpoint->window - target + 3) / 4 : 0;
}

/* Restarts after the path was silent, with three quarters of the window as the goal; the duration
 * of the silence does not matter. */
static void begin_anew(struct by_endpoint *endpoint)
{
    if (endpoint->window == endpoint->window_floor)
        return;
    endpoint->silent_ns = endpoint->now_ns;
    if (endpoint->silent_goal == 0)
        endpoint->silent_goal =
            endpoint->window > endpoint->window_goal ? endpoint->window : endpoint->window_goal;
    /* Else it was still on its way up. A start-up, whose goal is the maximum, ends here. */
    if (endpoint->window >= endpoint->window_goal ||
        (endpoint->window_goal == endpoint->window_max && !endpoint->config.fitted))
        endpoint->window_goal = endpoint->window - endpoint->window / 4;
    endpoint->window = endpoint->window_floor;
}

/* A process that does not run for a while makes results late, as a silent path does (RFC 4015
 * restores the window for the same reason). A queue that delays them for so long would have marked
 * packets. The window has been closed, and doubles up to the goal. */
void by_pace_late(struct by_endpoint *endpoint, uint64_t sent_ns)
{
    if (endpoint->silent_goal == 0 || sent_ns >= endpoint->silent_ns || !trusts_marks(endpoint))
        return;
    endpoint->window_goal = endpoint->silent_goal;
    endpoint->silent_goal = 0;
}

void by_pace_cut(struct by_endpoint *endpoint, const struct by_ep_lane *lane, enum by_pace_event event)
{
    uint32_t smooth = lane->srtt >> 3;
    uint32_t cut;

    endpoint->mark_seen |= event == BY_PACE_MARK;
    if (endpoint->now_ns < endpoint->window_cut_ns)
        return;
    endpoint->window_cut_ns = endpoint->now_ns + (smooth > 0 ? smooth : endpoint->config.rto_min_ns);
    if (event == BY_PACE_SILENCE) {
        begin_anew(endpoint);
        return;
    }
    cut = event == BY_PACE_MARK ? endpoint->window / 8 + 1 : cut_for_loss(endpoint, lane);
    if (cut == 0)
        return; /* the first sign of a queue ends start-up, a chance loss does not */
    set_window(endpoint, endpoint->window > endpoint->window_floor + cut ? endpoint->window - cut
                                                                         : endpoint->window_floor);
}

void by_pace_lost(struct by_endpoint *endpoint, const struct by_ep_lane *lane, uint32_t chunks)
{
    endpoint->loss_count += chunks;
    by_pace_cut(endpoint, lane, BY_PACE_LOSS);
}

/* Returns the timeout after so many doublings where a controller looks for the place of a failure:
 * the first ones end at BRISK_NS. */
static uint64_t brisk(uint64_t rto, uint8_t backoff)
{
    uint8_t first = backoff < BRISK_COUNT ? backoff : BRISK_COUNT;
    uint64_t most = rto > BRISK_NS ? rto : BRISK_NS;

    rto <<= first;
    return (rto < most ? rto : most) << (backoff - first);
}

uint64_t by_pace_timeout(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    const struct by_endpoint_config *config = &endpoint->config;
    /*
     * Twice the round trip, where RFC 6298 uses once: there a minimum timeout of a second hides
     * that a steady path has no variance. This is early all the same, because a timeout sends only
     * one packet (tail loss probe, RFC 8985, section 7.2).
     */
    uint64_t rto = lane->srtt > 0 ? (uint64_t)(lane->srtt >> 2) + lane->rttvar : RTO_FIRST_NS;

    if (endpoint->session_phase != BY_SESSION_AGREED && RTO_ROLL * config->rto_min_ns < rto)
        rto = RTO_ROLL * config->rto_min_ns;
    if (rto < config->rto_min_ns)
        rto = config->rto_min_ns;
    if (config->resume)
        rto = brisk(rto, lane->backoff);
    else
        rto <<= lane->backoff;
    return rto < config->rto_max_ns ? rto : config->rto_max_ns;
}

uint64_t by_pace_due(const struct by_endpoint *endpoint, const struct by_ep_lane *lane)
{
    uint64_t silent_ns = by_pace_timeout(endpoint, lane), tail_ns;

    if (endpoint->config.fitted && lane->srtt > 0 && !lane->cursor.active) {
        /* The first repair may have been lost as well. */
        tail_ns = (TAIL_LOWS * (uint64_t)lane->rtt_low + (lane->interval >> 2))
                  << (lane->backoff > 0 ? lane->backoff - 1 : 0);
        silent_ns = tail_ns < silent_ns ? tail_ns : silent_ns;
    }
    return lane->timer_ns + silent_ns;
}
