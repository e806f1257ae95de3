/*
 * Makes and writes moves. See moves.h.
 *
 * A lane's path through switches from one host to the next is one move; it belongs to the round of
 * the matching in which the host sends. Every message is divided into chunks small enough that each
 * matching carries a whole number of them. A lane carries consecutive chunks.
 */
#include "control/study/export/moves.h"

#include <jansson.h>

#include "control/base/fraction.h"
#include "control/fabric/build.h"
#include "control/fabric/links.h"
#include "control/study/series/rational.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

struct moves_maker {
    const struct by_series *series;
    const struct by_topology *topology;
    struct by_links *links;
    struct by_moves *moves;
    uint32_t *rank;   /* by node */
    uint32_t **stage; /* by lane and task */
    uint32_t *base;   /* by lane: its first chunk */
    uint32_t **sent;  /* by lane and task: number of chunks sent so far */
    mpz_t cut;        /* number of chunks of one message of a period */
};

/* Computes the number of messages of a period that a part carries, as a fraction. */
static void part_amount(const struct moves_maker *maker, const struct by_series_part *part, mpq_t amount)
{
    const struct by_series_task *task = &maker->series->lanes[part->lane].tasks[part->task];
    uint32_t link = by_links_find(maker->links, task->node, task->to);

    BY_ASSERT(link != UINT32_MAX); /* the schedule has been checked */
    mpq_set_si(amount, maker->links->capacity[link], (unsigned long)maker->topology->scale);
    mpq_canonicalize(amount);
    mpq_mul(amount, amount, part->time);
    mpq_div(amount, amount, maker->series->messages[task->message].size);
}

static bool is_host(const struct moves_maker *maker, uint32_t node)
{
    return maker->topology->nodes[node].compute;
}

/* Calls `visit` for each part that a host sends, with the number of its slot. */
static int each_part(struct moves_maker *maker,
                     int (*visit)(struct moves_maker *, uint32_t, const struct by_series_part *))
{
    int error = 0;

    for (uint32_t s = 0; s < maker->series->slot_count; s++)
        for (uint32_t b = 0; b < maker->series->slots[s].busy_count; b++) {
            const struct by_series_busy *busy = &maker->series->slots[s].busy[b];

            for (uint32_t p = 0; p < busy->part_count && is_host(maker, busy->from) && !error; p++)
                error = visit(maker, s, &busy->parts[p]);
        }
    return error;
}

static int refine(struct moves_maker *maker, uint32_t slot, const struct by_series_part *part)
{
    mpq_t amount;

    (void)slot;
    mpq_init(amount);
    part_amount(maker, part, amount);
    mpz_lcm(maker->cut, maker->cut, mpq_denref(amount));
    mpq_clear(amount);
    return 0;
}

/* Assigns chunks to lanes: the lanes of a message get consecutive ranges. */
static int lay_out(struct moves_maker *maker, struct by_problem *problem)
{
    const struct by_series *series = maker->series;
    uint32_t *used = by_alloc(series->message_count, sizeof(*used));
    int error = 0;
    mpz_t count;

    mpz_init(count);
    mpz_mul(count, series->period, maker->cut);
    mpz_mul(count, count, mpq_numref(series->throughput));
    mpz_divexact(count, count, mpq_denref(series->throughput));
    if (mpz_cmp_ui(count, BY_MOVES_CHUNKS_MAX) > 0)
        error =
            by_problem_set(problem, BY_ELIMIT, nowhere,
                           "a message would have to be cut into more than %u chunks; make the schedule with "
                           "a shorter --period",
                           BY_MOVES_CHUNKS_MAX);
    else
        maker->moves->chunk_count = (uint32_t)mpz_get_ui(count);
    for (uint32_t l = 0; l < series->lane_count && !error; l++) {
        uint32_t message = series->lanes[l].tasks[0].message;

        mpz_mul(count, series->lanes[l].amount, maker->cut);
        maker->base[l] = used[message];
        used[message] += (uint32_t)mpz_get_ui(count);
    }
    mpz_clear(count);
    free(used);
    return error;
}

/* Returns the next host on the lane's path after a task. */
static uint32_t next_host(const struct moves_maker *maker, const struct by_series_lane *lane, uint32_t task)
{
    while (!is_host(maker, lane->tasks[task].to) && task + 1 < lane->task_count)
        task++;
    return lane->tasks[task].to;
}

static int add_move(struct moves_maker *maker, uint32_t slot, const struct by_series_part *part)
{
    const struct by_series *series = maker->series;
    const struct by_series_lane *lane = &series->lanes[part->lane];
    const struct by_series_message *message = &series->messages[lane->tasks[0].message];
    struct by_moves *moves = maker->moves;
    uint32_t *sent = &maker->sent[part->lane][part->task];
    mpq_t amount;
    struct by_move move = {.round = maker->stage[part->lane][part->task] * series->slot_count + slot,
                           .from = maker->rank[lane->tasks[part->task].node],
                           .to = maker->rank[next_host(maker, lane, part->task)],
                           .source = maker->rank[message->from],
                           .target = maker->rank[message->to],
                           .first = maker->base[part->lane] + *sent};

    mpq_init(amount);
    part_amount(maker, part, amount);
    mpz_mul(mpq_numref(amount), mpq_numref(amount), maker->cut);
    mpq_canonicalize(amount);
    move.count = (uint32_t)mpz_get_ui(mpq_numref(amount));
    mpq_clear(amount);
    *sent += move.count;
    BY_GROW(moves->moves, moves->move_count, moves->move_room);
    moves->moves[moves->move_count++] = move;
    return 0;
}

