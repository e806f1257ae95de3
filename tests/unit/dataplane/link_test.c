/*
 * A port whose hosts share memory, from the host's end: which hosts are accepted, how sums return
 * without a copy, and what happens to packets with invalid offsets and after a host leaves. The
 * test plays the host and runs the shell round by round. DPDK without hugepages, devices or root.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/seal.h"
#include "tests/unit/dataplane/link_rig.h"

static void a_sum_is_read_where_the_switch_holds_it_and_given_back(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct dataplane_link_end end[HOSTS];

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++)
        link_join(shell, &end[host], host);
    for (unsigned host = 0; host < HOSTS; host++)
        link_give(&end[host], host, 0, 128 * host);
    assert_int_equal(by_shell_round(shell), HOSTS);
    assert_int_equal(link_references(shell, 0), HOSTS);
    for (unsigned host = 0; host < HOSTS; host++) {
        link_take_result(&end[host], 0);
        assert_null(by_shm_take(&end[host].receiver));
        by_shm_done(&end[host].receiver);
    }
    by_shell_round(shell); /* reads how far the hosts have consumed */
    assert_int_equal(link_references(shell, 0), 0);
    for (unsigned host = 0; host < HOSTS; host++)
        link_leave(&end[host]);
    by_shell_close(shell);
}

static void a_value_without_a_psum_is_summed_and_one_with_a_wrong_psum_is_not(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct dataplane_link_end end[HOSTS];

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++)
        link_join(shell, &end[host], host);
    for (unsigned host = 0; host < HOSTS; host++)
        link_give_summed(&end[host], host, 0, 128 * host, false);
    by_shell_round(shell);
    for (unsigned host = 0; host < HOSTS; host++) {
        link_take_result(&end[host], 0);
        by_shm_done(&end[host].receiver);
    }
    link_give_summed(&end[0], 0, 1, 0, false);
    link_give_summed(&end[1], 1, 1, 128, false);
    end[1].cable->up.packet[1].direct = 0;
    by_shell_round(shell);
    assert_int_equal(by_engine_counters(by_shell_engine(shell))->drop_psum, 1);
    assert_null(by_shm_take(&end[0].receiver));
    for (unsigned host = 0; host < HOSTS; host++)
        link_leave(&end[host]);
    by_shell_close(shell);
}

static void a_packet_without_a_psum_gets_one_where_it_goes_on_over_a_wire(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_frame frame;
    struct by_header header;
    const uint8_t *payload;
    struct rte_mbuf *mbuf;
    struct by_rx rx;
    struct dataplane_link_end end;

    (void)state;
    link_join(shell, &end, 0);
    link_give_summed(&end, 0, 0, 128, false);
    assert_int_equal(by_link_receive(shell->ports[0].link, 0, &rx, 1), 1);
    mbuf = by_link_frame(&rx, &shell->ports[0].carrier, shell->frame_pool);
    assert_non_null(mbuf);
    assert_int_equal(by_frame_parse(rte_pktmbuf_mtod(mbuf, uint8_t *), mbuf->pkt_len, &frame), 0);
    assert_int_equal(by_header_decode(frame.data, frame.bytes, &header, &payload), 4 * COUNT);
    assert_int_equal(header.psum, by_psum(end.memory + 128, 4 * COUNT));
    assert_memory_equal(payload, end.memory + 128, 4 * COUNT);
    rte_pktmbuf_free(mbuf);
    link_leave(&end);
    by_shell_close(shell);
}

static void a_payload_beyond_the_shared_memory_is_dropped(void **state)
{
    static const uint64_t beyond[] = {MEMORY, MEMORY - 4 * COUNT + 4, UINT64_MAX, UINT64_MAX - 4 * COUNT + 1};
    struct by_shell *shell = link_open_shell();
    struct by_dp_port_counters counters;
    struct dataplane_link_end end;

    (void)state;
    link_join(shell, &end, 0);
    for (unsigned i = 0; i < sizeof beyond / sizeof beyond[0]; i++)
        link_give(&end, 0, i, beyond[i]);
    assert_int_equal(by_shell_round(shell), 0);
    by_port_read(&shell->ports[0], &counters);
    assert_int_equal(counters.rx_dropped, sizeof beyond / sizeof beyond[0]);
    link_give(&end, 0, 0, MEMORY - 4 * COUNT);
    assert_int_equal(by_shell_round(shell), 1);
    link_leave(&end);
    by_shell_close(shell);
}

