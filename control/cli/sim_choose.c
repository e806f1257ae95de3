/*
 * Recommends the length of chunks, the number of a tree's chunks in flight, and the number of
 * frames that a simulated packet represents. This is advice and no proof depends on it, so floating
 * point suffices.
 *
 * A call over a tree takes the time of its bytes with their headers on the most loaded link, plus
 * the time that the first chunk needs for its way: B / A (1 + H / c) + c F. Here B bytes are sent
 * at rate A with H header bytes for each chunk of c bytes, and F is the time of a byte on each link
 * of the longest way, added up. The minimum is at c = sqrt(B / A H / F).
 *
 * All trees of an optimal plan share links without slack, so each must run exactly at its part of
 * the rate. The limit on the chunks that a rank has in flight over all trees ensures this. A rank
 * sends to trees by their shares; a slow tree keeps its chunks in flight, and so makes the others
 * wait for it. The limit is several times the capacity of an unloaded round trip, because links
 * must not run empty. Where ports have short buffers, it is the capacity of an unloaded round trip
 * and of the buffers on the way. The window of each tree must only be wider than its part of the
 * limit.
 */
#include <math.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/sim.h"
#include "offload/wire/types.h"

/*
 * Chunks of a rank in flight: what this number of unloaded round trips carries, of the mean over
 * the trees, or of the longest one where sums go up. On the way up a chunk waits at each node for
 * the last child. That wait is no queue on a link. On links that many trees share, it also waits
 * for their chunks: for sums at least this number of chunks of each tree. A short call ends while
 * the queues of its start are still there: for it half the trips, or what this part of the call
 * carries, but a few chunks of each tree.
 */
#define INFLIGHT_TRIPS  8.0
#define INFLIGHT_CHUNKS 12u
#define SHORT_TRIPS     4.0
#define SHORT_PART      (1 / 32.0)
#define SHORT_CHUNKS    4u
/* The least number in any case: with fewer, chunks that wait for each other leave links idle. */
#define INFLIGHT_LEAST 96u
/*
 * Down the trees at most what returns in this time, because endpoints at first treat a chunk
 * without an answer for 50 us as lost, and at least what this number of the longest round trips
 * carries.
 */
#define PATIENCE_PS   40e6
#define LONGEST_TRIPS 1.5
/* Of a port's buffer: the part that the chunks in flight fill, because trees send in bursts; the
 * least number of chunks that it holds; and the least time in flight, in longest round trips. */
#define BUFFER_PART   0.5
#define BUFFER_CHUNKS 96
#define BUFFER_TRIPS  1.1
/* The least timeout, as a multiple of the time in which the chunks in flight return; endpoints use
 * the second value (ns) on their own. */
#define RTO_TRIPS    3.0
#define RTO_USUAL_NS 50e3
/* A tree's window is this multiple of its part of the chunks in flight, plus some chunks. */
#define WINDOW_PARTS    3.0
#define WINDOW_UP_PARTS 4.0 /* for sums on the way up */
#define WINDOW_MORE     4.0
/* Approximate limit for the packets on cables of one run (count): some minutes on one core. */
#define PACKETS_MAX 40e6
/*
 * Approximate limit for the slots of all nodes together (bytes). Slots that no chunk uses occupy no
 * memory.
 */
#define SLOT_BYTES_MAX 18e9

#define BIT(collective) (1u << (collective))

/* Returns the bit of by_lowered_tree.collectives that serves the collective. */
static unsigned serving_bit(const struct sim *sim)
{
    for (uint32_t i = 0; i < sim->lowering->tree_count; i++)
        if (sim->lowering->trees[i].collectives & BIT(sim->collective))
            return BIT(sim->collective);
    return BIT(BY_COLLECTIVE_ALLREDUCE);
}

uint32_t sim_arc(const struct by_topology *topology, uint32_t link, uint32_t from)
{
    const struct by_link *cable = &topology->links[link];
    uint32_t arc = cable->a == from ? cable->arc_ab : cable->arc_ba,
             to = cable->a == from ? cable->b : cable->a;

    for (uint32_t a = 0; a < topology->arc_count && arc == UINT32_MAX; a++)
        if (topology->arcs[a].from == from && topology->arcs[a].to == to)
            arc = a;
    return arc;
}

