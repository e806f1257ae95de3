/*
 * Computes the period and its slots (LMR section 3.3). See schedule.h.
 *
 * The transfers of all lanes over a link are added up first, so the graph to be coloured has one
 * edge for each link. Within a link's slots its transfers follow one another; a transfer that is
 * not complete at the end of a slot continues in the link's next slot.
 */
#include "control/study/steady/schedule.h"

#include "control/study/series/rational.h"
#include "control/study/steady/colour.h"
#include "offload/base/assert.h"

void by_schedule_lanes(struct by_series *series, struct by_lanes *lanes)
{
    mpz_set_ui(series->period, 1);
    for (uint32_t l = 0; l < lanes->count; l++)
        mpz_lcm(series->period, series->period, mpq_denref(lanes->list[l].weight));
    series->lane_count = lanes->count;
    series->lanes = by_alloc(lanes->count, sizeof(*series->lanes));
    for (uint32_t l = 0; l < lanes->count; l++) {
        struct by_series_lane *lane = &series->lanes[l];

        mpz_init(lane->amount);
        mpz_divexact(lane->amount, series->period, mpq_denref(lanes->list[l].weight));
        mpz_mul(lane->amount, lane->amount, mpq_numref(lanes->list[l].weight));
        lane->task_count = lanes->list[l].task_count;
        lane->tasks = lanes->list[l].tasks;
        lanes->list[l].tasks = NULL;
    }
}

/* A link's queue of work, in execution order. */
struct schedule_job {
    uint32_t lane, task;
    mpq_t time;
};

struct schedule_queue {
    uint32_t count, room, at;
    struct schedule_job *jobs;
};

static struct schedule_queue *list_jobs(const struct by_series *series, const struct by_platform *platform)
{
    struct schedule_queue *queues = by_alloc(platform->links->count, sizeof(*queues));
    mpq_t amount;

    mpq_init(amount);
    for (uint32_t l = 0; l < series->lane_count; l++)
        for (uint32_t t = 0; t < series->lanes[l].task_count; t++) {
            const struct by_series_task *task = &series->lanes[l].tasks[t];
            struct schedule_queue *queue;
            struct schedule_job *job;
            uint32_t link;

            if (task->to == BY_SERIES_NONE || mpz_sgn(series->lanes[l].amount) == 0)
                continue;
            link = by_links_find(platform->links, task->node, task->to);
            BY_ASSERT(link != BY_SERIES_NONE);
            queue = &queues[link];
            BY_GROW(queue->jobs, queue->count, queue->room);
            job = &queue->jobs[queue->count++];
            job->lane = l;
            job->task = t;
            mpq_init(job->time);
            mpq_set_z(amount, series->lanes[l].amount);
            mpq_mul(job->time, amount, series->messages[task->message].size);
            mpq_mul(job->time, job->time, platform->cost[link]);
        }
    mpq_clear(amount);
    return queues;
}

static void free_jobs(struct schedule_queue *queues, uint32_t count)
{
    for (uint32_t q = 0; q < count; q++) {
        for (uint32_t j = 0; j < queues[q].count; j++)
            mpq_clear(queues[q].jobs[j].time);
        free(queues[q].jobs);
    }
    free(queues);
}

/* Makes an edge for each link with work. Ends that share no port get their own vertex. */
static struct by_colour_edge *make_edges(const struct by_platform *platform,
                                         const struct schedule_queue *queues, uint32_t *link_of,
                                         uint32_t *edge_count, uint32_t *vertex_count)
{
    const struct by_links *links = platform->links;
    struct by_colour_edge *edges = by_alloc(links->count, sizeof(*edges));

    *edge_count = 0;
    *vertex_count = platform->topology->node_count;
    for (uint32_t l = 0; l < links->count; l++) {
        struct by_colour_edge *edge = &edges[*edge_count];

        if (queues[l].count == 0)
            continue;
        edge->left = links->from[l];
        edge->right = links->to[l];
        if (!by_series_shares(platform->topology, platform->ports, links->from[l]))
            edge->left = *vertex_count;
        if (!by_series_shares(platform->topology, platform->ports, links->to[l]))
            edge->right = *vertex_count;
        (*vertex_count)++;
        mpq_init(edge->time);
        for (uint32_t j = 0; j < queues[l].count; j++)
            mpq_add(edge->time, edge->time, queues[l].jobs[j].time);
        link_of[(*edge_count)++] = l;
    }
    return edges;
}

/* Fills a slot with the next `duration` of a link's work. */
static void fill_busy(struct by_series_busy *busy, struct schedule_queue *queue, const mpq_t duration)
{
    uint32_t room = 0;
    mpq_t left;

    mpq_init(left);
    mpq_set(left, duration);
    while (mpq_sgn(left) > 0) {
        struct schedule_job *job = &queue->jobs[queue->at];
        struct by_series_part *part;

        BY_ASSERT(queue->at < queue->count);
        BY_GROW(busy->parts, busy->part_count, room);
        part = &busy->parts[busy->part_count++];
        part->lane = job->lane;
        part->task = job->task;
        mpq_init(part->time);
        mpq_set(part->time, mpq_cmp(job->time, left) < 0 ? job->time : left);
        mpq_sub(job->time, job->time, part->time);
        mpq_sub(left, left, part->time);
        queue->at += mpq_sgn(job->time) == 0;
    }
    mpq_clear(left);
}

void by_schedule_slots(struct by_series *series, const struct by_platform *platform)
{
    const struct by_links *links = platform->links;
    struct schedule_queue *queues = list_jobs(series, platform);
    uint32_t edge_count, vertex_count, count;
    uint32_t *link_of = by_alloc(links->count, sizeof(*link_of));
    struct by_colour_edge *edges = make_edges(platform, queues, link_of, &edge_count, &vertex_count);
    struct by_matching *matchings = by_colour(edges, edge_count, vertex_count, vertex_count, &count);

    by_series_slots_free(series);
    series->slots = by_alloc(count, sizeof(*series->slots));
    series->slot_count = count;
    for (uint32_t s = 0; s < count; s++) {
        struct by_series_slot *slot = &series->slots[s];

        mpq_init(slot->duration);
        mpq_set(slot->duration, matchings[s].time);
        slot->busy_count = matchings[s].edge_count;
        slot->busy = by_alloc(slot->busy_count, sizeof(*slot->busy));
        for (uint32_t b = 0; b < slot->busy_count; b++) {
            uint32_t link = link_of[matchings[s].edges[b]];

            slot->busy[b] = (struct by_series_busy){.from = links->from[link], .to = links->to[link]};
            fill_busy(&slot->busy[b], &queues[link], slot->duration);
        }
    }
    by_matchings_free(matchings, count);
    for (uint32_t e = 0; e < edge_count; e++)
        mpq_clear(edges[e].time);
    free(edges);
    free(link_of);
    free_jobs(queues, links->count);
}
