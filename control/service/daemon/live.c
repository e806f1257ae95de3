/* The state as the live page draws it. See live.h. */
#include "control/service/daemon/live.h"

#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "control/fabric/unit.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/rates.h"
#include "control/service/daemon/recovery.h"
#include "control/service/daemon/status.h"
#include "control/view/plot/layout.h"

static json_t *number_json(uint64_t number)
{
    return json_integer(number <= INT64_MAX ? (json_int_t)number : INT64_MAX);
}

static json_t *permille_json(uint16_t permille)
{
    return permille != BY_HISTORY_NO_PERMILLE ? json_integer(permille) : json_null();
}

/* ---- the fabric ---- */

static json_t *nodes_json(const struct by_topology *topology, const struct by_layout *layout)
{
    json_t *array = json_array();

    for (uint32_t n = 0; n < topology->node_count; n++) {
        const struct by_spot *place = &layout->places[n];

        json_array_append_new(array, json_pack("[s, i, i, i, i]", topology->nodes[n].name,
                                               (int)topology->nodes[n].compute, (int)place->level,
                                               (int)place->x, (int)place->y));
    }
    return array;
}

static json_t *capacity_json(const struct by_topology *topology, uint32_t arc)
{
    struct by_fraction bytes = {0, 1};

    if (arc != UINT32_MAX)
        bytes = by_unit_arc_bytes(topology, arc);
    return bytes.num > 0 ? json_integer(bytes.num / bytes.den) : json_null();
}

static json_t *links_json(const struct by_topology *topology)
{
    json_t *array = json_array();

    for (uint32_t l = 0; l < topology->link_count; l++) {
        const struct by_link *link = &topology->links[l];

        json_array_append_new(array, json_pack("[i, i, o, o]", (int)link->a, (int)link->b,
                                               capacity_json(topology, link->arc_ab),
                                               capacity_json(topology, link->arc_ba)));
    }
    return array;
}

json_t *by_live_fabric(const struct by_daemon *daemon)
{
    static const char *const shapes[] = {[BY_SHAPE_LAYERS] = "layers",
                                         [BY_SHAPE_GRID] = "grid",
                                         [BY_SHAPE_CIRCLE] = "circle",
                                         [BY_SHAPE_RING] = "ring"};
    struct by_fabric *fabric = by_fabric_make(daemon->topology, NULL, -1, 0);
    struct by_layout *layout = by_layout_make(fabric);
    json_t *answer =
        json_pack("{s:s, s:s, s:s, s:I, s:s, s:i, s:i, s:b, s:o, s:o}", "version", BY_VERSION, "topology",
                  daemon->topology->name, "unit", daemon->topology->unit, "started",
                  (json_int_t)daemon->started_ms, "shape", shapes[layout->shape], "width", (int)layout->width,
                  "height", (int)layout->height, "keeps_links", (int)by_history_has_links(daemon->history),
                  "nodes", nodes_json(daemon->topology, layout), "links", links_json(daemon->topology));

    by_layout_free(layout);
    by_fabric_free(fabric);
    return answer;
}

/* ---- the present state ---- */

/* The nodes of a state, or those that were found to be blackholes. */
static json_t *switches_json(const struct by_daemon *daemon, enum by_switch_state state)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < daemon->switch_count; i++)
        if (daemon->switches[i].state == state)
            json_array_append_new(array, json_integer(daemon->switches[i].node));
    return array;
}

static json_t *links_down_json(const struct by_daemon *daemon)
{
    json_t *array = json_array();

    for (uint32_t l = 0; l < daemon->topology->link_count; l++)
        if (daemon->links[l].down)
            json_array_append_new(array, json_integer(l));
    return array;
}

/* The parts that are held because they dropped packets silently. */
static json_t *distrusted_json(const struct by_daemon *daemon, bool is_link)
{
    uint32_t count = is_link ? daemon->topology->link_count : daemon->topology->node_count;
    json_t *array = json_array();

    for (uint32_t i = 0; daemon->recover != NULL && i < count; i++)
        if (by_recover_held(daemon->recover, is_link, i))
            json_array_append_new(array, json_integer(i));
    return array;
}

