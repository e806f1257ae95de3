/* Reads a rank's program from a file of moves; see program.h. */
#include "host-driver/schedule/program.h"

#include <arpa/inet.h>
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/error.h"
#include "offload/base/assert.h"

#define FILE_BYTES_MAX ((size_t)1 << 30)
#define VALUES_MAX     64u /* ranks of a reduce */

/* State while a file is read. Memory that belongs to the program is freed with it. */
struct reader {
    struct by_program *program;
    const json_t *paths, *partials;
    uint32_t *way_of_path; /* by path: way + 1 */
    uint32_t *item_of;     /* by source and target, or by partial result: item + 1 */
    uint32_t step_room, item_room, way_room;
};

static int refuse(const struct reader *reader, const char *what)
{
    return by_fail(BY_EFORMAT, "BANYAN_SCHEDULE: %s: %s; write the file with `banyan export --format hosts`",
                   reader->program->path, what);
}

/* Adds room for one more element of `bytes` bytes, zeroed. */
static int grow(void **array, uint32_t count, uint32_t *room, size_t bytes)
{
    uint32_t more = *room > 0 ? 2 * *room : 16;
    void *larger;

    if (count < *room)
        return 0;
    larger = realloc(*array, more * bytes);
    if (larger == NULL)
        return by_fail(BY_ENOMEM, "no memory for a schedule of %u parts", more);
    memset((char *)larger + count * bytes, 0, (more - count) * bytes);
    *array = larger;
    *room = more;
    return 0;
}

/* Reads a number from `least` to `most`. */
static bool number(const json_t *object, const char *key, uint32_t least, uint32_t most, uint32_t *value)
{
    const json_t *member = json_object_get(object, key);

    if (!json_is_integer(member) || json_integer_value(member) < least || json_integer_value(member) > most)
        return false;
    *value = (uint32_t)json_integer_value(member);
    return true;
}

/* ---- ways and items */

/* Finds or makes the way of a move. */
static int take_way(struct reader *reader, const json_t *move, uint32_t peer, bool sends, uint32_t *way)
{
    struct by_program *program = reader->program;
    uint32_t path, from, to, most = (uint32_t)json_array_size(reader->paths);
    const json_t *entry, *address;
    struct in_addr ip = {0};
    struct by_way_end *end;
    int error;

    if (most == 0 || !number(move, "path", 0, most - 1, &path))
        return refuse(reader, "a move names no path");
    *way = reader->way_of_path[path] - 1;
    if (reader->way_of_path[path] > 0) {
        BY_ASSERT(program->ways != NULL);
        return program->ways[*way].peer == peer && program->ways[*way].sends == sends
                   ? 0
                   : refuse(reader, "a path leads to another rank than its move");
    }
    entry = json_array_get(reader->paths, path);
    if (!number(entry, "from", 0, program->rank_count - 1, &from) ||
        !number(entry, "to", 0, program->rank_count - 1, &to) || from != (sends ? program->rank : peer) ||
        to != (sends ? peer : program->rank))
        return refuse(reader, "a path leads to another rank than its move");
    error = grow((void **)&program->ways, program->way_count, &reader->way_room, sizeof(*program->ways));
    if (error != 0)
        return error;
    *way = program->way_count++;
    reader->way_of_path[path] = *way + 1;
    end = &program->ways[*way];
    *end = (struct by_way_end){.path = path, .peer = peer, .sends = sends};
    address = json_object_get(entry, "address");
    if (address != NULL &&
        (!json_is_string(address) || inet_pton(AF_INET, json_string_value(address), &ip) != 1))
        return refuse(reader, "the address of a path is no IPv4 address");
    end->ip = ntohl(ip.s_addr);
    return 0;
}

/* Finds or makes an item. `at` is its place in item_of. */
static int take_item(struct reader *reader, size_t at, const struct by_item *what, uint32_t *item)
{
    struct by_program *program = reader->program;
    int error;

    if (reader->item_of[at] == 0) {
        error =
            grow((void **)&program->items, program->item_count, &reader->item_room, sizeof(*program->items));
        if (error != 0)
            return error;
        program->items[program->item_count++] = *what;
        reader->item_of[at] = program->item_count;
    }
    *item = reader->item_of[at] - 1;
    return 0;
}

