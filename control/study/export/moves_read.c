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
/* Most partial results of a reduce (count). */
#define PARTIALS_MAX 65536u

struct moves_read_reader {
    struct by_json json;
    struct by_moves *moves;
    struct by_problem *problem;
    uint32_t receive_count, receive_room;
    struct by_move *receives;
    uint32_t host_count, partial_room;
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

/* What the members of a move have stated. */
struct moves_read_stated {
    uint32_t sends, receives, combines, partials, parts, peer;
};

static void read_move_member(struct moves_read_reader *reader, const char *key, size_t bytes,
                             struct by_move *move, struct moves_read_stated *stated)
{
    const struct by_moves *moves = reader->moves;
    uint32_t last = moves->rank_count - 1;
    /* without partial results there is no valid number */
    uint32_t partials = moves->partial_count > 0 ? moves->partial_count - 1 : 0;
    bool reduces = moves->operation == BY_SERIES_REDUCE;

    if (by_json_is(key, bytes, "round"))
        read_count(reader, "a round", 0, moves->round_count - 1, &move->round);
    else if (by_json_is(key, bytes, "send"))
        stated->sends += read_count(reader, "a receiver", 0, last, &stated->peer);
    else if (by_json_is(key, bytes, "receive"))
        stated->receives += read_count(reader, "a sender", 0, last, &stated->peer);
    else if (!reduces && by_json_is(key, bytes, "source"))
        read_count(reader, "a source", 0, last, &move->source);
    else if (!reduces && by_json_is(key, bytes, "target"))
        read_count(reader, "a target", 0, last, &move->target);
    else if (reduces && by_json_is(key, bytes, "partial"))
        stated->partials += read_count(reader, "a partial result", 0, partials, &move->source);
    else if (reduces && by_json_is(key, bytes, "combine"))
        stated->combines += read_count(reader, "a combined result", 0, partials, &move->source);
    else if (reduces && by_json_is(key, bytes, "left"))
        stated->parts += read_count(reader, "a left part", 0, partials, &move->left);
    else if (reduces && by_json_is(key, bytes, "right"))
        stated->parts += read_count(reader, "a right part", 0, partials, &move->right);
    else if (by_json_is(key, bytes, "first"))
        read_count(reader, "the first chunk", 0, moves->chunk_count - 1, &move->first);
    else if (by_json_is(key, bytes, "count"))
        read_count(reader, "the chunks of a move", 1, moves->chunk_count, &move->count);
    else if (moves->path_count > 0 && by_json_is(key, bytes, "path"))
        read_count(reader, "a path", 0, moves->path_count - 1, &move->path);
    else
        refuse(reader, "key '%.*s' of a move is unknown", bytes > 40 ? 40 : (int)bytes, key);
}

/* Whether the members form a move. */
static bool is_move(const struct moves_read_reader *reader, uint32_t rank, const struct by_move *move,
                    const struct moves_read_stated *stated)
{
    const struct by_moves *moves = reader->moves;

    if (move->count == 0 || move->first + move->count > moves->chunk_count)
        return false;
    if (stated->combines > 0)
        return stated->combines == 1 && stated->parts == 2 && stated->partials == 0 &&
               stated->sends + stated->receives == 0 && move->path == UINT32_MAX;
    return stated->sends + stated->receives == 1 && stated->parts == 0 && stated->peer != rank &&
           (moves->operation == BY_SERIES_REDUCE ? stated->partials == 1 : move->source != move->target);
}

static bool read_move(struct moves_read_reader *reader, uint32_t rank)
{
    struct by_moves *moves = reader->moves;
    struct by_move move = {.path = UINT32_MAX};
    struct moves_read_stated stated = {0};
    const char *key;
    size_t bytes;

    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);)
        read_move_member(reader, key, bytes, &move, &stated);
    if (going(reader) && !is_move(reader, rank, &move, &stated))
        refuse(reader,
               moves->operation == BY_SERIES_REDUCE
                   ? "a move must have round, first and count, within %u chunks, and send or receive "
                     "(another rank) and partial, or combine, left and right"
                   : "a move must have round, send or receive (another rank), source and target, first and "
                     "count, within %u chunks",
               moves->chunk_count);
    if (!going(reader))
        return false;
    move.from = stated.receives > 0 ? stated.peer : rank;
    move.to = stated.sends > 0 ? stated.peer : rank;
    if (move.path != UINT32_MAX &&
        (moves->paths[move.path].from != move.from || moves->paths[move.path].to != move.to))
        return refuse(reader, "path %u leads from rank %u to rank %u, and the move from rank %u to rank %u",
                      move.path, moves->paths[move.path].from, moves->paths[move.path].to, move.from,
                      move.to);
    if (moves->move_count + reader->receive_count >= BY_MOVES_MAX)
        return refuse(reader, "the schedule has more than %u moves", BY_MOVES_MAX);
    if (stated.receives == 0) {
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

static bool read_path(struct moves_read_reader *reader)
{
    struct by_moves *moves = reader->moves;
    struct by_moves_path path = {.from = UINT32_MAX, .to = UINT32_MAX, .next = UINT32_MAX};
    const char *key;
    size_t bytes;

    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);)
        if (by_json_is(key, bytes, "from"))
            read_count(reader, "a sender", 0, moves->rank_count - 1, &path.from);
        else if (by_json_is(key, bytes, "to"))
            read_count(reader, "a receiver", 0, moves->rank_count - 1, &path.to);
        else
            by_json_skip(&reader->json); /* the switches, and an address */
    if (going(reader) && (path.from == path.to || path.from == UINT32_MAX || path.to == UINT32_MAX))
        refuse(reader, "a path must have from and to, two ranks");
    if (going(reader) && moves->path_count >= BY_MOVES_MAX)
        refuse(reader, "the schedule has more than %u paths", BY_MOVES_MAX);
    if (!going(reader))
        return false;
    BY_GROW(moves->paths, moves->path_count, moves->path_room);
    moves->paths[moves->path_count++] = path;
    return true;
}

