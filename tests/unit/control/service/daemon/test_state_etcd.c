/* The store in an etcd that the test simulates: which keys a write leaves, what becomes of one
 * whose answer is lost or that is refused, and what is read back. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/lead.h"
#include "control/service/daemon/state.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "tests/unit/control/tables/bench.h"

enum { KEYS_MAX = 16, PART = 1 << 20, X0 = 1 };

/* Bytes, which JSON contains as a number. */
struct etcd_blob {
    uint8_t *bytes;
    size_t size;
};

static struct {
    struct by_topology *topology;
    struct by_lower_options lower;
    struct by_state *store;
    int64_t term; /* of this process */
    char lost[200];
    /* etcd */
    struct {
        char name[80]; /* "": free */
        int64_t created, changed;
        struct etcd_blob value;
    } keys[KEYS_MAX];
    struct etcd_blob blobs[2000];
    unsigned blob_count, transactions;
    int64_t revision;
    unsigned unanswered, ignored; /* the next transactions: have no answer; have no effect either */
    int get_error, confirm_error;
    unsigned parts_read;
} rig;

/* ---- etcd ---- */

struct by_etcd *by_lead_etcd(struct by_lead *lead)
{
    assert_ptr_equal(lead, &rig);
    return (struct by_etcd *)&rig;
}

int64_t by_lead_term(const struct by_lead *lead)
{
    assert_ptr_equal(lead, &rig);
    return rig.term;
}

json_t *by_lead_guard(const struct by_lead *lead)
{
    assert_ptr_equal(lead, &rig);
    return json_pack("{s:s,s:s,s:s,s:I}", "key", "leader", "target", "CREATE", "result", "EQUAL",
                     "create_revision", (json_int_t)rig.term);
}

int by_lead_confirm(struct by_lead *lead, struct by_problem *problem)
{
    assert_ptr_equal(lead, &rig);
    return rig.confirm_error == 0 ? 0 : by_problem_say(problem, rig.confirm_error, "etcd does not answer");
}

void by_lead_lose(struct by_lead *lead, const char *why)
{
    assert_ptr_equal(lead, &rig);
    snprintf(rig.lost, sizeof(rig.lost), "%s", why);
}

json_t *by_etcd_key(const struct by_etcd *etcd, const char *name)
{
    (void)etcd;
    return json_string(name);
}

json_t *by_etcd_bytes(const void *bytes, size_t size)
{
    struct etcd_blob *blob = &rig.blobs[rig.blob_count];

    assert_true(rig.blob_count < sizeof(rig.blobs) / sizeof(rig.blobs[0]) && size <= PART);
    *blob = (struct etcd_blob){.bytes = by_alloc(size + 1, 1), .size = size};
    memcpy(blob->bytes, bytes, size);
    return json_integer(rig.blob_count++);
}

uint8_t *by_etcd_take_bytes(const json_t *text, size_t *size)
{
    const struct etcd_blob *blob;
    uint8_t *bytes;

    if (text == NULL)
        return NULL;
    blob = &rig.blobs[json_integer_value(text)];
    *size = blob->size;
    bytes = by_alloc(blob->size + 1, 1);
    memcpy(bytes, blob->bytes, blob->size);
    return bytes;
}

int64_t by_etcd_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

static int find(const char *name)
{
    for (int i = 0; i < KEYS_MAX; i++)
        if (strcmp(rig.keys[i].name, name) == 0)
            return i;
    return -1;
}

int by_etcd_get(struct by_etcd *etcd, const char *name, json_t **entry, struct by_problem *problem)
{
    int at = find(name);

    (void)etcd;
    rig.parts_read += strncmp(name, "part/", 5) == 0;
    *entry = NULL;
    if (rig.get_error != 0)
        return by_problem_say(problem, rig.get_error, "etcd does not answer");
    if (at >= 0)
        *entry =
            json_pack("{s:o,s:I,s:I}", "value",
                      by_etcd_bytes(rig.keys[at].value.bytes, rig.keys[at].value.size), "mod_revision",
                      (json_int_t)rig.keys[at].changed, "create_revision", (json_int_t)rig.keys[at].created);
    return 0;
}

