/* The neighbours whose MAC addresses a switch learns: which the table lists, when each is asked,
 * and what is kept when the next table lists others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/shell/neighbour.h"
#include "offload/table/image.h"
#include "tests/unit/firmware/star.h"

#define HOSTS 4u

static const struct star star = {.hosts = HOSTS, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500};
static struct by_neighbours neighbours;
static uint64_t elsewhere; /* ports of other workers, as bits */

/* Loads the table of a star whose ports in `stated` (bits) state their peers' MAC addresses. */
static void load(unsigned stated, uint64_t exempt, uint64_t now_ns)
{
    size_t bytes;
    uint8_t *image = star_image(&star, &bytes);

    for (uint32_t i = 0; i < HOSTS; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        if (!(stated >> i & 1))
            memset(port.peer_mac, 0, sizeof port.peer_mac);
        by_image_put_port(image, i, &port);
    }
    by_image_seal(image);
    by_neighbours_load(&neighbours, image, exempt, elsewhere, now_ns);
    free(image);
}

static int begin(void **state)
{
    (void)state;
    memset(&neighbours, 0, sizeof neighbours);
    elsewhere = 0;
    return 0;
}

static void ports_that_state_an_address_or_need_none_have_no_neighbour(void **state)
{
    (void)state;
    load(1u << 1, UINT64_C(1) << 2, 7);
    assert_int_equal(neighbours.count, 2);
    assert_non_null(by_neighbours_find(&neighbours, 0, star_host_ip(0)));
    assert_null(by_neighbours_find(&neighbours, 1, star_host_ip(1)));
    assert_null(by_neighbours_find(&neighbours, 2, star_host_ip(2)));
    assert_non_null(by_neighbours_find(&neighbours, 3, star_host_ip(3)));
    assert_null(by_neighbours_find(&neighbours, 3, star_host_ip(0)));
    assert_int_equal(neighbours.due_ns, 7);
}

static void requests_are_frequent_at_first_and_then_rare(void **state)
{
    uint64_t now_ns = 100;
    uint32_t from;

    (void)state;
    load(0xe, 0, now_ns);
    for (unsigned i = 0; i < 300; i++) {
        from = 0;
        assert_null(by_neighbours_ask(&neighbours, &from, now_ns - 1));
        from = 0;
        assert_ptr_equal(by_neighbours_ask(&neighbours, &from, now_ns), &neighbours.at[0]);
        assert_null(by_neighbours_ask(&neighbours, &from, now_ns));
        by_neighbours_settle(&neighbours);
        now_ns += i < BY_NEIGHBOUR_QUICK ? BY_NEIGHBOUR_SOON_NS : BY_NEIGHBOUR_SLOW_NS;
        assert_int_equal(neighbours.due_ns, now_ns);
        assert_int_equal(neighbours.at[0].tries, i < UINT8_MAX ? i + 1 : UINT8_MAX);
    }
}

static void the_neighbour_that_is_due_first_sets_the_time(void **state)
{
    static const uint8_t mac[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 1};
    uint32_t from = 0;

    (void)state;
    load(0, 0, 50);
    for (unsigned i = 0; i < HOSTS; i++)
        assert_ptr_equal(by_neighbours_ask(&neighbours, &from, 50 + i), &neighbours.at[i]);
    by_neighbours_hear(&neighbours, &neighbours.at[0], mac, 60);
    assert_int_equal(neighbours.due_ns, 51 + BY_NEIGHBOUR_SOON_NS);
    from = 0;
    assert_ptr_equal(by_neighbours_ask(&neighbours, &from, 51 + BY_NEIGHBOUR_SOON_NS), &neighbours.at[1]);
    for (unsigned i = 1; i < HOSTS; i++)
        by_neighbours_hear(&neighbours, &neighbours.at[i], mac, 60 + i);
    assert_int_equal(neighbours.due_ns, 60 + BY_NEIGHBOUR_AGAIN_NS);
    assert_int_equal(neighbours.at[3].tries, 0);
}

