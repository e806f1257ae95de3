/* One hour of the fabric's past. See history.h. */
#include "control/service/daemon/history.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/unit.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/rates.h"

/* The mean of one direction of a link under way. */
struct mean {
    uint32_t sum, count;
};

struct by_history {
    uint64_t due_ms;  /* monotonic time of the next sample */
    uint64_t samples; /* taken so far; sample n is at n % BY_HISTORY_SAMPLES */
    struct by_history_sample ring[BY_HISTORY_SAMPLES];
    uint32_t link_count; /* 0: the loads of links are not kept */
    uint64_t link_samples;
    struct mean (*means)[2];                      /* by link and direction */
    uint8_t (*links)[2][BY_HISTORY_LINK_SAMPLES]; /* percent */
};

struct by_history *by_history_open(uint32_t link_count)
{
    struct by_history *history = by_alloc(1, sizeof(*history));

    if (link_count > BY_HISTORY_LINKS_MAX)
        return history;
    history->link_count = link_count;
    history->means = by_alloc(link_count, sizeof(*history->means));
    history->links = by_alloc(link_count, sizeof(*history->links));
    return history;
}

void by_history_close(struct by_history *history)
{
    if (history == NULL)
        return;
    free(history->means);
    free(history->links);
    free(history);
}

uint16_t by_history_permille(const struct by_daemon *daemon, uint32_t link, unsigned direction)
{
    const struct by_link *cable = &daemon->topology->links[link];
    uint32_t arc = direction == 0 ? cable->arc_ab : cable->arc_ba;
    struct by_fraction capacity;
    uint64_t rate, whole;

    if (arc == UINT32_MAX || !by_rates_get(daemon->rates, link, direction, daemon->now_ms, &rate))
        return BY_HISTORY_NO_PERMILLE;
    capacity = by_unit_arc_bytes(daemon->topology, arc);
    whole = capacity.den > 0 && capacity.num > 0 ? (uint64_t)(capacity.num / capacity.den) : 0;
    if (whole == 0)
        return BY_HISTORY_NO_PERMILLE;
    if (rate / whole >= 60)
        return 60000;
    return (uint16_t)(rate * 1000 / whole);
}

static void take_links(struct by_daemon *daemon, struct by_history *history, struct by_history_sample *sample)
{
    sample->peak_permille = BY_HISTORY_NO_PERMILLE;
    for (uint32_t link = 0; link < daemon->topology->link_count; link++) {
        sample->links_down += daemon->links[link].down;
        for (unsigned direction = 0; direction < 2; direction++) {
            uint16_t permille = by_history_permille(daemon, link, direction);
            uint64_t rate;

            if (by_rates_get(daemon->rates, link, direction, daemon->now_ms, &rate))
                sample->carried += rate;
            if (permille == BY_HISTORY_NO_PERMILLE)
                continue;
            if (sample->peak_permille == BY_HISTORY_NO_PERMILLE || permille > sample->peak_permille)
                sample->peak_permille = permille;
            if (link < history->link_count) {
                history->means[link][direction].sum += permille;
                history->means[link][direction].count++;
            }
        }
    }
}

/* Ends the means of all links. */
static void keep_means(struct by_history *history)
{
    uint32_t at = (uint32_t)(history->link_samples++ % BY_HISTORY_LINK_SAMPLES);

    for (uint32_t link = 0; link < history->link_count; link++)
        for (unsigned direction = 0; direction < 2; direction++) {
            struct mean *mean = &history->means[link][direction];
            uint32_t percent = mean->count > 0 ? (mean->sum / mean->count + 5) / 10 : BY_HISTORY_NO_PERCENT;

            history->links[link][direction][at] =
                (uint8_t)(mean->count > 0 && percent >= BY_HISTORY_NO_PERCENT ? BY_HISTORY_NO_PERCENT - 1
                                                                              : percent);
            *mean = (struct mean){0};
        }
}

void by_history_tick(struct by_daemon *daemon)
{
    struct by_history *history = daemon->history;
    struct by_history_sample *sample;

    if (history == NULL || daemon->now_ms < history->due_ms)
        return;
    /* After a pause of the loop the next sample follows a whole period later. */
    history->due_ms = daemon->now_ms + BY_HISTORY_STEP_MS;
    sample = &history->ring[history->samples++ % BY_HISTORY_SAMPLES];
    memset(sample, 0, sizeof(*sample));
    sample->time_ms = by_news_clock_ms();
    for (uint32_t i = 0; i < daemon->switch_count; i++)
        sample->switches_down += daemon->switches[i].state == BY_SWITCH_DOWN;
    take_links(daemon, history, sample);
    for (uint32_t i = 0; i < daemon->job_count; i++) {
        by_latency_step(daemon->jobs[i]);
        sample->jobs[sample->job_count++] = (struct by_history_job){
            .job = daemon->jobs[i]->spec.job, .permille = by_latency_permille(daemon->jobs[i])};
    }
    if (history->link_count > 0 && history->samples % BY_HISTORY_LINK_STEPS == 0)
        keep_means(history);
}

uint32_t by_history_count(const struct by_history *history)
{
    return history->samples < BY_HISTORY_SAMPLES ? (uint32_t)history->samples : BY_HISTORY_SAMPLES;
}

const struct by_history_sample *by_history_at(const struct by_history *history, uint32_t age)
{
    if (age >= by_history_count(history))
        return NULL;
    return &history->ring[(history->samples - 1 - age) % BY_HISTORY_SAMPLES];
}

bool by_history_has_links(const struct by_history *history)
{
    return history->link_count > 0;
}

uint32_t by_history_link_count(const struct by_history *history)
{
    return history->link_samples < BY_HISTORY_LINK_SAMPLES ? (uint32_t)history->link_samples
                                                           : BY_HISTORY_LINK_SAMPLES;
}

uint8_t by_history_link(const struct by_history *history, uint32_t link, unsigned direction, uint32_t age)
{
    if (link >= history->link_count || age >= by_history_link_count(history))
        return BY_HISTORY_NO_PERCENT;
    return history->links[link][direction][(history->link_samples - 1 - age) % BY_HISTORY_LINK_SAMPLES];
}
