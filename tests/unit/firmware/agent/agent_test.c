/*
 * Conversations with the agent over a real engine, without sockets or DPDK: a complete push and a
 * read back, every check of writers, and streams that are truncated, garbled or hostile.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/agent/agent.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/firmware/agent/rig.h"

static void hello_names_the_switch_and_its_limits(void **state)
{
    struct rig_bench *bench = *state;
    const by_HelloReply *hello = &bench->response.body.hello;

    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.which_body, by_Response_hello_tag);
    assert_string_equal(hello->name, "leaf0");
    assert_string_equal(hello->software, "banyan test");
    assert_int_equal(hello->boot_nonce, 99);
    assert_int_equal(hello->port_count, PORTS);
    assert_int_equal(hello->slot_count, 1024);
    assert_int_equal(hello->payload_max, 1408);
    assert_int_equal(hello->entry_max, 512);
    assert_int_equal(hello->share_max, 8);
    assert_int_equal(hello->table_hash, 0);
    assert_int_equal(hello->table_bytes, 0);
}

static void what_was_pushed_is_read_back(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes, offset = 0;
    uint8_t *image = star_image(&wide, &bytes);
    uint64_t hash = push(bench, &wide);

    assert_true(bytes > BY_CHUNK_BYTES_MAX);
    while (offset < bytes) {
        const by_ReadReply *read = &bench->response.body.read;

        client_request(&bench->request, by_Request_read_tag);
        bench->request.body.read.offset = (uint32_t)offset;
        bench->request.body.read.bytes = UINT32_MAX;
        assert_int_equal(ask(bench), 0);
        assert_int_equal(read->total, bytes);
        assert_int_equal(read->hash, hash);
        assert_int_equal(read->offset, offset);
        assert_true(read->data.size > 0 && read->data.size <= bytes - offset);
        assert_memory_equal(read->data.bytes, image + offset, read->data.size);
        offset += read->data.size;
    }
    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.hello.table_hash, hash);
    assert_int_equal(bench->response.body.hello.table_cookie, wide.cookie);
    assert_int_equal(bench->response.body.hello.table_bytes, bytes);
    free(image);
}

static void a_read_beyond_the_image_or_without_one_is_refused(void **state)
{
    struct rig_bench *bench = *state;

    client_request(&bench->request, by_Request_read_tag);
    assert_int_equal(ask(bench), BY_ENOENT);
    push(bench, &small);
    client_request(&bench->request, by_Request_read_tag);
    bench->request.body.read.offset = 1u << 30;
    assert_int_equal(ask(bench), BY_ERANGE);
    assert_non_null(strstr(bench->response.text, "1073741824"));
}

static void a_commit_twice_succeeds_and_acts_once(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t hash = push(bench, &small);

    assert_int_equal(bench->commits, 1);
    assert_int_equal(commit(bench, hash), 0);
    assert_int_equal(bench->response.body.commit.hash, hash);
    assert_int_equal(bench->commits, 1);
}

static void a_commit_of_what_was_not_validated_is_refused(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    uint64_t hash = by_image_hash(image, bytes);

    assert_int_equal(commit(bench, 0), BY_ESTATE);
    assert_int_equal(commit(bench, hash), BY_ESTATE);
    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(commit(bench, hash), BY_ESTATE);
    assert_int_equal(validate(bench, hash), 0);
    assert_int_equal(commit(bench, hash + 1), BY_ESTATE);
    assert_int_equal(bench->commits, 0);
    assert_int_equal(commit(bench, hash), 0);
    free(image);
}

static void chunks_out_of_order_are_refused_and_name_what_is_expected(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    const struct {
        uint32_t offset, count, total;
    } wrong[] = {{200, 10, 0}, {50, 100, 0}, {101, 1, 0}, {100, 1, 1}, {100, 1, (uint32_t)-1}};

    client_stage(&bench->request, image, bytes, 0, 100);
    assert_int_equal(ask(bench), 0);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        client_stage(&bench->request, image, bytes, wrong[i].offset, wrong[i].count);
        bench->request.body.stage.total += wrong[i].total;
        assert_int_equal(ask(bench), BY_ESTATE);
        assert_non_null(strstr(bench->response.text, "expected offset 100"));
    }
    client_stage(&bench->request, image, bytes, 100, 50);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.stage.received, 150);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), BY_ESTATE);
    free(image);
}

static void an_image_of_an_impossible_size_is_refused(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t byte = 0;
    const uint32_t sizes[] = {0, 1, BY_IMAGE_HEADER_BYTES - 1, IMAGE_BYTES_MAX + 1, UINT32_MAX};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        client_stage(&bench->request, &byte, sizes[i], 0, 1);
        assert_int_equal(ask(bench), BY_ELIMIT);
        assert_non_null(strstr(bench->response.text, "65536"));
    }
}

static void a_chunk_longer_than_the_image_is_refused(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t image[400] = {0};

    client_stage(&bench->request, image, 200, 0, 201);
    assert_int_equal(ask(bench), BY_ESTATE);
}

static void a_wrong_hash_leaves_the_active_table(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t active = push(bench, &small);
    size_t bytes;
    uint8_t *image = star_image(&wide, &bytes);

    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, active), BY_ECHECKSUM);
    assert_int_equal(commit(bench, by_image_hash(image, bytes)), BY_ESTATE);
    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.hello.table_hash, active);
    free(image);
}

/* Flips every bit of an image alone and sends the hash that the controller would then compute: the
 * CRC detects the flip. */
