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
    uint32_t *paths;  /* by rank: index of its first path, or UINT32_MAX */
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
    /* the lanes of a reduce divide one vector */
    bool reduces = series->operation == BY_SERIES_REDUCE;
    uint32_t *used = by_alloc(reduces ? 1 : series->message_count, sizeof(*used));
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
        uint32_t message = reduces ? 0 : series->lanes[l].tasks[0].message;

        mpz_mul(count, series->lanes[l].amount, maker->cut);
        maker->base[l] = used[message];
        used[message] += (uint32_t)mpz_get_ui(count);
    }
    mpz_clear(count);
    free(used);
    return error;
}

/* Lists the nodes from the sender of a task to the next host on the message's way, `nodes` with
 * room for all nodes. Returns their number. */
static uint32_t list_path(const struct moves_maker *maker, const struct by_series_lane *lane, uint32_t task,
                          uint32_t *nodes)
{
    uint32_t count = 0;

    nodes[count++] = lane->tasks[task].node;
    nodes[count++] = lane->tasks[task].to;
    for (uint32_t next = task + 1; next < lane->task_count && !is_host(maker, nodes[count - 1]); next++)
        if (lane->tasks[next].message == lane->tasks[task].message &&
            lane->tasks[next].node == nodes[count - 1])
            nodes[count++] = lane->tasks[next].to;
    return count;
}

/* Returns the index of the path with these nodes; adds it if it is new. */
static uint32_t take_path(struct moves_maker *maker, const uint32_t *nodes, uint32_t count)
{
    struct by_moves *moves = maker->moves;
    uint32_t *head = &maker->paths[maker->rank[nodes[0]]];
    struct by_moves_path *path;

    for (uint32_t p = *head; p != UINT32_MAX; p = moves->paths[p].next)
        if (moves->paths[p].node_count == count &&
            memcmp(moves->paths[p].nodes, nodes, count * sizeof(*nodes)) == 0)
            return p;
    BY_GROW(moves->paths, moves->path_count, moves->path_room);
    path = &moves->paths[moves->path_count];
    *path = (struct by_moves_path){.from = maker->rank[nodes[0]],
                                   .to = maker->rank[nodes[count - 1]],
                                   .node_count = count,
                                   .nodes = by_alloc(count, sizeof(*nodes)),
                                   .next = *head};
    memcpy(path->nodes, nodes, count * sizeof(*nodes));
    *head = moves->path_count;
    return moves->path_count++;
}

/* Names what a task moves: a message by its ends, a partial result by its number. */
static void name_message(const struct moves_maker *maker, uint32_t message, struct by_move *move)
{
    const struct by_series_message *kind = &maker->series->messages[message];

    move->source = message;
    if (maker->series->operation == BY_SERIES_REDUCE)
        return;
    move->source = maker->rank[kind->from];
    move->target = maker->rank[kind->to];
}

static int add_move(struct moves_maker *maker, uint32_t slot, const struct by_series_part *part)
{
    const struct by_series *series = maker->series;
    const struct by_series_lane *lane = &series->lanes[part->lane];
    struct by_moves *moves = maker->moves;
    uint32_t *sent = &maker->sent[part->lane][part->task];
    uint32_t *nodes = by_alloc(maker->topology->node_count, sizeof(*nodes));
    uint32_t path = take_path(maker, nodes, list_path(maker, lane, part->task, nodes));
    mpq_t amount;
    struct by_move move = {.round = maker->stage[part->lane][part->task] * series->slot_count + slot,
                           .from = moves->paths[path].from,
                           .to = moves->paths[path].to,
                           .first = maker->base[part->lane] + *sent,
                           .path = path};

    free(nodes);
    name_message(maker, lane->tasks[part->task].message, &move);
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

/* Adds the combinations of a lane, each of all its chunks at once. */
static int add_combinations(struct moves_maker *maker, uint32_t l, struct by_problem *problem)
{
    const struct by_series_lane *lane = &maker->series->lanes[l];
    struct by_moves *moves = maker->moves;
    uint32_t count;
    mpz_t chunks;

    mpz_init(chunks);
    mpz_mul(chunks, lane->amount, maker->cut);
    count = (uint32_t)mpz_get_ui(chunks);
    mpz_clear(chunks);
    for (uint32_t t = 0; t < lane->task_count; t++) {
        const struct by_series_task *task = &lane->tasks[t];
        uint32_t rank = maker->rank[task->node];

        if (task->to != BY_SERIES_NONE)
            continue;
        if (!is_host(maker, task->node))
            return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                                  "switch '%s' combines values, which only hosts do in moves; make the "
                                  "schedule for switches that only forward",
                                  maker->topology->nodes[task->node].name);
        BY_GROW(moves->moves, moves->move_count, moves->move_room);
        moves->moves[moves->move_count++] =
            (struct by_move){.round = maker->stage[l][t] * maker->series->slot_count,
                             .from = rank,
                             .to = rank,
                             .source = task->message,
                             .first = maker->base[l],
                             .count = count,
                             .path = UINT32_MAX,
                             .left = task->left,
                             .right = task->right};
    }
    return 0;
}