/* Bytes per second of each link, a to b, then b to a; null: not measured. */
static json_t *load_json(const struct by_daemon *daemon)
{
    json_t *array = json_array();

    for (uint32_t l = 0; l < daemon->topology->link_count; l++)
        for (unsigned direction = 0; direction < 2; direction++) {
            uint64_t rate;
            bool known = by_rates_get(daemon->rates, l, direction, daemon->now_ms, &rate);

            json_array_append_new(array, known ? number_json(rate) : json_null());
        }
    return array;
}

static json_t *bytes_json(const char *unit, struct by_fraction rate)
{
    struct by_fraction bytes;

    return by_unit_bytes(unit, rate, &bytes) == 0 && bytes.den > 0 ? json_integer(bytes.num / bytes.den)
                                                                   : json_null();
}

static json_t *plans_json(const struct by_daemon *daemon, const struct by_job *job)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < job->spec.want_count; i++) {
        const struct by_plan *plan;
        json_t *object = by_status_want(daemon, job, i, &plan);

        if (plan != NULL) {
            json_object_set_new(object, "optimum", bytes_json(plan->unit, plan->optimum));
            json_object_set_new(object, "plan", bytes_json(plan->unit, plan->achieved));
            json_object_set_new(object, "trees", json_integer(plan->tree_count));
        }
        json_array_append_new(array, object);
    }
    return array;
}

/* What the ranks measured in the last period, beside the optimum. */
static json_t *measured_json(const struct by_job *job)
{
    json_t *array = json_array();

    for (uint32_t c = 1; c < BY_COLLECTIVE_COUNT; c++) {
        const struct by_latency *recent = by_latency_recent(job, c), *total = by_latency_of(job, c);
        uint64_t rate = 0;

        if (recent == NULL || total->operations == 0)
            continue;
        if (recent->duration_ns > 0)
            rate = (uint64_t)((double)recent->bytes * 1e9 / (double)recent->duration_ns);
        json_array_append_new(array, json_pack("{s:s, s:o, s:o, s:o}", "collective", by_collective_name(c),
                                               "operations", number_json(total->operations), "recent",
                                               number_json(recent->operations), "rate",
                                               recent->duration_ns > 0 ? number_json(rate) : json_null()));
    }
    return array;
}

/* Counts the connected ranks, and lists the hosts of the others, at most BY_LIVE_MISSING_MAX. */
static json_t *missing_json(const struct by_daemon *daemon, const struct by_job *job, uint32_t *joined)
{
    json_t *array = json_array();
    uint32_t rank = 0;

    *joined = 0;
    for (uint32_t n = 0; n < daemon->topology->node_count; n++) {
        if (!by_members_have(daemon->topology, job->spec.member, n))
            continue;
        if (by_recovery_has_rank(daemon, job->spec.job, (uint16_t)rank++))
            (*joined)++;
        else if (json_array_size(array) < BY_LIVE_MISSING_MAX)
            json_array_append_new(array, json_string(daemon->topology->nodes[n].name));
    }
    return array;
}

static json_t *job_json(const struct by_daemon *daemon, const struct by_job *job)
{
    char share[BY_FRACTION_TEXT_BYTES];
    uint32_t joined;
    json_t *missing = missing_json(daemon, job, &joined);

    return json_pack("{s:i, s:o, s:s, s:o, s:i, s:i, s:i, s:o, s:s, s:o, s:o, s:o}", "job",
                     (int)job->spec.job, "name", by_status_text(job->spec.name), "state",
                     by_job_state_name(job->state), "text", by_status_text(job->text), "generation",
                     (int)(job->tables ? job->tables->gen : 0), "ranks",
                     (int)by_job_rank_count(&job->spec, daemon->topology), "joined", (int)joined, "missing",
                     missing, "share", by_fraction_text(job->spec.share, share), "permille",
                     permille_json(by_latency_permille(job)), "plans", plans_json(daemon, job), "measured",
                     measured_json(job));
}

static json_t *jobs_json(const struct by_daemon *daemon)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < daemon->job_count; i++)
        json_array_append_new(array, job_json(daemon, daemon->jobs[i]));
    return array;
}

