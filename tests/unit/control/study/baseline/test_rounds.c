/* Schedules of rounds: correct for every count of nodes, exact times, and faults that symbolic
 * execution detects. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/fraction.h"
#include "control/study/baseline/baseline.h"
#include "offload/base/errors.h"
#include "tests/unit/control/planner/rig.h"

static const unsigned collectives[] = {BY_COLLECTIVE_ALLGATHER, BY_COLLECTIVE_REDUCE_SCATTER,
                                       BY_COLLECTIVE_ALLREDUCE, BY_COLLECTIVE_BROADCAST,
                                       BY_COLLECTIVE_REDUCE};
#define COLLECTIVE_COUNT (sizeof(collectives) / sizeof(collectives[0]))

/* Makes the schedule for `hosts` hosts of 10 at a switch. The last host is the root, if there is
 * one. */
static struct by_rounds *make(unsigned hosts, unsigned collective)
{
    bool rooted = collective == BY_COLLECTIVE_BROADCAST || collective == BY_COLLECTIVE_REDUCE;
    char text[12];
    struct by_topology *topology;
    struct by_problem problem = {0};
    struct by_baseline_task task = {.collective = collective, .problem = &problem};
    struct by_rounds *rounds = NULL;

    snprintf(text, sizeof(text), "%u", hosts);
    topology = rig_preset("star", "none", text, "10", NULL);
    task.net = by_net_new(topology, false);
    task.root = rooted ? (int64_t)hosts - 1 : -1;
    if (by_baseline_recursive(&task, &rounds) != 0)
        fail_msg("%s", problem.text);
    by_net_free(task.net);
    by_topology_free(topology);
    return rounds;
}

static void every_count_of_hosts_gets_the_right_data(void **state)
{
    (void)state;
    for (unsigned hosts = 2; hosts <= 40; hosts++)
        for (size_t c = 0; c < COLLECTIVE_COUNT; c++) {
            struct by_rounds *rounds = make(hosts, collectives[c]);
            struct by_problem problem = {0};

            if (!by_rounds_check(rounds, &problem))
                fail_msg("%u hosts, %s: %s", hosts, by_collective_name(collectives[c]), problem.text);
            by_rounds_free(rounds);
        }
}

/* Makes a row of `banyan compare` for a preset whose switches only forward. */
static int figures(const char *name, const char *const *parameters, enum by_algorithm algorithm,
                   unsigned collective, struct by_baseline *result, struct by_problem *problem)
{
    struct by_topology *topology = rig_preset_list(name, "none", parameters);
    struct by_plan reference = {.collective = collective};
    struct by_baseline_options options = {.algorithm = algorithm, .collective = collective, .root = -1};
    int error;

    if (by_collective_is_rooted(collective))
        for (options.root = 0; !topology->nodes[options.root].compute;)
            options.root++;
    error = by_baseline_make(topology, &options, &reference, result, problem);
    by_baseline_free(result);
    by_topology_free(topology);
    return error;
}

static void bine_trees_bring_the_right_data_to_powers_of_two(void **state)
{
    (void)state;
    for (unsigned hosts = 2; hosts <= 64; hosts++)
        for (size_t c = 0; c < COLLECTIVE_COUNT; c++) {
            char text[12];
            const char *parameters[] = {text, "10", NULL};
            struct by_baseline result;
            struct by_problem problem = {0};
            int error;

            snprintf(text, sizeof(text), "%u", hosts);
            /* the schedule is executed: any other data would be BY_EINVAL */
            error = figures("star", parameters, BY_ALGORITHM_BINE, collectives[c], &result, &problem);
            assert_int_equal(error, hosts & (hosts - 1) ? BY_EUNSUPPORTED : 0);
            if (!error && collectives[c] == BY_COLLECTIVE_ALLGATHER)
                rig_assert_fraction(result.facts.achieved, 10 * hosts, hosts - 1);
        }
}

