/* Switches that can do less, or more, than that of the rig: without a clock, a board or
 * descriptions of ports; with shares, full answers, and a node that fails. And what the agent
 * refuses to start with. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/agent/refuse.h"
#include "offload/base/errors.h"
#include "tests/unit/firmware/agent/rig.h"

static int op_many_counters(void *node, uint32_t index, struct by_agent_counter *out)
{
    (void)node;
    *out = (struct by_agent_counter){
        .name = "a_counter_with_a_name_that_is_far_longer_than_any_field_of_a_message", .value = index};
    return 0;
}

static int op_many_ports(void *node, uint32_t index, struct by_agent_port *out)
{
    (void)node;
    *out = (struct by_agent_port){.name = "p", .rx_packets = index};
    return 0;
}

static int op_shares(void *node, uint32_t index, struct by_engine_share *out)
{
    (void)node;
    *out = (struct by_engine_share){.job = (uint16_t)(index + 7), .rx_bytes = 100 * index};
    return index < 2 ? 0 : BY_ENOENT;
}

static int op_many_shares(void *node, uint32_t index, struct by_engine_share *out)
{
    op_shares(node, index, out);
    return 0;
}

static int op_no_way(void *node, uint32_t index, struct by_agent_way *out)
{
    (void)node;
    if (index > 0)
        return BY_ENOENT;
    *out = (struct by_agent_way){.name = "p0", .driver = "", .why = "", .offloads = "", .steer = ""};
    return 0;
}

static int op_all_wait(void *node, uint32_t index, struct by_bank_view *out)
{
    (void)node;
    *out = (struct by_bank_view){.seq = index};
    return 0;
}

static int op_commit_fails(void *node)
{
    (void)node;
    return BY_ESTATE;
}

static void an_agent_does_not_start_with_an_impossible_configuration(void **state)
{
    struct rig_bench *bench = *state;
    const struct by_agent_config sound = bench->config;
    struct by_agent_config wrong[5];
    struct by_agent *agent = NULL;

    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        wrong[i] = sound;
    wrong[0].ops = NULL;
    wrong[1].name = NULL;
    wrong[2].software = NULL;
    wrong[3].image_bytes_max = BY_IMAGE_HEADER_BYTES - 1;
    wrong[4].saved = bench->kept;
    wrong[4].saved_bytes = sound.image_bytes_max + 1;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++)
        assert_int_equal(by_agent_init(&agent, bench->agent_memory, by_agent_size(&sound), &wrong[i]),
                         BY_EINVAL);
    assert_int_equal(by_agent_init(&agent, (uint8_t *)bench->agent_memory + 1, by_agent_size(&sound), &sound),
                     BY_EINVAL);
    assert_int_equal(by_agent_init(&agent, bench->agent_memory, by_agent_size(&sound) - 1, &sound),
                     BY_ENOMEM);
    assert_null(agent);
}

static void a_switch_without_board_and_clock_answers_without_them(void **state)
{
    struct rig_bench *bench = *state;
    const by_HelloReply *hello = &bench->response.body.hello;

    bench->now_ns = 5;
    bench->config.board = NULL;
    bench->ops.clock = NULL;
    start_agent(bench);
    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_string_equal(hello->board, "");
    assert_int_equal(hello->uptime_ns, 0);
    assert_int_equal(hello->unix_ns, 0);
    client_request(&bench->request, by_Request_log_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.log.events[0].time_ns, 0);
    assert_string_equal(bench->response.body.log.events[0].text, "banyan test started: 4 ports, 1024 slots");
    client_request(&bench->request, by_Request_stage_tag);
    bench->request.body.stage.total = IMAGE_BYTES_MAX + 1;
    assert_int_equal(ask(bench), BY_ELIMIT);
    assert_string_equal(bench->response.text,
                        "stage: memory: a table of 65537 bytes; this switch accepts 128 to 65536: plan fewer "
                        "trees, end a job, or use a larger board");
}

static void what_a_switch_cannot_describe_is_refused(void **state)
{
    struct rig_bench *bench = *state;

    bench->ops.way = NULL;
    bench->ops.interface = NULL;
    start_agent(bench);
    client_request(&bench->request, by_Request_ports_tag);
    assert_int_equal(ask(bench), BY_EUNSUPPORTED);
    client_request(&bench->request, by_Request_interfaces_tag);
    assert_int_equal(ask(bench), BY_EUNSUPPORTED);
    assert_non_null(strstr(bench->response.text, "does not describe its ports (toaster)"));
    bench->config.board = NULL;
    start_agent(bench);
    client_request(&bench->request, by_Request_interfaces_tag);
    assert_int_equal(ask(bench), BY_EUNSUPPORTED);
    assert_non_null(strstr(bench->response.text, "does not describe its ports (banyan test)"));
}

static void ports_that_cannot_announce_are_described_all_the_same(void **state)
{
    struct rig_bench *bench = *state;

    bench->ops.announce = NULL;
    start_agent(bench);
    client_request(&bench->request, by_Request_interfaces_tag);
    bench->request.body.interfaces.announce = true;
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->announcements, 0);
    assert_true(bench->response.body.interfaces.interfaces_count > 0);
}

static void descriptions_end_at_the_first_port_without_one(void **state)
{
    struct rig_bench *bench = *state;

    bench->ops.way = op_no_way;
    start_agent(bench);
    client_request(&bench->request, by_Request_ports_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.ports.ports_count, 1);
    assert_int_equal(bench->response.body.ports.total, PORTS);
}

static void shares_are_listed_with_the_counters(void **state)
{
    struct rig_bench *bench = *state;
    const by_CountersReply *reply = &bench->response.body.counters;

    bench->ops.share = op_shares;
    start_agent(bench);
    client_request(&bench->request, by_Request_counters_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->shares_count, 2);
    assert_int_equal(reply->shares[1].job, 8);
    assert_int_equal(reply->shares[1].rx_bytes, 100);
}

/* The node has more of everything than a message holds. */
static void lists_end_where_a_message_is_full(void **state)
{
    struct rig_bench *bench = *state;
    const by_CountersReply *reply = &bench->response.body.counters;
    const pb_size_t engine_max = sizeof reply->engine / sizeof reply->engine[0];
    const pb_size_t ports_max = sizeof reply->ports / sizeof reply->ports[0];
    const pb_size_t shares_max = sizeof reply->shares / sizeof reply->shares[0];
    const pb_size_t ways_max =
        sizeof bench->response.body.ports.ports / sizeof bench->response.body.ports.ports[0];

    bench->ops.counter = op_many_counters;
    bench->ops.port = op_many_ports;
    bench->ops.share = op_many_shares;
    bench->config.port_count = 1000;
    start_agent(bench);
    client_request(&bench->request, by_Request_counters_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->engine_count, engine_max);
    assert_int_equal(reply->engine[engine_max - 1].value, engine_max - 1);
    assert_int_equal(strlen(reply->engine[0].name), sizeof reply->engine[0].name - 1);
    assert_int_equal(reply->ports_count, ports_max);
    assert_int_equal(reply->shares_count, shares_max);
    assert_int_equal(reply->shares[shares_max - 1].job, shares_max - 1 + 7);
    client_request(&bench->request, by_Request_ports_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.ports.ports_count, ways_max);
    assert_int_equal(bench->response.body.ports.total, 1000);
}

