/* Copies at an interface's egress, on pairs of virtual interfaces in a network namespace of this
 * test. Skipped without root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "offload/base/bytes.h"
#include "offload/linux/copies.h"
#include "offload/linux/feature.h"
#include "offload/wire/frame.h"

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

#define PAIRS      3u
#define STRIDE     100u
#define FRAMES     3u
#define BYTES      (STRIDE * (FRAMES - 1) + STRIDE / 2) /* the last segment is shorter */
#define PORT       5000u
#define IP         0x0a000000u
#define CHECKSUM   40u /* offset of the UDP checksum in a frame */
#define FRAME_MOST 2048u
#define RUNNING_MS 5000u

static int near[PAIRS], far[PAIRS]; /* packet sockets; the near ones take GSO batches */

static unsigned index_of(unsigned pair)
{
    char name[IFNAMSIZ];

    snprintf(name, sizeof(name), "near%u", pair);
    return if_nametoindex(name);
}

/*
 * Waits until the kernel has activated the queue of an interface that is up. The kernel does so
 * after `ip link set up` has returned, and drops packets until then (NET_XMIT_CN). It sets the flag
 * IFF_RUNNING under the lock of the interfaces, which the repeated request to set the interface up
 * takes afterwards.
 */
static void await_running(const char *end, unsigned pair)
{
    struct ifreq request = {0};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s%u", end, pair);
    for (unsigned waited = 0; waited < RUNNING_MS; waited++) {
        assert_int_equal(ioctl(near[pair], SIOCGIFFLAGS, &request), 0);
        if (request.ifr_flags & IFF_RUNNING) {
            assert_int_equal(ioctl(near[pair], SIOCSIFFLAGS, &request), 0);
            return;
        }
        usleep(1000);
    }
    fail_msg("%s is not running", request.ifr_name);
}

static int open_socket(const char *end, unsigned pair, bool trains)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = htons(trains ? 0 : ETH_P_IP)};
    const int one = 1;
    char name[IFNAMSIZ];
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK, 0);

    snprintf(name, sizeof(name), "%s%u", end, pair);
    address.sll_ifindex = (int)if_nametoindex(name);
    assert_true(fd >= 0);
    if (trains)
        assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &one, sizeof(one)), 0);
    else
        assert_int_equal(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)), 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

/* Writes the headers of a datagram to the host behind a pair. */
static void make_header(unsigned pair, uint16_t bytes, uint8_t header[BY_FRAME_HEADER_BYTES])
{
    const struct by_frame frame = {.src_mac = {2, 0, 0, 0, 1, (uint8_t)pair},
                                   .dst_mac = {2, 0, 0, 0, 2, (uint8_t)pair},
                                   .src_ip = IP + 100 + pair,
                                   .dst_ip = IP + pair,
                                   .src_port = PORT,
                                   .dst_port = (uint16_t)(PORT + pair),
                                   .bytes = bytes};
    uint32_t sum = 17u + 8u + bytes + (IP >> 16) * 2 + 100 + 2 * pair;

    by_frame_build(&frame, header);
    if (bytes > STRIDE) /* in a GSO batch the interface completes the checksum (RFC 768) */
        by_put16(header + CHECKSUM, (uint16_t)((sum & 0xffff) + (sum >> 16)));
}

/* Sends `bytes` of payload on pair `carrier`, with copies for the other pairs if `copies` is not
 * NULL. */
static int send_bytes(struct by_copies *copies, unsigned carrier, uint16_t bytes)
{
    struct virtio_net_hdr head = {0};
    uint8_t header[BY_FRAME_HEADER_BYTES], payload[BYTES];
    struct iovec piece[] = {{&head, sizeof(head)}, {header, sizeof(header)}, {payload, bytes}};
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = 3};
    struct by_copy *list = copies ? by_copies_list(copies) : NULL;
    unsigned count = 0;

    for (unsigned i = 0; i < bytes; i++)
        payload[i] = (uint8_t)(i * 7);
    memset(header, 0xee, sizeof(header));
    if (bytes > STRIDE)
        head = (struct virtio_net_hdr){.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
                                       .gso_type = VIRTIO_NET_HDR_GSO_UDP_L4,
                                       .hdr_len = BY_FRAME_HEADER_BYTES,
                                       .gso_size = STRIDE,
                                       .csum_start = 34,
                                       .csum_offset = 6};
    make_header(carrier, bytes, header);
    if (!copies)
        return sendmsg(near[carrier], &message, 0) < 0 ? -errno : 0;
    for (unsigned pair = 0; pair < PAIRS; pair++) {
        if (pair == carrier)
            continue;
        list[count].interface = index_of(pair);
        make_header(pair, bytes, list[count++].header);
    }
    list[count].interface = 0;
    make_header(carrier, bytes, list[count++].header);
    return by_copies_send(copies, count, near[carrier], &message);
}

