/* One configuration from beginning to end: exploration, then the check of liveness.
 * Single-threaded. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/model/explore.h"

static double now(void)
{
    struct timespec at;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
    return (double)at.tv_sec + (double)at.tv_nsec * 1e-9;
}

static uint32_t depth(void)
{
    uint32_t steps = 0;

    for (uint32_t s = space.state_count - 1; space.parent[s] != SPACE_NONE; s = space.parent[s])
        steps++;
    return steps;
}

void model_run(const struct model_config *config, uint64_t states_max, struct model_result *result)
{
    double begin = now();
    uint32_t which = 0;

    memset(result, 0, sizeof(*result));
    model_begin(config);
    space.words = 1;
    while (explore(states_max))
        space.words = 2 * space.words;
    result->violation = space.violation;
    result->complete = space.violation == NULL && space.state_count < states_max;
    if (result->complete) {
        result->stuck = live_check(&which);
        result->live = result->stuck == 0;
        result->violation = space.violation;
    }
    result->states = space.state_count;
    result->transitions = space.transitions;
    result->vectors = space.vector_count;
    result->depth = depth();
    result->messages = model.message_count;
    result->steps = model.steps;
    result->bytes = space_bytes();
    result->seconds = now() - begin;
    if (result->violation != NULL)
        trace_violation();
    else if (result->stuck > 0)
        trace_stuck(which);
    space_free();
    model_end();
}
