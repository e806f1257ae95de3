/*
 * ECN marks of the switch's own queues, on memory ports whose driver reports how full they are: a
 * long receive queue marks contributions, and so results; a full transmit queue marks what it
 * refuses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "dataplane/mark.h"
#include "offload/wire/wire.h"
#include "tests/unit/dataplane/memory.h"

#define HOSTS 4u
#define ECT   2u /* a sender that supports ECN (RFC 3168) */

static const struct star star = {.hosts = HOSTS, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500};

static const struct by_port_ops *below;
static bool crowded;
static unsigned refusals; /* of the next transmit calls */

static bool is_crowded(const struct by_port *port)
{
    (void)port;
    return crowded;
}

static uint16_t send_some(struct by_port *port, struct rte_mbuf **frames, uint16_t count)
{
    if (refusals == 0)
        return below->send(port, frames, count);
    refusals--;
    return 0;
}

/* A shell whose ports give one frame in a receive call, so each call is a full burst. */
static struct by_shell *marking_shell(void)
{
    static struct by_port_ops ops;
    struct by_shell *shell = memory_shell(HOSTS);

    below = shell->ports[0].ops;
    ops = *below;
    ops.is_crowded = is_crowded;
    ops.send = send_some;
    for (unsigned host = 0; host < HOSTS; host++)
        shell->ports[host].ops = &ops;
    memory_load(shell, &star);
    shell->batch.burst = 1;
    crowded = false;
    refusals = 0;
    return shell;
}

static unsigned ecn_of(const struct rte_mbuf *frame)
{
    return rte_pktmbuf_mtod(frame, const uint8_t *)[BY_FRAME_AT_CLASS] & 3;
}

static uint64_t marked(struct by_shell *shell)
{
    uint64_t all = 0;

    for (unsigned host = 0; host < HOSTS; host++)
        all += shell->ports[host].counters.marked;
    return all;
}

/* Completes chunk `seq`; returns how many of its results have the flag CE, and in `ecn` how many CE
 * in their IP headers. All frames must be valid. */
static unsigned complete(struct by_shell *shell, uint32_t seq, unsigned *ecn)
{
    unsigned flagged = 0;
    uint8_t room[2048];

    *ecn = 0;
    for (unsigned host = 0; host < HOSTS; host++) {
        uint8_t packet[256], frame[256];
        size_t bytes = star_contribution(&star, host, 0, seq, MEMORY_COUNT, packet);

        bytes = star_frame(host, packet, bytes, frame);
        by_frame_mark(frame, ECT);
        memory_inject(shell, host, frame, bytes);
    }
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++) {
        struct rte_mbuf *frame = memory_sent(shell, host);
        struct by_header header;
        const uint8_t *payload, *whole;

        assert_non_null(frame);
        memory_check_result(&star, frame, host, seq, room);
        whole = rte_pktmbuf_read(frame, 0, frame->pkt_len, room);
        assert_true(by_header_decode(whole + BY_FRAME_HEADER_BYTES, frame->pkt_len - BY_FRAME_HEADER_BYTES,
                                     &header, &payload) >= 0);
        flagged += (header.flags & BY_FLAG_CE) != 0;
        *ecn += ecn_of(frame) == BY_MARK_CE;
        rte_pktmbuf_free(frame);
    }
    return flagged;
}

static void a_long_receive_queue_marks_what_it_gives(void **state)
{
    struct by_shell *shell = marking_shell();
    unsigned ecn;

    (void)state;
    assert_int_equal(complete(shell, 0, &ecn), 0);
    crowded = true;
    assert_int_equal(complete(shell, 1, &ecn), HOSTS);
    assert_int_equal(marked(shell), HOSTS);
    shell->batch.burst = BY_BATCH_BURST; /* a short burst empties the queue */
    assert_int_equal(complete(shell, 2, &ecn), 0);
    assert_int_equal(marked(shell), HOSTS);
    by_shell_close(shell);
}

static void a_full_transmit_queue_marks_what_it_refuses(void **state)
{
    struct by_shell *shell = marking_shell();
    unsigned ecn;

    (void)state;
    assert_int_equal(complete(shell, 0, &ecn), 0);
    assert_int_equal(ecn, 0);
    refusals = 3; /* of one port */
    assert_int_equal(complete(shell, 1, &ecn), 0);
    assert_int_equal(ecn, 1);
    assert_int_equal(marked(shell), 1);
    by_shell_close(shell);
}

/* A frame without ECN, one that is marked already, one that others use, and one of ARP. */
static void other_frames_are_not_marked(void **state)
{
    struct by_shell *shell = marking_shell();
    uint8_t data[BY_FRAME_HEADER_BYTES] = {0};
    struct by_frame frame = {.bytes = 0};
    struct rte_mbuf *buffer;

    (void)state;
    for (unsigned ecn = 0; ecn < 4; ecn++) {
        frame.ecn = (uint8_t)ecn;
        by_frame_build(&frame, data);
        buffer = memory_inject(shell, 0, data, sizeof data);
        assert_int_equal(by_mark_frame(buffer), ecn == 1 || ecn == 2);
        assert_int_equal(ecn_of(buffer), ecn == 0 ? 0 : BY_MARK_CE);
    }
    frame.ecn = ECT;
    by_frame_build(&frame, data);
    buffer = memory_inject(shell, 0, data, sizeof data);
    rte_mbuf_refcnt_update(buffer, 1);
    assert_false(by_mark_frame(buffer));
    rte_mbuf_refcnt_update(buffer, -1);
    data[BY_FRAME_AT_TYPE + 1] = 6;
    assert_false(by_mark_frame(memory_inject(shell, 0, data, sizeof data)));
    by_shell_close(shell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_long_receive_queue_marks_what_it_gives),
        cmocka_unit_test(a_full_transmit_queue_marks_what_it_refuses),
        cmocka_unit_test(other_frames_are_not_marked),
    };

    return cmocka_run_group_tests(tests, memory_start, memory_stop);
}
