/*
 * The thread beside the owner of a carrier, and the batches between both and the socket: nothing
 * that is due or has come waits for the next packet.
 */
#include <arpa/inet.h>
#include <poll.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/clock.h"
#include "host-driver/fallback/batch.h"
#include "host-driver/fallback/keeper.h"

#define MILLISECOND UINT64_C(1000000)
#define PATIENCE_NS (2000 * MILLISECOND) /* of a busy machine; the thread's longest sleep is 10 s */
#define PARCELS     300u

/* What is kept: one thing that is due, and whether that is news. With the keeper's lock. */
struct keeper_kept {
    struct by_keeper keeper;
    uint64_t due_ns, done_ns;
    int pipe[2];
};

static bool step(void *argument, uint64_t now_ns, uint64_t *deadline_ns)
{
    struct keeper_kept *kept = argument;
    bool news = now_ns >= kept->due_ns;

    if (news) {
        kept->done_ns = now_ns;
        kept->due_ns = UINT64_MAX;
    }
    *deadline_ns = kept->due_ns;
    return news;
}

static void nap(uint64_t ns)
{
    struct timespec time = {.tv_nsec = (long)ns};

    nanosleep(&time, NULL);
}

/* Without the owner's lease. */
static uint64_t read_locked(struct keeper_kept *kept, const uint64_t *value)
{
    uint64_t read;

    pthread_mutex_lock(&kept->keeper.lock);
    read = *value;
    pthread_mutex_unlock(&kept->keeper.lock);
    return read;
}

static bool wait_done(struct keeper_kept *kept)
{
    uint64_t end_ns = by_clock_ns() + PATIENCE_NS;

    while (read_locked(kept, &kept->done_ns) == 0 && by_clock_ns() < end_ns)
        nap(MILLISECOND);
    return read_locked(kept, &kept->done_ns) != 0;
}

static int open_kept(void **state)
{
    struct keeper_kept *kept = calloc(1, sizeof(*kept));

    *state = kept;
    if (kept == NULL || pipe(kept->pipe) != 0 || by_keeper_open(&kept->keeper) != 0)
        return -1;
    kept->due_ns = UINT64_MAX;
    return by_keeper_start(&kept->keeper, step, kept, kept->pipe[0]);
}

static int close_kept(void **state)
{
    struct keeper_kept *kept = *state;

    by_keeper_close(&kept->keeper);
    close(kept->pipe[0]);
    close(kept->pipe[1]);
    free(kept);
    return 0;
}

/* The owner does something, which is due in `ns`. */
static void owe(struct keeper_kept *kept, uint64_t ns)
{
    by_keeper_enter(&kept->keeper, by_clock_ns() + BY_KEEPER_LEASE_NS);
    kept->due_ns = by_clock_ns() + ns;
    by_keeper_leave(&kept->keeper);
}

static void what_an_owner_begins_while_the_thread_sleeps_is_done_when_it_is_due(void **state)
{
    struct keeper_kept *kept = *state;

    nap(50 * MILLISECOND); /* now it sleeps until something comes, and nothing will */
    owe(kept, 30 * MILLISECOND);
    assert_true(wait_done(kept));
}

/* An owner that waits for what comes takes a long lease; then it goes away with the usual one. */
static void a_lease_that_is_cut_short_ends_sooner(void **state)
{
    struct keeper_kept *kept = *state;
    uint64_t begin_ns;

    by_keeper_enter(&kept->keeper, by_clock_ns() + 2 * PATIENCE_NS);
    by_keeper_leave(&kept->keeper);
    nap(50 * MILLISECOND); /* now the thread naps */
    begin_ns = by_clock_ns();
    owe(kept, 0);
    assert_true(wait_done(kept));
    assert_true(by_clock_ns() - begin_ns < PATIENCE_NS);
}

static bool is_told(const struct keeper_kept *kept)
{
    struct pollfd tell = {.fd = kept->keeper.tell, .events = POLLIN};

    return poll(&tell, 1, 0) == 1;
}

static void news_stay_until_the_owner_looks(void **state)
{
    struct keeper_kept *kept = *state;

    owe(kept, 0);
    assert_true(wait_done(kept));
    assert_true(is_told(kept)); /* wait_done() has had the lock since */
    by_keeper_enter(&kept->keeper, by_clock_ns() + BY_KEEPER_LEASE_NS);
    by_keeper_leave(&kept->keeper);
    assert_true(is_told(kept));
    by_keeper_enter(&kept->keeper, by_clock_ns() + BY_KEEPER_LEASE_NS);
    by_keeper_hear(&kept->keeper);
    by_keeper_leave(&kept->keeper);
    assert_false(is_told(kept));
}

static bool is_readable(int fd)
{
    struct pollfd in = {.fd = fd, .events = POLLIN};

    return poll(&in, 1, 0) == 1;
}

static void what_has_come_is_known_by_the_socket_or_the_batch(void **state)
{
    static uint8_t payload[100];
    const struct by_parcel parcel = {.kind = BY_PARCEL_DATA, .bytes = sizeof(payload), .payload = payload};
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(to);
    struct by_batch from, batch;
    uint32_t come = 0;

    (void)state;
    assert_true(by_batch_open(&from) >= 0);
    assert_true(by_batch_open(&batch) >= 0);
    assert_false(by_batch_holds(&batch));
    assert_int_equal(bind(batch.fd, (struct sockaddr *)&to, bytes), 0);
    assert_int_equal(getsockname(batch.fd, (struct sockaddr *)&to, &bytes), 0);
    for (uint32_t i = 0; i < PARCELS; i++)
        by_batch_add(&from, &to, &parcel);
    by_batch_flush(&from);
    while (is_readable(batch.fd) || by_batch_holds(&batch)) {
        struct by_rx rx[BY_RX_BATCH];
        uint32_t got = by_batch_receive(&batch, rx);

        assert_in_range(got, 1, BY_RX_BATCH);
        come += got;
    }
    assert_int_equal(come, PARCELS);
    by_batch_close(&batch);
    by_batch_close(&from);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_an_owner_begins_while_the_thread_sleeps_is_done_when_it_is_due,
                                        open_kept, close_kept),
        cmocka_unit_test_setup_teardown(a_lease_that_is_cut_short_ends_sooner, open_kept, close_kept),
        cmocka_unit_test_setup_teardown(news_stay_until_the_owner_looks, open_kept, close_kept),
        cmocka_unit_test(what_has_come_is_known_by_the_socket_or_the_batch),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