static bool read_partial(struct moves_read_reader *reader)
{
    struct by_moves *moves = reader->moves;
    uint64_t ranks = 0;
    uint32_t rank = 0;

    if (by_json_peek(&reader->json) != '[')
        return refuse(reader, "a partial result must be an array of ranks");
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);)
        if (read_count(reader, "a rank", 0, moves->rank_count - 1, &rank))
            ranks |= UINT64_C(1) << rank;
    if (going(reader) && (ranks == 0 || moves->partial_count == reader->partial_room))
        refuse(reader, "a partial result must have values, and there may be at most %u",
               reader->partial_room);
    if (!going(reader))
        return false;
    moves->partials[moves->partial_count++] = ranks;
    return true;
}

/* Reads an array whose elements are read by `read`, after the number of ranks. */
static void read_array(struct moves_read_reader *reader, const char *what,
                       bool (*read)(struct moves_read_reader *))
{
    if (reader->moves->rank_count == 0)
        refuse(reader, "ranks must precede %s", what);
    else if (by_json_peek(&reader->json) != '[')
        refuse(reader, "\"%s\" must be an array", what);
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);)
        read(reader);
}

static void read_partials(struct moves_read_reader *reader)
{
    struct by_moves *moves = reader->moves;

    if (moves->operation != BY_SERIES_REDUCE || moves->rank_count > BY_SERIES_VALUES_MAX ||
        moves->partials != NULL) {
        refuse(reader, "only a reduce of at most %u ranks has partials, once", BY_SERIES_VALUES_MAX);
        return;
    }
    reader->partial_room = PARTIALS_MAX;
    moves->partials = by_alloc(reader->partial_room, sizeof(*moves->partials));
    read_array(reader, "partials", read_partial);
}

