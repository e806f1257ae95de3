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
        cmocka_unit_test(times_on_a_star_have_their_closed_forms),
        cmocka_unit_test(every_spoilt_schedule_is_refused),
        cmocka_unit_test(a_file_says_what_the_schedule_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
