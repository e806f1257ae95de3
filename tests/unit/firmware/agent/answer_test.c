/* Whole answers: every field that a reading request reports, each with a value of its own, and
 * every text of a refusal, from its first word to its last. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "offload/engine/engine.h"
#include "tests/unit/firmware/agent/rig.h"

static int op_port(void *node, uint32_t index, struct by_agent_port *out)
{
    (void)node;
    if (index > 1)
        return BY_ENOENT;
    *out = (struct by_agent_port){.name = index ? "p1" : "p0",
                                  .rx_packets = 11,
                                  .rx_bytes = 12,
                                  .tx_packets = 13,
                                  .tx_bytes = 14,
                                  .rx_dropped = 15,
                                  .tx_dropped = 16,
                                  .down = index ? 1 : 0,
                                  .silent = index ? 0x0a000001 : 0};
    return 0;
}

static int op_share(void *node, uint32_t index, struct by_engine_share *out)
{
    (void)node;
    if (index > 0)
        return BY_ENOENT;
    *out = (struct by_engine_share){
        .job = 21, .share = 22, .rx_bytes = 23, .tx_bytes = 24, .held = 25, .dropped = 26};
    return 0;
}

static void counters_have_all_their_fields(void **state)
{
    struct rig_bench *bench = *state;
    const by_CountersReply *reply = &bench->response.body.counters;

    bench->ops.port = op_port;
    bench->ops.share = op_share;
    start_agent(bench);
    client_request(&bench->request, by_Request_counters_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->ports_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(reply->ports[i].name, i ? "p1" : "p0");
        assert_int_equal(reply->ports[i].rx_packets, 11);
        assert_int_equal(reply->ports[i].rx_bytes, 12);
        assert_int_equal(reply->ports[i].tx_packets, 13);
        assert_int_equal(reply->ports[i].tx_bytes, 14);
        assert_int_equal(reply->ports[i].rx_dropped, 15);
        assert_int_equal(reply->ports[i].tx_dropped, 16);
        assert_int_equal(reply->ports[i].down, i);
        assert_int_equal(reply->ports[i].silent, i ? 0x0a000001 : 0);
    }
    assert_int_equal(reply->shares_count, 1);
    assert_int_equal(reply->shares[0].job, 21);
    assert_int_equal(reply->shares[0].share, 22);
    assert_int_equal(reply->shares[0].rx_bytes, 23);
    assert_int_equal(reply->shares[0].tx_bytes, 24);
    assert_int_equal(reply->shares[0].held, 25);
    assert_int_equal(reply->shares[0].dropped, 26);
}

static void a_notice_has_the_counters_and_answers_no_request(void **state)
{
    struct rig_bench *bench = *state;
    const by_CountersReply *reply = &bench->response.body.counters;
    size_t bytes;

    bench->ops.port = op_port;
    start_agent(bench);
    client_request(&bench->request, by_Request_counters_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(by_channel_notice(&bench->channel, bench->agent, bench->out, sizeof bench->out), 0);
    bench->request.body.counters.notify = true;
    assert_int_equal(ask(bench), 0);
    client_request(&bench->request, by_Request_hello_tag); /* what the client sends next changes nothing */
    assert_int_equal(ask(bench), 0);
    for (unsigned i = 0; i < 2; i++) {
        bytes = by_channel_notice(&bench->channel, bench->agent, bench->out, sizeof bench->out);
        assert_true(bytes > BY_CONTROL_LENGTH_BYTES);
        memset(&bench->response, 0xff, sizeof bench->response);
        client_decode(bench->out, bytes, &bench->response);
        assert_int_equal(bench->response.version, BY_CONTROL_VERSION);
        assert_int_equal(bench->response.id, 0);
        assert_int_equal(bench->response.error, 0);
        assert_int_equal(bench->response.which_body, by_Response_counters_tag);
        assert_int_equal(reply->ports_count, 2);
        assert_int_equal(reply->ports[0].down, 0);
        assert_int_equal(reply->ports[1].down, 1);
        assert_int_equal(reply->ports[1].rx_packets, 11);
    }
    by_channel_init(&bench->channel, NULL); /* another client */
    assert_int_equal(by_channel_notice(&bench->channel, bench->agent, bench->out, sizeof bench->out), 0);
}

static int op_way(void *node, uint32_t index, struct by_agent_way *out)
{
    (void)node;
    *out = (struct by_agent_way){.name = "p0",
                                 .driver = "net_test",
                                 .why = "slow",
                                 .offloads = "tx MULTI_SEGS",
                                 .steer = "RSS",
                                 .mtu = 31,
                                 .rx_queues = 32,
                                 .tx_queues = 33,
                                 .rx_descriptors = 34,
                                 .tx_descriptors = 35,
                                 .mbps = 36,
                                 .by_reference = index == 0,
                                 .late = index == 1,
                                 .promiscuous = index == 2,
                                 .down = index == 3};
    return 0;
}