static void the_next_table_keeps_what_is_known_and_asks_at_once(void **state)
{
    static const uint8_t mac[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 1};
    const struct by_shell_neighbour *kept;

    (void)state;
    load(0, 0, 50);
    for (unsigned i = 0; i < HOSTS; i++)
        by_neighbours_hear(&neighbours, &neighbours.at[i], mac, 50);
    load(1u << 0 | 1u << 3, 0, 80);
    assert_int_equal(neighbours.count, 2);
    kept = by_neighbours_find(&neighbours, 2, star_host_ip(2));
    assert_non_null(kept);
    assert_true(kept->known);
    assert_memory_equal(kept->mac, mac, sizeof mac);
    assert_int_equal(neighbours.due_ns, 80);
    load(0xf, 0, 90);
    assert_int_equal(neighbours.count, 0);
    assert_int_equal(neighbours.due_ns, UINT64_MAX);
    /* What no table listed in between is unknown. */
    load(0, 0, 95);
    assert_int_equal(neighbours.count, HOSTS);
    for (unsigned i = 0; i < HOSTS; i++)
        assert_false(neighbours.at[i].known);
    /* The last ones are gone. */
    load(1u << 2 | 1u << 3, 0, 99);
    assert_non_null(by_neighbours_find(&neighbours, 1, star_host_ip(1)));
    assert_null(by_neighbours_find(&neighbours, 2, star_host_ip(2)));
}

/* Another worker asks them; this one asks if it has got no answer for a second. */
static void a_neighbour_at_the_port_of_another_worker_is_asked_only_while_it_is_unknown(void **state)
{
    const uint8_t mac[BY_MAC_BYTES] = {2, 0, 0, 0, 0, 1};
    struct by_shell_neighbour *neighbour;
    uint32_t from = 0;

    (void)state;
    elsewhere = 1;
    load(0xe, 0, 100);
    neighbour = by_neighbours_find(&neighbours, 0, star_host_ip(0));
    assert_int_equal(neighbours.due_ns, 100 + BY_NEIGHBOUR_SLOW_NS);
    assert_ptr_equal(by_neighbours_ask(&neighbours, &from, 100 + BY_NEIGHBOUR_SLOW_NS), neighbour);
    by_neighbours_settle(&neighbours);
    assert_int_equal(neighbours.due_ns, 100 + 2 * (uint64_t)BY_NEIGHBOUR_SLOW_NS);
    by_neighbours_hear(&neighbours, neighbour, mac, 200);
    assert_int_equal(neighbours.due_ns, UINT64_MAX);
    load(0xe, 0, 300); /* the same table again: the other worker asks */
    assert_int_equal(neighbours.due_ns, UINT64_MAX);
    elsewhere = 0;
    load(0xe, 0, 400);
    assert_int_equal(neighbours.due_ns, 400);
    by_neighbours_hear(&neighbours, neighbour, mac, 500); /* this worker asks now, and goes on */
    assert_int_equal(neighbours.due_ns, 500 + BY_NEIGHBOUR_AGAIN_NS);
}

static void requests_are_frequent_again_after_the_next_table(void **state)
{
    uint64_t now_ns = 100;

    (void)state;
    load(0xe, 0, now_ns);
    for (unsigned i = 0; i < BY_NEIGHBOUR_QUICK + 5; i++) {
        uint32_t from = 0;

        assert_non_null(by_neighbours_ask(&neighbours, &from, now_ns));
        by_neighbours_settle(&neighbours);
        now_ns = neighbours.due_ns;
    }
    load(0xe, 0, now_ns);
    for (unsigned i = 0; i < BY_NEIGHBOUR_QUICK; i++) {
        uint32_t from = 0;

        assert_non_null(by_neighbours_ask(&neighbours, &from, now_ns));
        by_neighbours_settle(&neighbours);
        assert_int_equal(neighbours.due_ns, now_ns + BY_NEIGHBOUR_SOON_NS);
        now_ns = neighbours.due_ns;
    }
}

/* Loads the table of a switch whose port 1 leads to a bridge: the parents of its two trees and
 * child 1 are there. */