static void forget(int at)
{
    free(rig.keys[at].value.bytes);
    memset(&rig.keys[at], 0, sizeof(rig.keys[at]));
}

static void set(const char *name, const void *bytes, size_t size)
{
    int at = find(name);
    int64_t created = at >= 0 ? rig.keys[at].created : rig.revision;

    if (at >= 0)
        forget(at);
    at = find("");
    assert_true(at >= 0 && name[0] != 0);
    snprintf(rig.keys[at].name, sizeof(rig.keys[at].name), "%s", name);
    rig.keys[at].created = created;
    rig.keys[at].changed = rig.revision;
    rig.keys[at].value = (struct etcd_blob){.bytes = by_alloc(size + 1, 1), .size = size};
    memcpy(rig.keys[at].value.bytes, bytes, size);
}

static bool holds(const json_t *compare)
{
    int at = find(json_string_value(json_object_get(compare, "key")));

    assert_string_equal(json_string_value(json_object_get(compare, "result")), "EQUAL");
    if (strcmp(json_string_value(json_object_get(compare, "target")), "CREATE") == 0)
        return at >= 0 && rig.keys[at].created == by_etcd_number(compare, "create_revision");
    assert_string_equal(json_string_value(json_object_get(compare, "target")), "MOD");
    return (at >= 0 ? rig.keys[at].changed : 0) ==
           strtoll(json_string_value(json_object_get(compare, "mod_revision")), NULL, 10);
}

static void perform(const json_t *operation)
{
    const json_t *put = json_object_get(operation, "request_put"),
                 *range = json_object_get(operation, "request_delete_range");

    if (put != NULL) {
        const struct etcd_blob *blob = &rig.blobs[json_integer_value(json_object_get(put, "value"))];

        set(json_string_value(json_object_get(put, "key")), blob->bytes, blob->size);
        return;
    }
    for (int i = 0; i < KEYS_MAX; i++)
        if (rig.keys[i].name[0] != 0 &&
            strcmp(rig.keys[i].name, json_string_value(json_object_get(range, "key"))) >= 0 &&
            strcmp(rig.keys[i].name, json_string_value(json_object_get(range, "range_end"))) < 0)
            forget(i);
}

int by_etcd_ask(struct by_etcd *etcd, const char *path, json_t *request, uint32_t timeout_ms, json_t **reply,
                struct by_problem *problem)
{
    bool succeeds = true;
    const json_t *item;
    size_t i;

    (void)etcd;
    (void)timeout_ms;
    assert_string_equal(path, "/v3/kv/txn");
    *reply = NULL;
    rig.transactions++;
    json_array_foreach(json_object_get(request, "compare"), i, item) succeeds &= holds(item);
    if (rig.ignored == 0) {
        rig.revision++;
        json_array_foreach(json_object_get(request, "success"), i, item) if (succeeds) perform(item);
    }
    json_decref(request);
    rig.ignored -= rig.ignored > 0;
    if (rig.unanswered > 0) {
        rig.unanswered--;
        return by_problem_say(problem, BY_EIO, "no member answers");
    }
    *reply =
        json_pack("{s:b,s:{s:I}}", "succeeded", succeeds, "header", "revision", (json_int_t)rig.revision);
    return 0;
}

/* ---- the store ---- */

static int open_store(struct by_problem *problem)
{
    by_state_close(rig.store);
    rig.store = NULL;
    return by_state_open_etcd((struct by_lead *)&rig, "etcd:http://a", rig.topology, &rig.lower, &rig.store,
                              problem);
}

static void reopen(void)
{
    struct by_problem problem = {0};

    if (open_store(&problem) != 0)
        fail_msg("%s", problem.text);
}

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    rig.topology = bench_topology("h0 x0* h1", "h0-x0 x0-h1");
    rig.revision = 7;
    set("leader", "this", 4);
    rig.term = 7;
    reopen();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    by_state_close(rig.store);
    for (int i = 0; i < KEYS_MAX; i++)
        forget(i);
    for (unsigned i = 0; i < rig.blob_count; i++)
        free(rig.blobs[i].bytes);
    by_topology_free(rig.topology);
    return 0;
}

