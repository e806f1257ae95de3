/*
 * Reads moves and executes them symbolically: tracks which host has which chunks. Data received in
 * one round can be sent in the next. See moves.h.
 */
#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/study/export/moves.h"
#include "offload/base/errors.h"

static const struct by_place nowhere = {0, 0};

/* Most chunks that an execution tracks: messages times chunks times hosts (count). */
#define CELLS_MAX ((uint64_t)1 << 31)

struct moves_read_reader {
    struct by_json json;
    struct by_moves *moves;
    struct by_problem *problem;
    uint32_t receive_count, receive_room;
    struct by_move *receives;
    uint32_t host_count;
    bool format, hosts;
    int error;
};

#define refuse(reader, ...) by_json_refuse(&(reader)->json, (reader)->problem, &(reader)->error, __VA_ARGS__)

static bool going(const struct moves_read_reader *reader)
{
    return !reader->error && !reader->json.failed;
}

static bool read_count(struct moves_read_reader *reader, const char *what, uint32_t least, uint32_t most,
                       uint32_t *value)
{
    int64_t number = -1;

    if (by_json_peek(&reader->json) != '0' || !by_json_integer(&reader->json, &number) || number < least ||
        number > most)
        return refuse(reader, "%s must be a number from %u to %u", what, least, most);
    *value = (uint32_t)number;
    return true;
}

static bool read_move(struct moves_read_reader *reader, uint32_t rank)
{
    struct by_moves *moves = reader->moves;
    struct by_move move = {.count = 0};
    uint32_t last = moves->rank_count - 1, sends = 0, receives = 0, peer = 0;
    const char *key;
    size_t bytes;

    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "round"))
            read_count(reader, "a round", 0, moves->round_count - 1, &move.round);
        else if (by_json_is(key, bytes, "send"))
            sends += read_count(reader, "a receiver", 0, last, &peer);
        else if (by_json_is(key, bytes, "receive"))
            receives += read_count(reader, "a sender", 0, last, &peer);
        else if (by_json_is(key, bytes, "source"))
            read_count(reader, "a source", 0, last, &move.source);
        else if (by_json_is(key, bytes, "target"))
            read_count(reader, "a target", 0, last, &move.target);
        else if (by_json_is(key, bytes, "first"))
            read_count(reader, "the first chunk", 0, moves->chunk_count - 1, &move.first);
        else if (by_json_is(key, bytes, "count"))
            read_count(reader, "the chunks of a move", 1, moves->chunk_count, &move.count);
        else
            refuse(reader, "key '%.*s' of a move is unknown", bytes > 40 ? 40 : (int)bytes, key);
    }
    if (going(reader) && (sends + receives != 1 || move.count == 0 || peer == rank ||
                          move.source == move.target || move.first + move.count > moves->chunk_count))
        refuse(reader,
               "a move must have round, send or receive (another rank), source and target, first and "
               "count, within %u chunks",
               moves->chunk_count);
    if (!going(reader))
        return false;
    move.from = sends ? rank : peer;
    move.to = sends ? peer : rank;
    if (moves->move_count + reader->receive_count >= BY_MOVES_MAX)
        return refuse(reader, "the schedule has more than %u moves", BY_MOVES_MAX);
    if (sends) {
        BY_GROW(moves->moves, moves->move_count, moves->move_room);
        moves->moves[moves->move_count++] = move;
    } else {
        BY_GROW(reader->receives, reader->receive_count, reader->receive_room);
        reader->receives[reader->receive_count++] = move;
    }
    return true;
}

static bool read_host(struct moves_read_reader *reader)
{
    const char *key;
    size_t bytes;
    uint32_t rank = UINT32_MAX;

    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "name"))
            by_json_skip(&reader->json);
        else if (by_json_is(key, bytes, "rank"))
            read_count(reader, "a rank", reader->host_count, reader->host_count, &rank);
        else if (by_json_is(key, bytes, "moves") && by_json_peek(&reader->json) == '[' && rank != UINT32_MAX)
            for (bool move = true; going(reader) && by_json_element(&reader->json, &move);)
                read_move(reader, rank);
        else
            refuse(reader, "a host must have name, rank and then moves");
    }
    reader->host_count++;
    return going(reader);
}

static bool read_word(struct moves_read_reader *reader, const char **text, size_t *bytes)
{
    return (by_json_peek(&reader->json) == '"' && by_json_string(&reader->json, text, bytes)) ||
           refuse(reader, "a string is expected");
}

static void read_hosts(struct moves_read_reader *reader)
{
    struct by_moves *moves = reader->moves;

    reader->hosts = true;
    if (moves->rank_count == 0 || moves->chunk_count == 0 || moves->round_count == 0) {
        refuse(reader, "ranks, chunks and rounds must precede the hosts");
        return;
    }
    if (by_json_peek(&reader->json) != '[')
        refuse(reader, "\"hosts\" must be an array");
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);) {
        if (reader->host_count == moves->rank_count)
            refuse(reader, "the schedule has more hosts than ranks");
        else
            read_host(reader);
    }
}

