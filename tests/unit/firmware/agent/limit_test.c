/* The agent's answer when a table exceeds the limits of the switch, its log, its limit on the rate
 * of requests, and messages of other versions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/agent/journal.h"
#include "firmware/agent/limit.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/rate.h"
#include "tests/unit/firmware/agent/rig.h"

#define MS UINT64_C(1000000)

/* A job of an image: a number of trees with the same window, and relays. */
struct tenant {
    uint16_t job, trees, window, payload_max, relays;
};

static void put_tree(uint8_t *image, const struct tenant *tenant, uint16_t tree, uint32_t index,
                     uint32_t slot_base)
{
    struct by_image_entry entry = {.job = tenant->job,
                                   .tree = tree,
                                   .parent_node = BY_NODE_NONE,
                                   .child_count = 2,
                                   .first_child = 2 * index,
                                   .window = tenant->window,
                                   .payload_max = tenant->payload_max,
                                   .slot_base = slot_base,
                                   .nleaf = 2};

    by_image_put_entry(image, index, &entry);
    for (uint16_t i = 0; i < 2; i++) {
        struct by_image_child child = {
            .port = i, .node = (uint16_t)(1 + i), .ip = star_host_ip(i), .udp_port = BY_UDP_PORT, .rank = i};

        by_image_put_child(image, 2 * index + i, &child);
    }
}

static void put_job(uint8_t *image, const struct tenant *tenant, uint32_t index, uint32_t *relay)
{
    struct by_image_job job = {.job = tenant->job,
                               .gen = 1,
                               .rank_count = 2,
                               .rank = BY_RANK_NONE,
                               .tree_count = tenant->trees,
                               .udp_port = BY_UDP_PORT};

    by_image_put_job(image, index, &job);
    for (uint16_t i = 0; i < tenant->relays; i++) {
        struct by_image_relay record = {
            .job = tenant->job, .src_ip = 100u + i, .dst_ip = star_host_ip(0), .port = 0};

        by_image_put_relay(image, (*relay)++, &record);
    }
}

/* Returns the image of a switch with at least two hosts and these jobs. The caller frees it. */
static uint8_t *image_of(const struct tenant *tenants, uint32_t count, uint16_t ports, size_t *bytes)
{
    struct by_image_header header = {.kind = BY_NODE_SWITCH, .name = "leaf0", .payload_max = 64};
    uint32_t entry = 0, slot = 0, relay = 0;
    uint8_t *image;

    header.count[BY_SECTION_PORT] = ports;
    header.count[BY_SECTION_JOB] = count;
    for (uint32_t i = 0; i < count; i++) {
        header.count[BY_SECTION_ENTRY] += tenants[i].trees;
        header.count[BY_SECTION_CHILD] += 2u * tenants[i].trees;
        header.count[BY_SECTION_RELAY] += tenants[i].relays;
        header.slot_count += (uint32_t)tenants[i].trees * tenants[i].window;
        if (header.payload_max < tenants[i].payload_max)
            header.payload_max = tenants[i].payload_max;
    }
    *bytes = by_image_bytes(header.count);
    image = calloc(1, *bytes);
    assert_non_null(image);
    by_image_put_header(image, &header);
    for (uint16_t i = 0; i < ports; i++) {
        struct by_image_port port = {.name = {'p', (char)('0' + i)},
                                     .own_ip = star_port_ip(i),
                                     .peer_ip = star_host_ip(i),
                                     .peer_node = (uint16_t)(1 + i),
                                     .mtu = 9000};

        star_mac(port.own_ip, port.own_mac);
        star_mac(port.peer_ip, port.peer_mac);
        by_image_put_port(image, i, &port);
    }
    for (uint32_t i = 0; i < count; i++) {
        put_job(image, &tenants[i], i, &relay);
        for (uint16_t tree = 0; tree < tenants[i].trees; tree++, slot += tenants[i].window)
            put_tree(image, &tenants[i], tree, entry++, slot);
    }
    by_image_seal(image);
    return image;
}

/* Stages and validates these jobs, and commits them if they are accepted. */
static int load_ports(struct rig_bench *bench, const struct tenant *tenants, uint32_t count, uint16_t ports)
{
    size_t bytes;
    uint8_t *image = image_of(tenants, count, ports, &bytes);
    uint64_t hash = by_image_hash(image, bytes);
    int error = stage_all(bench, image, bytes);

    if (error == 0)
        error = validate(bench, hash);
    if (error == 0)
        error = commit(bench, hash);
    free(image);
    return error;
}

