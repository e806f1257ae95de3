/*
 * Carriers and their batches where the network is not as it was, or refuses: what ranks have told
 * each other holds, trains of segments end where the way takes none, and only there. In a network
 * of its own.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"
#include "host-driver/fallback/batch.h"
#include "host-driver/fallback/carrier.h"

#define PATIENCE_NS UINT64_C(3000000000)
#define BYTES       20000u
#define PARCELS     4u

/* The loopback interface, up and with this MTU; false with errno. */
static bool set_mtu(int mtu)
{
    struct ifreq request = {.ifr_name = "lo"};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool right = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &request) == 0;

    request.ifr_flags |= IFF_UP;
    right = right && ioctl(fd, SIOCSIFFLAGS, &request) == 0;
    request.ifr_mtu = mtu;
    right = right && ioctl(fd, SIOCSIFMTU, &request) == 0;
    close(fd);
    return right;
}

static void what_a_card_says_holds_though_the_mtu_changes_before_ranks_meet(void **state)
{
    static uint8_t sent[BYTES], come[BYTES];
    uint8_t card[2][BY_CARRIER_CARD_BYTES];
    const struct by_fault fault = {0};
    uint64_t end_ns = by_clock_ns() + PATIENCE_NS;
    struct by_carrier *carrier[2];
    size_t written = 0, got = 0;

    (void)state;
    for (size_t i = 0; i < BYTES; i++)
        sent[i] = (uint8_t)(i * 7 + i / 256);
    assert_true(set_mtu(1500));
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_int_equal(by_carrier_open(rank, 2, &fault, &carrier[rank]), 0);
        by_carrier_card(carrier[rank], 1 - rank, INADDR_LOOPBACK, card[rank]);
    }
    for (uint32_t rank = 0; rank < 2; rank++) {
        assert_true(set_mtu(rank == 0 ? 700 : 1500));
        assert_int_equal(by_carrier_meet(carrier[rank], 1 - rank, INADDR_LOOPBACK, card[1 - rank]), 0);
    }
    while (got < BYTES && by_clock_ns() < end_ns) {
        struct iovec rest = {sent + written, BYTES - written}, room = {come + got, BYTES - got};

        if (written < BYTES)
            written += by_carrier_write(carrier[1], 0, &rest, 1, true);
        for (uint32_t rank = 0; rank < 2; rank++)
            by_carrier_step(carrier[rank], by_clock_ns());
        got += by_carrier_read(carrier[0], 1, &room, 1);
    }
    assert_int_equal(got, BYTES);
    assert_memory_equal(come, sent, BYTES);
    for (uint32_t rank = 0; rank < 2; rank++)
        by_carrier_close(carrier[rank]);
}

/* Sends some parcels of `bytes`. */
static void send_parcels(struct by_batch *batch, const struct sockaddr_in *to, uint16_t bytes)
{
    static uint8_t payload[BY_PARCEL_BYTES_MAX];
    const struct by_parcel parcel = {.kind = BY_PARCEL_DATA, .bytes = bytes, .payload = payload};

    for (uint32_t i = 0; i < PARCELS; i++)
        by_batch_add(batch, to, &parcel);
    by_batch_flush(batch);
}

static uint32_t count_parcels(struct by_batch *batch)
{
    struct by_rx rx[BY_RX_BATCH];
    uint32_t count = 0, got;

    while ((got = by_batch_receive(batch, rx)) > 0)
        count += got;
    return count;
}

static void an_error_of_the_moment_does_not_end_trains(void **state)
{
    struct sockaddr_in all = {
        .sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_BROADCAST)};
    struct by_batch batch;

    (void)state;
    assert_true(by_batch_open(&batch) >= 0);
    if (!batch.segments)
        skip();
    send_parcels(&batch, &all, 500); /* which it may not, or there is no way to */
    assert_true(batch.segments);
    by_batch_close(&batch);
}

static void segments_that_do_not_fit_the_way_end_trains_and_are_sent_one_by_one(void **state)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(to);
    struct by_batch from, batch;

    (void)state;
    assert_true(set_mtu(1500));
    assert_true(by_batch_open(&from) >= 0);
    assert_true(by_batch_open(&batch) >= 0);
    assert_int_equal(bind(batch.fd, (struct sockaddr *)&to, bytes), 0);
    assert_int_equal(getsockname(batch.fd, (struct sockaddr *)&to, &bytes), 0);
    send_parcels(&from, &to, 500);
    assert_int_equal(count_parcels(&batch), PARCELS);
    send_parcels(&from, &to, 3000);
    assert_false(from.segments);
    assert_int_equal(count_parcels(&batch), PARCELS);
    by_batch_close(&batch);
    by_batch_close(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_card_says_holds_though_the_mtu_changes_before_ranks_meet),
        cmocka_unit_test(an_error_of_the_moment_does_not_end_trains),
        cmocka_unit_test(segments_that_do_not_fit_the_way_end_trains_and_are_sent_one_by_one),
    };

    if (unshare(CLONE_NEWNET) != 0 || !set_mtu(1500)) {
        printf("1..0 # SKIP a network of its own takes root: %s\n", strerror(errno));
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
