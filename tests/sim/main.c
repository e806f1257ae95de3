/*
 * sim: campaigns of random scenarios on the real engine and endpoint. The same seed and scenario
 * number give the same run, so a failure is replayed by the command printed with it.
 * Single-threaded.
 */
#include <getopt.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/sim/goodput.h"
#include "tests/sim/scenario.h"

#define PERTURBED 0x5a /* fills new memory: the complement of this */

struct sim_main_totals {
    uint64_t scenarios, failed, wrong, checked, bytes, elapsed_ns;
    struct by_world_counters world;
    uint64_t chunks, sent, again, duplicates, refused;
    uint64_t forgets, reloads, restarts, pauses, flips, named, crashes, gone_on, copied;
};

static void usage(FILE *to)
{
    fprintf(to,
            "usage: sim [--count N] [--seconds S] [--seed SEED] [--scenario K] [--verbose]\n"
            "       sim --goodput [--seed SEED]\n"
            "Runs N random scenarios (100) drawn from SEED, or scenario K alone. Exit 1 when one fails.\n");
}

static void add(struct sim_main_totals *totals, const struct scenario *scenario,
                const struct scenario_result *r)
{
    const struct by_engine_counters *e = &r->engines;

    totals->scenarios++;
    totals->failed += !r->ok;
    totals->wrong += r->wrong;
    totals->checked += r->checked;
    totals->bytes += r->bytes;
    totals->elapsed_ns += r->elapsed_ns;
    totals->world.events += r->world.events;
    totals->world.sent += r->world.sent;
    totals->world.lost += r->world.lost;
    totals->world.duplicated += r->world.duplicated;
    totals->world.held += r->world.held;
    totals->world.corrupted += r->world.corrupted;
    totals->world.corrupted_headers += r->world.corrupted_headers;
    totals->world.overflowed += r->world.overflowed;
    totals->world.marked += r->world.marked;
    totals->forgets += scenario->forget_node >= 0;
    totals->reloads += scenario->reload_ns > 0;
    totals->crashes += (uint64_t)scenario->crash_count;
    totals->gone_on += r->endpoints.gone_on;
    totals->copied += r->endpoints.copied;
    totals->world.told += r->world.told;
    totals->restarts += scenario->again_ns > 0;
    totals->pauses += scenario->freeze_node >= 0;
    totals->flips += (uint64_t)r->flipped;
    totals->named += (uint64_t)r->named;
    totals->refused += e->drop_format + e->drop_version + e->drop_tag + e->drop_psum + e->drop_key +
                       r->endpoints.drop_format + r->endpoints.drop_psum + r->endpoints.drop_key;
    totals->chunks += r->endpoints.result;
    totals->sent += r->endpoints.tx;
    totals->again += r->endpoints.retx;
    totals->duplicates += r->endpoints.duplicate;
}

static void print_result(uint64_t seed, uint64_t number, const char *self, const struct scenario *scenario,
                         const struct scenario_result *r)
{
    char text[2048];

    scenario_describe(scenario, text, sizeof(text));
    printf("scenario %" PRIu64 " of seed 0x%" PRIx64 ": %s%s\n  %s", number, seed,
           r->ok ? "ok" : "FAILED: ", r->fault, text);
    printf("  %" PRIu64 " results, %" PRIu64 " sent again, %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64
           " ns\n",
           r->endpoints.result, r->endpoints.retx, r->world.sent, r->world.lost, r->elapsed_ns);
    if (!r->ok)
        printf("  replay: %s --seed 0x%" PRIx64 " --scenario %" PRIu64 " --verbose\n", self, seed, number);
}