static void ports_have_all_their_fields(void **state)
{
    struct rig_bench *bench = *state;
    const by_PortsReply *reply = &bench->response.body.ports;

    bench->ops.way = op_way;
    start_agent(bench);
    client_request(&bench->request, by_Request_ports_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->ports_count, PORTS);
    for (unsigned i = 0; i < PORTS; i++) {
        const by_Port *row = &reply->ports[i];

        assert_string_equal(row->name, "p0");
        assert_string_equal(row->driver, "net_test");
        assert_string_equal(row->why, "slow");
        assert_string_equal(row->offloads, "tx MULTI_SEGS");
        assert_string_equal(row->steer, "RSS");
        assert_int_equal(row->mtu, 31);
        assert_int_equal(row->rx_queues, 32);
        assert_int_equal(row->tx_queues, 33);
        assert_int_equal(row->rx_descriptors, 34);
        assert_int_equal(row->tx_descriptors, 35);
        assert_int_equal(row->mbps, 36);
        assert_int_equal(row->by_reference, i == 0);
        assert_int_equal(row->late, i == 1);
        assert_int_equal(row->promiscuous, i == 2);
        assert_int_equal(row->down, i == 3);
    }
}

static int op_interface(void *node, uint32_t index, struct by_agent_interface *out)
{
    static const struct by_lldp heard = {.source = {1, 2, 3, 4, 5, 6},
                                         .node = "host1",
                                         .port = "eth3",
                                         .description = "rack 7",
                                         .forwards = 1};

    (void)node;
    if (index > 2)
        return BY_ENOENT;
    if (index == 2)
        return 0; /* nothing is known */
    *out = (struct by_agent_interface){.name = "p0",
                                       .is_kernel = index == 0,
                                       .down = index == 1,
                                       .mac = {2, 3, 4, 5, 6, 7},
                                       .mtu = 41,
                                       .speed_mbps = 42,
                                       .queues = 43,
                                       .numa = 44,
                                       .driver = "veth",
                                       .bus = "0000:41:00.0",
                                       .features = "rx-gro",
                                       .addresses = "10.0.0.1/31",
                                       .neighbour = index == 1 ? &heard : NULL};
    return 0;
}

static void interfaces_have_all_their_fields(void **state)
{
    struct rig_bench *bench = *state;
    const by_InterfacesReply *reply = &bench->response.body.interfaces;
    const by_Interface *row = &reply->interfaces[1];

    bench->ops.interface = op_interface;
    start_agent(bench);
    client_request(&bench->request, by_Request_interfaces_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->interfaces_count, 3);
    assert_int_equal(reply->total, PORTS);
    for (unsigned i = 0; i < 2; i++) {
        assert_string_equal(reply->interfaces[i].name, "p0");
        assert_int_equal(reply->interfaces[i].kernel, i == 0);
        assert_int_equal(reply->interfaces[i].down, i == 1);
        assert_memory_equal(reply->interfaces[i].mac, ((const uint8_t[6]){2, 3, 4, 5, 6, 7}), 6);
        assert_int_equal(reply->interfaces[i].mtu, 41);
        assert_int_equal(reply->interfaces[i].speed, 42);
        assert_int_equal(reply->interfaces[i].queues, 43);
        assert_int_equal(reply->interfaces[i].numa, 44);
        assert_string_equal(reply->interfaces[i].driver, "veth");
        assert_string_equal(reply->interfaces[i].bus, "0000:41:00.0");
        assert_string_equal(reply->interfaces[i].features, "rx-gro");
        assert_string_equal(reply->interfaces[i].addresses, "10.0.0.1/31");
        assert_int_equal(reply->interfaces[i].has_neighbour, i == 1);
    }
    assert_memory_equal(row->neighbour.mac, ((const uint8_t[6]){1, 2, 3, 4, 5, 6}), 6);
    assert_string_equal(row->neighbour.node, "host1");
    assert_string_equal(row->neighbour.port, "eth3");
    assert_string_equal(row->neighbour.description, "rack 7");
    assert_true(row->neighbour.forwards);
    assert_string_equal(reply->interfaces[2].name, ""); /* of the row before nothing is left */
    assert_int_equal(reply->interfaces[2].mtu, 0);
}

