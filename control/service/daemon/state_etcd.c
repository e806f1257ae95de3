/*
 * The store in etcd: an SQLite database in memory, whose content is kept in etcd at each
 * transaction. It is too large for one request, therefore it is split: /part/ID/N are its parts,
 * and `state` names the ID. The last request of a write is one transaction of etcd, on condition of
 * the leader's term and of the last revision of `state`: it stores the last part and `state`, and
 * removes all other parts. See state_inside.h.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/daemon/lead.h"
#include "control/service/daemon/state_inside.h"
#include "offload/base/errors.h"

/* Size of a part (bytes); etcd refuses requests of 1.5 MiB. */
#define PART_BYTES (1u << 20)
/* Timeout of a write (milliseconds). */
#define WRITE_MS 4000u
/* Attempts of a write whose result is unknown (count). */
#define TRIES 3

struct write {
    char id[64];
    const uint8_t *bytes;
    size_t size, parts;
};

/* The key part/ID and what follows it. */
static json_t *key_of(struct by_state *state, const struct write *write, const char *rest)
{
    char name[128];

    snprintf(name, sizeof(name), "part/%s%s", write->id, rest);
    return by_etcd_key(by_lead_etcd(state->lead), name);
}

static json_t *part_of(struct by_state *state, const struct write *write, size_t number)
{
    size_t at = number * PART_BYTES, left = write->size - at;
    char rest[32];

    snprintf(rest, sizeof(rest), "/%08zu", number);
    return json_pack("{s:{s:o,s:o}}", "request_put", "key", key_of(state, write, rest), "value",
                     by_etcd_bytes(write->bytes + at, left < PART_BYTES ? left : PART_BYTES));
}

static json_t *removal(json_t *from, json_t *end)
{
    return json_pack("{s:{s:o,s:o}}", "request_delete_range", "key", from, "range_end", end);
}

/* Performs the last transaction of a write. *done: its conditions held. */
static int commit(struct by_state *state, const struct write *write, bool *done, struct by_problem *problem)
{
    struct by_etcd *etcd = by_lead_etcd(state->lead);
    char text[160], revision[32];
    json_t *reply, *request;
    int error;

    snprintf(text, sizeof(text), "{\"id\": \"%s\", \"parts\": %zu, \"bytes\": %zu}", write->id, write->parts,
             write->size);
    snprintf(revision, sizeof(revision), "%" PRId64, state->revision);
    request = json_pack(
        "{s:[o,{s:o,s:s,s:s,s:s}],s:[o,{s:{s:o,s:o}},o,o]}", "compare", by_lead_guard(state->lead), "key",
        by_etcd_key(etcd, "state"), "target", "MOD", "result", "EQUAL", "mod_revision", revision, "success",
        part_of(state, write, write->parts - 1), "request_put", "key", by_etcd_key(etcd, "state"), "value",
        by_etcd_bytes(text, strlen(text)), /* '0' follows '/' */
        removal(by_etcd_key(etcd, "part/"), key_of(state, write, "/")),
        removal(key_of(state, write, "0"), by_etcd_key(etcd, "part0")));
    error = by_etcd_ask(etcd, "/v3/kv/txn", request, WRITE_MS, &reply, problem);
    *done = json_is_true(json_object_get(reply, "succeeded"));
    if (*done)
        state->revision = by_etcd_number(json_object_get(reply, "header"), "revision");
    json_decref(reply);
    return error;
}

/* Stores all parts but the last one. */
static int put_parts(struct by_state *state, const struct write *write, struct by_problem *problem)
{
    int error = 0;

    for (size_t i = 0; i + 1 < write->parts && error == 0; i++) {
        json_t *reply;

        /* if the condition does not hold, neither does that of the last transaction */
        error = by_etcd_ask(by_lead_etcd(state->lead), "/v3/kv/txn",
                            json_pack("{s:[o],s:[o]}", "compare", by_lead_guard(state->lead), "success",
                                      part_of(state, write, i)),
                            WRITE_MS, &reply, problem);
        json_decref(reply);
    }
    return error;
}

/* Reads `state`: ID, numbers of parts and bytes, and its revision; zeros if there is none. */
static int read_head(struct by_state *state, struct write *head, int64_t *revision,
                     struct by_problem *problem)
{
    json_t *entry, *value;
    uint8_t *bytes;
    size_t size = 0;
    int error = by_etcd_get(by_lead_etcd(state->lead), "state", &entry, problem);

    *head = (struct write){0};
    *revision = by_etcd_number(entry, "mod_revision");
    bytes = by_etcd_take_bytes(json_object_get(entry, "value"), &size);
    value = bytes != NULL ? json_loadb((const char *)bytes, size, 0, NULL) : NULL;
    if (error == 0 && entry != NULL) {
        const char *id = json_string_value(json_object_get(value, "id"));

        snprintf(head->id, sizeof(head->id), "%s", id != NULL ? id : "");
        head->parts = (size_t)json_integer_value(json_object_get(value, "parts"));
        head->size = (size_t)json_integer_value(json_object_get(value, "bytes"));
    }
    json_decref(value);
    free(bytes);
    json_decref(entry);
    return error;
}

/* Finds out why the conditions did not hold, or whether a write without an answer took effect.
 * *done: it did. Returns 0 to try again. */
static int inquire(struct by_state *state, const struct write *write, bool *done, struct by_problem *problem)
{
    json_t *leader;
    struct write head;
    int64_t revision = 0, term;
    int error = by_etcd_get(by_lead_etcd(state->lead), "leader", &leader, problem);

    term = by_etcd_number(leader, "create_revision");
    json_decref(leader);
    if (error != 0)
        return error;
    if (term != by_lead_term(state->lead)) {
        by_problem_say(problem, BY_EPERM, "this banyand leads no longer: ask the one that does");
        by_lead_lose(state->lead,
                     "etcd refuses a write of this banyand, which leads no longer: it follows now");
        return BY_EPERM;
    }
    error = read_head(state, &head, &revision, problem);
    if (error != 0)
        return error;
    state->revision = revision;
    *done = strcmp(head.id, write->id) == 0;
    return 0;
}