static void read_member(struct moves_read_reader *reader, const char *key, size_t bytes)
{
    struct by_moves *moves = reader->moves;
    const char *text = "";
    size_t length = 0;

    if (by_json_is(key, bytes, "format")) {
        reader->format = read_word(reader, &text, &length) && by_json_is(text, length, "banyan-moves-1");
    } else if (by_json_is(key, bytes, "topology")) {
        by_json_skip(&reader->json);
    } else if (by_json_is(key, bytes, "operation")) {
        if (read_word(reader, &text, &length))
            moves->operation = by_series_operation_find(text, length);
    } else if (by_json_is(key, bytes, "ranks")) {
        read_count(reader, "the ranks", 2, 65535, &moves->rank_count);
    } else if (by_json_is(key, bytes, "chunks")) {
        read_count(reader, "the chunks", 1, BY_MOVES_CHUNKS_MAX, &moves->chunk_count);
    } else if (by_json_is(key, bytes, "rounds")) {
        read_count(reader, "the rounds", 1, BY_MOVES_ROUNDS_MAX, &moves->round_count);
    } else if (by_json_is(key, bytes, "interval")) {
        read_count(reader, "the interval", 1, BY_MOVES_ROUNDS_MAX, &moves->interval);
    } else if (by_json_is(key, bytes, "hosts")) {
        read_hosts(reader);
    } else {
        refuse(reader, "key '%.*s' of a schedule is unknown", bytes > 40 ? 40 : (int)bytes, key);
    }
}

/* ---- execution ---- */

static int compare(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(struct by_move)); /* only equality matters; any order is fine */
}

static int compare_rounds(const void *left, const void *right)
{
    const struct by_move *a = left, *b = right;

    return a->round < b->round ? -1 : a->round > b->round;
}

#define WRONG(problem, ...) by_problem_set((problem), BY_EINVAL, nowhere, __VA_ARGS__)

/* Checks that every send has a receive and every receive a send. */
static int check_pairs(struct moves_read_reader *reader)
{
    struct by_moves *moves = reader->moves;

    if (moves->move_count > 0)
        qsort(moves->moves, moves->move_count, sizeof(*moves->moves), compare);
    if (reader->receive_count > 0)
        qsort(reader->receives, reader->receive_count, sizeof(*reader->receives), compare);
    for (uint32_t m = 0; m < moves->move_count || m < reader->receive_count; m++)
        if (m >= moves->move_count || m >= reader->receive_count ||
            compare(&moves->moves[m], &reader->receives[m]) != 0) {
            const struct by_move *one = m < moves->move_count ? &moves->moves[m] : &reader->receives[m];

            return WRONG(reader->problem,
                         "what rank %u sends to rank %u in round %u differs from what is received there",
                         one->from, one->to, one->round);
        }
    return 0;
}

/* The messages, by source and target, and which ranks send or receive them. */
struct moves_read_machine {
    const struct by_moves *moves;
    struct by_problem *problem;
    uint32_t *message; /* by source and target: number of the message + 1 */
    uint32_t message_count;
    uint8_t *has; /* by rank, message and chunk: 0 absent, 1 present, 2 received in this round */
};

static uint8_t *cell(const struct moves_read_machine *machine, uint32_t rank, const struct by_move *move)
{
    uint32_t n = machine->moves->rank_count;
    uint32_t message = machine->message[(size_t)move->source * n + move->target] - 1;

    return machine->has + ((size_t)rank * machine->message_count + message) * machine->moves->chunk_count +
           move->first;
}

static int run_round(struct moves_read_machine *machine, uint32_t first, uint32_t end)
{
    const struct by_move *moves = machine->moves->moves;

    for (uint32_t m = first; m < end; m++) {
        const uint8_t *from = cell(machine, moves[m].from, &moves[m]);
        uint8_t *to = cell(machine, moves[m].to, &moves[m]);

        for (uint32_t c = 0; c < moves[m].count; c++) {
            if (from[c] != 1)
                return WRONG(machine->problem,
                             "round %u: rank %u sends chunk %u of the message of rank %u for rank %u, which "
                             "it does not have yet",
                             moves[m].round, moves[m].from, moves[m].first + c, moves[m].source,
                             moves[m].target);
            if (to[c])
                return WRONG(machine->problem,
                             "round %u: chunk %u of the message of rank %u for rank %u reaches rank %u again",
                             moves[m].round, moves[m].first + c, moves[m].source, moves[m].target,
                             moves[m].to);
            to[c] = 2;
        }
    }
    for (uint32_t m = first; m < end; m++)
        memset(cell(machine, moves[m].to, &moves[m]), 1, moves[m].count);
    return 0;
}