static void waiting_entries_end_where_a_message_is_full(void **state)
{
    struct rig_bench *bench = *state;
    const by_WaitingReply *reply = &bench->response.body.waiting;
    const pb_size_t most = sizeof reply->entries / sizeof reply->entries[0];
    struct star many = small;

    many.trees = most + 1;
    many.window = 1;
    push(bench, &many);
    bench->ops.waiting = op_all_wait; /* of each entry */
    client_request(&bench->request, by_Request_waiting_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->entries_count, most);
    assert_int_equal(reply->entries[most - 1].seq, most - 1);
}

static void a_commit_that_the_node_refuses_leaves_the_active_table(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t active = push(bench, &small);
    struct star other = small;
    size_t bytes;
    uint8_t *image;
    uint64_t hash;

    other.cookie = 99;
    image = star_image(&other, &bytes);
    hash = by_image_hash(image, bytes);
    bench->ops.commit = op_commit_fails;
    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, hash), 0);
    assert_int_equal(commit(bench, hash), BY_ESTATE);
    assert_non_null(strstr(bench->response.text, "the active table is unchanged"));
    assert_int_equal(active_hash(bench), active);
    assert_int_equal(validate(bench, hash), BY_ESTATE); /* nothing is staged any more */
    free(image);
}

static void a_switch_that_keeps_nothing_commits(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t hash;

    bench->ops.keep = NULL;
    hash = push(bench, &small);
    assert_int_equal(active_hash(bench), hash);
    assert_int_equal(bench->kept_bytes, 0);
}