static int op_waits(void *node, uint32_t index, struct by_bank_view *out)
{
    (void)node;
    if (index == 1)
        return BY_ENOENT;
    *out = (struct by_bank_view){.seq = 51 + index, .state = BY_BANK_AGG, .missing = 53};
    return 0;
}

static void waiting_entries_have_all_their_fields(void **state)
{
    struct rig_bench *bench = *state;
    const by_WaitingReply *reply = &bench->response.body.waiting;
    struct star three = small;

    three.trees = 3;
    push(bench, &three);
    bench->ops.waiting = op_waits;
    client_request(&bench->request, by_Request_waiting_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->entries_count, 2);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(reply->entries[i].job, 1);
        assert_int_equal(reply->entries[i].tree, 2 * i);
        assert_int_equal(reply->entries[i].seq, 51 + 2 * i);
        assert_int_equal(reply->entries[i].state, BY_BANK_AGG);
        assert_int_equal(reply->entries[i].missing, 53);
    }
}

/* Requires the error, and the text. */
static void refused(struct rig_bench *bench, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void refused(struct rig_bench *bench, int error, const char *format, ...)
{
    char want[sizeof bench->response.text];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(want, sizeof want, format, arguments);
    va_end(arguments);
    assert_int_equal(bench->response.error, error);
    assert_string_equal(bench->response.text, want);
}

static void refusals_of_writers_are_whole_sentences(void **state)
{
    struct rig_bench *bench = *state;
    struct star other = small;
    size_t bytes;
    uint8_t *image;
    uint64_t hash, active;

    other.cookie = 99;
    image = star_image(&other, &bytes);
    hash = by_image_hash(image, bytes);
    active = push(bench, &small);
    client_stage(&bench->request, image, bytes, 64, 10);
    ask(bench);
    refused(bench, BY_ESTATE,
            "stage: 10 bytes at offset 64 of %zu; expected offset 0 of 0: begin again at offset 0", bytes);
    client_stage(&bench->request, image, bytes, 0, 100);
    assert_int_equal(ask(bench), 0);
    client_stage(&bench->request, image, bytes, 90, 10);
    ask(bench);
    refused(bench, BY_ESTATE,
            "stage: 10 bytes at offset 90 of %zu; expected offset 100 of %zu: begin again at offset 0", bytes,
            bytes);
    validate(bench, hash);
    refused(bench, BY_ESTATE, "validate: 100 of %zu bytes are staged: stage the whole image first", bytes);
    assert_int_equal(stage_all(bench, image, bytes), 0);
    validate(bench, 5);
    refused(bench, BY_ECHECKSUM,
            "validate: the staged image hashes to 0x%016" PRIx64
            ", the request names 0x0000000000000005: stage it again",
            hash);
    commit(bench, 5);
    refused(bench, BY_ESTATE,
            "commit: 0x0000000000000005 is neither validated nor active: stage and validate it first");
    assert_int_equal(validate(bench, hash), 0);
    commit(bench, 5);
    refused(bench, BY_ESTATE,
            "commit: 0x0000000000000005 is neither validated nor active; the validated table is 0x%016" PRIx64
            ": stage and validate it first",
            hash);
    client_request(&bench->request, by_Request_stage_tag);
    bench->request.body.stage.total = (uint32_t)bytes;
    bench->request.body.stage.base = 7;
    bench->request.body.stage.pieces_count = 1;
    ask(bench);
    refused(bench, BY_ESTATE,
            "stage: the pieces refer to table 0x0000000000000007, but 0x%016" PRIx64
            " is active: stage the whole image",
            active);
    client_request(&bench->request, by_Request_restore_tag);
    bench->request.body.restore.hash = 6;
    ask(bench);
    refused(bench, BY_ENOENT, "restore: no saved table is available: push the images instead");
    client_request(&bench->request, by_Request_abort_tag);
    bench->request.election_id = 77;
    assert_int_equal(ask(bench), 0);
    bench->request.election_id = 76;
    ask(bench);
    refused(bench, BY_EPERM, "election id 76 is stale: a writer has used 77; use a higher one to write");
    free(image);
}

static void pieces_are_refused_with_what_is_wrong(void **state)
{
    struct rig_bench *bench = *state;
    by_Stage *stage = &bench->request.body.stage;
    static const struct {
        by_Piece piece;
        const char *text;
    } rows[] = {{{.copy = UINT32_MAX}, "exceeds the active image"},
                {{.literal = 1}, "does not match the data's length"},
                {{.copy = 200}, "exceeds the staged image"}};
    uint64_t active = push(bench, &small);

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        client_request(&bench->request, by_Request_stage_tag);
        stage->total = BY_IMAGE_HEADER_BYTES;
        stage->base = active;
        stage->pieces_count = 1;
        stage->pieces[0] = rows[i].piece;
        ask(bench);
        refused(bench, BY_ERANGE, "stage: a piece %s: begin again at offset 0", rows[i].text);
    }
}