static void load_inner(uint64_t exempt)
{
    struct star two = star;
    size_t bytes;
    uint8_t *image;
    struct by_image_port port;

    two.trees = 2;
    image = star_image(&two, &bytes);
    by_image_port(image, 1, &port);
    port.peer_ip = 0;
    memset(port.peer_mac, 0, sizeof port.peer_mac);
    by_image_put_port(image, 1, &port);
    for (uint32_t tree = 0; tree < 2; tree++) {
        struct by_image_entry entry;

        by_image_entry(image, tree, &entry);
        entry.parent_node = (uint16_t)(77 + tree);
        entry.parent_port = 1;
        entry.parent_ip = 12345 + 10 * tree;
        entry.parent_udp_port = 1;
        by_image_put_entry(image, tree, &entry);
    }
    by_image_seal(image);
    by_neighbours_load(&neighbours, image, exempt, elsewhere, 9);
    free(image);
}

static void behind_a_bridge_are_the_parent_and_children_unless_the_port_is_exempt(void **state)
{
    (void)state;
    load_inner(0);
    assert_int_equal(neighbours.count, 3);
    assert_non_null(by_neighbours_find(&neighbours, 1, 12345));
    assert_non_null(by_neighbours_find(&neighbours, 1, 12355));
    assert_non_null(by_neighbours_find(&neighbours, 1, star_host_ip(1)));
    assert_null(by_neighbours_find(&neighbours, 1, 12346));
    assert_null(by_neighbours_find(&neighbours, 2, UINT32_MAX)); /* behind all others */
    load_inner(1u << 1);
    assert_int_equal(neighbours.count, 0);
}

/* The sets of ports have 64 bits, and a table may name more ports; with and without bridges. */
static void ports_behind_the_first_64_are_neither_exempt_nor_those_of_another_worker(void **state)
{
    const struct star wide = {.hosts = 66, .trees = 1, .window = 4, .payload_max = 64, .mtu = 1500};

    (void)state;
    for (unsigned bridged = 0; bridged < 2; bridged++) {
        size_t bytes;
        uint8_t *image = star_image(&wide, &bytes);

        for (uint32_t i = 0; i < wide.hosts; i++) {
            struct by_image_port port;

            by_image_port(image, i, &port);
            memset(port.peer_mac, 0, sizeof port.peer_mac);
            if (bridged)
                port.peer_ip = 0;
            by_image_put_port(image, i, &port);
        }
        by_image_seal(image);
        by_neighbours_load(&neighbours, image, UINT64_MAX, 0, 9);
        assert_int_equal(neighbours.count, 2);
        assert_non_null(by_neighbours_find(&neighbours, 64, star_host_ip(64)));
        assert_non_null(by_neighbours_find(&neighbours, 65, star_host_ip(65)));
        begin(NULL);
        by_neighbours_load(&neighbours, image, 0, UINT64_MAX, 9);
        assert_int_equal(neighbours.count, wide.hosts);
        for (uint32_t i = 0; i < wide.hosts; i++) {
            const struct by_shell_neighbour *at =
                by_neighbours_find(&neighbours, (uint16_t)i, star_host_ip(i));

            assert_non_null(at);
            assert_int_equal(at->elsewhere, i < 64);
            assert_int_equal(at->due_ns, i < 64 ? 9 + BY_NEIGHBOUR_SLOW_NS : 9);
        }
        free(image);
        begin(NULL);
    }
}