static int compare_moves(const void *left, const void *right)
{
    const struct by_move *a = left, *b = right;

    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->target != b->target)
        return a->target < b->target ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

/* Merges chunks that always move together. */
static void join_chunks(struct by_moves *moves)
{
    int64_t together = moves->chunk_count;

    for (uint32_t m = 0; m < moves->move_count; m++) {
        together = by_gcd(together, moves->moves[m].first);
        together = by_gcd(together, moves->moves[m].count);
    }
    for (uint32_t m = 0; m < moves->move_count; m++) {
        moves->moves[m].first /= (uint32_t)together;
        moves->moves[m].count /= (uint32_t)together;
    }
    moves->chunk_count /= (uint32_t)together;
}

static void maker_free(struct moves_maker *maker)
{
    for (uint32_t l = 0; l < maker->series->lane_count; l++) {
        free(maker->stage[l]);
        free(maker->sent[l]);
    }
    free(maker->stage);
    free(maker->sent);
    free(maker->base);
    free(maker->rank);
    by_links_free(maker->links);
    mpz_clear(maker->cut);
}

int by_moves_make(const struct by_series *series, const struct by_topology *topology, struct by_moves *moves,
                  struct by_problem *problem)
{
    struct moves_maker maker = {.series = series, .topology = topology, .moves = moves};
    int error;

    *moves = (struct by_moves){.operation = series->operation};
    if (series->operation == BY_SERIES_REDUCE)
        return by_problem_set(
            problem, BY_EUNSUPPORTED, nowhere,
            "a reduce has no moves: hosts would have to combine; export a scatter or a gossip");
    maker.links = by_links_new(topology);
    maker.rank = by_alloc(topology->node_count, sizeof(*maker.rank));
    maker.stage = by_alloc(series->lane_count, sizeof(*maker.stage));
    maker.sent = by_alloc(series->lane_count, sizeof(*maker.sent));
    maker.base = by_alloc(series->lane_count, sizeof(*maker.base));
    mpz_init_set_ui(maker.cut, 1);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute)
            maker.rank[i] = moves->rank_count++;
    for (uint32_t l = 0; l < series->lane_count; l++) {
        maker.stage[l] = by_alloc(series->lanes[l].task_count, sizeof(uint32_t));
        maker.sent[l] = by_alloc(series->lanes[l].task_count, sizeof(uint32_t));
        by_series_stages(&series->lanes[l], maker.stage[l]);
    }
    each_part(&maker, refine);
    error = lay_out(&maker, problem);
    if (!error) {
        each_part(&maker, add_move);
        if (moves->move_count > 0) {
            qsort(moves->moves, moves->move_count, sizeof(*moves->moves), compare_moves);
            moves->round_count = moves->moves[moves->move_count - 1].round + 1;
        }
        moves->interval = series->slot_count;
        join_chunks(moves);
    }
    maker_free(&maker);
    return error;
}

void by_moves_free(struct by_moves *moves)
{
    free(moves->moves);
    *moves = (struct by_moves){0};
}

/* Writes the moves of one host. */
static void write_host(const struct by_moves *moves, uint32_t rank, FILE *file)
{
    bool first = true;

    for (uint32_t m = 0; m < moves->move_count; m++) {
        const struct by_move *move = &moves->moves[m];
        bool sends = move->from == rank;

        if (!sends && move->to != rank)
            continue;
        fprintf(file,
                "%s{\"round\": %u, \"%s\": %u, \"source\": %u, \"target\": %u, \"first\": %u, \"count\": %u}",
                first ? "\n    " : ",\n    ", move->round, sends ? "send" : "receive",
                sends ? move->to : move->from, move->source, move->target, move->first, move->count);
        first = false;
    }
}

int by_moves_write(const struct by_moves *moves, const struct by_topology *topology, FILE *file)
{
    json_t *name = json_string(topology->name);
    uint32_t rank = 0;

    BY_ASSERT(name);
    fputs("{\"format\": \"banyan-moves-1\", \"topology\": ", file);
    json_dumpf(name, file, JSON_ENCODE_ANY);
    json_decref(name);
    fprintf(file,
            ", \"operation\": \"%s\", \"ranks\": %u,\n \"chunks\": %u, \"rounds\": %u, \"interval\": %u,\n",
            by_series_operation_name(moves->operation), moves->rank_count, moves->chunk_count,
            moves->round_count, moves->interval);
    fputs(" \"hosts\": [", file);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (!topology->nodes[i].compute)
            continue;
        fprintf(file, "%s{\"name\": \"%s\", \"rank\": %u, \"moves\": [", rank ? ",\n  " : "\n  ",
                topology->nodes[i].name, rank);
        write_host(moves, rank++, file);
        fputs("]}", file);
    }
    fputs("]}\n", file);
    return fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
}