/* Returns the time of a byte on one direction of a cable (ps). */
static double byte_ps(const struct sim *sim, uint32_t link, uint32_t from)
{
    uint32_t arc = sim_arc(sim->topology, link, from);

    return 1e12 * (double)sim->topology->scale /
           ((double)sim->topology->arcs[arc].capacity * by_fraction_value(sim->unit));
}

static double way_ps(const struct sim *sim, const struct by_hop_step *way, uint32_t count, uint32_t from)
{
    double ps = 0;

    for (uint32_t i = 0; i < count; i++) {
        ps += byte_ps(sim, way[i].link, from);
        from = way[i].to;
    }
    return ps;
}

/*
 * The longest way from the root down and back: its cables, and the time of a byte on all of them.
 */
struct sim_choose_way {
    uint32_t cables; /* in one direction */
    double down_ps, up_ps;
};

static struct sim_choose_way longest_way(const struct sim *sim, const struct by_lowered_tree *tree)
{
    struct sim_choose_way *ways = by_alloc(tree->hop_count, sizeof(*ways)), longest = {0};

    for (uint32_t i = 1; i < tree->hop_count; i++) {
        const struct by_hop *hop = &tree->hops[i];
        const struct sim_choose_way *above = &ways[tree->hop_of[hop->parent]];

        ways[i].cables = above->cables + hop->down_count;
        ways[i].down_ps = above->down_ps + way_ps(sim, hop->down, hop->down_count, hop->parent);
        ways[i].up_ps = above->up_ps + way_ps(sim, hop->up, hop->up_count, hop->node);
        if (ways[i].cables > longest.cables)
            longest.cables = ways[i].cables;
        if (ways[i].down_ps > longest.down_ps)
            longest.down_ps = ways[i].down_ps;
        if (ways[i].up_ps > longest.up_ps)
            longest.up_ps = ways[i].up_ps;
    }
    free(ways);
    return longest;
}

/* The call's load on the trees that serve it. */
struct sim_choose_load {
    unsigned bit;
    /* by owner: sum of its trees' shares; the element after all ranks: trees without an owner */
    double *shares;
};

static uint32_t owner_of(const struct sim *sim, const struct by_lowered_tree *tree)
{
    return by_collective_is_sharded(sim->collective) && tree->owner < sim->ranks ? tree->owner : sim->ranks;
}

static struct sim_choose_load load_make(const struct sim *sim)
{
    struct sim_choose_load load = {serving_bit(sim), by_alloc(sim->ranks + 1, sizeof(double))};

    for (uint32_t i = 0; i < sim->lowering->tree_count; i++)
        if (sim->lowering->trees[i].half != BY_HALF_DOWN && (sim->lowering->trees[i].collectives & load.bit))
            load.shares[owner_of(sim, &sim->lowering->trees[i])] += sim->lowering->trees[i].share;
    return load;
}

/* Returns the part of the call's bytes that a tree carries; 0 if it does not serve the call. */
static double part_of(const struct sim *sim, const struct sim_choose_load *load,
                      const struct by_lowered_tree *tree)
{
    uint32_t owner = owner_of(sim, tree);

    if (!(tree->collectives & load->bit))
        return 0;
    return tree->share / load->shares[owner] / (owner < sim->ranks ? sim->ranks : 1);
}

/* Returns the plan's rate in bytes/s; without a plan an estimate, the links of the slowest host. */
static double promised_rate(const struct sim *sim)
{
    double least = 0;

    if (sim->plan != NULL)
        return by_fraction_value(sim->plan->achieved) * by_fraction_value(sim->unit);
    for (uint32_t n = 0; n < sim->topology->node_count; n++) {
        double sum = 0;

        if (!sim->topology->nodes[n].compute)
            continue;
        for (uint32_t a = 0; a < sim->topology->arc_count; a++)
            if (sim->topology->arcs[a].from == n)
                sum += (double)sim->topology->arcs[a].capacity / (double)sim->topology->scale;
        if (least == 0 || sum < least)
            least = sum;
    }
    return least * by_fraction_value(sim->unit);
}

static uint32_t clamp_chunk(const struct sim_options *options, double bytes)
{
    if (options->buffer > 0)
        bytes = fmin(bytes, (double)options->buffer / BUFFER_CHUNKS);
    uint32_t lines = bytes > BY_PAYLOAD_MAX ? BY_PAYLOAD_MAX / 64 : (uint32_t)(bytes / 64 + 0.5);

    return lines < 4 ? 256 : lines * 64;
}