static void a_flipped_bit_is_refused_and_the_active_table_stays(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t active = push(bench, &small);
    struct star other = small;
    size_t bytes;
    uint8_t *image;

    other.cookie = 5;
    image = star_image(&other, &bytes);
    for (size_t bit = 0; bit < bytes * 8; bit += 7) {
        image[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(stage_all(bench, image, bytes), 0);
        assert_true(validate(bench, by_image_hash(image, bytes)) < 0);
        assert_true(strlen(bench->response.text) > 20);
        assert_true(commit(bench, by_image_hash(image, bytes)) < 0);
        image[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(active_hash(bench), active);
    }
    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), 0);
    free(image);
}

static void an_image_of_a_host_is_refused_by_a_switch(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t active = push(bench, &small);
    struct by_image_header header;
    struct star other = small;
    size_t bytes;
    uint8_t *image;

    other.cookie = 5;
    image = star_image(&other, &bytes);
    by_image_header(image, &header);
    header.kind = BY_NODE_HOST;
    by_image_put_header(image, &header);
    by_image_seal(image);
    assert_int_equal(by_image_check(image, bytes, NULL, NULL), 0);
    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), BY_EINVAL);
    assert_non_null(strstr(bench->response.text, "push a switch's image"));
    assert_int_equal(commit(bench, by_image_hash(image, bytes)), BY_ESTATE);
    assert_int_equal(active_hash(bench), active);
    free(image);
}

static void an_image_with_more_ports_than_the_switch_is_refused(void **state)
{
    struct rig_bench *bench = *state;
    struct star star = wide;
    size_t bytes;
    uint8_t *image;

    star.hosts = PORTS + 1;
    star.trees = 1;
    image = star_image(&star, &bytes);
    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), BY_ELIMIT);
    assert_non_null(
        strstr(bench->response.text, "ports: the table requires 5, this switch (board toaster) has 4"));
    assert_int_equal(by_engine_commit(bench->engine), BY_ESTATE);
    free(image);
}

static void an_image_with_more_slots_than_the_switch_is_refused(void **state)
{
    struct rig_bench *bench = *state;
    struct star star = small;
    size_t bytes;
    uint8_t *image;

    star.window = 2048;
    image = star_image(&star, &bytes);
    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), BY_ELIMIT);
    assert_non_null(strstr(bench->response.text, "2048"));
    free(image);
}

static void a_stale_election_id_may_read_but_not_write(void **state)
{
    struct rig_bench *bench = *state;
    const pb_size_t writes[] = {by_Request_stage_tag, by_Request_validate_tag, by_Request_commit_tag,
                                by_Request_abort_tag};
    const pb_size_t reads[] = {by_Request_hello_tag, by_Request_counters_tag, by_Request_waiting_tag};
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);

    client_stage(&bench->request, image, bytes, 0, (uint32_t)bytes);
    bench->request.election_id = 10;
    assert_int_equal(ask(bench), 0);
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        client_request(&bench->request, writes[i]);
        bench->request.election_id = 9;
        assert_int_equal(ask(bench), BY_EPERM);
        assert_true(bench->response.leader == 10);
        assert_non_null(strstr(bench->response.text, "election id 9"));
        assert_non_null(strstr(bench->response.text, "10"));
    }
    for (size_t i = 0; i < sizeof reads / sizeof reads[0]; i++) {
        client_request(&bench->request, reads[i]);
        assert_int_equal(ask(bench), 0);
    }
    client_request(&bench->request, by_Request_validate_tag);
    bench->request.election_id = 10;
    bench->request.body.validate.hash = by_image_hash(image, bytes);
    assert_int_equal(ask(bench), 0);
    free(image);
}