static void read_hosts(struct moves_read_reader *reader)
{
    struct by_moves *moves = reader->moves;

    reader->hosts = true;
    if (moves->rank_count == 0 || moves->chunk_count == 0 || moves->round_count == 0) {
        refuse(reader, "ranks, chunks and rounds must precede the hosts");
        return;
    }
    if (moves->operation == BY_SERIES_REDUCE && moves->partial_count == 0) {
        refuse(reader, "the operation of a reduce and its partials must precede the hosts");
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
    } else if (by_json_is(key, bytes, "ports")) {
        if (read_word(reader, &text, &length)) {
            moves->ports = by_series_ports_find(text, length);
            if (moves->ports == 0)
                refuse(reader, "ports must be one, host or many");
        }
    } else if (by_json_is(key, bytes, "ranks")) {
        read_count(reader, "the ranks", 2, 65535, &moves->rank_count);
    } else if (by_json_is(key, bytes, "chunks")) {
        read_count(reader, "the chunks", 1, BY_MOVES_CHUNKS_MAX, &moves->chunk_count);
    } else if (by_json_is(key, bytes, "rounds")) {
        read_count(reader, "the rounds", 1, BY_MOVES_ROUNDS_MAX, &moves->round_count);
    } else if (by_json_is(key, bytes, "interval")) {
        read_count(reader, "the interval", 1, BY_MOVES_ROUNDS_MAX, &moves->interval);
    } else if (by_json_is(key, bytes, "target")) {
        read_count(reader, "the target", 0, BY_SERIES_VALUES_MAX - 1, &moves->target);
    } else if (by_json_is(key, bytes, "partials")) {
        read_partials(reader);
    } else if (by_json_is(key, bytes, "paths")) {
        read_array(reader, "paths", read_path);
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
    uint32_t r = 0;

    if (moves->move_count > 0)
        qsort(moves->moves, moves->move_count, sizeof(*moves->moves), compare);
    if (reader->receive_count > 0)
        qsort(reader->receives, reader->receive_count, sizeof(*reader->receives), compare);
    for (uint32_t m = 0; m < moves->move_count || r < reader->receive_count; m++) {
        const struct by_move *one = m < moves->move_count ? &moves->moves[m] : &reader->receives[r];

        if (one->from == one->to)
            continue; /* a combination */
        if (m >= moves->move_count || r >= reader->receive_count || compare(one, &reader->receives[r++]) != 0)
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
    uint32_t message = machine->moves->operation == BY_SERIES_REDUCE
                           ? move->source
                           : machine->message[(size_t)move->source * n + move->target] - 1;

    return machine->has + ((size_t)rank * machine->message_count + message) * machine->moves->chunk_count +
           move->first;
}

/* Writes "the message of rank 1 for rank 2", or "partial result 3". */
static const char *name(const struct by_moves *moves, const struct by_move *move, char text[80])
{
    if (moves->operation == BY_SERIES_REDUCE)
        snprintf(text, 80, "partial result %u", move->source);
    else
        snprintf(text, 80, "the message of rank %u for rank %u", move->source, move->target);
    return text;
}

/* Executes a send: `to` has what `from` had when the round began. */
static int run_send(const struct moves_read_machine *machine, const struct by_move *move)
{
    const uint8_t *from = cell(machine, move->from, move);
    uint8_t *to = cell(machine, move->to, move);
    char text[80];

    for (uint32_t c = 0; c < move->count; c++) {
        if (from[c] != 1)
            return WRONG(machine->problem,
                         "round %u: rank %u sends chunk %u of %s, which it does not have yet", move->round,
                         move->from, move->first + c, name(machine->moves, move, text));
        if (to[c])
            return WRONG(machine->problem, "round %u: chunk %u of %s reaches rank %u again", move->round,
                         move->first + c, name(machine->moves, move, text), move->to);
        to[c] = 2;
    }
    return 0;
}

static int run_combination(const struct moves_read_machine *machine, const struct by_move *move)
{
    const struct by_moves *moves = machine->moves;
    const uint64_t *values = moves->partials;
    struct by_move part = *move;
    const uint8_t *left, *right;
    uint8_t *to = cell(machine, move->to, move);

    if ((values[move->left] & values[move->right]) != 0 ||
        (values[move->left] | values[move->right]) != values[move->source])
        return WRONG(machine->problem,
                     "round %u: rank %u combines partial results %u and %u, which do not make %u",
                     move->round, move->from, move->left, move->right, move->source);
    part.source = move->left;
    left = cell(machine, move->from, &part);
    part.source = move->right;
    right = cell(machine, move->from, &part);
    for (uint32_t c = 0; c < move->count; c++) {
        if (left[c] != 1 || right[c] != 1)
            return WRONG(machine->problem,
                         "round %u: rank %u combines chunk %u of partial result %u, which it does not have "
                         "yet",
                         move->round, move->from, move->first + c, left[c] != 1 ? move->left : move->right);
        if (to[c])
            return WRONG(machine->problem, "round %u: rank %u has chunk %u of partial result %u already",
                         move->round, move->from, move->first + c, move->source);
        to[c] = 2;
    }
    return 0;
}

static int run_round(const struct moves_read_machine *machine, uint32_t first, uint32_t end)
{
    const struct by_move *moves = machine->moves->moves;
    int error = 0;

    for (uint32_t m = first; m < end && error == 0; m++)
        error =
            moves[m].from == moves[m].to ? run_combination(machine, &moves[m]) : run_send(machine, &moves[m]);
    for (uint32_t m = first; m < end && error == 0; m++)
        memset(cell(machine, moves[m].to, &moves[m]), 1, moves[m].count);
    return error;
}

/* Checks that the target of a reduce has the complete result. */
static int check_result(const struct moves_read_machine *machine)
{
    const struct by_moves *moves = machine->moves;
    uint64_t all = UINT64_MAX >> (64 - moves->rank_count % 64) % 64;

    for (uint32_t p = 0; p < moves->partial_count; p++) {
        struct by_move whole = {.source = p};

        if (moves->partials[p] == all && !memchr(cell(machine, moves->target, &whole), 0, moves->chunk_count))
            return 0;
    }
    return WRONG(machine->problem, "rank %u does not have the complete result at the end", moves->target);
}

static int check_end(const struct moves_read_machine *machine)
{
    const struct by_moves *moves = machine->moves;

    if (moves->operation == BY_SERIES_REDUCE)
        return check_result(machine);
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

/* Marks what the ranks have at first: the messages that they send, or their values. */
static void begin(const struct moves_read_machine *machine)
{
    const struct by_moves *moves = machine->moves;
    uint32_t n = moves->rank_count;

    for (uint32_t p = 0; p < moves->partial_count; p++)
        if ((moves->partials[p] & (moves->partials[p] - 1)) == 0)
            memset(
                cell(machine, (uint32_t)__builtin_ctzll(moves->partials[p]), &(struct by_move){.source = p}),
                1, moves->chunk_count);
    for (uint32_t s = 0; s < n && moves->partial_count == 0; s++)
        for (uint32_t t = 0; t < n; t++)
            if (machine->message[(size_t)s * n + t])
                memset(cell(machine, s, &(struct by_move){.source = s, .target = t}), 1, moves->chunk_count);
}

/* A gossip has a message for each pair of a sender and a receiver; a scatter has one sender; an
 * exchange has the messages that move. */
static int list_messages(struct moves_read_machine *machine)
{
    const struct by_moves *moves = machine->moves;
    uint32_t n = moves->rank_count, senders = 0;
    bool *sends = by_alloc(n, sizeof(*sends)), *gets = by_alloc(n, sizeof(*gets));
    int error = 0;

    for (uint32_t m = 0; m < moves->move_count && moves->partial_count == 0; m++) {
        uint32_t *message = &machine->message[(size_t)moves->moves[m].source * n + moves->moves[m].target];

        sends[moves->moves[m].source] = gets[moves->moves[m].target] = true;
        if (moves->operation == BY_SERIES_EXCHANGE && *message == 0)
            *message = ++machine->message_count;
    }
    machine->message_count += moves->partial_count;
    for (uint32_t s = 0; s < n && moves->partial_count == 0; s++) {
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
        begin(&machine);
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
    if (going(&reader) &&
        (!reader.format || !reader.hosts || reader.host_count != moves->rank_count || moves->operation == 0))
        refuse(&reader, "this is not a schedule of moves: it must have format, operation (scatter, gossip, "
                        "exchange or reduce) and a host for each rank");
    if (going(&reader) && moves->target >= moves->rank_count)
        refuse(&reader, "the target, rank %u, is not one of %u ranks", moves->target, moves->rank_count);
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