static uint32_t power_of_two(double count)
{
    uint32_t power = 1;

    while (power < count && power < BY_WINDOW_MAX)
        power *= 2;
    return power;
}

/* Halves the window until all slots (two banks of two payloads each) fit into the memory limit. */
static uint32_t fit_memory(const struct sim *sim, uint32_t window, uint32_t chunk)
{
    double entries = 0;

    for (uint32_t i = 0; i < sim->lowering->tree_count; i++)
        for (uint32_t h = 0; h < sim->lowering->trees[i].hop_count; h++)
            entries += sim->lowering->trees[i].hops[h].child_count > 0;
    while (window > 2 && entries * window * 4 * chunk > SLOT_BYTES_MAX)
        window /= 2;
    return window;
}

static uint32_t choose_batch(const struct sim *sim, const struct sim_choose_load *load, uint32_t chunk)
{
    double packets = 0;

    for (uint32_t i = 0; i < sim->lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &sim->lowering->trees[i];
        double cables = 0;

        for (uint32_t h = 1; h < tree->hop_count; h++)
            cables += tree->hops[h].down_count + tree->hops[h].up_count;
        packets += cables * part_of(sim, load, tree) * (double)sim->options.bytes / chunk;
    }
    return power_of_two(packets / PACKETS_MAX);
}

static int goes_up(const struct sim *sim)
{
    return by_collective_reduces(sim->collective);
}

/* Examines all trees: the longest way, the mean of the trees' longest ways, the fastest tree. */
static void look(struct sim *sim, const struct sim_choose_load *load, double rate)
{
    int up_too = goes_up(sim);
    int down_too = by_collective_way(sim->collective) != BY_DATA_UP;
    struct sim_choice *choice = &sim->choice;

    for (uint32_t i = 0; i < sim->lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &sim->lowering->trees[i];
        double part = part_of(sim, load, tree), fill;
        struct sim_choose_way way;

        if (part <= 0 || tree->half == BY_HALF_DOWN)
            continue;
        way = longest_way(sim, tree);
        if (tree->half == BY_HALF_UP) {
            struct sim_choose_way down = longest_way(sim, tree + 1);

            way.down_ps = down.down_ps;
            way.cables = down.cables > way.cables ? down.cables : way.cables;
            choice->pair_part += part;
        }
        fill = (up_too ? way.up_ps : 0) + (down_too ? way.down_ps : 0);
        choice->height = way.cables > choice->height ? way.cables : choice->height;
        choice->fill_ps = fmax(choice->fill_ps, fill);
        choice->mean_height += part * way.cables;
        choice->mean_fill_ps += part * fill;
        choice->tree_rate = fmax(choice->tree_rate, rate * part);
    }
}

/* Chooses the number of a rank's chunks in flight. */
static uint32_t choose_inflight(const struct sim *sim, double rate)
{
    const struct sim_choice *choice = &sim->choice;
    double batch = choice->batch, bytes = choice->chunk + SIM_HEADER_BYTES;
    /* per ps; on a pair each chunk is in flight on both trees */
    double chunk_rate = rate / (choice->chunk * batch) / 1e12 * (1 + choice->pair_part);
    double latency = (double)sim->options.latency_ps;
    double longest = 2.0 * choice->height * latency + choice->fill_ps * bytes * batch;
    double mean = 2.0 * choice->mean_height * latency + choice->mean_fill_ps * bytes * batch;
    double call_ps = (double)sim->options.bytes / rate * 1e12;
    double each_ps = sim->lowering->tree_count / chunk_rate; /* of one chunk of each tree */
    double long_ps = fmax(INFLIGHT_TRIPS * longest, INFLIGHT_CHUNKS * each_ps);
    double short_ps = fmax(fmax(SHORT_TRIPS * longest, SHORT_PART * call_ps), SHORT_CHUNKS * each_ps);
    double way_ps = goes_up(sim) ? fmin(long_ps, short_ps) : fmin(INFLIGHT_TRIPS * mean, PATIENCE_PS);

    if (sim->options.buffer > 0) /* and the time in which a usual port sends what it holds */
        way_ps = fmin(way_ps, mean + BUFFER_PART * (double)sim->options.buffer * choice->mean_fill_ps /
                                         choice->mean_height);
    way_ps = fmax(way_ps, (sim->options.buffer > 0 ? BUFFER_TRIPS : LONGEST_TRIPS) * longest);
    return way_ps * chunk_rate < INFLIGHT_LEAST ? INFLIGHT_LEAST
           : way_ps * chunk_rate > 1e9          ? 1000000000
                                                : (uint32_t)(way_ps * chunk_rate);
}