static void an_abort_forgets_what_was_staged(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    uint64_t hash = by_image_hash(image, bytes);

    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, hash), 0);
    client_request(&bench->request, by_Request_abort_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(commit(bench, hash), BY_ESTATE);
    assert_int_equal(validate(bench, hash), BY_ESTATE);
    assert_int_equal(by_engine_commit(bench->engine), BY_ESTATE);
    free(image);
}

static void counters_and_ports_are_listed(void **state)
{
    struct rig_bench *bench = *state;
    const by_CountersReply *reply = &bench->response.body.counters;

    client_request(&bench->request, by_Request_counters_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->engine_count, 1);
    assert_string_equal(reply->engine[0].name, "rx");
    assert_int_equal(reply->ports_count, 2);
    assert_string_equal(reply->ports[1].name, "p1");
    assert_int_equal(reply->ports[1].rx_packets, 2);
    assert_int_equal(reply->ports[1].rx_bytes, 200);
}

static void interfaces_are_listed_in_parts_with_their_neighbours(void **state)
{
    struct rig_bench *bench = *state;
    const by_InterfacesReply *reply = &bench->response.body.interfaces;
    uint32_t seen = 0;

    while (seen < INTERFACES) {
        client_request(&bench->request, by_Request_interfaces_tag);
        bench->request.body.interfaces.from = seen;
        assert_int_equal(ask(bench), 0);
        assert_int_equal(reply->total, PORTS);
        assert_in_range(reply->interfaces_count, 1, INTERFACES - seen);
        for (pb_size_t i = 0; i < reply->interfaces_count; i++, seen++) {
            assert_int_equal(reply->interfaces[i].mtu, 1500 + seen);
            assert_int_equal(reply->interfaces[i].mac[5], seen);
            assert_int_equal(reply->interfaces[i].has_neighbour, seen == 1);
            if (seen != 1)
                continue;
            assert_string_equal(reply->interfaces[i].neighbour.node, "host1");
            assert_string_equal(reply->interfaces[i].neighbour.port, "eth3");
            assert_int_equal(reply->interfaces[i].neighbour.mac[5], 9);
            assert_true(reply->interfaces[i].neighbour.forwards);
        }
    }
    client_request(&bench->request, by_Request_interfaces_tag);
    bench->request.body.interfaces.from = UINT32_MAX;
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->interfaces_count, 0);
    assert_int_equal(bench->announcements, 0);
}

static void announcements_are_limited_to_ten_a_second(void **state)
{
    struct rig_bench *bench = *state;

    bench->now_ns = 1;
    for (unsigned i = 0; i < 10; i++) {
        client_request(&bench->request, by_Request_interfaces_tag);
        bench->request.body.interfaces.announce = true;
        assert_int_equal(ask(bench), 0);
        bench->now_ns += 50000000;
    }
    assert_int_equal(bench->announcements, 5);
}

static void ports_are_described_from_an_index_on(void **state)
{
    struct rig_bench *bench = *state;
    const by_PortsReply *reply = &bench->response.body.ports;

    client_request(&bench->request, by_Request_ports_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->ports_count, reply->total);
    assert_true(reply->total > 1);
    assert_string_equal(reply->ports[0].driver, "net_test");
    assert_string_equal(reply->ports[0].offloads, "tx MULTI_SEGS");
    assert_true(reply->ports[0].by_reference && reply->ports[0].late && reply->ports[0].down);
    assert_false(reply->ports[0].promiscuous);
    assert_int_equal(reply->ports[1].mtu, 1501);
    assert_int_equal(reply->ports[0].tx_queues, 2);
    assert_int_equal(reply->ports[0].rx_descriptors, 3);
    client_request(&bench->request, by_Request_ports_tag);
    bench->request.body.ports.from = 1;
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->ports_count, reply->total - 1);
    assert_int_equal(reply->ports[0].mtu, 1501);
    client_request(&bench->request, by_Request_ports_tag);
    bench->request.body.ports.from = UINT32_MAX;
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->ports_count, 0);
}

