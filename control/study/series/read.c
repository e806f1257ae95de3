/*
 * Reads the file of a periodic schedule (banyan-series(5)).
 *
 * The reader checks everything that later code uses as an index: names, numbers and shapes.
 * control/verify checks whether the schedule is correct. One thread for each call.
 */
#include "control/base/json.h"
#include "control/fabric/names.h"
#include "control/study/series/rational.h"
#include "control/study/series/series.h"
#include "offload/base/errors.h"

#define FORMAT "banyan-series-1"
/* Size of a file (bytes). A file can have thousands of lanes with thousands of tasks each. */
#define FILE_BYTES_MAX ((size_t)1 << 30)
/*
 * Digits of a number in the file (count). Adding two numbers of this length takes about a second.
 */
#define DIGITS_MAX 100000u

struct series_read_reader {
    const struct by_topology *topology;
    struct by_json json;
    struct by_names *names;
    struct by_problem *problem;
    int error;
    struct by_series *series;
    uint32_t message_room, lane_room, slot_room, price_room, holder_room;
    bool format, throughput, optimum, period;
};

#define refuse(reader, ...) by_json_refuse(&(reader)->json, (reader)->problem, &(reader)->error, __VA_ARGS__)

static bool going(const struct series_read_reader *reader)
{
    return !reader->error && !reader->json.failed;
}

/* Reads a non-negative integer: a JSON number, or a string of digits. */
static bool read_integer(struct series_read_reader *reader, const char *what, mpz_t result)
{
    const char *text = NULL;
    size_t bytes = 0;
    int64_t number = -1;

    if (by_json_peek(&reader->json) == '0') {
        if (by_json_integer(&reader->json, &number) && number >= 0) {
            mpz_set_si(result, number);
            return true;
        }
    } else if (by_json_peek(&reader->json) == '"' && by_json_string(&reader->json, &text, &bytes) &&
               bytes > 0 && bytes <= DIGITS_MAX && strspn(text, "0123456789") >= bytes) {
        char *digits = by_copy_part(text, bytes);

        mpz_set_str(result, digits, 10);
        free(digits);
        return true;
    }
    return refuse(reader, "%s must be an integer that is not negative", what);
}

static bool read_index(struct series_read_reader *reader, const char *what, uint32_t limit, uint32_t *index)
{
    int64_t number = -1;

    if (limit == 0)
        return refuse(reader, "%s must refer to an earlier entry of the file", what);
    if (by_json_peek(&reader->json) != '0' || !by_json_integer(&reader->json, &number) || number < 0 ||
        number >= limit)
        return refuse(reader, "%s must be a number from 0 to %u", what, limit - 1);
    *index = (uint32_t)number;
    return true;
}

static bool read_rational(struct series_read_reader *reader, const char *what, mpq_t result)
{
    bool num = false, den = false, right = by_json_peek(&reader->json) == '{';
    const char *key;
    size_t bytes;

    for (bool first = true; right && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "num") && !num)
            right = num = read_integer(reader, what, mpq_numref(result));
        else if (by_json_is(key, bytes, "den") && !den)
            right = den = read_integer(reader, what, mpq_denref(result));
        else
            right = false;
    }
    if (!right || !num || !den || mpz_sgn(mpq_denref(result)) == 0) {
        mpq_set_ui(result, 0, 1);
        return refuse(reader, "%s must be a fraction such as {\"num\": 1, \"den\": 2}", what);
    }
    mpq_canonicalize(result);
    return true;
}

static bool read_node(struct series_read_reader *reader, uint32_t *node)
{
    const char *text;
    int shown;

    if (!by_names_read(reader->names, &reader->json, node, &text, &shown))
        return refuse(
            reader, "the schedule names node '%.*s', which the topology '%.60s' does not have; make it again",
            shown, text, reader->topology->name);
    return true;
}

static bool read_values(struct series_read_reader *reader, uint64_t *values)
{
    uint32_t value = 0;

    if (by_json_peek(&reader->json) != '[')
        return refuse(reader, "\"values\" must be an array of numbers");
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);)
        if (read_index(reader, "a value", BY_SERIES_VALUES_MAX, &value))
            *values |= UINT64_C(1) << value;
    return going(reader) && (*values != 0 || refuse(reader, "a message holds no values"));
}

static bool unknown(struct series_read_reader *reader, const char *key, size_t bytes, const char *what)
{
    return refuse(reader, "key '%.*s' of %s is unknown", bytes > 40 ? 40 : (int)bytes, key, what);
}

