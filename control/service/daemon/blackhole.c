/* Detection of blackholes. See blackhole.h. The loop's thread. */
#include "control/service/daemon/blackhole.h"

#include <stdlib.h>
#include <string.h>

/* The interval of samples for which the times in blackhole.h hold (ms). */
#define BEAT_MS 100u

/* The samples of one end of a link. */
struct blackhole_end {
    uint32_t count;
    struct by_blackhole_sample samples[BY_BLACKHOLE_SAMPLES]; /* the newest first */
};

struct blackhole_link {
    struct by_blackhole_link of;
    struct blackhole_end end[2];
};

/* The state of one node as its used links show it. */
struct view {
    uint32_t used, lost; /* used links; those of them on which at least one frame was lost */
    bool guilty;         /* one of them is certainly a blackhole */
    uint32_t fed;        /* links on which many frames arrived */
    bool sends, alive;   /* it sent frames; a link delivers frames to or from it, or its state is unknown */
    uint64_t frames, to, span_ms;
};

struct by_blackhole {
    uint32_t pace_ms, window_ms, silent_ms, gap_ms;
    uint32_t link_count, node_count;
    struct blackhole_link *links;
    bool *switches;     /* by node */
    struct view *views; /* by node: for the current call */
};

/* The behaviour of one direction of a link, or of a switch, in a window. */
struct blackhole_verdict {
    bool guilty;
    uint64_t frames, span_ms;
};

struct by_blackhole *by_blackhole_open(const struct by_blackhole_link *links, uint32_t link_count,
                                       const bool *switches, uint32_t node_count, uint32_t beat_ms)
{
    struct by_blackhole *blackhole = calloc(1, sizeof(*blackhole));
    uint32_t slow = beat_ms > BEAT_MS ? beat_ms : BEAT_MS;

    if (blackhole == NULL)
        return NULL;
    blackhole->pace_ms = BY_BLACKHOLE_PACE_MS * slow / BEAT_MS;
    blackhole->window_ms = BY_BLACKHOLE_WINDOW_MS * slow / BEAT_MS;
    blackhole->silent_ms = BY_BLACKHOLE_SILENT_MS * slow / BEAT_MS;
    blackhole->gap_ms = BY_BLACKHOLE_GAP_MS * slow / BEAT_MS;
    blackhole->link_count = link_count;
    blackhole->node_count = node_count;
    blackhole->links = calloc(link_count + 1u, sizeof(*blackhole->links));
    blackhole->switches = calloc(node_count + 1u, sizeof(*blackhole->switches));
    blackhole->views = calloc(node_count + 1u, sizeof(*blackhole->views));
    if (blackhole->links == NULL || blackhole->switches == NULL || blackhole->views == NULL) {
        by_blackhole_close(blackhole);
        return NULL;
    }
    memcpy(blackhole->switches, switches, node_count * sizeof(*switches));
    for (uint32_t l = 0; l < link_count; l++)
        blackhole->links[l].of = links[l];
    return blackhole;
}

void by_blackhole_close(struct by_blackhole *blackhole)
{
    if (blackhole == NULL)
        return;
    free(blackhole->links);
    free(blackhole->switches);
    free(blackhole->views);
    free(blackhole);
}

/* Returns the sample `back` places before the last one. */
static const struct by_blackhole_sample *past(const struct blackhole_end *end, uint32_t back)
{
    return &end->samples[back];
}

/* Removes one sample whose neighbours are close enough without it: the older, the farther apart. So
 * few samples span a long time, and those of the last moments are all there. */
static void thin_out(struct blackhole_end *end, uint32_t pace_ms)
{
    uint64_t newest_ms = past(end, 0)->answered_ms;

    for (uint32_t i = end->count > 0 ? end->count - 1 : 0; i-- > 1;) {
        uint64_t age_ms = newest_ms - past(end, i)->answered_ms;
        uint64_t apart_ms = past(end, i - 1)->answered_ms - past(end, i + 1)->answered_ms;

        if (apart_ms >= pace_ms && apart_ms >= age_ms / BY_BLACKHOLE_THIN)
            continue;
        end->count--;
        memmove(&end->samples[i], &end->samples[i + 1], (end->count - i) * sizeof(end->samples[0]));
        return;
    }
}

void by_blackhole_take(struct by_blackhole *blackhole, uint32_t link, unsigned end,
                       const struct by_blackhole_sample *sample)
{
    struct blackhole_end *at = &blackhole->links[link].end[end];

    if (at->count > 0 && (sample->sent < past(at, 0)->sent || sample->received < past(at, 0)->received ||
                          sample->answered_ms - past(at, 0)->answered_ms > blackhole->gap_ms))
        at->count = 0;
    if (at->count == BY_BLACKHOLE_SAMPLES)
        at->count--;
    memmove(&at->samples[1], &at->samples[0], at->count * sizeof(at->samples[0]));
    at->samples[0] = *sample;
    at->count++;
    thin_out(at, blackhole->pace_ms);
}

void by_blackhole_forget(struct by_blackhole *blackhole, bool is_link, uint32_t what)
{
    for (uint32_t l = 0; l < blackhole->link_count; l++) {
        struct blackhole_link *link = &blackhole->links[l];

        if (is_link ? l == what : link->of.node[0] == what || link->of.node[1] == what)
            link->end[0].count = link->end[1].count = 0;
    }
}