/* The ranks of a partial result as bits; 0 if it is malformed. */
static uint64_t ranks_of(const struct reader *reader, uint32_t partial)
{
    const json_t *list = json_array_get(reader->partials, partial);
    uint64_t ranks = 0;

    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *rank = json_array_get(list, i);

        if (!json_is_integer(rank) || json_integer_value(rank) < 0 ||
            json_integer_value(rank) >= reader->program->rank_count)
            return 0;
        ranks |= UINT64_C(1) << json_integer_value(rank);
    }
    return ranks;
}

static int take_partial(struct reader *reader, const json_t *move, const char *key, uint32_t *item)
{
    uint32_t count = (uint32_t)json_array_size(reader->partials), partial;
    struct by_item what = {.ranks = 0};

    if (count == 0 || !number(move, key, 0, count - 1, &partial))
        return refuse(reader, "a move names no partial result");
    what.ranks = ranks_of(reader, partial);
    if (what.ranks == 0)
        return refuse(reader, "a partial result is no list of ranks");
    return take_item(reader, partial, &what, item);
}

static int take_message(struct reader *reader, const json_t *move, uint32_t *item)
{
    uint32_t n = reader->program->rank_count;
    struct by_item what = {.ranks = 0};

    if (!number(move, "source", 0, n - 1, &what.source) || !number(move, "target", 0, n - 1, &what.target) ||
        what.source == what.target)
        return refuse(reader, "a move names no source and target");
    return take_item(reader, (size_t)what.source * n + what.target, &what, item);
}

/* ---- steps */

static int read_move(struct reader *reader, const json_t *move)
{
    struct by_program *program = reader->program;
    struct by_program_step step = {.way = BY_SCHEDULE_NONE};
    uint32_t peer = program->rank;
    int error;

    if (number(move, "send", 0, program->rank_count - 1, &peer))
        step.kind = BY_STEP_SEND;
    else if (number(move, "receive", 0, program->rank_count - 1, &peer))
        step.kind = BY_STEP_RECEIVE;
    else if (program->reduces && json_object_get(move, "combine") != NULL)
        step.kind = BY_STEP_COMBINE;
    if (step.kind == 0 || (step.kind != BY_STEP_COMBINE && peer == program->rank) ||
        !number(move, "round", 0, program->round_count - 1, &step.round) ||
        !number(move, "first", 0, program->chunk_count - 1, &step.first) ||
        !number(move, "count", 1, program->chunk_count - step.first, &step.count))
        return refuse(reader, "a move has no valid round, peer, first and count");
    if (step.kind == BY_STEP_COMBINE) {
        error = take_partial(reader, move, "combine", &step.item);
        if (error == 0)
            error = take_partial(reader, move, "left", &step.left);
        if (error == 0)
            error = take_partial(reader, move, "right", &step.right);
    } else {
        error = program->reduces ? take_partial(reader, move, "partial", &step.item)
                                 : take_message(reader, move, &step.item);
        if (error == 0)
            error = take_way(reader, move, peer, step.kind == BY_STEP_SEND, &step.way);
    }
    if (error == 0)
        error =
            grow((void **)&program->steps, program->step_count, &reader->step_room, sizeof(*program->steps));
    if (error == 0)
        program->steps[program->step_count++] = step;
    return error;
}

/* Both ends of a way number its steps in the same order: that of rounds and items. */
static int compare_on_way(const void *left, const void *right, void *context)
{
    const struct by_program *program = context;
    const struct by_program_step *a = &program->steps[*(const uint32_t *)left];
    const struct by_program_step *b = &program->steps[*(const uint32_t *)right];
    const struct by_item *x = &program->items[a->item], *y = &program->items[b->item];

    if (a->round != b->round)
        return a->round < b->round ? -1 : 1;
    if (x->source != y->source)
        return x->source < y->source ? -1 : 1;
    if (x->target != y->target)
        return x->target < y->target ? -1 : 1;
    if (x->ranks != y->ranks)
        return x->ranks < y->ranks ? -1 : 1;
    return a->first < b->first ? -1 : a->first > b->first;
}