static double processor_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void print_totals(uint64_t seed, const struct sim_main_totals *t)
{
    double seconds = processor_seconds();

    printf("sim: seed 0x%" PRIx64 ": %" PRIu64 " scenarios, %" PRIu64 " failed, %" PRIu64
           " elements checked, %" PRIu64 " wrong\n",
           seed, t->scenarios, t->failed, t->checked, t->wrong);
    printf("sim: %" PRIu64 " chunks answered, %" PRIu64 " contributions, %" PRIu64 " sent again, %" PRIu64
           " duplicate results\n",
           t->chunks, t->sent, t->again, t->duplicates);
    printf("sim: %" PRIu64 " packets, %" PRIu64 " lost, %" PRIu64 " doubled, %" PRIu64 " held back, %" PRIu64
           " dropped by full queues, %" PRIu64 " marked\n",
           t->world.sent, t->world.lost, t->world.duplicated, t->world.held, t->world.overflowed,
           t->world.marked);
    printf("sim: %" PRIu64 " packets corrupted (%" PRIu64 " in the header), %" PRIu64
           " refused for it; %" PRIu64 " bits flipped in slots, %" PRIu64 " jobs ended by one, named\n",
           t->world.corrupted, t->world.corrupted_headers, t->refused, t->flips, t->named);
    printf("sim: %" PRIu64 " new generations (%" PRIu64 " after a switch lost its memory), %" PRIu64
           " times all processes anew, %" PRIu64 " pauses\n",
           t->reloads, t->forgets, t->restarts, t->pauses);
    printf("sim: %" PRIu64 " new generations under which calls go on: %" PRIu64
           " times at a rank, by %" PRIu64 " messages between ranks, with %" PRIu64 " values or inputs\n",
           t->crashes, t->gone_on, t->world.told, t->copied);
    printf("sim: %.1f s of processor time, %.0f chunks/s; %.3f s of virtual time\n", seconds,
           (double)t->chunks / seconds, (double)t->elapsed_ns / 1e9);
}

static int print_goodput(uint64_t seed)
{
    static const struct {
        const char *name;
        uint32_t parts;
    } rates[] = {{"none", 0}, {"0.01%", 429496u}, {"0.1%", 4294967u}, {"1%", 42949672u}};
    uint32_t bdp = goodput_bdp();
    int wrong = 0;

    printf("goodput: allreduce of 8 MB, 8 hosts, two levels, 10 Gbit/s; a round trip holds %u chunks\n", bdp);
    printf("%8s %8s %10s %8s %12s\n", "window", "loss", "Gbit/s", "ratio", "sent again");
    for (uint16_t window = 8; window <= 256; window = (uint16_t)(window * 2)) {
        double lossless = 0;

        for (unsigned r = 0; r < sizeof(rates) / sizeof(rates[0]); r++) {
            struct goodput g = goodput_run(seed, rates[r].parts, 8u << 20, window);

            if (r == 0)
                lossless = g.gbps;
            printf("%8u %8s %10.3f %8.3f %11.2f%%%s\n", window, rates[r].name, g.gbps, g.gbps / lossless,
                   100.0 * (double)g.again / (double)g.chunks, g.ok ? "" : "  WRONG");
            wrong |= !g.ok;
        }
    }
    return wrong;
}

static uint64_t wall_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {{"count", 1, NULL, 'n'},   {"seconds", 1, NULL, 't'},
                                            {"seed", 1, NULL, 's'},    {"scenario", 1, NULL, 'k'},
                                            {"goodput", 0, NULL, 'g'}, {"verbose", 0, NULL, 'v'},
                                            {"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0}};
    static struct scenario scenario;
    static struct scenario_result result;
    uint64_t seed = 1, count = 100, first = 0, limit_ms = UINT64_MAX, start = wall_ms();
    struct sim_main_totals totals = {0};
    int verbose = 0, goodput = 0, option;

    while ((option = getopt_long(argc, argv, "n:t:s:k:gvh", options, NULL)) != -1) {
        switch (option) {
        case 'n':
            count = strtoull(optarg, NULL, 0);
            break;
        case 't':
            limit_ms = strtoull(optarg, NULL, 0) * 1000;
            count = UINT64_MAX;
            break;
        case 's':
            seed = strtoull(optarg, NULL, 0);
            break;
        case 'k':
            first = strtoull(optarg, NULL, 0);
            count = 1;
            break;
        case 'g':
            goodput = 1;
            break;
        case 'v':
            verbose = 1;
            break;
        case 'h':
            usage(stdout);
            return 0;
        default:
            usage(stderr);
            return 2;
        }
    }
    if (goodput)
        return print_goodput(seed);
    /* Nodes must not depend on what their memory held, and a replay must fail as its campaign. */
    mallopt(M_PERTURB, PERTURBED);
    for (uint64_t i = 0; i < count && wall_ms() - start < limit_ms; i++) {
        scenario_draw(&scenario, seed, first + i);
        scenario_campaign(&scenario, &result);
        add(&totals, &scenario, &result);
        if (verbose || !result.ok)
            print_result(seed, first + i, argv[0], &scenario, &result);
        fflush(stdout);
    }
    print_totals(seed, &totals);
    return totals.failed > 0;
}