/* The partial results of a reduce, as sets of ranks. Each rank must hold one value. */
static int list_partials(struct moves_maker *maker, struct by_problem *problem)
{
    const struct by_series *series = maker->series;
    struct by_moves *moves = maker->moves;
    uint64_t seen = 0;

    for (uint32_t v = 0; v < series->holder_count; v++)
        if (is_host(maker, series->holders[v]))
            seen |= UINT64_C(1) << maker->rank[series->holders[v]] % 64;
    if (series->holder_count != moves->rank_count || moves->rank_count > BY_SERIES_VALUES_MAX ||
        (uint32_t)__builtin_popcountll(seen) != moves->rank_count || !is_host(maker, series->target))
        return by_problem_set(problem, BY_EUNSUPPORTED, nowhere,
                              "hosts execute a reduce only with one value at each of the %u compute nodes, "
                              "and the result at one of them; leave out --order, or name each host once",
                              moves->rank_count);
    moves->target = maker->rank[series->target];
    moves->partial_count = series->message_count;
    moves->partials = by_alloc(series->message_count, sizeof(*moves->partials));
    for (uint32_t m = 0; m < series->message_count; m++)
        for (uint64_t left = series->messages[m].values; left != 0; left &= left - 1)
            moves->partials[m] |= UINT64_C(1) << maker->rank[series->holders[__builtin_ctzll(left)]];
    return 0;
}

/* Within a round, a host sends to the ranks after its own first, so that not all hosts send to the
 * same one at once. */
static int compare_moves(const void *left, const void *right, void *context)
{
    const struct by_move *a = left, *b = right;
    uint32_t n = ((const struct by_moves *)context)->rank_count;

    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (a->from != b->from)
        return a->from < b->from ? -1 : 1;
    if (a->to != b->to)
        return (a->to + n - a->from) % n < (b->to + n - b->from) % n ? -1 : 1;
    if (a->source != b->source)
        return a->source < b->source ? -1 : 1;
    if (a->target != b->target)
        return a->target < b->target ? -1 : 1;
    if (a->path != b->path)
        return a->path < b->path ? -1 : 1;
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
    free(maker->paths);
    by_links_free(maker->links);
    mpz_clear(maker->cut);
}

int by_moves_make(const struct by_series *series, const struct by_topology *topology, struct by_moves *moves,
                  struct by_problem *problem)
{
    struct moves_maker maker = {.series = series, .topology = topology, .moves = moves};
    int error = 0;