static int number_steps(struct by_program *program)
{
    for (uint32_t s = 0; s < program->step_count; s++)
        if (program->steps[s].way != BY_SCHEDULE_NONE)
            program->ways[program->steps[s].way].step_count++;
    for (uint32_t w = 0; w < program->way_count; w++) {
        struct by_way_end *way = &program->ways[w];

        way->steps = calloc(way->step_count, sizeof(*way->steps));
        if (way->steps == NULL)
            return by_fail(BY_ENOMEM, "no memory for a schedule of %u steps", program->step_count);
        way->step_count = 0;
    }
    for (uint32_t s = 0; s < program->step_count; s++)
        if (program->steps[s].way != BY_SCHEDULE_NONE) {
            struct by_way_end *way = &program->ways[program->steps[s].way];

            way->steps[way->step_count++] = s;
        }
    for (uint32_t w = 0; w < program->way_count; w++) {
        struct by_way_end *way = &program->ways[w];

        qsort_r(way->steps, way->step_count, sizeof(*way->steps), compare_on_way, program);
        for (uint32_t i = 0; i < way->step_count; i++)
            program->steps[way->steps[i]].index = i;
    }
    return 0;
}

/* ---- which step needs which */

bool by_program_is_own(const struct by_program *program, const struct by_item *item)
{
    return program->reduces ? item->ranks == UINT64_C(1) << program->rank : item->source == program->rank;
}

bool by_program_is_result(const struct by_program *program, const struct by_item *item)
{
    if (!program->reduces)
        return item->target == program->rank;
    return program->target == program->rank &&
           (uint32_t)__builtin_popcountll(item->ranks) == program->rank_count;
}

static bool makes(const struct by_program_step *step)
{
    return step->kind != BY_STEP_SEND;
}

/* The steps that make each item, as lists: first[item], next[step]. */
struct makers {
    uint32_t *first, *next;
};

/* Calls `visit` for each step that makes a part of what `step` reads of `item`. Returns the chunks
 * that these steps make; UINT32_MAX if one of them is not in an earlier round. */
static uint32_t each_maker(struct by_program *program, const struct makers *makers, uint32_t item,
                           uint32_t step, void (*visit)(struct by_program *, uint32_t, uint32_t))
{
    uint32_t first = program->steps[step].first, end = first + program->steps[step].count, made = 0;

    for (uint32_t m = makers->first[item]; m != BY_SCHEDULE_NONE; m = makers->next[m]) {
        const struct by_program_step *maker = &program->steps[m];
        uint32_t low = maker->first > first ? maker->first : first;
        uint32_t high = maker->first + maker->count < end ? maker->first + maker->count : end;

        if (low >= high)
            continue;
        if (maker->round >= program->steps[step].round)
            return UINT32_MAX;
        made += high - low;
        visit(program, m, step);
    }
    return made;
}

static void count_need(struct by_program *program, uint32_t maker, uint32_t step)
{
    program->steps[maker].after_count++;
    program->steps[step].needs++;
}

static void list_need(struct by_program *program, uint32_t maker, uint32_t step)
{
    struct by_program_step *made = &program->steps[maker];

    program->after[made->after + made->after_count++] = step;
}

/* Visits all pairs of a step and one that it needs. False: a step reads what no step makes. */
static bool each_need(struct by_program *program, const struct makers *makers,
                      void (*visit)(struct by_program *, uint32_t, uint32_t))
{
    for (uint32_t s = 0; s < program->step_count; s++) {
        const struct by_program_step *step = &program->steps[s];
        uint32_t reads[2] = {step->kind == BY_STEP_COMBINE ? step->left : step->item, step->right};
        uint32_t count = step->kind == BY_STEP_COMBINE ? 2 : step->kind == BY_STEP_SEND ? 1 : 0;

        for (uint32_t r = 0; r < count; r++)
            if (!by_program_is_own(program, &program->items[reads[r]]) &&
                each_maker(program, makers, reads[r], s, visit) != step->count)
                return false;
    }
    return true;
}

/* Whether the rank gets the whole of what it is the target of. */
static bool is_complete(const struct by_program *program, const struct makers *makers)
{
    bool found = !program->reduces || program->rank != program->target;

    for (uint32_t i = 0; i < program->item_count; i++) {
        uint64_t made = 0;

        if (!by_program_is_result(program, &program->items[i]))
            continue;
        for (uint32_t m = makers->first[i]; m != BY_SCHEDULE_NONE; m = makers->next[m])
            made += program->steps[m].count;
        if (made != program->chunk_count)
            return false;
        found = true;
    }
    return found;
}