static int check_end(const struct moves_read_machine *machine)
{
    const struct by_moves *moves = machine->moves;

    for (uint32_t s = 0; s < moves->rank_count; s++)
        for (uint32_t t = 0; t < moves->rank_count; t++) {
            struct by_move whole = {.source = s, .target = t};

            if (!machine->message[(size_t)s * moves->rank_count + t])
                continue;
            if (memchr(cell(machine, t, &whole), 0, moves->chunk_count))
                return WRONG(machine->problem, "rank %u does not receive the whole message of rank %u for it",
                             t, s);
        }
    return 0;
}

/* A gossip has a message for each pair of a sender and a receiver; a scatter has one sender; an
 * exchange has the messages that move. */
static int list_messages(struct moves_read_machine *machine)
{
    const struct by_moves *moves = machine->moves;
    uint32_t n = moves->rank_count, senders = 0;
    bool *sends = by_alloc(n, sizeof(*sends)), *gets = by_alloc(n, sizeof(*gets));
    int error = 0;

    for (uint32_t m = 0; m < moves->move_count; m++) {
        uint32_t *message = &machine->message[(size_t)moves->moves[m].source * n + moves->moves[m].target];

        sends[moves->moves[m].source] = gets[moves->moves[m].target] = true;
        if (moves->operation == BY_SERIES_EXCHANGE && *message == 0)
            *message = ++machine->message_count;
    }
    for (uint32_t s = 0; s < n; s++) {
        senders += sends[s];
        for (uint32_t t = 0; t < n; t++)
            if (moves->operation != BY_SERIES_EXCHANGE && sends[s] && gets[t] && s != t)
                machine->message[(size_t)s * n + t] = ++machine->message_count;
    }
    if (moves->operation == BY_SERIES_SCATTER && senders != 1)
        error = WRONG(machine->problem, "a scatter has one source, not %u", senders);
    free(sends);
    free(gets);
    return error;
}

static int execute(const struct by_moves *moves, struct by_problem *problem)
{
    struct moves_read_machine machine = {.moves = moves, .problem = problem};
    uint32_t n = moves->rank_count, first = 0;
    uint64_t cells;
    int error;

    if ((uint64_t)n * n > CELLS_MAX / sizeof(uint32_t))
        return by_problem_set(problem, BY_ELIMIT, nowhere, "%u ranks are too many to execute", n);
    machine.message = by_alloc((size_t)n * n, sizeof(*machine.message));
    error = list_messages(&machine);
    cells = (uint64_t)n * machine.message_count * moves->chunk_count;
    if (!error && cells > CELLS_MAX)
        error = by_problem_set(problem, BY_ELIMIT, nowhere,
                               "%u messages of %u chunks at %u ranks are too many to execute",
                               machine.message_count, moves->chunk_count, n);
    if (!error) {
        machine.has = by_alloc(cells, 1);
        for (uint32_t s = 0; s < n; s++)
            for (uint32_t t = 0; t < n; t++)
                if (machine.message[(size_t)s * n + t])
                    memset(cell(&machine, s, &(struct by_move){.source = s, .target = t}), 1,
                           moves->chunk_count);
        if (moves->move_count > 0)
            qsort(moves->moves, moves->move_count, sizeof(*moves->moves), compare_rounds);
    }
    while (!error && first < moves->move_count) {
        uint32_t end = first;

        while (end < moves->move_count && moves->moves[end].round == moves->moves[first].round)
            end++;
        error = run_round(&machine, first, end);
        first = end;
    }
    if (!error)
        error = check_end(&machine);
    free(machine.has);
    free(machine.message);
    return error;
}

int by_moves_check(const char *text, size_t bytes, struct by_moves *moves, struct by_problem *problem)
{
    struct moves_read_reader reader = {.moves = moves, .problem = problem};
    const char *key;
    size_t key_bytes;

    *moves = (struct by_moves){0};
    *problem = (struct by_problem){0};
    by_json_open(&reader.json, text, bytes);
    for (bool first = true; going(&reader) && by_json_member(&reader.json, &first, &key, &key_bytes);)
        read_member(&reader, key, key_bytes);
    if (going(&reader) && (!reader.format || !reader.hosts || reader.host_count != moves->rank_count ||
                           moves->operation == 0 || moves->operation == BY_SERIES_REDUCE))
        refuse(&reader, "this is not a schedule of moves: it must have format, operation (scatter, gossip or "
                        "exchange) and a host for each rank");
    if (!reader.error)
        reader.error = by_json_finish(&reader.json, problem);
    by_json_close(&reader.json);
    if (!reader.error)
        reader.error = check_pairs(&reader);
    free(reader.receives);
    return reader.error ? reader.error : execute(moves, problem);
}

bool by_moves_suits(const char *text, size_t bytes)
{
    return by_json_has_format(text, bytes, "banyan-moves");
}
