/*
 * The hosts of switch-probe, on the links of probe_link.c. `star` sends every host's
 * contribution, again until its result is there (so that it also works under injected loss), and
 * checks each result in full. `malformed` sends one packet of each bad kind and checks that exactly
 * its counter moved and that nothing came back.
 */
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/reduce/reduce.h"
#include "tests/lab/probe.h"

#define TRIES      100
#define WAIT_MS    20
#define SILENCE_MS 30

/* Of the chunk that malformed packets would belong to. */
static uint32_t fresh_seq;
static struct star star = {.trees = 1, .window = 16, .payload_max = BY_PAYLOAD_DEFAULT};
#define EXPECT(condition)                                                                                    \
    do {                                                                                                     \
        if (!(condition)) {                                                                                  \
            fprintf(stderr, "switch-probe: host %d, chunk %" PRIu32 ": not so: %s\n", host, seq,             \
                    #condition);                                                                             \
            return -1;                                                                                       \
        }                                                                                                    \
    } while (0)

/* 1 when the frame is the full and right result of `seq`, 0 when it is something else that may
 * come, -1 when it is wrong. */
static int check_result(int host, uint32_t seq, uint16_t count, const uint8_t *data, size_t bytes)
{
    struct by_frame frame;
    struct by_header header;
    const uint8_t *payload;
    uint8_t mac[6];
    uint32_t witness = 0;

    EXPECT(by_frame_parse(data, bytes, &frame) == 0);
    EXPECT(by_header_decode(frame.data, frame.bytes, &header, &payload) >= 0);
    if (header.type != BY_TYPE_RESULT || header.seq != seq)
        return 0;
    star_mac(star_host_ip((unsigned)host), mac);
    EXPECT(memcmp(frame.dst_mac, mac, 6) == 0);
    star_mac(star_port_ip((unsigned)host), mac);
    EXPECT(memcmp(frame.src_mac, mac, 6) == 0);
    EXPECT(frame.dst_ip == star_host_ip((unsigned)host));
    EXPECT(frame.src_ip == star_port_ip((unsigned)host));
    EXPECT(frame.dst_port == BY_UDP_PORT);
    EXPECT(header.job == STAR_JOB && header.tree == 0 && header.gen == STAR_GEN);
    EXPECT(header.child == host || (header.child == BY_WIRE_CHILD_ALL && getenv("PROBE_COPIES") != NULL));
    EXPECT(header.count == count);
    EXPECT(header.nleaf == star.hosts);
    for (uint16_t i = 0; i < star.hosts; i++)
        witness += by_leaf_tag(STAR_JOB, i);
    EXPECT(header.witness == witness);
    EXPECT(frame.bytes == BY_WIRE_HEADER_BYTES + 4u * count);
    EXPECT(header.psum == by_psum(payload, 4u * count));
    for (unsigned k = 0; k < count; k++) {
        int32_t value;

        memcpy(&value, payload + 4 * k, 4);
        EXPECT(value == star_sum(&star, seq, k));
    }
    return 1;
}

/* One chunk: every host sends until it has its result. */
static int run_chunk(uint32_t seq, uint16_t count)
{
    static uint8_t packet[PROBE_FRAME_MAX], frame[PROBE_FRAME_MAX];
    uint32_t missing = star.hosts == 32 ? UINT32_MAX : (1u << star.hosts) - 1;

    for (int attempt = 0; attempt < TRIES && missing; attempt++) {
        for (int host = 0; host < star.hosts; host++) {
            size_t bytes = star_contribution(&star, (unsigned)host, 0, seq, count, packet);

            if (missing & 1u << host)
                probe_link_send(host, frame, star_frame((unsigned)host, packet, bytes, frame));
        }
        for (int host = 0; host < star.hosts; host++) {
            size_t bytes;

            while (missing & 1u << host && (bytes = probe_link_receive(host, frame, WAIT_MS)) > 0) {
                int verdict = check_result(host, seq, count, frame, bytes);

                if (verdict < 0)
                    return 1;
                if (verdict > 0)
                    missing &= ~(1u << host);
            }
        }
    }
    if (missing)
        fprintf(stderr, "switch-probe: chunk %" PRIu32 ": no result at hosts 0x%" PRIx32 "\n", seq, missing);
    return missing != 0;
}

int probe_star(int hosts, uint32_t chunks, uint16_t count, uint32_t seq, char **interfaces)
{
    if (hosts < 1 || hosts > (int)STAR_HOSTS_MAX || count > BY_PAYLOAD_MAX / 4)
        return 2;
    star.hosts = (uint16_t)hosts;
    probe_links_open(hosts, interfaces);
    for (uint32_t i = 0; i < chunks; i++)
        if (run_chunk(seq + i, count) != 0)
            return 1;
    printf("switch-probe: %" PRIu32 " chunks of %u elements from %d hosts: all sums right\n", chunks, count,
           hosts);
    return 0;
}

/* ---- malformed packets ---- */

/* Byte offsets in a frame with a banyan packet of four elements. */
enum { AT_ETHERTYPE = 12, AT_IP = 14, AT_UDP = 34, AT_BANYAN = 42, AT_PAYLOAD = 82 };
enum { FRAME_BYTES = AT_PAYLOAD + 16 };

struct probe_packet_kind {
    const char *name;
    const char *counter;
    size_t (*spoil)(uint8_t *frame, size_t bytes); /* returns the frame's new size */
};

static void fix_ip(uint8_t *frame)
{
    uint32_t sum = 0;

    by_put16(frame + AT_IP + 10, 0);
    for (unsigned i = 0; i < 20; i += 2)
        sum += by_get16(frame + AT_IP + i);
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    by_put16(frame + AT_IP + 10, (uint16_t)~sum);
}

/* Changes one byte of the banyan header, with a right tag. */
static size_t poke(uint8_t *frame, size_t bytes, unsigned at, uint8_t value)
{
    frame[AT_BANYAN + at] = value;
    star_retag(frame + AT_BANYAN);
    return bytes;
}

#define SPOIL(name, body)                                                                                    \
    static size_t name(uint8_t *frame, size_t bytes)                                                         \
    {                                                                                                        \
        body                                                                                                 \
    }

SPOIL(runt, (void)frame; (void)bytes; return 20;)
SPOIL(not_ip, by_put16(frame + AT_ETHERTYPE, 0x88b5); return bytes;)
SPOIL(ip_version, frame[AT_IP] = 0x65; fix_ip(frame); return bytes;)
SPOIL(ip_checksum, frame[AT_IP + 10] ^= 1; return bytes;)
SPOIL(ip_length, by_put16(frame + AT_IP + 2, (uint16_t)bytes); fix_ip(frame); return bytes;)
SPOIL(not_udp, frame[AT_IP + 9] = 6; fix_ip(frame); return bytes;)
SPOIL(udp_length, by_put16(frame + AT_UDP + 4, 4000); return bytes;)
SPOIL(udp_short, by_put16(frame + AT_UDP + 4, 7); return bytes;)
SPOIL(other_mac, frame[5] ^= 0x40; return bytes;)
SPOIL(other_udp_port, by_put16(frame + AT_UDP + 2, 4791); return bytes;)
SPOIL(empty, by_put16(frame + AT_IP + 2, 28); by_put16(frame + AT_UDP + 4, 8); fix_ip(frame); (void)bytes;
      return AT_BANYAN;)
SPOIL(short_header, by_put16(frame + AT_IP + 2, 28 + 39); by_put16(frame + AT_UDP + 4, 8 + 39); fix_ip(frame);
      (void)bytes; return AT_BANYAN + 39;)
SPOIL(bad_version, return poke(frame, bytes, 0, 0x25);)
SPOIL(bad_header_length, return poke(frame, bytes, 0, 0x16);)
SPOIL(bad_tag, frame[AT_BANYAN + 36] ^= 1; return bytes;)
SPOIL(bad_type, return poke(frame, bytes, 1, 77);)
SPOIL(bad_flags_data, return poke(frame, bytes, 2, BY_FLAG_NODATA);)
SPOIL(bad_job, return poke(frame, bytes, 5, 9);)
SPOIL(bad_job_huge, return poke(frame, bytes, 4, 0xff);)
SPOIL(bad_tree, return poke(frame, bytes, 7, 9);)
SPOIL(bad_tree_huge, return poke(frame, bytes, 6, 0xff);)
SPOIL(bad_gen, return poke(frame, bytes, 9, 6);)
SPOIL(bad_child, return poke(frame, bytes, 3, 40);)
SPOIL(child_all, return poke(frame, bytes, 3, 255);)
SPOIL(childs_neighbour, return poke(frame, bytes, 3, 1);)
SPOIL(bad_source, by_put32(frame + AT_IP + 12, 0x0a000001); fix_ip(frame); return bytes;)
SPOIL(bad_count, return poke(frame, bytes, 21, 5);)
SPOIL(count_zero, return poke(frame, bytes, 21, 0);)
SPOIL(count_huge, return poke(frame, bytes, 20, 0xff);)
SPOIL(bad_psum, frame[AT_PAYLOAD] ^= 1; return bytes;)
SPOIL(stale, by_put32(frame + AT_BANYAN + 12, fresh_seq - 1000u); star_retag(frame + AT_BANYAN);
      return bytes;)
SPOIL(result_at_root, return poke(frame, bytes, 1, BY_TYPE_RESULT);)

static const struct probe_packet_kind kinds[] = {
    {"runt", "shell_rx_other", runt},
    {"not IP", "shell_rx_other", not_ip},
    {"IP version 6", "shell_rx_other", ip_version},
    {"IP checksum", "shell_rx_other", ip_checksum},
    {"IP length beyond the frame", "shell_rx_other", ip_length},
    {"not UDP", "shell_rx_other", not_udp},
    {"UDP length beyond the packet", "shell_rx_other", udp_length},
    {"UDP length below its header", "shell_rx_other", udp_short},
    {"another MAC address", "shell_rx_not_ours", other_mac},
    {"another UDP port", "shell_rx_not_ours", other_udp_port},
    {"no payload at all", "drop_format", empty},
    {"header cut by a byte", "drop_format", short_header},
    {"version 2", "drop_version", bad_version},
    {"header length", "drop_format", bad_header_length},
    {"tag", "drop_tag", bad_tag},
    {"type", "drop_format", bad_type},
    {"NODATA with a payload", "drop_format", bad_flags_data},
    {"job", "drop_entry", bad_job},
    {"job beyond all limits", "drop_entry", bad_job_huge},
    {"tree", "drop_entry", bad_tree},
    {"tree beyond all limits", "drop_entry", bad_tree_huge},
    {"generation", "drop_gen", bad_gen},
    {"child", "drop_child", bad_child},
    {"child: all", "drop_child", child_all},
    {"a sister's child index", "drop_ingress", childs_neighbour},
    {"source address", "drop_ingress", bad_source},
    {"count above the payload", "drop_count", bad_count},
    {"count zero with a payload", "drop_count", count_zero},
    {"count beyond all limits", "drop_count", count_huge},
    {"psum", "drop_psum", bad_psum},
    {"a result for the root", "drop_ingress", result_at_root},
};
/* Well formed, but of a run that is over: its sender is told. */
static const struct probe_packet_kind late = {"seq of long ago", "drop_stale", stale};

/* Sends one bad packet; 0 when its counter moved by one and no other drop counter did. */
static int try_kind(const char *address, const struct probe_packet_kind *kind)
{
    static by_Response before, after;
    uint8_t packet[PROBE_FRAME_MAX], frame[PROBE_FRAME_MAX];
    size_t bytes = star_frame(0, packet, star_contribution(&star, 0, 0, fresh_seq, 4, packet), frame);
    const by_CountersReply *list = &after.body.counters;
    int wrong = 0;

    probe_read_counters(address, &before);
    probe_link_send(0, frame, kind->spoil(frame, bytes));
    for (int attempt = 0; attempt < TRIES; attempt++) {
        probe_read_counters(address, &after);
        if (probe_counter(&after, kind->counter) != probe_counter(&before, kind->counter))
            break;
        poll(NULL, 0, 1);
    }
    for (unsigned i = 0; i < list->engine_count; i++) {
        const char *name = list->engine[i].name;
        uint64_t moved = list->engine[i].value - probe_counter(&before, name);
        int counts = strncmp(name, "drop_", 5) == 0 || strncmp(name, "shell_rx_", 9) == 0 ||
                     strcmp(name, "contrib") == 0;

        if (counts && moved != (strcmp(name, kind->counter) == 0)) {
            fprintf(stderr, "switch-probe: %s: %s moved by %" PRIu64 "\n", kind->name, name, moved);
            wrong = 1;
        }
    }
    return wrong;
}

/* Whether a well-formed ERR for the stale chunk comes to `host`. */
static int is_told(int host, uint8_t *frame)
{
    size_t bytes = probe_link_receive(host, frame, SILENCE_MS);
    struct by_header header;
    const uint8_t *payload;
    struct by_err err;
    int32_t size = bytes > AT_BANYAN
                       ? by_header_decode(frame + AT_BANYAN, (uint16_t)(bytes - AT_BANYAN), &header, &payload)
                       : -1;

    return size >= 0 && header.type == BY_TYPE_ERR && header.seq == fresh_seq - 1000u &&
           by_err_decode(payload, (uint32_t)size, &err) == 0 && err.reason == BY_ERR_WINDOW;
}

int probe_malformed(const char *address, int hosts, uint32_t seq, char **interfaces)
{
    uint8_t frame[PROBE_FRAME_MAX];
    int wrong = 0;

    if (hosts < 2 || hosts > (int)STAR_HOSTS_MAX)
        return 2;
    fresh_seq = seq;
    star.hosts = (uint16_t)hosts;
    probe_links_open(hosts, interfaces);
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        wrong += try_kind(address, &kinds[i]);
    for (int host = 0; host < hosts; host++) {
        if (probe_link_receive(host, frame, SILENCE_MS) > 0) {
            fprintf(stderr, "switch-probe: a malformed packet was answered at host %d\n", host);
            wrong++;
        }
    }
    wrong += try_kind(address, &late);
    if (!is_told(0, frame)) {
        fprintf(stderr, "switch-probe: %s was not answered by ERR\n", late.name);
        wrong++;
    }
    if (wrong == 0)
        printf("switch-probe: %zu kinds of malformed packets: each counted, none answered; %s: ERR\n",
               sizeof kinds / sizeof kinds[0], late.name);
    return wrong != 0;
}