static void a_table_is_validated_again_without_another_staging(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    uint64_t hash = by_image_hash(image, bytes);

    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, hash), 0);
    assert_int_equal(validate(bench, hash), 0);
    /* What is validated cannot be extended. */
    client_stage(&bench->request, image, bytes, (uint32_t)bytes, 0);
    assert_int_equal(ask(bench), BY_ESTATE);
    assert_int_equal(commit(bench, hash), 0);
    assert_int_equal(bench->commits, 1);
    free(image);
}

static void an_abort_of_nothing_is_no_event(void **state)
{
    struct rig_bench *bench = *state;

    client_request(&bench->request, by_Request_abort_tag);
    assert_int_equal(ask(bench), 0);
    client_request(&bench->request, by_Request_log_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.log.events_count, 1); /* the start */
}

static void a_deposed_writer_cannot_abort_restore_or_validate(void **state)
{
    struct rig_bench *bench = *state;
    const pb_size_t writes[] = {by_Request_abort_tag, by_Request_restore_tag, by_Request_validate_tag,
                                by_Request_commit_tag, by_Request_stage_tag};

    client_request(&bench->request, by_Request_hello_tag);
    bench->request.election_id = 9;
    assert_int_equal(ask(bench), 0);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        client_request(&bench->request, writes[i]);
        bench->request.election_id = 8;
        assert_int_equal(ask(bench), BY_EPERM);
        assert_int_equal(bench->response.leader, 9);
    }
}

static void a_channel_waits_for_room_for_a_whole_answer(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t frame[CLIENT_FRAME_MAX];
    size_t bytes, used;

    client_request(&bench->request, by_Request_hello_tag);
    bytes = client_frame(&bench->request, frame);
    assert_int_equal(by_channel_step(&bench->channel, bench->agent, frame, bytes, &used, bench->out,
                                     BY_CHANNEL_OUT_MIN - 1),
                     0);
    assert_int_equal(used, 0);
    assert_int_equal(ask(bench), 0);
}

/* With less room than the refusal needs nothing is written beyond it, and nothing is answered. */
static void a_refusal_without_room_is_none(void **state)
{
    uint8_t out[64];
    size_t whole = by_refuse(BY_EPERM, "no", out, sizeof out);

    (void)state;
    assert_true(whole > 4);
    for (size_t room = 0; room < whole; room++) {
        memset(out, 0xa5, sizeof out);
        assert_int_equal(by_refuse(BY_EPERM, "no", out, room), 0);
        for (size_t i = room; i < sizeof out; i++)
            assert_int_equal(out[i], 0xa5);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bench, free_bench)
    const struct CMUnitTest tests[] = {
        TEST(an_agent_does_not_start_with_an_impossible_configuration),
        TEST(a_switch_without_board_and_clock_answers_without_them),
        TEST(what_a_switch_cannot_describe_is_refused),
        TEST(ports_that_cannot_announce_are_described_all_the_same),
        TEST(descriptions_end_at_the_first_port_without_one),
        TEST(shares_are_listed_with_the_counters),
        TEST(lists_end_where_a_message_is_full),
        TEST(waiting_entries_end_where_a_message_is_full),
        TEST(a_commit_that_the_node_refuses_leaves_the_active_table),
        TEST(a_switch_that_keeps_nothing_commits),
        TEST(a_table_is_validated_again_without_another_staging),
        TEST(an_abort_of_nothing_is_no_event),
        TEST(a_deposed_writer_cannot_abort_restore_or_validate),
        TEST(a_channel_waits_for_room_for_a_whole_answer),
        cmocka_unit_test(a_refusal_without_room_is_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
