/* Implements memory.h. Frames that the switch sends on a ring port return to that port, so a test
 * takes them out after each round. */
#include "tests/unit/dataplane/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_ethdev.h>

#include "dataplane/eal.h"
#include "dataplane/say.h"

int memory_start(void **state)
{
    struct by_eal_config config = {.name = "unit", .no_huge = true};

    (void)state;
    by_say_name("unit");
    return by_eal_start(&config);
}

int memory_stop(void **state)
{
    (void)state;
    by_eal_stop();
    return 0;
}

struct by_shell *memory_shell(unsigned ports)
{
    static unsigned generation;
    static char names[BY_PORTS_MAX][32];
    struct by_port_spec specs[BY_PORTS_MAX];
    struct by_shell_config config = {.name = "unit",
                                     .ports = specs,
                                     .port_count = ports,
                                     .driver = BY_DRIVER_AUTO,
                                     .slot_count = 256,
                                     .payload_limit = BY_PAYLOAD_MAX,
                                     .entry_count = 16,
                                     .relay_count = 16,
                                     .image_bytes_max = 1 << 16,
                                     .control_fd = -1};
    struct by_shell *shell = NULL;

    generation++;
    for (unsigned i = 0; i < ports; i++) {
        snprintf(names[i], sizeof names[i], "net_ring_%u_%u", generation, i);
        specs[i] = (struct by_port_spec){.kind = BY_PORT_VDEV, .text = names[i]};
    }
    assert_int_equal(by_shell_open(&shell, &config), 0);
    return shell;
}

void memory_load(struct by_shell *shell, const struct star *star)
{
    struct by_image_fault fault = {0};
    size_t bytes;
    uint8_t *image = star_image(star, &bytes);

    assert_int_equal(by_engine_stage(by_shell_engine(shell), image, bytes, &fault), 0);
    assert_int_equal(by_shell_commit(shell), 0);
    free(image);
}

struct rte_mbuf *memory_inject(struct by_shell *shell, unsigned port, const uint8_t *frame, size_t bytes)
{
    struct rte_mbuf *mbuf = rte_pktmbuf_alloc(shell->frame_pool);

    assert_non_null(mbuf);
    memcpy(rte_pktmbuf_append(mbuf, (uint16_t)bytes), frame, bytes);
    assert_int_equal(rte_eth_tx_burst(by_shell_port(shell, port)->id, 0, &mbuf, 1), 1);
    return mbuf;
}

struct rte_mbuf *memory_sent(struct by_shell *shell, unsigned port)
{
    struct rte_mbuf *mbuf;

    return rte_eth_rx_burst(by_shell_port(shell, port)->id, 0, &mbuf, 1) == 1 ? mbuf : NULL;
}