static void a_payload_longer_than_any_is_dropped(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_rx rx;
    struct dataplane_link_end end;

    (void)state;
    link_join(shell, &end, 0);
    link_give(&end, 0, 0, 0);
    end.cable->up.packet[0].payload_bytes = UINT16_MAX; /* with its header this is 39 bytes modulo 2^16 */
    assert_int_equal(by_link_receive(shell->ports[0].link, 0, &rx, 1), 0);
    link_leave(&end);
    by_shell_close(shell);
}

static void a_payload_longer_than_its_place_in_the_cable_is_dropped(void **state)
{
    static const struct {
        uint8_t place;
        uint16_t bytes;
    } rows[] = {{BY_SHM_COPY, PAYLOAD}, {BY_SHM_SMALL, BY_ERR_BYTES}};
    struct by_shell *shell = link_open_shell();
    struct by_rx rx;
    struct dataplane_link_end end;

    (void)state;
    link_join(shell, &end, 0);
    for (unsigned i = 0; i < 4; i++) {
        link_give(&end, 0, i, 0);
        end.cable->up.packet[i].place = rows[i / 2].place;
        end.cable->up.packet[i].payload_bytes = (uint16_t)(rows[i / 2].bytes + i % 2);
        assert_int_equal(by_link_receive(shell->ports[0].link, 0, &rx, 1), i % 2 == 0);
        by_link_done(shell->ports[0].link);
    }
    link_leave(&end);
    by_shell_close(shell);
}

static void a_queue_that_says_it_holds_more_than_its_slots_holds_nothing(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_dp_port_counters counters;
    struct dataplane_link_end end[HOSTS];

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++)
        link_join(shell, &end[host], host);
    end[0].cable->up.tail = UINT32_MAX; /* four billion packets, none of them valid */
    for (unsigned host = 1; host < HOSTS; host++)
        link_give(&end[host], host, 0, 0);
    assert_int_equal(by_shell_round(shell), HOSTS - 1);
    by_port_read(&shell->ports[0], &counters);
    assert_int_equal(counters.rx_dropped, 0);
    end[0].cable->up.tail = 0;
    link_give(&end[0], 0, 0, 0);
    assert_int_equal(by_shell_round(shell), 1);
    for (unsigned host = 0; host < HOSTS; host++)
        link_leave(&end[host]);
    by_shell_close(shell);
}

/* Otherwise a host that keeps filling its queue would block the switch forever. */
static void malformed_packets_take_turns_as_all_others_do(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_rx rx[BY_LINK_BURST];
    struct by_dp_port_counters counters;
    struct dataplane_link_end end;

    (void)state;
    link_join(shell, &end, 0);
    for (uint32_t i = 0; i < BY_SHM_SLOTS; i++)
        link_give(&end, 0, i, MEMORY);
    for (uint32_t calls = 1; calls <= BY_SHM_SLOTS / BY_LINK_BURST; calls++) {
        assert_int_equal(by_link_receive(shell->ports[0].link, 0, rx, BY_LINK_BURST), 0);
        by_port_read(&shell->ports[0], &counters);
        assert_int_equal(counters.rx_dropped, calls * BY_LINK_BURST);
    }
    link_leave(&end);
    by_shell_close(shell);
}

static void a_host_with_much_to_send_leaves_the_others_of_its_port_their_turns(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_shm_hello words = link_hello();
    struct by_rx rx[BY_LINK_BURST];
    struct dataplane_link_end end[2];
    unsigned heard = 0;

    (void)state;
    link_join(shell, &end[0], 0);
    words.udp_port++; /* the hello of another job */
    assert_int_equal(link_greet(shell, &end[1], 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), 0);
    for (unsigned busy = 0; busy < 2; busy++) {
        for (uint32_t i = 0; i < 3 * BY_LINK_BURST; i++)
            link_give(&end[busy], 0, i, 0);
        link_give(&end[1 - busy], 1, 0, 0); /* a different source address identifies it */
        for (unsigned calls = 0; calls < 4; calls++) {
            uint32_t count = by_link_receive(shell->ports[0].link, 0, rx, BY_LINK_BURST);

            for (uint32_t i = 0; i < count; i++)
                heard += calls < 2 && rx[i].src_ip == star_host_ip(1);
            by_link_done(shell->ports[0].link);
        }
        assert_int_equal(heard, busy + 1);
    }
    link_leave(&end[0]);
    link_leave(&end[1]);
    by_shell_close(shell);
}