static int load(struct rig_bench *bench, const struct tenant *tenants, uint32_t count)
{
    return load_ports(bench, tenants, count, 2);
}

static void a_table_with_too_many_slots_names_who_holds_them_and_what_would_fit(void **state)
{
    const struct tenant running[] = {{3, 1, 64, 64, 0}, {41, 3, 256, 64, 0}};
    const struct tenant more[] = {{3, 1, 64, 64, 0}, {41, 3, 256, 64, 0}, {42, 2, 128, 64, 0}};
    const struct tenant grown[] = {{3, 1, 64, 64, 0}, {41, 4, 256, 64, 0}};
    struct rig_bench *bench = *state;

    assert_int_equal(load(bench, running, 2), 0);
    assert_int_equal(load(bench, more, 3), BY_ELIMIT);
    assert_string_equal(
        bench->response.text,
        "validate: slots: the table requires 1088, this switch (board toaster) has 1024; job 42 requires "
        "256, 192 would fit beside job 41, which holds 768 of the others' 832: use a smaller --window, end a "
        "job, or start the switch with more --slots");
    assert_int_equal(load(bench, grown, 2), BY_ELIMIT);
    assert_non_null(strstr(bench->response.text,
                           "job 41, which runs, requires 1024, 960 would fit beside job 3, "
                           "which holds 64:"));
}

/* The running entry has another window, which the node would refuse as well. */
static void a_limit_is_named_before_what_differs_from_the_running_table(void **state)
{
    struct rig_bench *bench = *state;
    const struct tenant fits = {7, 1, 16, 64, 0};
    const struct tenant wider = {7, 1, 32, 64, 0};

    assert_int_equal(load(bench, &fits, 1), 0);
    assert_int_equal(load_ports(bench, &wider, 1, PORTS + 1), BY_ELIMIT);
    assert_non_null(strstr(bench->response.text, "ports: the table requires 5"));
}

