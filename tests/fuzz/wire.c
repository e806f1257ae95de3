/* Frames and packets of arbitrary bytes: parsing stays inside them, and encoding reproduces what
 * was decoded. */
#include "offload/wire/wire.h"
#include "offload/wire/fold.h"
#include "tests/fuzz/input.h"

static void check_payloads(const struct by_header *header, const uint8_t *payload, size_t bytes)
{
    struct by_wait wait;
    struct by_err err;
    struct by_gap gap;

    if (header->type == BY_TYPE_GAP && by_gap_decode(payload, bytes, &gap) == 0) {
        uint8_t again[BY_GAP_BYTES];
        struct by_gap twice;

        by_gap_encode(&gap, again);
        FUZZ_CHECK(by_gap_decode(again, sizeof(again), &twice) == 0 && twice.seen == gap.seen &&
                   twice.missing == gap.missing);
    }
    if (header->type == BY_TYPE_WAIT && by_wait_decode(payload, bytes, &wait) == 0) {
        uint8_t again[BY_WAIT_BYTES];
        struct by_wait twice;

        by_wait_encode(&wait, again);
        FUZZ_CHECK(by_wait_decode(again, sizeof(again), &twice) == 0 && twice.node == wait.node &&
                   twice.state == wait.state && twice.missing == wait.missing);
    }
    if (header->type == BY_TYPE_ERR && by_err_decode(payload, bytes, &err) == 0) {
        uint8_t again[BY_ERR_BYTES];
        struct by_err twice;

        by_err_encode(&err, again);
        FUZZ_CHECK(by_err_decode(again, sizeof(again), &twice) == 0 && twice.node == err.node &&
                   twice.seq == err.seq && twice.other.optag == err.other.optag);
    }
}

static void check_packet(const uint8_t *data, size_t size)
{
    struct by_header header;
    const uint8_t *payload;
    int32_t bytes = by_header_decode(data, size, &header, &payload);

    if (bytes < 0)
        return;
    FUZZ_CHECK(payload >= data + BY_WIRE_HEADER_BYTES && payload + bytes <= data + size);
    check_payloads(&header, payload, (size_t)bytes);
    uint8_t again[BY_WIRE_HEADER_BYTES];
    struct by_header twice;

    by_header_encode(&header, again);
    FUZZ_CHECK(by_header_decode(again, sizeof(again), &twice, &payload) == 0);
}

/* Frames over IPv6: they are folded inside their bytes, and what was folded unfolds again. */
static void check_ipv6(const uint8_t *data, size_t size)
{
    static const uint8_t records[2][BY_IPV6_RECORD_BYTES] = {{0, 0, 0, 1, 0xfd, [19] = 1},
                                                             {0, 0, 0, 2, 0xfd, [19] = 2}};
    static const struct by_ipv6_book book = {records[0], 2};
    uint8_t *copy = malloc(size + 1), headers[BY_DISCOVERY_BYTES];
    struct by_discovery_message message;
    struct by_fold_asker asker = {{0}, {0}};
    struct by_frame frame, folded;
    uint32_t bytes = (uint32_t)size, at;
    int32_t head;

    if (copy == NULL)
        return;
    if (size > 0)
        memcpy(copy, data, size);
    if (by_ipv6_parse(&book, copy, size, &frame) == 0)
        FUZZ_CHECK(frame.data >= copy && frame.data + frame.bytes <= copy + size);
    if (by_discovery_parse(copy, size, &message) == 0)
        FUZZ_CHECK(!(message.src_mac[0] & 1));
    at = by_fold(&book, &asker, copy, &bytes);
    FUZZ_CHECK(at + bytes <= size);
    if (at > 0) {
        FUZZ_CHECK(by_frame_parse(copy + at, bytes, &folded) == 0 && folded.bytes == frame.bytes &&
                   folded.data == frame.data && folded.src_ip == frame.src_ip &&
                   folded.dst_ip == frame.dst_ip);
        head = by_unfold(&book, &asker, copy + at, headers);
        FUZZ_CHECK(frame.src_ip == 0 || frame.dst_ip == 0 || head == (int32_t)BY_IPV6_HEADER_BYTES);
    } else if (bytes >= BY_FRAME_HEADER_BYTES) {
        head = by_unfold(&book, &asker, copy, headers);
        FUZZ_CHECK(head <= (int32_t)BY_DISCOVERY_BYTES);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint8_t mac[BY_MAC_BYTES] = {2, 0x62, 198, 18, 0, 1};
    uint8_t reply[BY_FRAME_HEADER_BYTES];
    struct by_frame frame;
    struct by_arp arp;
    struct by_header header;
    struct input input = {data, size};
    uint8_t packet[BY_WIRE_HEADER_BYTES + BY_FRAME_HEADER_BYTES + 64];
    size_t rest;

    fuzz_count(1);
    check_packet(data, size);
    if (by_frame_parse(data, size, &frame) == 0) {
        FUZZ_CHECK(frame.data >= data && frame.data + frame.bytes <= data + size);
        check_packet(frame.data, frame.bytes);
    }
    by_frame_vlan(data, size);
    check_ipv6(data, size);
    by_arp_reply(data, size, 0xc6120001, mac, reply);
    if (by_arp_parse(data, size, &arp) == 0)
        FUZZ_CHECK(!(arp.src_mac[0] & 1));
    /* The same bytes after a valid header, since a fuzzer does not find a CRC. */
    fuzz_header(&input, &header, 0);
    rest = input.size < 64 ? input.size : 64;
    by_header_encode(&header, packet);
    if (rest > 0)
        memcpy(packet + BY_WIRE_HEADER_BYTES, input.data, rest);
    check_packet(packet, BY_WIRE_HEADER_BYTES + rest);
    return 0;
}