static int elect(uint64_t id)
{
    struct by_problem problem = {0};
    int error = by_state_elect(rig.store, id, &problem);

    if (error != 0)
        snprintf(rig.lost + 100, 100, "%.99s", problem.text);
    return error;
}

/* Requires these keys beside `leader`, in any order: their number, and those of parts. */
static void has_keys(unsigned parts)
{
    unsigned others = 0, count = 0;

    for (int i = 0; i < KEYS_MAX; i++) {
        count += strncmp(rig.keys[i].name, "part/", 5) == 0;
        others += rig.keys[i].name[0] != 0;
    }
    assert_int_equal(count, parts);
    assert_int_equal(others, parts + 2);
}

/* Records a push of an image of this size to x0. */
static int put_image(size_t size, struct by_problem *problem)
{
    struct by_change_image images[3] = {{0}};
    uint64_t nonces[3] = {0, 9, 0};
    uint32_t nodes[1] = {X0};
    struct by_change change = {.topology = rig.topology,
                               .images = images,
                               .nonces = nonces,
                               .target_nodes = nodes,
                               .target_count = 1,
                               .push_id = size};
    int error;

    images[X0] = (struct by_change_image){.bytes = by_alloc(size, 1), .size = size};
    for (size_t i = 0; i < size; i++)
        images[X0].bytes[i] = (uint8_t)(i * 7 + i / 1000);
    images[X0].hash = by_image_hash(images[X0].bytes, size);
    error = by_state_begin(rig.store, &change, problem);
    free(images[X0].bytes);
    return error;
}

/* ---- tests ---- */

static void what_is_written_comes_back_and_old_parts_are_gone(void **state)
{
    (void)state;
    for (uint64_t id = 1; id < 4; id++) {
        assert_int_equal(elect(id), 0);
        has_keys(1);
    }
    reopen();
    assert_true(by_state_election(rig.store) == 3);
    assert_int_equal(elect(4), 0);
    has_keys(1);
    reopen();
    assert_true(by_state_election(rig.store) == 4);
}

static void a_large_state_has_several_parts(void **state)
{
    struct by_change_image image;
    struct by_problem problem = {0};
    uint64_t nonce;
    unsigned before;

    (void)state;
    before = rig.transactions;
    assert_int_equal(put_image(2 * PART + 500000, &problem), 0);
    assert_int_equal(rig.transactions, before + 3);
    has_keys(3);
    assert_int_equal(by_state_settle(rig.store, true, &problem), 0);
    has_keys(3);
    rig.parts_read = 0;
    reopen();
    assert_int_equal(rig.parts_read, 3);
    assert_int_equal(by_state_image(rig.store, X0, &image, &nonce, &problem), 0);
    assert_true(image.size == 2 * PART + 500000 && nonce == 9);
    free(image.bytes);
    assert_int_equal(put_image(10, &problem), 0);
    assert_int_equal(by_state_settle(rig.store, true, &problem), 0);
    reopen();
    assert_int_equal(by_state_image(rig.store, X0, &image, &nonce, &problem), 0);
    assert_int_equal(image.size, 10);
    free(image.bytes);
}

/* Hosts that have stopped for tables would wait for the next leader, which does not have them. */
static void hosts_get_tables_in_advance_only_from_a_leader_that_reaches_etcd(void **state)
{
    struct by_change change = {.topology = rig.topology};
    struct by_problem problem = {0};
    unsigned before = rig.transactions;

    (void)state;
    assert_int_equal(by_state_reserve(rig.store, &change, &problem), 0);
    rig.confirm_error = BY_EIO;
    assert_int_equal(by_state_reserve(rig.store, &change, &problem), BY_EIO);
    assert_int_equal(rig.transactions, before);
}