static void entries_relays_and_chunks_are_told_of_in_the_same_way(void **state)
{
    const struct {
        struct tenant tenants[2];
        const char *text;
    } cases[] = {
        {{{1, 300, 1, 64, 0}, {2, 213, 1, 64, 0}},
         "entries: the table requires 513, this switch (board toaster) has 512; job 1 requires 300, 299 "
         "would fit beside job 2, which holds 213:"},
        {{{1, 1, 1, 64, 9}, {2, 1, 1, 64, 8}},
         "relays: the table requires 17, this switch (board toaster) has 16; job 1 requires 9, 8 would fit "
         "beside job 2, which holds 8:"},
        {{{1, 1, 1, 64, 0}, {2, 1, 1, 2048, 0}},
         "bytes of a chunk: the table requires 2048, this switch (board toaster) has 1408; job 2 requires "
         "2048:"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct rig_bench *bench = *state;

        assert_int_equal(load(bench, cases[i].tenants, 2), BY_ELIMIT);
        assert_non_null(strstr(bench->response.text, cases[i].text));
    }
}

static void an_image_beyond_the_memory_names_the_largest_job(void **state)
{
    const struct tenant running[] = {{7, 10, 1, 64, 0}, {9, 4, 1, 64, 0}};
    struct rig_bench *bench = *state;

    assert_int_equal(load(bench, running, 2), 0);
    client_request(&bench->request, by_Request_stage_tag);
    bench->request.body.stage.total = IMAGE_BYTES_MAX + 1;
    assert_int_equal(ask(bench), BY_ELIMIT);
    assert_string_equal(
        bench->response.text,
        "stage: memory: a table of 65537 bytes; this switch (board toaster) accepts 128 to 65536; "
        "job 7 holds 736 of the active one: plan fewer trees, end a job, or use a larger board");
}

static void what_just_fits_is_taken(void **state)
{
    const struct tenant most[] = {{1, 4, 128, 1408, 16}, {2, 508, 1, 64, 0}};

    assert_int_equal(load(*state, most, 2), 0);
}

static void hello_tells_of_limits_use_and_clock(void **state)
{
    const struct tenant running[] = {{3, 2, 64, 64, 5}, {41, 3, 256, 64, 0}};
    struct rig_bench *bench = *state;
    const by_HelloReply *hello = &bench->response.body.hello;

    assert_int_equal(load(bench, running, 2), 0);
    bench->now_ns = 5 * MS;
    client_request(&bench->request, by_Request_hello_tag);
    bench->request.election_id = 77;
    assert_int_equal(ask(bench), 0);
    assert_int_equal(hello->slots_used, 896);
    assert_int_equal(hello->entry_count, 5);
    assert_int_equal(hello->relay_count, 5);
    assert_int_equal(hello->job_count, 2);
    assert_int_equal(hello->relay_max, 16);
    assert_int_equal(hello->image_bytes_max, IMAGE_BYTES_MAX);
    assert_string_equal(hello->board, "toaster");
    assert_int_equal(hello->able, by_Able_ABLE_REPLICATE);
    assert_int_equal(hello->election_id, 77);
    assert_int_equal(hello->uptime_ns, 5 * MS);
    assert_int_equal(hello->unix_ns, UNIX_NS + 5 * MS);
}

/* Returns the events of a bench from a number on. */
static const by_LogReply *read_log(struct rig_bench *bench, uint64_t from)
{
    client_request(&bench->request, by_Request_log_tag);
    bench->request.body.log.from = from;
    assert_int_equal(ask(bench), 0);
    return &bench->response.body.log;
}

static void the_log_tells_what_happened_and_when(void **state)
{
    struct rig_bench *bench = *state;
    const by_LogReply *log;

    bench->now_ns = 1000 * MS;
    push(bench, &small);
    bench->now_ns = 3000 * MS;
    assert_int_equal(commit(bench, 1), BY_ESTATE);
    assert_int_equal(commit(bench, 1), BY_ESTATE);
    log = read_log(bench, 0);
    assert_int_equal(log->now_ns, 3000 * MS);
    assert_int_equal(log->next, 4);
    assert_int_equal(log->events_count, 4);
    assert_string_equal(log->events[0].text, "banyan test started on board toaster: 4 ports, 1024 slots");
    assert_non_null(strstr(log->events[1].text, "validate: ready to commit: 0x"));
    assert_non_null(strstr(log->events[2].text, "commit: the active table is 0x"));
    assert_int_equal(log->events[2].time_ns, 1000 * MS);
    assert_non_null(
        strstr(log->events[3].text, "commit: 0x0000000000000001 is neither validated nor active"));
    assert_int_equal(log->events[3].times, 2);
    assert_int_equal(log->events[3].time_ns, 3000 * MS);
    log = read_log(bench, 3);
    assert_int_equal(log->events_count, 1);
    assert_int_equal(log->events[0].number, 3);
    assert_int_equal(read_log(bench, 4)->events_count, 0);
    assert_int_equal(read_log(bench, UINT64_MAX)->events_count, 0);
}

static void the_log_forgets_its_oldest_events(void **state)
{
    struct rig_bench *bench = *state;
    const by_LogReply *log;
    uint64_t number = 0;
    char text[2] = "a";

    for (unsigned i = 0; i < BY_JOURNAL_EVENTS + 10; i++) {
        text[0] = (char)('a' + i % 26);
        by_agent_note(bench->agent, text);
    }
    log = read_log(bench, 0);
    assert_int_equal(log->events[0].number, 11); /* including the event of the start */
    while (log->events_count > 0) {
        number = log->events[log->events_count - 1].number + 1;
        log = read_log(bench, number);
    }
    assert_int_equal(number, BY_JOURNAL_EVENTS + 11);
    assert_int_equal(log->next, number);
}

static void a_long_text_repeats_itself_too(void **state)
{
    struct rig_bench *bench = *state;
    char text[300];

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    for (unsigned i = 0; i < 3; i++)
        by_agent_note(bench->agent, text);
    assert_int_equal(read_log(bench, 1)->events_count, 1);
    assert_int_equal(bench->response.body.log.events[0].times, 3);
    assert_int_equal(strlen(bench->response.body.log.events[0].text), BY_JOURNAL_TEXT_BYTES - 1);
}

static void a_rate_gives_a_burst_and_then_so_many_a_second(void **state)
{
    struct by_rate rate;

    (void)state;
    by_rate_start(&rate, 100, 3);
    for (unsigned i = 0; i < 3; i++)
        assert_true(by_rate_take(&rate, 5 * MS));
    assert_false(by_rate_take(&rate, 5 * MS));
    assert_int_equal(by_rate_wait_ns(&rate, 5 * MS), 10 * MS);
    assert_int_equal(by_rate_wait_ns(&rate, 9 * MS), 6 * MS);
    assert_false(by_rate_take(&rate, 14 * MS));
    assert_true(by_rate_take(&rate, 15 * MS));
    assert_false(by_rate_take(&rate, 15 * MS));
    for (unsigned i = 0; i < 3; i++)
        assert_true(by_rate_take(&rate, 100000 * MS)); /* at most the burst at one time */
    assert_false(by_rate_take(&rate, 100000 * MS));
    assert_false(by_rate_take(&rate, 1)); /* a clock that goes back adds nothing */
    assert_true(by_rate_take(&rate, 0));  /* without a clock there is no limit */
}

static void who_asks_too_often_is_told_and_may_go_on_later(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t frame[CLIENT_FRAME_MAX];
    size_t bytes, used;
    int32_t made;

    bench->now_ns = 1000 * MS;
    client_request(&bench->request, by_Request_waiting_tag);
    for (unsigned i = 0; i < BY_CHANNEL_REQUESTS_BURST; i++)
        assert_int_equal(ask(bench), 0);
    assert_int_equal(by_channel_wait_ns(&bench->channel, bench->agent), 0);
    bytes = client_frame(&bench->request, frame);
    made = by_channel_step(&bench->channel, bench->agent, frame, bytes, &used, bench->out, sizeof bench->out);
    assert_int_equal(used, bytes);
    client_decode(bench->out, (size_t)made, &bench->response);
    assert_int_equal(bench->response.error, BY_EAGAIN);
    assert_non_null(strstr(bench->response.text, "more than 8192 at once and 1000 a second"));
    assert_int_equal(by_channel_wait_ns(&bench->channel, bench->agent), MS);
    bench->now_ns += MS;
    assert_int_equal(by_channel_wait_ns(&bench->channel, bench->agent), 0);
    assert_int_equal(ask(bench), 0);
}

/* Appends an unknown field to a request and decodes the answer. */
static void ask_with_unknown_field(struct rig_bench *bench)
{
    static const uint8_t unknown[] = {0xca, 0x3e, 3, 'n', 'e', 'w'}; /* field 1001, three bytes */
    uint8_t frame[CLIENT_FRAME_MAX + sizeof unknown];
    size_t bytes = client_frame(&bench->request, frame), used;
    int32_t made;

    memcpy(frame + bytes, unknown, sizeof unknown);
    bytes += sizeof unknown;
    by_put32(frame, (uint32_t)bytes - BY_CONTROL_LENGTH_BYTES);
    made = by_channel_step(&bench->channel, bench->agent, frame, bytes, &used, bench->out, sizeof bench->out);
    assert_int_equal(used, bytes);
    client_decode(bench->out, (size_t)made, &bench->response);
}

static void a_field_that_is_not_known_is_passed_over(void **state)
{
    struct rig_bench *bench = *state;

    client_request(&bench->request, by_Request_hello_tag);
    ask_with_unknown_field(bench);
    assert_int_equal(bench->response.error, 0);
    assert_int_equal(bench->response.which_body, by_Response_hello_tag);
    assert_string_equal(bench->response.body.hello.name, "leaf0");
}

static void a_request_that_is_not_known_is_refused_with_words(void **state)
{
    struct rig_bench *bench = *state;

    client_request(&bench->request, 0);
    ask_with_unknown_field(bench);
    assert_int_equal(bench->response.error, BY_EUNSUPPORTED);
    assert_non_null(strstr(bench->response.text, "request: not supported by this switch (banyan test)"));
    assert_int_equal(bench->response.id, bench->request.id);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bench, free_bench)
    const struct CMUnitTest tests[] = {
        TEST(a_table_with_too_many_slots_names_who_holds_them_and_what_would_fit),
        TEST(a_limit_is_named_before_what_differs_from_the_running_table),
        TEST(entries_relays_and_chunks_are_told_of_in_the_same_way),
        TEST(an_image_beyond_the_memory_names_the_largest_job),
        TEST(what_just_fits_is_taken),
        TEST(hello_tells_of_limits_use_and_clock),
        TEST(the_log_tells_what_happened_and_when),
        TEST(the_log_forgets_its_oldest_events),
        TEST(a_long_text_repeats_itself_too),
        TEST(a_rate_gives_a_burst_and_then_so_many_a_second),
        TEST(who_asks_too_often_is_told_and_may_go_on_later),
        TEST(a_field_that_is_not_known_is_passed_over),
        TEST(a_request_that_is_not_known_is_refused_with_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