static void waiting_names_the_missing_child(void **state)
{
    struct rig_bench *bench = *state;
    const by_WaitingReply *reply = &bench->response.body.waiting;
    uint8_t packet[256];
    struct by_tx tx[BY_CHILDREN_MAX + 2];
    uint32_t tx_count;
    struct by_rx rx = {.data = packet, .src_ip = star_host_ip(1), .dst_ip = star_port_ip(1), .port = 1};

    push(bench, &small);
    client_request(&bench->request, by_Request_waiting_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->entries_count, 0);
    rx.bytes = (uint16_t)star_contribution(&small, 1, 0, 0, 4, packet);
    assert_int_equal(by_engine_step(bench->engine, 1, &rx, 1, tx, BY_CHILDREN_MAX + 2, &tx_count), 1);
    client_request(&bench->request, by_Request_waiting_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(reply->entries_count, 1);
    assert_int_equal(reply->entries[0].job, STAR_JOB);
    assert_int_equal(reply->entries[0].tree, 0);
    assert_int_equal(reply->entries[0].seq, 0);
    assert_int_equal(reply->entries[0].state, BY_BANK_AGG);
    assert_int_equal(reply->entries[0].missing, 1);
}

static void another_version_and_an_unknown_body_are_refused(void **state)
{
    struct rig_bench *bench = *state;

    client_request(&bench->request, by_Request_hello_tag);
    bench->request.version = 2;
    assert_int_equal(ask(bench), BY_EVERSION);
    client_request(&bench->request, 0);
    assert_int_equal(ask(bench), BY_EUNSUPPORTED);
}

static void bytes_one_at_a_time_make_the_same_conversation(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t frames[3 * 64], expected[BY_CHANNEL_OUT_MIN];
    size_t bytes = 0, used;
    unsigned answers = 0;
    int32_t made, expected_bytes;

    client_request(&bench->request, by_Request_hello_tag);
    expected_bytes = by_channel_step(&bench->channel, bench->agent, frames,
                                     client_frame(&bench->request, frames), &used, expected, sizeof expected);
    for (unsigned i = 0; i < 3; i++)
        bytes += client_frame(&bench->request, frames + bytes);
    for (size_t i = 0; i < bytes; i++) {
        made = by_channel_step(&bench->channel, bench->agent, frames + i, 1, &used, bench->out,
                               sizeof bench->out);
        assert_int_equal(used, 1);
        if (made == 0)
            continue;
        assert_int_equal(made, expected_bytes);
        assert_memory_equal(bench->out, expected, (size_t)made);
        answers++;
    }
    assert_int_equal(answers, 3);
}

static void several_requests_in_one_piece_are_answered_in_order(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t frames[3 * 64];
    size_t bytes = 0, done = 0, used;
    uint64_t first = 0;

    for (unsigned i = 0; i < 3; i++) {
        client_request(&bench->request, by_Request_hello_tag);
        if (i == 0)
            first = bench->request.id;
        bytes += client_frame(&bench->request, frames + bytes);
    }
    for (unsigned i = 0; i < 3; i++) {
        int32_t made = by_channel_step(&bench->channel, bench->agent, frames + done, bytes - done, &used,
                                       bench->out, sizeof bench->out);

        assert_true(made > 0);
        client_decode(bench->out, (size_t)made, &bench->response);
        assert_int_equal(bench->response.id, first + i);
        done += used;
    }
    assert_int_equal(done, bytes);
}

static void an_impossible_length_is_answered_once_and_closes_the_stream(void **state)
{
    struct rig_bench *bench = *state;
    const uint32_t lengths[] = {0, BY_REQUEST_BYTES_MAX + 1, 0x7fffffff, UINT32_MAX};

    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        uint8_t head[8] = {0};
        size_t used;
        int32_t made;

        by_channel_init(&bench->channel, NULL);
        by_put32(head, lengths[i]);
        made = by_channel_step(&bench->channel, bench->agent, head, sizeof head, &used, bench->out,
                               sizeof bench->out);
        assert_true(made > 0);
        assert_int_equal(used, 4);
        client_decode(bench->out, (size_t)made, &bench->response);
        assert_int_equal(bench->response.error, BY_ELIMIT);
        assert_non_null(strstr(bench->response.text, "19200"));
        assert_int_equal(by_channel_step(&bench->channel, bench->agent, head, sizeof head, &used, bench->out,
                                         sizeof bench->out),
                         BY_EFORMAT);
        assert_int_equal(used, 0);
    }
}