/*
 * Returns the least timeout (ns): RTO_TRIPS times the time in which the chunks in flight return at
 * the plan's rate, if that is longer than what endpoints assume of an unknown path. On slow links a
 * path holds its chunks for longer, and each would be sent twice before the first answer.
 */
static uint64_t choose_rto(const struct sim *sim, double rate)
{
    const struct sim_choice *choice = &sim->choice;
    double trip_ns =
        choice->inflight * (double)choice->chunk * choice->batch / (1 + choice->pair_part) / rate * 1e9;

    return RTO_TRIPS * trip_ns > RTO_USUAL_NS ? (uint64_t)fmin(RTO_TRIPS * trip_ns, 1e8) : 0;
}

/*
 * Returns the time in which one packet of a tree, `bytes` long on a cable, crosses the unloaded way
 * that the collective requires: from the farthest leaf to the root, to the farthest leaf, or both.
 */
static double unloaded_ps(const struct sim *sim, const struct by_lowered_tree *tree, int is_up, double bytes)
{
    double *ways = by_alloc(tree->hop_count, sizeof(*ways)), longest = 0;

    for (uint32_t i = 1; i < tree->hop_count; i++) {
        const struct by_hop *hop = &tree->hops[i];
        uint32_t cables = is_up ? hop->up_count : hop->down_count;

        ways[i] = ways[tree->hop_of[hop->parent]] + cables * (double)sim->options.latency_ps +
                  bytes * (is_up ? way_ps(sim, hop->up, hop->up_count, hop->node)
                                 : way_ps(sim, hop->down, hop->down_count, hop->parent));
        longest = fmax(longest, ways[i]);
    }
    free(ways);
    return longest;
}

/* Returns a lower bound on the call's time (ps): the slowest first chunk of all trees, without any
 * queue. */
static double bound_latency(const struct sim *sim, const struct sim_choose_load *load)
{
    const struct sim_choice *choice = &sim->choice;
    int is_barrier = sim->collective == BY_COLLECTIVE_BARRIER;
    int up_too = is_barrier || goes_up(sim);
    int down_too = is_barrier || by_collective_way(sim->collective) != BY_DATA_UP;
    double bound = 0;

    for (uint32_t i = 0; i < sim->lowering->tree_count; i++) {
        const struct by_lowered_tree *tree = &sim->lowering->trees[i];
        double part = part_of(sim, load, tree);
        double elements =
            is_barrier ? 0 : floor(part * (double)sim->options.bytes / choice->batch / SIM_ELEMENT);
        double bytes = (fmin(choice->chunk, elements * SIM_ELEMENT) + SIM_HEADER_BYTES) * choice->batch;

        if (part <= 0 || tree->half == BY_HALF_DOWN)
            continue;
        bound =
            fmax(bound, (up_too ? unloaded_ps(sim, tree, 1, bytes) : 0) +
                            (down_too ? unloaded_ps(sim, tree + (tree->half == BY_HALF_UP), 0, bytes) : 0));
    }
    return bound;
}

void sim_choose(struct sim *sim)
{
    const struct sim_options *options = &sim->options;
    struct sim_choice *choice = &sim->choice;
    struct sim_choose_load load = load_make(sim);
    double rate = promised_rate(sim), window;

    look(sim, &load, rate);
    choice->chunk = options->chunk ? options->chunk
                                   : clamp_chunk(options, sqrt((double)options->bytes / rate * 1e12 *
                                                               SIM_HEADER_BYTES / choice->fill_ps));
    choice->batch = options->batch ? options->batch : choose_batch(sim, &load, choice->chunk);
    choice->inflight = options->inflight ? options->inflight : choose_inflight(sim, rate);
    choice->rto_ns = choose_rto(sim, rate);
    window = (goes_up(sim) ? WINDOW_UP_PARTS : WINDOW_PARTS) * choice->inflight * choice->tree_rate / rate +
             WINDOW_MORE;
    choice->window = options->window ? options->window : fit_memory(sim, power_of_two(window), choice->chunk);
    choice->latency_bound_ps = bound_latency(sim, &load);
    free(load.shares);
}