/* Returns a lower bound of the frames that an end sent after `from_ms` and before `until_ms`. */
static uint64_t sent_within(const struct blackhole_end *end, uint64_t from_ms, uint64_t until_ms)
{
    const struct by_blackhole_sample *first = NULL, *last = NULL;

    for (uint32_t i = 0; i < end->count; i++) {
        const struct by_blackhole_sample *sample = past(end, i);

        if (sample->asked_ms < from_ms)
            break;
        first = sample;
        if (last == NULL && sample->answered_ms <= until_ms)
            last = sample;
    }
    return last != NULL && first->answered_ms < last->answered_ms ? last->sent - first->sent : 0;
}

/* Checks whether all frames that `end` sent were lost. The window ends with the last sample of the
 * other end and extends back for as long as that end received nothing; the longest window is the
 * best. */
static struct blackhole_verdict judge(const struct blackhole_link *link, unsigned end, uint32_t window_ms)
{
    const struct blackhole_end *from = &link->end[end], *to = &link->end[1 - end];
    struct blackhole_verdict verdict = {0};

    for (uint32_t i = 1; i < to->count; i++) {
        const struct by_blackhole_sample *first = past(to, i), *last = past(to, 0);
        uint64_t span_ms = last->asked_ms > first->answered_ms ? last->asked_ms - first->answered_ms : 0;

        if (first->received != last->received)
            break;
        if (i < 3 || span_ms < window_ms)
            continue;
        verdict.frames = sent_within(from, first->answered_ms, last->asked_ms - BY_BLACKHOLE_TRANSIT_MS);
        verdict.span_ms = span_ms;
        verdict.guilty = verdict.frames >=
                         (span_ms < BY_BLACKHOLE_SOON_MS ? BY_BLACKHOLE_FRAMES_SOON : BY_BLACKHOLE_FRAMES);
    }
    return verdict;
}

/* Returns a lower bound of the frames that an end received or sent within the window; UINT64_MAX if
 * its samples do not span it. */
static uint64_t moved(const struct blackhole_end *end, bool received, uint32_t window_ms)
{
    for (uint32_t i = 3; i < end->count; i++)
        if (past(end, 0)->asked_ms >= past(end, i)->answered_ms + window_ms)
            return received ? past(end, 0)->received - past(end, i)->received
                            : past(end, 0)->sent - past(end, i)->sent;
    return UINT64_MAX;
}

/* Adds the evidence of one used link of a switch. */
static void look(const struct by_blackhole *blackhole, struct view *view, const struct blackhole_link *link,
                 unsigned own, const struct blackhole_verdict verdicts[2])
{
    const struct blackhole_verdict *into = &verdicts[1 - own], *out = &verdicts[own];
    uint64_t got = moved(&link->end[own], true, blackhole->silent_ms);
    uint64_t gave = moved(&link->end[own], false, blackhole->silent_ms);

    view->used++;
    view->sends |= gave > 0;
    view->fed += got != UINT64_MAX && got >= BY_BLACKHOLE_FRAMES;
    view->to += got != UINT64_MAX ? got : 0;
    view->lost += into->frames > 0 || out->frames > 0;
    view->guilty |= into->guilty || out->guilty;
    view->frames += into->frames + out->frames;
    if (into->guilty || out->guilty)
        view->span_ms = into->guilty ? into->span_ms : out->span_ms;
    /* Frames to or from the switch clear it, and so does a link in unknown state. */
    for (unsigned end = 0; end < 2; end++)
        view->alive |= moved(&link->end[end], true, blackhole->window_ms) > 0;
}

/* A switch is a blackhole if all frames on its used links are lost, on at least two links, since
 * one link does not show which end fails. Or if it receives frames on several links and sends none:
 * a switch answers or forwards what it receives. */
static bool judge_switch(const struct view *view, uint32_t silent_ms, struct by_blackhole_found *found)
{
    bool lost = view->guilty && view->lost >= 2 && view->lost == view->used && !view->alive,
         silent = view->fed >= 2 && !view->sends;

    if (!lost && !silent)
        return false;
    *found = (struct by_blackhole_found){.silent = !lost,
                                         .frames = lost ? view->frames : view->to,
                                         .span_ms = lost ? view->span_ms : silent_ms};
    return true;
}

bool by_blackhole_find(struct by_blackhole *blackhole, const bool *used, struct by_blackhole_found *found)
{
    bool some = false;

    memset(blackhole->views, 0, blackhole->node_count * sizeof(*blackhole->views));
    for (uint32_t l = 0; l < blackhole->link_count; l++) {
        const struct blackhole_link *link = &blackhole->links[l];
        struct blackhole_verdict verdicts[2];

        if (!used[l])
            continue;
        for (unsigned end = 0; end < 2; end++)
            verdicts[end] = judge(link, end, blackhole->window_ms);
        for (unsigned end = 0; end < 2; end++)
            look(blackhole, &blackhole->views[link->of.node[end]], link, end, verdicts);
        for (unsigned end = 0; end < 2 && !some; end++) {
            some = verdicts[end].guilty;
            if (some)
                *found = (struct by_blackhole_found){.is_link = true,
                                                     .both = verdicts[1 - end].guilty,
                                                     .what = l,
                                                     .from = end,
                                                     .frames = verdicts[end].frames,
                                                     .span_ms = verdicts[end].span_ms};
        }
    }
    for (uint32_t n = 0; n < blackhole->node_count; n++)
        if (blackhole->switches[n] && judge_switch(&blackhole->views[n], blackhole->silent_ms, found)) {
            found->what = n;
            return true;
        }
    return some;
}