/* The other end of a pair must have received what was sent, in `frames` frames, with the pair's own
 * headers. */
static void check_frames(unsigned pair, unsigned frames, uint16_t bytes)
{
    uint8_t data[FRAME_MOST];
    unsigned at = 0;

    for (unsigned i = 0; i < frames; i++) {
        ssize_t got = recv(far[pair], data, sizeof(data), 0);
        struct by_frame frame;
        uint8_t mac[6] = {2, 0, 0, 0, 2, (uint8_t)pair};

        assert_true(got > 0);
        assert_int_equal(by_frame_parse(data, (size_t)got, &frame), 0);
        assert_memory_equal(frame.dst_mac, mac, 6);
        assert_int_equal(frame.src_ip, IP + 100 + pair);
        assert_int_equal(frame.dst_ip, IP + pair);
        assert_int_equal(frame.dst_port, PORT + pair);
        assert_int_equal(frame.bytes, bytes - at < STRIDE ? bytes - at : STRIDE);
        for (unsigned k = 0; k < frame.bytes; k++)
            assert_int_equal(frame.data[k], (uint8_t)((at + k) * 7));
        at += frame.bytes;
    }
    assert_int_equal(at, bytes);
    assert_int_equal(recv(far[pair], data, sizeof(data), 0), -1);
}

static struct by_copies *open_copies(void)
{
    struct by_copies *copies = NULL;
    const char *step = NULL;
    int error = by_copies_open(&copies, &step);

    if (error != 0 && step != NULL && strcmp(step, "program") == 0)
        skip(); /* an old kernel */
    assert_int_equal(error, 0);
    for (unsigned pair = 0; pair < PAIRS; pair++)
        assert_int_equal(by_copies_add(copies, index_of(pair)), 0);
    return copies;
}

static void one_send_gives_each_interface_its_train_in_frames(void **state)
{
    struct by_copies *copies = open_copies();

    (void)state;
    for (unsigned carrier = 0; carrier < PAIRS; carrier++) {
        assert_int_equal(send_bytes(copies, carrier, BYTES), 0);
        for (unsigned pair = 0; pair < PAIRS; pair++) {
            assert_int_equal(by_copies_list(copies)[pair].result, 0);
            check_frames(pair, FRAMES, BYTES);
        }
    }
    by_copies_close(copies);
}

static void a_single_frame_is_copied_too(void **state)
{
    struct by_copies *copies = open_copies();

    (void)state;
    assert_int_equal(send_bytes(copies, 1, STRIDE / 2), 0);
    for (unsigned pair = 0; pair < PAIRS; pair++)
        check_frames(pair, 1, STRIDE / 2);
    by_copies_close(copies);
}

static void what_others_send_goes_its_way_alone(void **state)
{
    struct by_copies *copies = open_copies();

    (void)state;
    assert_int_equal(send_bytes(copies, 0, BYTES), 0); /* leaves a list behind */
    for (unsigned pair = 0; pair < PAIRS; pair++)
        check_frames(pair, FRAMES, BYTES);
    assert_int_equal(send_bytes(NULL, 1, BYTES), 0);
    check_frames(0, 0, 0);
    check_frames(1, FRAMES, BYTES);
    check_frames(2, 0, 0);
    by_copies_close(copies);
}