static int keep_bytes(struct by_state *state, const struct write *write, struct by_problem *problem)
{
    struct by_problem why = {0};
    bool done = false;
    int error = put_parts(state, write, problem);

    for (unsigned i = 0; i < TRIES && error == 0 && !done; i++) {
        /* without an answer it may have taken effect; inquire() finds out */
        if (commit(state, write, &done, &why) != 0 || !done)
            error = inquire(state, write, &done, problem);
    }
    if (error == 0 && !done)
        error = by_problem_say(problem, BY_EIO, "etcd does not accept the state in %d attempts%s%s", TRIES,
                               why.text[0] != 0 ? ": " : "", why.text);
    return error;
}

static int keep_etcd(struct by_state *state, struct by_problem *problem)
{
    struct by_problem why = {0};
    sqlite3_int64 size;
    unsigned char *bytes = sqlite3_serialize(state->db, "main", &size, 0);
    struct write write = {.bytes = bytes, .size = (size_t)size};
    int error;

    if (bytes == NULL)
        return by_problem_say(problem, BY_EIO, "no memory for the state");
    write.parts = (write.size + PART_BYTES - 1) / PART_BYTES;
    snprintf(write.id, sizeof(write.id), "%" PRId64 "-%" PRIu64, by_lead_term(state->lead), ++state->writes);
    error = keep_bytes(state, &write, &why);
    sqlite3_free(bytes);
    return error == 0 ? 0 : by_problem_say(problem, error, "--store: %.430s", why.text);
}

/* Reads the parts; the caller frees *bytes. */
static int read_parts(struct by_state *state, const struct write *head, uint8_t **bytes,
                      struct by_problem *problem)
{
    size_t used = 0;
    int error = 0;

    *bytes = by_alloc(head->size, 1);
    for (size_t i = 0; i < head->parts && error == 0; i++) {
        char name[128];
        json_t *entry;
        size_t size = 0;
        uint8_t *part;

        snprintf(name, sizeof(name), "part/%s/%08zu", head->id, i);
        error = by_etcd_get(by_lead_etcd(state->lead), name, &entry, problem);
        part = by_etcd_take_bytes(json_object_get(entry, "value"), &size);
        if (part != NULL && used + size <= head->size) {
            memcpy(*bytes + used, part, size);
            used += size;
        }
        free(part);
        json_decref(entry);
    }
    if (error == 0 && used != head->size)
        error = by_problem_say(problem, BY_EFORMAT,
                               "%zu of %zu bytes of the state are there: give another /NAME after the "
                               "addresses, which ends the jobs",
                               used, head->size);
    return error;
}

/* Copies a serialized database into the one in memory. */
static int load(struct by_state *state, const uint8_t *bytes, size_t size, struct by_problem *problem)
{
    unsigned char *copy = sqlite3_malloc64(size);
    sqlite3 *from = NULL;
    sqlite3_backup *backup = NULL;
    int error = copy == NULL || sqlite3_open(":memory:", &from) != SQLITE_OK;

    if (error == 0) {
        memcpy(copy, bytes, size);
        error = sqlite3_deserialize(from, "main", copy, (sqlite3_int64)size, (sqlite3_int64)size,
                                    SQLITE_DESERIALIZE_FREEONCLOSE) != SQLITE_OK;
    }
    if (error == 0)
        backup = sqlite3_backup_init(state->db, "main", from, "main");
    if (backup != NULL)
        sqlite3_backup_step(backup, -1);
    error |= backup == NULL || sqlite3_backup_finish(backup) != SQLITE_OK;
    sqlite3_close(from);
    return error == 0 ? 0
                      : by_problem_say(problem, BY_EFORMAT,
                                       "the state is damaged: give another /NAME after "
                                       "the addresses, which ends the jobs");
}

static int read_state(struct by_state *state, struct by_problem *problem)
{
    struct write head;
    uint8_t *bytes = NULL;
    int error = read_head(state, &head, &state->revision, problem);

    if (error != 0 || state->revision == 0)
        return error;
    error = read_parts(state, &head, &bytes, problem);
    if (error == 0)
        error = load(state, bytes, head.size, problem);
    free(bytes);
    return error;
}

static int open_etcd(struct by_state *state, struct by_problem *problem)
{
    struct by_problem why = {0};
    int error;

    if (sqlite3_open(":memory:", &state->db) != SQLITE_OK)
        return by_state_fail(state, problem);
    error = read_state(state, &why);
    return error == 0 ? 0 : by_problem_say(problem, error, "--store: %.430s", why.text);
}

static int confirm_etcd(struct by_state *state, struct by_problem *problem)
{
    return by_lead_confirm(state->lead, problem);
}

static void close_etcd(struct by_state *state)
{
    (void)state;
}

int by_state_open_etcd(struct by_lead *lead, const char *store, const struct by_topology *topology,
                       const struct by_lower_options *options, struct by_state **state,
                       struct by_problem *problem)
{
    static const struct by_state_place place = {.option = "--store",
                                                .file = "",
                                                .remedy = "check the free memory",
                                                .another = "another /NAME after the addresses",
                                                .open = open_etcd,
                                                .keep = keep_etcd,
                                                .confirm = confirm_etcd,
                                                .close = close_etcd};

    return by_state_start(&place, store, lead, topology, options, state, problem);
}