static void a_host_that_leaves_gives_everything_back(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct dataplane_link_end end[HOSTS];

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++)
        link_join(shell, &end[host], host);
    for (unsigned host = 0; host < HOSTS; host++)
        link_give(&end[host], host, 0, 0);
    by_shell_round(shell);
    assert_int_equal(link_references(shell, 0), HOSTS);
    for (unsigned host = 0; host < HOSTS; host++)
        link_leave(&end[host]);
    link_serve(shell);
    assert_int_equal(link_references(shell, 0), 0);
    link_join(shell, &end[0], 0); /* the job's place is free again */
    link_leave(&end[0]);
    by_shell_close(shell);
}

static void a_host_that_claims_to_have_read_what_was_never_sent_frees_nothing(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct dataplane_link_end end[HOSTS];

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++)
        link_join(shell, &end[host], host);
    for (unsigned host = 0; host < HOSTS; host++)
        link_give(&end[host], host, 0, 0);
    by_shell_round(shell);
    __atomic_store_n(&end[0].cable->down.head, 1000, __ATOMIC_RELEASE);
    by_shell_round(shell);
    assert_int_equal(link_references(shell, 0), HOSTS);
    for (unsigned host = 0; host < HOSTS; host++)
        link_leave(&end[host]);
    link_serve(shell);
    assert_int_equal(link_references(shell, 0), 0);
    by_shell_close(shell);
}

static void who_is_not_let_in_hears_why(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_shm_hello words;
    struct dataplane_link_end end, other;

    (void)state;
    words = link_hello();
    words.version++;
    assert_int_equal(link_greet(shell, &end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), BY_EINVAL);
    link_leave(&end);
    words = link_hello();
    words.room_bytes = BY_PAYLOAD_MAX + 64;
    assert_int_equal(link_greet(shell, &end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), BY_EINVAL);
    link_leave(&end);
    words = link_hello();
    words.memory_bytes = MEMORY + 1;
    assert_int_equal(link_greet(shell, &end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), BY_EINVAL);
    link_leave(&end);
    words = link_hello(); /* memory that could shrink could crash the switch */
    assert_int_equal(link_greet(shell, &end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_GROW), BY_EINVAL);
    link_leave(&end);
    assert_int_equal(link_greet(shell, &end, 0, &words, 1, F_SEAL_SHRINK), BY_EINVAL);
    link_leave(&end);
    link_join(shell, &other, 0); /* the first process of the job */
    assert_int_equal(link_greet(shell, &end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), BY_EINVAL);
    link_leave(&end);
    link_leave(&other);
    by_shell_close(shell);
}

/* The system may run out of huge pages, and then reading them would crash the switch. */
static void memory_of_huge_pages_is_refused(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_shm_hello words = link_hello();
    struct dataplane_link_end end;

    (void)state;
    words.memory_bytes = HUGE_BYTES;
    link_huge = true;
    assert_int_equal(link_greet(shell, &end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), BY_EINVAL);
    link_huge = false;
    link_leave(&end);
    by_shell_close(shell);
}

static void a_host_that_never_takes_its_bells_blocks_nobody(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_dp_link *link = shell->ports[0].link;
    const uint8_t ring = 1;
    struct dataplane_link_end end;

    (void)state;
    link_join(shell, &end, 0);
    assert_int_equal(fcntl(end.socket, F_SETFL, 0), 0); /* as a host can; the switch's end differs */
    alarm(20);
    for (unsigned i = 0; i < 10000; i++)
        by_link_bell(link->host[0]);
    for (unsigned i = 0; i < 10000; i++)
        (void)!send(end.socket, &ring, 1, MSG_DONTWAIT);
    for (unsigned i = 0; i < 100; i++) {
        link->host[0]->asleep = true;
        by_shell_round(shell);
        link_serve(shell);
    }
    alarm(0);
    link_give(&end, 0, 0, 0);
    assert_int_equal(by_shell_round(shell), 1);
    link_leave(&end);
    link_serve(shell);
    assert_int_equal(link->host_count, 0);
    by_shell_close(shell);
}

