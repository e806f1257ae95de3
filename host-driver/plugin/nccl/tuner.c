/*
 * The tuner: tells NCCL how long an allreduce takes in banyan's trees, so that NCCL takes CollNet
 * where that is the shortest time. The time comes from the plan, by BANYAN_NCCL_RATE, and not from
 * a measurement: every rank must choose alike, and each decides alone. NCCL finds the exported
 * tables, ncclTunerPlugin_v2 to _v5, in the library of its network plugin. Any thread.
 */
#include <stdlib.h>

#include "host-driver/plugin/nccl/core.h"
#include "host-driver/plugin/nccl/tuner_abi.h"

struct tuner {
    uint64_t rate, latency_ns; /* rate 0: NCCL's own predictions stand */
    uint64_t nodes;
};

/* ---- the decision ---- */

/* Predicted time of an allreduce in the trees, as a group of `operations` with `bytes` in all. */
static double tree_ns(const struct tuner *tuner, size_t bytes, int operations)
{
    return (double)tuner->latency_ns * (operations > 1 ? operations : 1) +
           1e9 * (double)bytes / (double)tuner->rate;
}

/* On links that carry the trees at `rate`, a ring carries each byte 2 (n - 1) / n times through
 * each cut, and the trees once. So this is the least time of a ring, without its latency. */
static double ring_ns(const struct tuner *tuner, size_t bytes)
{
    double nodes = (double)tuner->nodes;

    return 2 * (nodes - 1) / nodes * 1e9 * (double)bytes / (double)tuner->rate;
}

/* ---- NCCL's calls ---- */

static int init(size_t ranks, size_t nodes, by_nccl_logger logger, void **context)
{
    struct by_nccl_settings settings;
    struct tuner *tuner;
    int result = by_nccl_start(logger);

    if (result != BY_NCCL_OK)
        return result;
    if (context == NULL || nodes == 0 || ranks < nodes)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "tuner: a communicator of %zu ranks on %zu hosts is not possible", ranks, nodes);
    settings = by_nccl_settings();
    tuner = calloc(1, sizeof(*tuner));
    if (tuner == NULL)
        return by_nccl_fail(BY_NCCL_SYSTEM, "tuner: insufficient memory");
    if (settings.coll != BY_NCCL_COLL_OFF)
        *tuner = (struct tuner){settings.rate, settings.rate_latency_ns, nodes};
    result = by_nccl_keep(BY_NCCL_TUNER, tuner, free, "tuner", context);
    if (result != BY_NCCL_OK)
        return result;
    if (settings.rate == 0)
        by_nccl_log(BY_NCCL_LOG_INFO, "tuner: NCCL predicts the times itself; BANYAN_NCCL_RATE states those "
                                      "of the trees");
    else if (settings.coll == BY_NCCL_COLL_OFF)
        by_nccl_log(BY_NCCL_LOG_INFO, "tuner: not used, because BANYAN_NCCL_COLLNET is off");
    else
        by_nccl_log(BY_NCCL_LOG_INFO, "tuner: an allreduce by CollNet takes %.1f us and %.4f ns a byte",
                    (double)settings.rate_latency_ns / 1e3, 1e9 / (double)settings.rate);
    return BY_NCCL_OK;
}

/* Copies the tuner, so that no lock is held while it decides. 0, or BY_NCCL_ARGUMENT. */
static int read_tuner(void *context, struct tuner *copy)
{
    struct tuner *tuner = by_nccl_enter(context, BY_NCCL_TUNER);

    *copy = (struct tuner){0};
    if (tuner == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "tuner: %p is not an open tuner", context);
    *copy = *tuner;
    by_nccl_leave(context);
    return BY_NCCL_OK;
}

/* Replaces the predictions of both forms of CollNet. Their difference, which comes from the links
 * within hosts, stays; pairs that NCCL ignores stay ignored. */
static int predict(void *context, int collective, size_t bytes, int operations, float **times, int algorithms,
                   int protocols, int *channels)
{
    static const int forms[] = {BY_NCCL_COLLNET_DIRECT, BY_NCCL_COLLNET_CHAIN};
    float *table = (float *)times, least = BY_NCCL_IGNORED;
    struct tuner tuner;
    int result = read_tuner(context, &tuner);

    (void)channels;
    if (result != BY_NCCL_OK || tuner.rate == 0 || collective != BY_NCCL_ALLREDUCE)
        return result;
    if (times == NULL || algorithms <= BY_NCCL_COLLNET_CHAIN || protocols <= BY_NCCL_SIMPLE)
        return by_nccl_fail(BY_NCCL_ARGUMENT,
                            "tuner: a table of %d algorithms and %d protocols has no place for CollNet",
                            algorithms, protocols);
    for (unsigned i = 0; i < 2; i++) {
        float time = table[forms[i] * protocols + BY_NCCL_SIMPLE];

        if (time >= 0 && (least < 0 || time < least))
            least = time;
    }
    for (unsigned i = 0; i < 2; i++) {
        float *time = &table[forms[i] * protocols + BY_NCCL_SIMPLE];

        if (*time >= 0)
            *time = (float)(tree_ns(&tuner, bytes, operations) / 1e3) + (*time - least);
    }
    return BY_NCCL_OK;
}

static int predict_v4(void *context, int collective, size_t bytes, int operations, float **times,
                      int algorithms, int protocols, int is_registered, int *channels)
{
    (void)is_registered;
    return predict(context, collective, bytes, operations, times, algorithms, protocols, channels);
}

/* Without NCCL's predictions: CollNet where no ring over the same links can be faster. */
static int choose(void *context, int collective, size_t bytes, int has_collnet, int has_nvls, int operations,
                  int *algorithm, int *protocol, int *channels)
{
    struct tuner tuner;
    int result = read_tuner(context, &tuner);

    (void)has_nvls;
    (void)channels;
    if (result != BY_NCCL_OK || tuner.rate == 0 || collective != BY_NCCL_ALLREDUCE || !has_collnet)
        return result;
    if (algorithm == NULL || protocol == NULL)
        return BY_NCCL_ARGUMENT;
    if (tree_ns(&tuner, bytes, operations) < ring_ns(&tuner, bytes)) {
        *algorithm = BY_NCCL_COLLNET_DIRECT;
        *protocol = BY_NCCL_SIMPLE;
    }
    return BY_NCCL_OK;
}

static int init_v5(void **context, uint64_t comm_id, size_t ranks, size_t nodes, by_nccl_logger logger,
                   void *domains, void *constants)
{
    (void)comm_id;
    (void)domains;
    (void)constants;
    return init(ranks, nodes, logger, context);
}

static int finish(void *context)
{
    struct tuner *tuner = by_nccl_remove(context, BY_NCCL_TUNER);

    if (tuner == NULL)
        return by_nccl_fail(BY_NCCL_ARGUMENT, "tuner: %p is not an open tuner", context);
    free(tuner);
    return BY_NCCL_OK;
}

const struct by_nccl_tuner_v2 ncclTunerPlugin_v2 = {BY_NCCL_NAME, init, choose, finish};
const struct by_nccl_tuner_v3 ncclTunerPlugin_v3 = {BY_NCCL_NAME, init, predict, finish};
const struct by_nccl_tuner_v4 ncclTunerPlugin_v4 = {BY_NCCL_NAME, init, predict_v4, finish};
const struct by_nccl_tuner_v5 ncclTunerPlugin_v5 = {BY_NCCL_NAME, init_v5, predict_v4, finish};