static bool read_message(struct series_read_reader *reader)
{
    struct by_series *series = reader->series;
    struct by_series_message *message;
    const char *key;
    size_t bytes;

    BY_GROW(series->messages, series->message_count, reader->message_room);
    message = &series->messages[series->message_count++];
    *message = (struct by_series_message){.from = BY_SERIES_NONE, .to = BY_SERIES_NONE};
    mpq_init(message->size);
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "from"))
            read_node(reader, &message->from);
        else if (by_json_is(key, bytes, "to"))
            read_node(reader, &message->to);
        else if (by_json_is(key, bytes, "values"))
            read_values(reader, &message->values);
        else if (by_json_is(key, bytes, "size"))
            read_rational(reader, "the size of a message", message->size);
        else
            unknown(reader, key, bytes, "a message");
    }
    if (going(reader) &&
        (message->values == 0) == (message->from == BY_SERIES_NONE || message->to == BY_SERIES_NONE))
        refuse(reader, "message %u must have either \"from\" and \"to\" or \"values\"",
               series->message_count - 1);
    return going(reader);
}

static bool read_combine(struct series_read_reader *reader, struct by_series_task *task)
{
    uint32_t count = 0, limit = reader->series->message_count;

    if (by_json_peek(&reader->json) != '[')
        return refuse(reader, "\"combine\" must be an array of two messages");
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first); count++)
        if (count < 2)
            read_index(reader, "a message to combine", limit, count ? &task->right : &task->left);
        else
            refuse(reader, "\"combine\" must be an array of two messages");
    return going(reader) && (count == 2 || refuse(reader, "\"combine\" must be an array of two messages"));
}

static bool read_task(struct series_read_reader *reader, struct by_series_task *task)
{
    bool send = false, combine = false, into = false, at = false, from = false;
    uint32_t limit = reader->series->message_count;
    const char *key;
    size_t bytes;

    *task = (struct by_series_task){.to = BY_SERIES_NONE};
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "send"))
            send = read_index(reader, "a message to send", limit, &task->message);
        else if (by_json_is(key, bytes, "into"))
            into = read_index(reader, "a combined message", limit, &task->message);
        else if (by_json_is(key, bytes, "from"))
            from = read_node(reader, &task->node);
        else if (by_json_is(key, bytes, "at"))
            at = read_node(reader, &task->node);
        else if (by_json_is(key, bytes, "to"))
            read_node(reader, &task->to);
        else if (by_json_is(key, bytes, "combine"))
            combine = read_combine(reader, task);
        else
            unknown(reader, key, bytes, "a task");
    }
    if (!going(reader))
        return false;
    if (send && from && task->to != BY_SERIES_NONE && !into && !at && !combine)
        return true;
    return (into && at && combine && !send && !from && task->to == BY_SERIES_NONE) ||
           refuse(reader, "a task must have either send, from and to, or at, combine and into");
}

static bool read_lane(struct series_read_reader *reader)
{
    struct by_series *series = reader->series;
    struct by_series_lane *lane;
    uint32_t room = 0;
    const char *key;
    size_t bytes;

    BY_GROW(series->lanes, series->lane_count, reader->lane_room);
    lane = &series->lanes[series->lane_count++];
    *lane = (struct by_series_lane){0};
    mpz_init(lane->amount);
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "amount")) {
            read_integer(reader, "the amount of a lane", lane->amount);
        } else if (by_json_is(key, bytes, "weight")) {
            by_json_skip(&reader->json); /* amount / period, written for human readers only */
        } else if (by_json_is(key, bytes, "tasks") && by_json_peek(&reader->json) == '[') {
            for (bool task = true; going(reader) && by_json_element(&reader->json, &task);) {
                BY_GROW(lane->tasks, lane->task_count, room);
                read_task(reader, &lane->tasks[lane->task_count++]);
            }
        } else {
            unknown(reader, key, bytes, "a lane");
        }
    }
    if (going(reader) && lane->task_count == 0)
        refuse(reader, "lane %u has no tasks", series->lane_count - 1);
    return going(reader);
}

static bool read_part(struct series_read_reader *reader, struct by_series_part *part)
{
    const char *key;
    size_t bytes;

    part->lane = part->task = 0;
    mpq_init(part->time);
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "lane"))
            read_index(reader, "a lane", reader->series->lane_count, &part->lane);
        else if (by_json_is(key, bytes, "task"))
            read_index(reader, "a task", UINT32_MAX, &part->task);
        else if (by_json_is(key, bytes, "time"))
            read_rational(reader, "the time of a part", part->time);
        else
            unknown(reader, key, bytes, "a part");
    }
    if (going(reader) && (part->lane >= reader->series->lane_count ||
                          part->task >= reader->series->lanes[part->lane].task_count))
        refuse(reader, "a part of a slot names lane %u and task %u, which do not exist", part->lane,
               part->task);
    return going(reader);
}