static void a_write_without_an_answer_is_looked_for(void **state)
{
    unsigned before;

    (void)state;
    rig.unanswered = 1; /* it took effect */
    before = rig.transactions;
    assert_int_equal(elect(1), 0);
    assert_int_equal(rig.transactions, before + 1);
    rig.unanswered = rig.ignored = 1; /* it did not */
    before = rig.transactions;
    assert_int_equal(elect(2), 0);
    assert_int_equal(rig.transactions, before + 2);
    rig.unanswered = rig.ignored = 2;
    assert_int_equal(elect(3), 0);
    reopen();
    assert_true(by_state_election(rig.store) == 3);
}

static void three_writes_without_effect_are_an_error_and_change_nothing(void **state)
{
    (void)state;
    assert_int_equal(elect(1), 0);
    rig.unanswered = rig.ignored = 3;
    assert_int_equal(elect(2), BY_EIO);
    assert_string_equal(rig.lost + 100,
                        "--store: etcd does not accept the state in 3 attempts: no member answers");
    assert_true(by_state_election(rig.store) == 1);
    assert_int_equal(elect(5), 0);
    reopen();
    assert_true(by_state_election(rig.store) == 5);
}

static void without_an_answer_to_the_question_the_write_fails(void **state)
{
    (void)state;
    assert_int_equal(elect(1), 0);
    rig.unanswered = 1; /* it took effect without an answer */
    rig.get_error = BY_EIO;
    assert_int_equal(elect(2), BY_EIO);
    assert_string_equal(rig.lost + 100, "--store: etcd does not answer");
    rig.get_error = 0;
    assert_int_equal(elect(3), 0); /* and the next write replaces it */
    reopen();
    assert_true(by_state_election(rig.store) == 3);
}

static void a_former_leader_writes_nothing(void **state)
{
    (void)state;
    assert_int_equal(elect(1), 0);
    rig.revision++;
    forget(find("leader"));
    set("leader", "another", 7);
    assert_int_equal(elect(2), BY_EPERM);
    assert_string_equal(rig.lost,
                        "etcd refuses a write of this banyand, which leads no longer: it follows now");
    assert_string_equal(rig.lost + 100, "--store: this banyand leads no longer: ask the one that does");
    rig.term = rig.revision; /* what the other one reads */
    reopen();
    assert_true(by_state_election(rig.store) == 1);
}

static void a_state_that_is_incomplete_or_damaged_is_not_used(void **state)
{
    struct by_problem problem = {0};
    char name[80];
    int at;

    (void)state;
    assert_int_equal(put_image(PART, &problem), 0);
    has_keys(2);
    for (at = 0; at < KEYS_MAX && strstr(rig.keys[at].name, "/00000001") == NULL;)
        at++;
    assert_true(at < KEYS_MAX);
    snprintf(name, sizeof(name), "%s", rig.keys[at].name);
    by_state_close(rig.store);
    rig.store = NULL;
    forget(at);
    assert_int_equal(open_store(&problem), BY_EFORMAT);
    assert_non_null(strstr(problem.text, "--store: 1048576 of "));
    assert_non_null(strstr(problem.text,
                           " bytes of the state are there: give another /NAME after the addresses, "
                           "which ends the jobs"));
    set(name, "x", 1);
    assert_int_equal(open_store(&problem), BY_EFORMAT);
    assert_non_null(strstr(problem.text, "--store: 1048577 of "));
    forget(find(name));
    set("state", "{\"id\": \"7-1\", \"parts\": 1, \"bytes\": 6}", 37);
    forget(find("leader"));
    set("part/7-1/00000000", "damage", 6);
    assert_int_equal(open_store(&problem), BY_EFORMAT);
    assert_string_equal(problem.text,
                        "--store: the state is damaged: give another /NAME after the addresses, which "
                        "ends the jobs");
    rig.get_error = BY_EIO;
    assert_int_equal(open_store(&problem), BY_EIO);
    assert_string_equal(problem.text, "--store: etcd does not answer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_is_written_comes_back_and_old_parts_are_gone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_large_state_has_several_parts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(hosts_get_tables_in_advance_only_from_a_leader_that_reaches_etcd,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_write_without_an_answer_is_looked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(three_writes_without_effect_are_an_error_and_change_nothing, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(without_an_answer_to_the_question_the_write_fails, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_former_leader_writes_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_state_that_is_incomplete_or_damaged_is_not_used, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