static void an_interface_that_is_down_is_told_of_and_the_others_get_theirs(void **state)
{
    struct by_copies *copies = open_copies();
    const struct by_copy *list = by_copies_list(copies);

    (void)state;
    assert_int_equal(system("ip link set near1 down"), 0);
    assert_int_equal(send_bytes(copies, 0, BYTES), 0);
    assert_int_not_equal(list[0].result, 0); /* pair 1 */
    assert_int_equal(list[1].result, 0);
    assert_int_equal(list[2].result, 0);
    check_frames(0, FRAMES, BYTES);
    check_frames(2, FRAMES, BYTES);
    assert_int_equal(send_bytes(copies, 1, BYTES), -ENETDOWN); /* pair 1 carries no copies */
    check_frames(0, 0, 0);
    check_frames(2, 0, 0);
    assert_int_equal(system("ip link set near1 up"), 0);
    await_running("near", 1);
    await_running("far", 1);
    assert_int_equal(send_bytes(copies, 1, BYTES), 0);
    for (unsigned pair = 0; pair < PAIRS; pair++)
        check_frames(pair, FRAMES, BYTES);
    by_copies_close(copies);
}

static void what_is_too_short_for_its_headers_is_told_of_as_lost_by_all(void **state)
{
    struct by_copies *copies = open_copies();
    const struct by_copy *list = by_copies_list(copies);
    struct virtio_net_hdr head = {0};
    uint8_t frame[BY_FRAME_HEADER_BYTES - 2];
    struct iovec piece[] = {{&head, sizeof(head)}, {frame, sizeof(frame)}};
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = 2};

    (void)state;
    assert_int_equal(send_bytes(copies, 0, BYTES), 0); /* leaves results behind */
    for (unsigned pair = 0; pair < PAIRS; pair++)
        check_frames(pair, FRAMES, BYTES);
    memset(frame, 0xee, sizeof(frame));
    assert_int_equal(by_copies_send(copies, PAIRS, near[0], &message), 0);
    for (unsigned i = 0; i < PAIRS; i++)
        assert_int_not_equal(list[i].result, 0);
    for (unsigned pair = 0; pair < PAIRS; pair++)
        check_frames(pair, 0, 0);
    by_copies_close(copies);
}

static void a_send_whose_program_is_gone_is_told_of(void **state)
{
    struct by_copies *copies = NULL;
    const char *step;

    (void)state;
    by_copies_close(open_copies()); /* removes its programs */
    assert_int_equal(by_copies_open(&copies, &step), 0);
    assert_int_equal(send_bytes(copies, 0, BYTES), -ENOEXEC);
    check_frames(0, FRAMES, BYTES);
    check_frames(1, 0, 0);
    assert_true(by_copies_add(copies, 1000000) < 0);
    by_copies_close(copies);
    by_copies_close(NULL);
}

/* Prepares a network namespace with pairs whose near ends cut GSO batches. */
static int prepare(void **state)
{
    char command[256];

    (void)state;
    if (system("sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1") != 0)
        return -1;
    for (unsigned pair = 0; pair < PAIRS; pair++) {
        snprintf(
            command, sizeof(command),
            "ip link add near%u type veth peer name far%u && ip link set near%u up && ip link set far%u up",
            pair, pair, pair, pair);
        if (system(command) != 0)
            return -1;
        near[pair] = open_socket("near", pair, true);
        far[pair] = open_socket("far", pair, false);
        await_running("near", pair);
        await_running("far", pair);
        snprintf(command, sizeof(command), "near%u", pair);
        if (by_feature_set(near[pair], command, BY_FEATURE_UDP_SEGMENTS, false) != 0)
            return -1;
    }
    return 0;
}

static int put_away(void **state)
{
    (void)state;
    for (unsigned pair = 0; pair < PAIRS; pair++) {
        close(near[pair]);
        close(far[pair]);
    }
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_send_gives_each_interface_its_train_in_frames),
        cmocka_unit_test(a_single_frame_is_copied_too),
        cmocka_unit_test(what_others_send_goes_its_way_alone),
        cmocka_unit_test(an_interface_that_is_down_is_told_of_and_the_others_get_theirs),
        cmocka_unit_test(what_is_too_short_for_its_headers_is_told_of_as_lost_by_all),
        cmocka_unit_test(a_send_whose_program_is_gone_is_told_of),
    };

    if (unshare(CLONE_NEWNET) != 0) {
        printf("1..0 # SKIP a network of its own takes root: %s\n", strerror(errno));
        return 77;
    }
    return cmocka_run_group_tests(tests, prepare, put_away);
}