/* ---- keys */

static const struct by_image_key star_key = {.key = {"a key of sixteen"}, .job = 1, .cover = BY_COVER_HEADER};
static const struct by_image_key other_key = {
    .key = {"another tenant's"}, .job = 1, .cover = BY_COVER_HEADER};
static const struct by_image_key *prover_key;

/* Proves the key as the host of port 0. */
static void prove(const struct dataplane_link_end *end, struct by_shm_hello *words)
{
    struct by_siphash_key key;
    struct by_hop_keys keys;

    by_siphash_key_read(&key, prover_key->key);
    by_hop_keys_make(&key, 1, end->challenge.node, 1, &keys);
    words->proof = by_shm_proof(&keys.out, &end->challenge, words);
}

static void load_keyed(struct by_shell *shell)
{
    size_t bytes, keyed_bytes;
    uint8_t *image = star_image(&link_star, &bytes), *keyed;
    struct by_image_fault fault = {0};
    struct by_image_key key = star_key;
    struct by_image_job job;

    by_image_job(image, 0, &job);
    key.job = job.job;
    job.gen++; /* a key cannot change within a generation */
    by_image_put_job(image, 0, &job);
    by_image_seal(image);
    keyed = malloc(by_image_keyed_bytes(image, 1));
    keyed_bytes = by_image_put_keys(image, &key, 1, keyed);
    assert_true(keyed_bytes > bytes);
    assert_int_equal(by_engine_stage(by_shell_engine(shell), keyed, keyed_bytes, &fault), 0);
    assert_int_equal(by_shell_commit(shell), 0);
    free(image);
    free(keyed);
}

static void greet_with(struct by_shell *shell, struct dataplane_link_end *end, const struct by_image_key *key,
                       int expected)
{
    struct by_shm_hello words = link_hello();

    link_prover = key ? prove : NULL;
    prover_key = key;
    assert_int_equal(link_greet(shell, end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), expected);
    link_prover = NULL;
}

static void the_port_of_a_keyed_job_is_for_who_has_its_key(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct dataplane_link_end early, end;

    (void)state;
    greet_with(shell, &early, NULL, 0); /* the job has no key yet */
    load_keyed(shell);
    greet_with(shell, &end, NULL, BY_EINVAL);
    link_leave(&end);
    greet_with(shell, &end, &other_key, BY_EINVAL);
    link_leave(&end);
    assert_int_equal(shell->ports[0].link->host[0]->greeted, true);
    greet_with(shell, &end, &star_key, 0); /* replaces the host that connected before the key */
    assert_int_equal(recv(early.socket, &(uint8_t){0}, 1, MSG_DONTWAIT), 0);
    link_leave(&early);
    greet_with(shell, &early, &star_key, BY_EINVAL); /* another process of the job does not replace it */
    link_leave(&early);
    link_give(&end, 0, 0, 0);
    assert_int_equal(by_shell_round(shell), 1);
    link_leave(&end);
    by_shell_close(shell);
}

static void a_proof_is_for_one_challenge(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct by_shm_hello words = link_hello();
    struct dataplane_link_end end, again;

    (void)state;
    load_keyed(shell);
    link_prover = prove;
    prover_key = &star_key;
    assert_int_equal(link_greet(shell, &end, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), 0);
    link_prover = NULL;
    link_leave(&end);
    link_serve(shell);
    assert_int_equal(link_greet(shell, &again, 0, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), BY_EINVAL);
    link_leave(&again);
    by_shell_close(shell);
}