static bool read_busy(struct series_read_reader *reader, struct by_series_busy *busy)
{
    uint32_t room = 0;
    const char *key;
    size_t bytes;

    *busy = (struct by_series_busy){.from = BY_SERIES_NONE, .to = BY_SERIES_NONE};
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "from")) {
            read_node(reader, &busy->from);
        } else if (by_json_is(key, bytes, "to")) {
            read_node(reader, &busy->to);
        } else if (by_json_is(key, bytes, "parts") && by_json_peek(&reader->json) == '[') {
            for (bool part = true; going(reader) && by_json_element(&reader->json, &part);) {
                BY_GROW(busy->parts, busy->part_count, room);
                read_part(reader, &busy->parts[busy->part_count++]);
            }
        } else {
            unknown(reader, key, bytes, "a transfer");
        }
    }
    if (going(reader) && (busy->from == BY_SERIES_NONE || busy->to == BY_SERIES_NONE))
        refuse(reader, "a transfer of a slot must have \"from\" and \"to\"");
    return going(reader);
}

static bool read_slot(struct series_read_reader *reader)
{
    struct by_series *series = reader->series;
    struct by_series_slot *slot;
    uint32_t room = 0;
    const char *key;
    size_t bytes;

    BY_GROW(series->slots, series->slot_count, reader->slot_room);
    slot = &series->slots[series->slot_count++];
    *slot = (struct by_series_slot){0};
    mpq_init(slot->duration);
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "duration")) {
            read_rational(reader, "the duration of a slot", slot->duration);
        } else if (by_json_is(key, bytes, "transfers") && by_json_peek(&reader->json) == '[') {
            for (bool busy = true; going(reader) && by_json_element(&reader->json, &busy);) {
                BY_GROW(slot->busy, slot->busy_count, room);
                read_busy(reader, &slot->busy[slot->busy_count++]);
            }
        } else {
            unknown(reader, key, bytes, "a slot");
        }
    }
    return going(reader);
}

static bool read_price(struct series_read_reader *reader)
{
    struct by_series *series = reader->series;
    struct by_series_price *price;
    const char *key;
    size_t bytes;
    unsigned kinds = 0;

    BY_GROW(series->prices, series->price_count, reader->price_room);
    price = &series->prices[series->price_count++];
    *price = (struct by_series_price){.to = BY_SERIES_NONE};
    mpq_init(price->price);
    for (bool first = true; going(reader) && by_json_member(&reader->json, &first, &key, &bytes);) {
        enum by_series_resource resource = by_json_is(key, bytes, "sends")      ? BY_SERIES_SENDS
                                           : by_json_is(key, bytes, "receives") ? BY_SERIES_RECEIVES
                                           : by_json_is(key, bytes, "computes") ? BY_SERIES_COMPUTES
                                                                                : BY_SERIES_LINK;

        if (by_json_is(key, bytes, "to")) {
            read_node(reader, &price->to);
        } else if (by_json_is(key, bytes, "price")) {
            read_rational(reader, "a price", price->price);
        } else if (resource == BY_SERIES_LINK && !by_json_is(key, bytes, "from")) {
            unknown(reader, key, bytes, "a price");
        } else {
            price->resource = resource;
            kinds += read_node(reader, &price->node);
        }
    }
    if (going(reader) && (kinds != 1 || (price->resource == BY_SERIES_LINK) != (price->to != BY_SERIES_NONE)))
        refuse(reader, "a price must be for one of sends, receives, computes, or from and to");
    return going(reader);
}

static bool read_holder(struct series_read_reader *reader)
{
    struct by_series *series = reader->series;

    if (series->holder_count == BY_SERIES_VALUES_MAX)
        return refuse(reader, "more than %u values are reduced", BY_SERIES_VALUES_MAX);
    BY_GROW(series->holders, series->holder_count, reader->holder_room);
    return read_node(reader, &series->holders[series->holder_count++]);
}

static bool read_array(struct series_read_reader *reader, const char *what,
                       bool (*read)(struct series_read_reader *))
{
    if (by_json_peek(&reader->json) != '[')
        return refuse(reader, "\"%s\" must be an array", what);
    for (bool first = true; going(reader) && by_json_element(&reader->json, &first);)
        read(reader);
    return going(reader);
}

static bool read_word(struct series_read_reader *reader, const char **text, size_t *bytes)
{
    return (by_json_peek(&reader->json) == '"' && by_json_string(&reader->json, text, bytes)) ||
           refuse(reader, "a string is expected");
}

/*
 * Reads the members that are neither arrays nor numbers. Returns false if the key is none of these.
 */