static int link_steps(struct reader *reader)
{
    struct by_program *program = reader->program;
    struct makers makers = {.first = malloc((program->item_count + 1u) * sizeof(uint32_t)),
                            .next = malloc((program->step_count + 1u) * sizeof(uint32_t))};
    uint32_t total = 0;
    int error = 0;

    if (makers.first == NULL || makers.next == NULL) {
        free(makers.first);
        free(makers.next);
        return by_fail(BY_ENOMEM, "no memory for a schedule of %u steps", program->step_count);
    }
    memset(makers.first, 0xff, (program->item_count + 1u) * sizeof(uint32_t));
    for (uint32_t s = 0; s < program->step_count && error == 0; s++)
        if (makes(&program->steps[s])) {
            makers.next[s] = makers.first[program->steps[s].item];
            makers.first[program->steps[s].item] = s;
            if (by_program_is_own(program, &program->items[program->steps[s].item]))
                error = refuse(reader, "a rank receives what it has");
        }
    if (error == 0 && !each_need(program, &makers, count_need))
        error = refuse(reader, "a rank uses data that it has not received in an earlier round");
    if (error == 0 && !is_complete(program, &makers))
        error = refuse(reader, "a rank does not receive all that it is the target of");
    for (uint32_t s = 0; s < program->step_count && error == 0; s++) {
        program->steps[s].after = total;
        total += program->steps[s].after_count;
        program->steps[s].after_count = 0;
    }
    if (error == 0) {
        program->after = malloc((total + 1u) * sizeof(uint32_t));
        if (program->after == NULL)
            error = by_fail(BY_ENOMEM, "no memory for a schedule of %u steps", program->step_count);
        else
            each_need(program, &makers, list_need);
    }
    free(makers.first);
    free(makers.next);
    return error;
}

/* ---- the file */

/* Notes which messages there are, for all ranks alike, and reads the moves of this rank. */
static int read_host(struct reader *reader, uint32_t rank, const json_t *host)
{
    struct by_program *program = reader->program;
    const json_t *moves = json_object_get(host, "moves");
    uint32_t own, n = program->rank_count, source, target, round = 0;
    uint64_t relayed = 0;
    int error = 0;

    if (!number(host, "rank", rank, rank, &own) || !json_is_array(moves))
        return refuse(reader, "a host has no moves, or is not in the order of ranks");
    for (size_t m = 0; m < json_array_size(moves) && error == 0; m++) {
        const json_t *move = json_array_get(moves, m);

        if (!program->reduces && number(move, "source", 0, n - 1, &source) &&
            number(move, "target", rank, rank, &target))
            program->pairs[(size_t)source * n + target] = true;
        else
            relayed += json_object_get(move, "receive") != NULL;
        if (rank != program->rank)
            continue;
        error = read_move(reader, move);
        BY_ASSERT(error != 0 || program->steps != NULL);
        if (error == 0 && program->steps[program->step_count - 1].round < round)
            error = refuse(reader, "the moves of a host are not in the order of rounds");
        if (error == 0)
            round = program->steps[program->step_count - 1].round;
    }
    program->relayed = relayed > program->relayed ? relayed : program->relayed;
    return error;
}

static int read_head(struct reader *reader, const json_t *root)
{
    struct by_program *program = reader->program;
    const char *format = json_string_value(json_object_get(root, "format"));
    const char *operation = json_string_value(json_object_get(root, "operation"));
    const char *ports = json_string_value(json_object_get(root, "ports"));
    uint32_t ranks;

    if (format == NULL || strcmp(format, "banyan-moves-1") != 0 || operation == NULL)
        return refuse(reader, "this is no schedule of moves");
    if (!number(root, "ranks", 2, BY_SCHEDULE_RANKS_MAX, &ranks) ||
        !number(root, "chunks", 1, BY_SCHEDULE_CHUNKS_MAX, &program->chunk_count) ||
        !number(root, "rounds", 1, BY_SCHEDULE_ROUNDS_MAX, &program->round_count) ||
        !number(root, "interval", 1, BY_SCHEDULE_ROUNDS_MAX, &program->interval))
        return refuse(reader, "ranks (2 to 1000), chunks, rounds or interval are missing or out of range");
    if (ranks != program->rank_count)
        return by_fail(BY_EMISMATCH, "BANYAN_SCHEDULE: %s is for %u ranks, and the job has %u", program->path,
                       ranks, program->rank_count);
    program->reduces = strcmp(operation, "reduce") == 0;
    program->ports_many = ports != NULL && strcmp(ports, "many") == 0;
    reader->paths = json_object_get(root, "paths");
    reader->partials = json_object_get(root, "partials");
    if (!json_is_array(reader->paths))
        return refuse(reader, "it has no paths");
    if (program->reduces && (ranks > VALUES_MAX || !json_is_array(reader->partials) ||
                             !number(root, "target", 0, ranks - 1, &program->target)))
        return refuse(reader, "a reduce has target and partials, and at most 64 ranks");
    return 0;
}