/* A request with fewer pieces than the one before it. */
static void only_the_pieces_of_this_request_are_taken(void **state)
{
    struct rig_bench *bench = *state;
    by_Stage *stage = &bench->request.body.stage;
    uint64_t active = push(bench, &small);
    size_t bytes;

    free(star_image(&small, &bytes));
    client_request(&bench->request, by_Request_stage_tag);
    stage->total = (uint32_t)bytes;
    stage->base = active;
    stage->pieces_count = 3;
    for (unsigned i = 0; i < 3; i++)
        stage->pieces[i] = (by_Piece){.from = 8 * i, .copy = 8};
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.stage.received, 24);
    for (uint32_t at = 24; at < bytes; at += 16) {
        uint32_t count = bytes - at < 16 ? (uint32_t)(bytes - at) : 16;

        client_request(&bench->request, by_Request_stage_tag);
        stage->total = (uint32_t)bytes;
        stage->base = active;
        stage->offset = at;
        stage->pieces_count = 1;
        stage->pieces[0] = (by_Piece){.from = at, .copy = count};
        assert_int_equal(ask(bench), 0);
        assert_int_equal(bench->response.body.stage.received, at + count);
    }
    assert_int_equal(validate(bench, active), 0);
}

static void a_table_that_was_saved_is_named_when_another_is_asked_for(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);

    client_request(&bench->request, by_Request_restore_tag);
    bench->request.body.restore.hash = 6;
    ask(bench);
    refused(bench, BY_ENOENT,
            "restore: the saved table is 0x%016" PRIx64
            ", the request names 0x0000000000000006: push the images instead",
            by_image_hash(image, bytes));
    free(image);
}

static void other_refusals_are_whole_sentences(void **state)
{
    struct rig_bench *bench = *state;
    static const uint8_t garbage[] = {0, 0, 0, 3, 0xff, 0xff, 0xff};
    size_t used;
    int32_t made;

    client_request(&bench->request, by_Request_read_tag);
    ask(bench);
    refused(bench, BY_ENOENT, "read: no table is active: push one first");
    bench->ops.way = NULL;
    bench->ops.interface = NULL;
    client_request(&bench->request, by_Request_ports_tag);
    ask(bench);
    refused(bench, BY_EUNSUPPORTED, "ports: this switch does not describe its ports");
    client_request(&bench->request, by_Request_interfaces_tag);
    ask(bench);
    refused(bench, BY_EUNSUPPORTED,
            "interfaces: this switch does not describe its ports (toaster): write its links by hand");
    client_request(&bench->request, 0);
    ask(bench);
    refused(bench, BY_EUNSUPPORTED,
            "request: not supported by this switch (banyan test): use a client of its version");
    made = by_channel_step(&bench->channel, bench->agent, garbage, sizeof garbage, &used, bench->out,
                           sizeof bench->out);
    assert_true(made > 0 && used == sizeof garbage);
    client_decode(bench->out, (size_t)made, &bench->response);
    assert_int_equal(bench->response.error, BY_EFORMAT);
    assert_memory_equal(bench->response.text, "request: 3 bytes are not a request of control.proto (", 53);
    assert_non_null(strstr(bench->response.text, "): use a banyan client"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(counters_have_all_their_fields, make_bench, free_bench),
        cmocka_unit_test_setup_teardown(a_notice_has_the_counters_and_answers_no_request, make_bench,
                                        free_bench),
        cmocka_unit_test_setup_teardown(ports_have_all_their_fields, make_bench, free_bench),
        cmocka_unit_test_setup_teardown(interfaces_have_all_their_fields, make_bench, free_bench),
        cmocka_unit_test_setup_teardown(waiting_entries_have_all_their_fields, make_bench, free_bench),
        cmocka_unit_test_setup_teardown(refusals_of_writers_are_whole_sentences, make_bench, free_bench),
        cmocka_unit_test_setup_teardown(pieces_are_refused_with_what_is_wrong, make_bench, free_bench),
        cmocka_unit_test_setup_teardown(only_the_pieces_of_this_request_are_taken, make_bench, free_bench),
        cmocka_unit_test_setup_teardown(a_table_that_was_saved_is_named_when_another_is_asked_for,
                                        make_bench_restarted, free_bench),
        cmocka_unit_test_setup_teardown(other_refusals_are_whole_sentences, make_bench, free_bench),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