/* Each prefix of a valid message, framed as a whole message, gets an answer and never crashes the
 * agent. */
static void truncated_messages_are_answered_with_an_error_or_done(void **state)
{
    struct rig_bench *bench = *state;
    uint8_t frame[CLIENT_FRAME_MAX];
    size_t bytes, image_bytes;
    uint8_t *image = star_image(&small, &image_bytes);
    unsigned refused = 0;

    client_stage(&bench->request, image, image_bytes, 0, 100);
    bytes = client_frame(&bench->request, frame) - BY_CONTROL_LENGTH_BYTES;
    for (size_t length = 0; length < bytes; length++) {
        size_t made = by_agent_answer(bench->agent, frame + BY_CONTROL_LENGTH_BYTES, length,
                                      bench->out + BY_CONTROL_LENGTH_BYTES, BY_RESPONSE_BYTES_MAX);

        by_put32(bench->out, (uint32_t)made);
        client_decode(bench->out, BY_CONTROL_LENGTH_BYTES + made, &bench->response);
        refused += bench->response.error != 0;
    }
    assert_int_equal(refused, bytes);
    free(image);
}

static void garbage_is_answered_and_changes_nothing(void **state)
{
    struct rig_bench *bench = *state;
    uint64_t active = push(bench, &small);
    struct by_prng prng = {.state = 1};
    uint8_t message[512];

    for (unsigned round = 0; round < 20000; round++) {
        size_t bytes = by_prng_below(&prng, sizeof message), made;

        for (size_t i = 0; i < bytes; i++)
            message[i] = (uint8_t)by_prng_next(&prng);
        made = by_agent_answer(bench->agent, message, bytes, bench->out + BY_CONTROL_LENGTH_BYTES,
                               BY_RESPONSE_BYTES_MAX);
        by_put32(bench->out, (uint32_t)made);
        client_decode(bench->out, BY_CONTROL_LENGTH_BYTES + made, &bench->response);
    }
    assert_int_equal(active_hash(bench), active);
    assert_int_equal(bench->commits, 1);
}

static void a_table_in_use_keeps_its_shape(void **state)
{
    struct rig_bench *bench = *state;
    struct star other = small;
    size_t bytes;
    uint8_t *image;
    uint64_t active = push(bench, &small);

    other.window = 8;
    image = star_image(&other, &bytes);
    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), BY_EBUSY);
    assert_int_equal(active_hash(bench), active);
    free(image);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_bench, free_bench)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(hello_names_the_switch_and_its_limits),
        TEST(what_was_pushed_is_read_back),
        TEST(a_read_beyond_the_image_or_without_one_is_refused),
        TEST(a_commit_twice_succeeds_and_acts_once),
        TEST(a_commit_of_what_was_not_validated_is_refused),
        TEST(chunks_out_of_order_are_refused_and_name_what_is_expected),
        TEST(an_image_of_an_impossible_size_is_refused),
        TEST(a_chunk_longer_than_the_image_is_refused),
        TEST(a_wrong_hash_leaves_the_active_table),
        TEST(a_flipped_bit_is_refused_and_the_active_table_stays),
        TEST(an_image_of_a_host_is_refused_by_a_switch),
        TEST(an_image_with_more_ports_than_the_switch_is_refused),
        TEST(an_image_with_more_slots_than_the_switch_is_refused),
        TEST(a_stale_election_id_may_read_but_not_write),
        TEST(an_abort_forgets_what_was_staged),
        TEST(counters_and_ports_are_listed),
        TEST(interfaces_are_listed_in_parts_with_their_neighbours),
        TEST(announcements_are_limited_to_ten_a_second),
        TEST(ports_are_described_from_an_index_on),
        TEST(waiting_names_the_missing_child),
        TEST(another_version_and_an_unknown_body_are_refused),
        TEST(bytes_one_at_a_time_make_the_same_conversation),
        TEST(several_requests_in_one_piece_are_answered_in_order),
        TEST(an_impossible_length_is_answered_once_and_closes_the_stream),
        TEST(truncated_messages_are_answered_with_an_error_or_done),
        TEST(garbage_is_answered_and_changes_nothing),
        TEST(a_table_in_use_keeps_its_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