static int read_all(struct reader *reader, const json_t *root)
{
    struct by_program *program = reader->program;
    const json_t *hosts = json_object_get(root, "hosts");
    size_t n = program->rank_count, items;
    int error = read_head(reader, root);

    if (error != 0)
        return error;
    if (json_array_size(hosts) != n)
        return refuse(reader, "it has no host for each rank");
    items = program->reduces ? json_array_size(reader->partials) : n * n;
    reader->way_of_path = calloc(json_array_size(reader->paths) + 1, sizeof(uint32_t));
    reader->item_of = calloc(items + 1, sizeof(uint32_t));
    program->pairs = program->reduces ? NULL : calloc(n * n, sizeof(*program->pairs));
    if (reader->way_of_path == NULL || reader->item_of == NULL ||
        (!program->reduces && program->pairs == NULL))
        return by_fail(BY_ENOMEM, "no memory for a schedule of %zu ranks", n);
    for (uint32_t rank = 0; rank < n && error == 0; rank++)
        error = read_host(reader, rank, json_array_get(hosts, rank));
    if (error == 0)
        error = number_steps(program);
    return error == 0 ? link_steps(reader) : error;
}

/* Reads the text of the file; *text belongs to the caller. */
static int read_text(struct by_program *program, char **text, size_t *bytes)
{
    FILE *file = fopen(program->path, "re");
    long size = -1;

    if (file == NULL)
        return by_fail(BY_ENOENT, "BANYAN_SCHEDULE: %s: %s", program->path, strerror(errno));
    if (fseek(file, 0, SEEK_END) == 0)
        size = ftell(file);
    if (size < 0 || (size_t)size > FILE_BYTES_MAX || fseek(file, 0, SEEK_SET) != 0) {
        fclose(file);
        return by_fail(BY_EFORMAT, "BANYAN_SCHEDULE: %s is no file, or has more than 1 GiB", program->path);
    }
    *bytes = (size_t)size;
    *text = malloc(*bytes + 1);
    if (*text == NULL || fread(*text, 1, *bytes, file) != *bytes) {
        fclose(file);
        return *text == NULL ? by_fail(BY_ENOMEM, "no memory for %s: %zu bytes", program->path, *bytes)
                             : by_fail(BY_EIO, "BANYAN_SCHEDULE: %s cannot be read", program->path);
    }
    fclose(file);
    program->hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < *bytes; i++)
        program->hash = (program->hash ^ (uint8_t)(*text)[i]) * UINT64_C(0x100000001b3);
    return 0;
}

int by_schedule_program_read(const char *path, uint32_t rank, uint32_t rank_count, struct by_program **out)
{
    struct reader reader = {.program = calloc(1, sizeof(*reader.program))};
    json_error_t problem;
    json_t *root = NULL;
    char *text = NULL;
    size_t bytes = 0;
    int error;

    if (reader.program == NULL)
        return by_fail(BY_ENOMEM, "no memory for a schedule");
    reader.program->rank = rank;
    reader.program->rank_count = rank_count;
    reader.program->path = strdup(path);
    error = reader.program->path == NULL ? by_fail(BY_ENOMEM, "no memory for a schedule")
                                         : read_text(reader.program, &text, &bytes);
    if (error == 0) {
        root = json_loadb(text, bytes, 0, &problem);
        error = root == NULL
                    ? by_fail(BY_EFORMAT, "BANYAN_SCHEDULE: %s:%d: %s", path, problem.line, problem.text)
                    : read_all(&reader, root);
    }
    json_decref(root);
    free(text);
    free(reader.way_of_path);
    free(reader.item_of);
    if (error != 0) {
        by_schedule_program_free(reader.program);
        return error;
    }
    *out = reader.program;
    return 0;
}

void by_schedule_program_free(struct by_program *program)
{
    if (program == NULL)
        return;
    for (uint32_t w = 0; w < program->way_count; w++)
        free(program->ways[w].steps);
    free(program->ways);
    free(program->steps);
    free(program->items);
    free(program->after);
    free(program->pairs);
    free(program->path);
    free(program);
}