static void steps_on_direct_links_have_their_closed_forms(void **state)
{
    static const struct {
        const char *name, *parameters[4];
        enum by_algorithm algorithm;
        unsigned collective;
        int64_t num, den; /* achieved */
        uint32_t rounds;
    } rows[] = {
        /* Zhao et al.: optimal on tori, cubes, rings and complete graphs */
        {"torus", {"4x4", "10"}, BY_ALGORITHM_BFB, BY_COLLECTIVE_ALLGATHER, 128, 3, 4},
        {"torus", {"4x4", "10"}, BY_ALGORITHM_BFB, BY_COLLECTIVE_ALLREDUCE, 64, 3, 8},
        {"hypercube", {"5", "10"}, BY_ALGORITHM_BFB, BY_COLLECTIVE_REDUCE_SCATTER, 1600, 31, 5},
        {"ring", {"7", "10"}, BY_ALGORITHM_BFB, BY_COLLECTIVE_ALLGATHER, 70, 3, 3},
        /* one shard arrives in the last of two steps, over two links: 1 + 1/2 */
        {"ring", {"4", "10"}, BY_ALGORITHM_BFB, BY_COLLECTIVE_ALLGATHER, 80, 3, 2},
        {"complete", {"6", "10"}, BY_ALGORITHM_BFB, BY_COLLECTIVE_ALLGATHER, 60, 1, 1},
        /* one link each way, with four chunks */
        {"complete", {"2", "10"}, BY_ALGORITHM_TACOS, BY_COLLECTIVE_ALLGATHER, 20, 1, 4},
        {"complete", {"2", "10"}, BY_ALGORITHM_TACOS, BY_COLLECTIVE_ALLREDUCE, 10, 1, 8},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_baseline result;
        struct by_problem problem = {0};

        print_message("%s, %s\n", rows[i].name, by_algorithm_name(rows[i].algorithm));
        assert_int_equal(figures(rows[i].name, rows[i].parameters, rows[i].algorithm, rows[i].collective,
                                 &result, &problem),
                         0);
        rig_assert_fraction(result.facts.achieved, rows[i].num, rows[i].den);
        assert_int_equal(result.round_count, rows[i].rounds);
    }
}

/* A greedy schedule is never faster than the bound of direct links, N / (N - 1) of what a node
 * receives, and reaches half of it here. */
static void greedy_schedules_stay_below_the_bound(void **state)
{
    static const char *const parameters[] = {"4x5", "10", NULL};
    struct by_baseline result;
    struct by_problem problem = {0};

    (void)state;
    assert_int_equal(
        figures("torus", parameters, BY_ALGORITHM_TACOS, BY_COLLECTIVE_ALLGATHER, &result, &problem), 0);
    assert_true(by_fraction_compare(result.facts.achieved, (struct by_fraction){800, 19}) <= 0);
    assert_true(by_fraction_compare(result.facts.achieved, (struct by_fraction){400, 19}) >= 0);
}

static void steps_need_direct_links_and_every_rank(void **state)
{
    static const char *const star[] = {"4", "10", NULL};
    struct by_baseline result;
    struct by_problem problem = {0};

    (void)state;
    for (unsigned a = BY_ALGORITHM_BFB; a <= BY_ALGORITHM_TACOS; a++) {
        assert_int_equal(
            figures("star", star, (enum by_algorithm)a, BY_COLLECTIVE_ALLGATHER, &result, &problem),
            BY_EUNSUPPORTED);
        assert_non_null(strstr(problem.text, "only on direct links between hosts"));
        assert_int_equal(
            figures("ring", star, (enum by_algorithm)a, BY_COLLECTIVE_BROADCAST, &result, &problem),
            BY_EUNSUPPORTED);
    }
}

/* On a star the time of each round is the data that one host sends; these are sums of powers of
 * two. */
static void times_on_a_star_have_their_closed_forms(void **state)
{
    static const struct {
        unsigned hosts, collective;
        int64_t num, den; /* achieved */
        uint32_t rounds;
    } rows[] = {
        {8, BY_COLLECTIVE_ALLGATHER, 80, 7, 3},
        {8, BY_COLLECTIVE_REDUCE_SCATTER, 80, 7, 3},
        {8, BY_COLLECTIVE_ALLREDUCE, 40, 7, 6},
        {8, BY_COLLECTIVE_BROADCAST, 40, 7, 6},
        {8, BY_COLLECTIVE_REDUCE, 40, 7, 6},
        {16, BY_COLLECTIVE_ALLGATHER, 160, 15, 4},
        /* Six hosts form four groups, two of them pairs: 1/6, then 2/6 and 4/6 (the pairs' block),
         * then 5/6. */
        {6, BY_COLLECTIVE_ALLGATHER, 60, 12, 4},
        {2, BY_COLLECTIVE_ALLGATHER, 20, 1, 1},
        {2, BY_COLLECTIVE_ALLREDUCE, 10, 1, 2},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_rounds *rounds = make(rows[i].hosts, rows[i].collective);

        print_message("%u hosts, %s\n", rows[i].hosts, by_collective_name(rows[i].collective));
        rig_assert_fraction(rounds->achieved, rows[i].num, rows[i].den);
        assert_int_equal(rounds->round_count, rows[i].rounds);
        by_rounds_free(rounds);
    }
}