    *moves = (struct by_moves){.operation = series->operation, .ports = series->ports};
    maker.links = by_links_new(topology);
    maker.rank = by_alloc(topology->node_count, sizeof(*maker.rank));
    maker.stage = by_alloc(series->lane_count, sizeof(*maker.stage));
    maker.sent = by_alloc(series->lane_count, sizeof(*maker.sent));
    maker.base = by_alloc(series->lane_count, sizeof(*maker.base));
    mpz_init_set_ui(maker.cut, 1);
    for (uint32_t i = 0; i < topology->node_count; i++)
        if (topology->nodes[i].compute)
            maker.rank[i] = moves->rank_count++;
    maker.paths = by_alloc(moves->rank_count, sizeof(*maker.paths));
    memset(maker.paths, 0xff, moves->rank_count * sizeof(*maker.paths));
    if (series->operation == BY_SERIES_REDUCE)
        error = list_partials(&maker, problem);
    for (uint32_t l = 0; l < series->lane_count; l++) {
        maker.stage[l] = by_alloc(series->lanes[l].task_count, sizeof(uint32_t));
        maker.sent[l] = by_alloc(series->lanes[l].task_count, sizeof(uint32_t));
        by_series_stages(&series->lanes[l], maker.stage[l]);
    }
    if (!error)
        each_part(&maker, refine);
    if (!error)
        error = lay_out(&maker, problem);
    for (uint32_t l = 0; l < series->lane_count && !error; l++)
        error = add_combinations(&maker, l, problem);
    if (!error) {
        each_part(&maker, add_move);
        if (moves->move_count > 0) {
            qsort_r(moves->moves, moves->move_count, sizeof(*moves->moves), compare_moves, moves);
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
    for (uint32_t p = 0; p < moves->path_count; p++)
        free(moves->paths[p].nodes);
    free(moves->paths);
    free(moves->partials);
    free(moves->moves);
    *moves = (struct by_moves){0};
}

static void write_move(const struct by_moves *moves, const struct by_move *move, bool sends, FILE *file)
{
    fprintf(file, "{\"round\": %u, ", move->round);
    if (move->from == move->to)
        fprintf(file, "\"combine\": %u, \"left\": %u, \"right\": %u", move->source, move->left, move->right);
    else
        fprintf(file, "\"%s\": %u, ", sends ? "send" : "receive", sends ? move->to : move->from);
    if (move->from != move->to && moves->operation == BY_SERIES_REDUCE)
        fprintf(file, "\"partial\": %u", move->source);
    else if (move->from != move->to)
        fprintf(file, "\"source\": %u, \"target\": %u", move->source, move->target);
    fprintf(file, ", \"first\": %u, \"count\": %u", move->first, move->count);
    if (move->from != move->to)
        fprintf(file, ", \"path\": %u", move->path);
    fputc('}', file);
}

/* Writes the moves of one host. */
static void write_host(const struct by_moves *moves, uint32_t rank, FILE *file)
{
    bool first = true;

    for (uint32_t m = 0; m < moves->move_count; m++) {
        const struct by_move *move = &moves->moves[m];

        if (move->from != rank && move->to != rank)
            continue;
        fputs(first ? "\n    " : ",\n    ", file);
        write_move(moves, move, move->from == rank, file);
        first = false;
    }
}

static void write_partials(const struct by_moves *moves, FILE *file)
{
    fprintf(file, " \"target\": %u, \"partials\": [", moves->target);
    for (uint32_t p = 0; p < moves->partial_count; p++) {
        fputs(p > 0 ? ", " : "", file);
        for (uint64_t left = moves->partials[p]; left != 0; left &= left - 1)
            fprintf(file, "%s%d", left == moves->partials[p] ? "[" : ", ", __builtin_ctzll(left));
        fputc(']', file);
    }
    fputs("],\n", file);
}

static void write_string(const char *text, FILE *file)
{
    json_t *string = json_string(text);

    BY_ASSERT(string);
    json_dumpf(string, file, JSON_ENCODE_ANY);
    json_decref(string);
}

static void write_paths(const struct by_moves *moves, const struct by_topology *topology,
                        const uint32_t *addresses, FILE *file)
{
    fputs(" \"paths\": [", file);
    for (uint32_t p = 0; p < moves->path_count; p++) {
        const struct by_moves_path *path = &moves->paths[p];

        fprintf(file, "%s{\"from\": %u, \"to\": %u, \"switches\": [", p > 0 ? ",\n  " : "\n  ", path->from,
                path->to);
        for (uint32_t i = 1; i + 1 < path->node_count; i++) {
            fputs(i > 1 ? ", " : "", file);
            write_string(topology->nodes[path->nodes[i]].name, file);
        }
        fputc(']', file);
        if (addresses != NULL)
            fprintf(file, ", \"address\": \"%u.%u.%u.%u\"", addresses[p] >> 24, addresses[p] >> 16 & 255,
                    addresses[p] >> 8 & 255, addresses[p] & 255);
        fputc('}', file);
    }
    fputs("],\n", file);
}

int by_moves_write(const struct by_moves *moves, const struct by_topology *topology,
                   const uint32_t *addresses, FILE *file)
{
    uint32_t rank = 0;

    fputs("{\"format\": \"banyan-moves-1\", \"topology\": ", file);
    write_string(topology->name, file);
    fprintf(
        file,
        ", \"operation\": \"%s\", \"ports\": \"%s\", \"ranks\": %u,\n \"chunks\": %u, \"rounds\": %u, \"interval\": %u,\n",
        by_series_operation_name(moves->operation), by_series_ports_name(moves->ports), moves->rank_count,
        moves->chunk_count, moves->round_count, moves->interval);
    if (moves->operation == BY_SERIES_REDUCE)
        write_partials(moves, file);
    write_paths(moves, topology, addresses, file);
    fputs(" \"hosts\": [", file);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        if (!topology->nodes[i].compute)
            continue;
        fputs(rank > 0 ? ",\n  {\"name\": " : "\n  {\"name\": ", file);
        write_string(topology->nodes[i].name, file);
        fprintf(file, ", \"rank\": %u, \"moves\": [", rank);
        write_host(moves, rank++, file);
        fputs("]}", file);
    }
    fputs("]}\n", file);
    return fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
}