/* Tables and the keys of all jobs are in memory that no host can read. */
static void a_host_sees_payloads_and_no_tables_or_keys(void **state)
{
    struct by_shell *shell = link_open_shell();
    const uint8_t *image;
    struct dataplane_link_end end;
    size_t bytes;

    (void)state;
    load_keyed(shell);
    greet_with(shell, &end, &star_key, 0);
    image = by_engine_image(by_shell_engine(shell), &bytes);
    assert_non_null(memmem(image, bytes, star_key.key, sizeof star_key.key));
    assert_null(memmem(end.there, end.there_bytes, star_key.key, sizeof star_key.key));
    assert_null(memmem(end.there, end.there_bytes, image, 32));
    assert_int_equal(end.there_bytes, 2 * 8 * (2 * PAYLOAD + 64)); /* two banks of eight slots */
    link_leave(&end);
    by_shell_close(shell);
}

static void who_sleeps_is_rung_once(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct dataplane_link_end end[HOSTS];
    uint8_t ring;

    (void)state;
    for (unsigned host = 0; host < HOSTS; host++)
        link_join(shell, &end[host], host);
    assert_true(by_shm_doze(&end[0].receiver));
    for (uint32_t seq = 0; seq < 3; seq++) {
        for (unsigned host = 0; host < HOSTS; host++)
            link_give(&end[host], host, seq, 0);
        by_shell_round(shell);
    }
    assert_int_equal(recv(end[0].socket, &ring, 1, MSG_DONTWAIT), 1);
    assert_true(recv(end[0].socket, &ring, 1, MSG_DONTWAIT) < 0); /* once */
    assert_true(recv(end[1].socket, &ring, 1, MSG_DONTWAIT) < 0); /* this host did not sleep */
    assert_false(by_shm_doze(&end[0].receiver));                  /* there are packets to take */
    for (unsigned host = 0; host < HOSTS; host++)
        link_leave(&end[host]);
    by_shell_close(shell);
}

static void a_queue_takes_no_more_than_it_has_slots(void **state)
{
    struct by_shell *shell = link_open_shell();
    struct dataplane_link_end end;
    unsigned put = 0;

    (void)state;
    link_join(shell, &end, 0);
    while (by_shm_slot(&end.sender)) {
        link_give(&end, 0, put, 0);
        put++;
        assert_true(put <= BY_SHM_SLOTS);
    }
    assert_int_equal(put, BY_SHM_SLOTS);
    for (unsigned got = 0; got < BY_SHM_SLOTS; got += BY_LINK_BURST)
        assert_int_equal(by_shell_round(shell), BY_LINK_BURST);
    assert_non_null(by_shm_slot(&end.sender));
    link_leave(&end);
    by_shell_close(shell);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sum_is_read_where_the_switch_holds_it_and_given_back),
        cmocka_unit_test(a_value_without_a_psum_is_summed_and_one_with_a_wrong_psum_is_not),
        cmocka_unit_test(a_packet_without_a_psum_gets_one_where_it_goes_on_over_a_wire),
        cmocka_unit_test(a_payload_beyond_the_shared_memory_is_dropped),
        cmocka_unit_test(a_payload_longer_than_any_is_dropped),
        cmocka_unit_test(a_payload_longer_than_its_place_in_the_cable_is_dropped),
        cmocka_unit_test(a_queue_that_says_it_holds_more_than_its_slots_holds_nothing),
        cmocka_unit_test(malformed_packets_take_turns_as_all_others_do),
        cmocka_unit_test(a_host_with_much_to_send_leaves_the_others_of_its_port_their_turns),
        cmocka_unit_test(a_host_that_leaves_gives_everything_back),
        cmocka_unit_test(a_host_that_claims_to_have_read_what_was_never_sent_frees_nothing),
        cmocka_unit_test(who_is_not_let_in_hears_why),
        cmocka_unit_test(memory_of_huge_pages_is_refused),
        cmocka_unit_test(a_host_that_never_takes_its_bells_blocks_nobody),
        cmocka_unit_test(the_port_of_a_keyed_job_is_for_who_has_its_key),
        cmocka_unit_test(a_proof_is_for_one_challenge),
        cmocka_unit_test(a_host_sees_payloads_and_no_tables_or_keys),
        cmocka_unit_test(who_sleeps_is_rung_once),
        cmocka_unit_test(a_queue_takes_no_more_than_it_has_slots),
    };

    return cmocka_run_group_tests(tests, memory_start, memory_stop);
}