enum rounds_fault { DROP, DOUBLE, WRONG_SHARD, WRONG_NODE, STORE_FOR_ADD, EARLY, FAULT_COUNT };

/* Applies the fault to transfer number `at`. Returns false if it would not be a fault there. */
static bool spoil(struct by_rounds *rounds, enum rounds_fault fault, uint32_t at)
{
    struct by_baseline_transfer *transfer = &rounds->transfers[at];

    switch (fault) {
    case DROP:
        memmove(transfer, transfer + 1, (rounds->transfer_count - at - 1) * sizeof(*transfer));
        rounds->transfer_count--;
        return true;
    case DOUBLE: /* in the same round: harmless if the transfer only stores */
        if (!transfer->reduce || rounds->transfer_count == rounds->transfer_room)
            return false;
        memmove(transfer + 1, transfer, (rounds->transfer_count - at) * sizeof(*transfer));
        rounds->transfer_count++;
        return true;
    case WRONG_SHARD:
        if (transfer->count == rounds->shard_count)
            return false;
        transfer->shard = (transfer->shard + 1) % rounds->shard_count;
        return true;
    case WRONG_NODE: /* a partial sum could arrive from another node too */
        if (transfer->reduce)
            return false;
        transfer->to = (transfer->to + 1) % rounds->shard_count;
        if (transfer->to == transfer->from)
            transfer->to = (transfer->to + 1) % rounds->shard_count;
        return true;
    case STORE_FOR_ADD:
        if (!transfer->reduce)
            return false;
        transfer->reduce = false;
        return true;
    case EARLY:
    case FAULT_COUNT:
    default:
        /* A whole round: with pairs, some of its transfers could be earlier without harm. */
        if ((rounds->shard_count & (rounds->shard_count - 1)) != 0 || transfer->round == 0 ||
            transfer[-1].round == transfer->round)
            return false;
        for (uint32_t i = at; i < rounds->transfer_count; i++)
            rounds->transfers[i].round--;
        return true;
    }
}

/* Each fault in each transfer of each schedule is detected. No schedule has redundant transfers,
 * except broadcast's: inner nodes of the scatter receive again what they have forwarded. */
static void every_spoilt_schedule_is_refused(void **state)
{
    unsigned found = 0;

    (void)state;
    for (unsigned hosts = 3; hosts <= 9; hosts++)
        for (size_t c = 0; c < COLLECTIVE_COUNT; c++)
            for (int fault = 0; fault < FAULT_COUNT; fault++)
                for (uint32_t at = 0;; at++) {
                    struct by_rounds *rounds = make(hosts, collectives[c]);
                    struct by_problem problem = {0};
                    bool spoilt = at < rounds->transfer_count && spoil(rounds, (enum rounds_fault)fault, at);
                    bool last = at + 1 >= rounds->transfer_count + (fault == DROP);

                    if (spoilt && by_rounds_check(rounds, &problem) &&
                        collectives[c] != BY_COLLECTIVE_BROADCAST)
                        fail_msg("%u hosts, %s: fault %d in transfer %u was not found", hosts,
                                 by_collective_name(collectives[c]), fault, at);
                    if (spoilt && problem.text[0])
                        found++;
                    by_rounds_free(rounds);
                    if (last)
                        break;
                }
    print_message("%u faults found\n", found);
    assert_true(found > 500);
}

static void a_file_says_what_the_schedule_is(void **state)
{
    struct by_topology *topology = rig_preset("star", "none", "5", "10", NULL);
    struct by_rounds *rounds = make(5, BY_COLLECTIVE_BROADCAST);
    struct by_fraction optimum = {10, 1};
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    json_t *root;

    (void)state;
    assert_int_equal(by_rounds_write(rounds, topology, "recursive", optimum, stream), 0);
    fclose(stream);
    root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "format")), "banyan-rounds-1");
    assert_string_equal(json_string_value(json_object_get(root, "root")), "host4");
    assert_int_equal(json_array_size(json_object_get(root, "rounds")), rounds->round_count);
    json_decref(root);
    free(text);
    by_rounds_free(rounds);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_count_of_hosts_gets_the_right_data),
        cmocka_unit_test(bine_trees_bring_the_right_data_to_powers_of_two),
        cmocka_unit_test(steps_on_direct_links_have_their_closed_forms),
        cmocka_unit_test(greedy_schedules_stay_below_the_bound),
        cmocka_unit_test(steps_need_direct_links_and_every_rank),
        cmocka_unit_test(times_on_a_star_have_their_closed_forms),
        cmocka_unit_test(every_spoilt_schedule_is_refused),
        cmocka_unit_test(a_file_says_what_the_schedule_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