static bool read_head(struct series_read_reader *reader, const char *key, size_t key_bytes)
{
    struct by_series *series = reader->series;
    const char *text = "";
    size_t bytes = 0;

    if (by_json_is(key, key_bytes, "format")) {
        if (read_word(reader, &text, &bytes) && !by_json_is(text, bytes, FORMAT))
            refuse(reader, "the format is '%.*s'; this program reads " FORMAT, bytes > 40 ? 40 : (int)bytes,
                   text);
        reader->format = true;
    } else if (by_json_is(key, key_bytes, "topology")) {
        by_json_skip(&reader->json);
    } else if (by_json_is(key, key_bytes, "operation")) {
        if (read_word(reader, &text, &bytes))
            series->operation = by_series_operation_find(text, bytes);
    } else if (by_json_is(key, key_bytes, "ports")) {
        if (read_word(reader, &text, &bytes))
            series->ports = by_series_ports_find(text, bytes);
    } else if (by_json_is(key, key_bytes, "commutative")) {
        series->commutative = by_json_peek(&reader->json) == 't';
        by_json_skip(&reader->json);
    } else if (by_json_is(key, key_bytes, "target")) {
        read_node(reader, &series->target);
    } else {
        return false;
    }
    return true;
}

static void read_member(struct series_read_reader *reader, const char *key, size_t bytes)
{
    struct by_series *series = reader->series;

    if (read_head(reader, key, bytes))
        return;
    if (by_json_is(key, bytes, "throughput"))
        reader->throughput = read_rational(reader, "the throughput", series->throughput);
    else if (by_json_is(key, bytes, "optimum"))
        reader->optimum = read_rational(reader, "the optimum", series->optimum);
    else if (by_json_is(key, bytes, "period"))
        reader->period = read_integer(reader, "the period", series->period);
    else if (by_json_is(key, bytes, "holders"))
        read_array(reader, "holders", read_holder);
    else if (by_json_is(key, bytes, "messages"))
        read_array(reader, "messages", read_message);
    else if (by_json_is(key, bytes, "lanes"))
        read_array(reader, "lanes", read_lane);
    else if (by_json_is(key, bytes, "slots"))
        read_array(reader, "slots", read_slot);
    else if (by_json_is(key, bytes, "prices"))
        read_array(reader, "prices", read_price);
    else
        unknown(reader, key, bytes, "a schedule");
}

/* Reports required members that are missing at the end of the file. */
static void check_whole(struct series_read_reader *reader)
{
    const struct by_series *series = reader->series;
    bool reduce = series->operation == BY_SERIES_REDUCE;

    if (!reader->format || !reader->throughput || !reader->optimum || !reader->period)
        refuse(reader, "the schedule has no \"%s\"",
               !reader->format       ? "format"
               : !reader->throughput ? "throughput"
               : !reader->optimum    ? "optimum"
                                     : "period");
    if (series->operation == 0 || series->ports == 0)
        refuse(reader,
               "\"operation\" must be scatter, gossip, exchange or reduce, and \"ports\" one, host or many");
    if (reduce && (series->target == BY_SERIES_NONE || series->holder_count == 0))
        refuse(reader, "a reduce must have a \"target\" and \"holders\"");
    if (mpz_sgn(series->period) == 0)
        refuse(reader, "the period must be positive");
    for (uint32_t m = 0; m < series->message_count; m++)
        if (reduce != (series->messages[m].values != 0))
            refuse(reader, "message %u must have %s", m, reduce ? "\"values\"" : "\"from\" and \"to\"");
        else if (reduce && series->holder_count < BY_SERIES_VALUES_MAX &&
                 series->messages[m].values >> series->holder_count)
            refuse(reader, "message %u holds values that no node has", m);
        else if (mpq_sgn(series->messages[m].size) == 0)
            refuse(reader, "message %u has no size", m);
}

int by_series_parse(const char *text, size_t bytes, const struct by_topology *topology,
                    struct by_series **series, struct by_problem *problem)
{
    struct series_read_reader reader = {.topology = topology, .problem = problem};
    const char *key;
    size_t key_bytes;

    *series = NULL;
    *problem = (struct by_problem){0};
    reader.series = by_series_new();
    reader.names = by_names_new(topology);
    by_json_open(&reader.json, text, bytes);
    for (bool first = true; going(&reader) && by_json_member(&reader.json, &first, &key, &key_bytes);)
        read_member(&reader, key, key_bytes);
    if (going(&reader))
        check_whole(&reader);
    if (!reader.error)
        reader.error = by_json_finish(&reader.json, problem);
    by_json_close(&reader.json);
    by_names_free(reader.names);
    if (reader.error)
        by_series_free(reader.series);
    else
        *series = reader.series;
    return reader.error;
}

int by_series_read(const char *path, const struct by_topology *topology, struct by_series **series,
                   struct by_problem *problem)
{
    char *text;
    size_t bytes;
    int error = by_text_read(path, FILE_BYTES_MAX, &text, &bytes, problem);

    *series = NULL;
    if (error)
        return error;
    error = by_series_parse(text, bytes, topology, series, problem);
    free(text);
    return error;
}

bool by_series_suits(const char *text, size_t bytes)
{
    return by_json_has_format(text, bytes, "banyan-series");
}