/* The trees whose oldest chunk waits at a switch, and the nodes that they wait for. */
static json_t *waiting_json(const struct by_daemon *daemon)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < daemon->switch_count; i++) {
        json_t *waits, *wait;
        size_t at;

        if (by_status_waiting(&daemon->switches[i]) == 0)
            continue;
        waits = by_status_waits(daemon, &daemon->switches[i]);
        json_array_foreach(waits, at, wait)
        {
            json_object_set_new(wait, "node", json_integer(daemon->switches[i].node));
            if (json_array_size(array) < BY_LIVE_WAITS_MAX)
                json_array_append(array, wait);
        }
        json_decref(waits);
    }
    return array;
}

static json_t *news_json(const struct by_daemon *daemon, uint32_t most)
{
    static const char *const grades[] = {
        [BY_NEWS_GOOD] = "good", [BY_NEWS_PLAIN] = "plain", [BY_NEWS_BAD] = "bad"};
    const struct by_news_line *line;
    json_t *array = json_array();

    for (uint32_t age = 0; age < most && (line = by_news_at(daemon->news, age)) != NULL; age++)
        json_array_append_new(array, json_pack("{s:o, s:o, s:s, s:o}", "number", number_json(line->number),
                                               "time", number_json(line->time_ms), "grade",
                                               grades[line->grade], "text", by_status_text(line->text)));
    return array;
}

static json_t *sample_jobs(const struct by_history_sample *sample)
{
    json_t *array = json_array();

    for (uint32_t i = 0; i < sample->job_count; i++)
        json_array_append_new(
            array, json_pack("[i, o]", (int)sample->jobs[i].job, permille_json(sample->jobs[i].permille)));
    return array;
}

/* A sample of the history: [time, bytes per second, peak, links down, switches down, [[job,
 * permille of its optimum]...]]. */
static json_t *sample_json(const struct by_history_sample *sample)
{
    if (sample == NULL)
        return json_null();
    return json_pack("[o, o, o, i, i, o]", number_json(sample->time_ms), number_json(sample->carried),
                     permille_json(sample->peak_permille), (int)sample->links_down,
                     (int)sample->switches_down, sample_jobs(sample));
}

json_t *by_live_state(const struct by_daemon *daemon)
{
    return json_pack(
        "{s:I, s:I, s:b, s:b, s:i, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "started",
        (json_int_t)daemon->started_ms, "time", (json_int_t)by_news_clock_ms(), "leads",
        (int)(daemon->start == NULL), "changing", (int)(daemon->change != NULL), "switches",
        (int)daemon->switch_count, "nodes_up", switches_json(daemon, BY_SWITCH_UP), "nodes_down",
        switches_json(daemon, BY_SWITCH_DOWN), "nodes_distrusted", distrusted_json(daemon, false),
        "links_down", links_down_json(daemon), "links_distrusted", distrusted_json(daemon, true), "load",
        load_json(daemon), "jobs", jobs_json(daemon), "waiting", waiting_json(daemon), "events",
        news_json(daemon, BY_LIVE_NEWS_MAX), "sample", sample_json(by_history_at(daemon->history, 0)));
}

/* ---- the last hour ---- */

json_t *by_live_history(const struct by_daemon *daemon)
{
    json_t *samples = json_array();

    for (uint32_t age = by_history_count(daemon->history); age-- > 0;)
        json_array_append_new(samples, sample_json(by_history_at(daemon->history, age)));
    return json_pack("{s:I, s:i, s:o, s:o}", "started", (json_int_t)daemon->started_ms, "step_ms",
                     (int)BY_HISTORY_STEP_MS, "samples", samples, "events", news_json(daemon, BY_NEWS_MAX));
}

json_t *by_live_history_link(const struct by_daemon *daemon, uint32_t link)
{
    json_t *loads[2];

    if (!by_history_has_links(daemon->history) || link >= daemon->topology->link_count)
        return NULL;
    for (unsigned direction = 0; direction < 2; direction++) {
        loads[direction] = json_array();
        for (uint32_t age = by_history_link_count(daemon->history); age-- > 0;) {
            uint8_t percent = by_history_link(daemon->history, link, direction, age);

            json_array_append_new(loads[direction],
                                  percent != BY_HISTORY_NO_PERCENT ? json_integer(percent) : json_null());
        }
    }
    return json_pack("{s:i, s:i, s:o, s:o}", "link", (int)link, "step_ms",
                     (int)(BY_HISTORY_STEP_MS * BY_HISTORY_LINK_STEPS), "ab", loads[0], "ba", loads[1]);
}