/* Relays from and to bridges; each receiver is listed, and answered for, once. */
static void receivers_of_relays_are_listed_once(void **state)
{
    struct by_image_header header = {.node = 1, .kind = BY_NODE_SWITCH, .name = "s"};
    static uint8_t image[65536];
    const uint32_t relays = 3;

    (void)state;
    header.count[BY_SECTION_PORT] = 3;
    header.count[BY_SECTION_RELAY] = relays;
    assert_in_range(by_image_bytes(header.count), 1, sizeof image);
    by_image_put_header(image, &header);
    for (uint16_t i = 0; i < 3; i++) { /* ports 0 and 1 lead to bridges */
        struct by_image_port port = {.name = {'p', (char)('0' + i)},
                                     .own_ip = 100u + i,
                                     .peer_ip = i < 2 ? 0 : 7,
                                     .peer_mac = {i < 2 ? 0 : 2}};

        by_image_put_port(image, i, &port);
    }
    for (uint32_t i = 0; i < relays; i++) { /* the second comes from a port that is no bridge */
        struct by_image_relay relay = {.src_ip = 50 + i, .dst_ip = 60, .port = 1, .from = i == 1 ? 3 : 1};

        by_image_put_relay(image, i, &relay);
    }
    by_image_seal(image);
    by_neighbours_load(&neighbours, image, 0, 0, 9);
    assert_int_equal(neighbours.count, 1);
    assert_non_null(by_neighbours_find(&neighbours, 1, 60));
    assert_int_equal(neighbours.proxy_count, 1);
    assert_true(by_neighbours_proxy(&neighbours, 0, 60));
    assert_false(by_neighbours_proxy(&neighbours, 0, 61));
    assert_false(by_neighbours_proxy(&neighbours, 1, 60));
    /* The next table relays nothing from there. */
    for (uint32_t i = 0; i < relays; i++) {
        struct by_image_relay relay = {.src_ip = 50 + i, .dst_ip = 60, .port = 1, .from = 3};

        by_image_put_relay(image, i, &relay);
    }
    by_image_seal(image);
    by_neighbours_load(&neighbours, image, 0, 0, 10);
    assert_false(by_neighbours_proxy(&neighbours, 0, 60));
}

static void more_receivers_than_there_is_room_for_are_left_out(void **state)
{
    struct by_image_header header = {.node = 1, .kind = BY_NODE_SWITCH, .name = "s"};
    struct by_image_port port = {.name = "p0", .own_ip = 100};
    const uint32_t relays = BY_NEIGHBOURS_MAX + 1;
    uint8_t *image;

    (void)state;
    header.count[BY_SECTION_PORT] = 1;
    header.count[BY_SECTION_RELAY] = relays;
    image = calloc(1, by_image_bytes(header.count));
    assert_non_null(image);
    by_image_put_header(image, &header);
    by_image_put_port(image, 0, &port);
    for (uint32_t i = 0; i < relays; i++) {
        struct by_image_relay relay = {.src_ip = 50, .dst_ip = 1000 + i, .port = 0, .from = 1};

        by_image_put_relay(image, i, &relay);
    }
    by_image_seal(image);
    for (uint64_t now_ns = 9; now_ns < 11; now_ns++) { /* the second time over a full list */
        by_neighbours_load(&neighbours, image, 0, 0, now_ns);
        assert_int_equal(neighbours.count, BY_NEIGHBOURS_MAX);
        assert_int_equal(neighbours.proxy_count, BY_NEIGHBOURS_MAX);
        for (uint32_t i = 0; i < relays; i++) {
            const struct by_shell_neighbour *at = by_neighbours_find(&neighbours, 0, 1000 + i);

            assert_int_equal(at != NULL, i < BY_NEIGHBOURS_MAX);
            assert_int_equal(by_neighbours_proxy(&neighbours, 0, 1000 + i), i < BY_NEIGHBOURS_MAX);
            if (at != NULL)
                assert_int_equal(at->due_ns, now_ns);
        }
        assert_int_equal(neighbours.due_ns, now_ns);
    }
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ports_that_state_an_address_or_need_none_have_no_neighbour, begin),
        cmocka_unit_test_setup(requests_are_frequent_at_first_and_then_rare, begin),
        cmocka_unit_test_setup(the_neighbour_that_is_due_first_sets_the_time, begin),
        cmocka_unit_test_setup(a_neighbour_at_the_port_of_another_worker_is_asked_only_while_it_is_unknown,
                               begin),
        cmocka_unit_test_setup(requests_are_frequent_again_after_the_next_table, begin),
        cmocka_unit_test_setup(behind_a_bridge_are_the_parent_and_children_unless_the_port_is_exempt, begin),
        cmocka_unit_test_setup(ports_behind_the_first_64_are_neither_exempt_nor_those_of_another_worker,
                               begin),
        cmocka_unit_test_setup(receivers_of_relays_are_listed_once, begin),
        cmocka_unit_test_setup(more_receivers_than_there_is_room_for_are_left_out, begin),
        cmocka_unit_test_setup(the_next_table_keeps_what_is_known_and_asks_at_once, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
