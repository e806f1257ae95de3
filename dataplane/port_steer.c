/*
 * Implements port_steer.h. RSS is made to look at the low seven bits of the UDP source port alone
 * (PROTOCOL.md, "Workers"). Toeplitz's hash is the sum, modulo 2, of the 32 bits of its key from
 * bit i on, for each bit i of the input that is set. A key with one bit thus makes the hash a piece
 * of the input, backwards: bit 31 - j of the hash, from the left, is bit KEY_BIT - 31 + j of the
 * input. The table of queues undoes the order. Addresses do not change the hash, so that the same
 * lane has the same queue for all senders.
 */
#include "dataplane/port_steer.h"

#include <stdio.h>
#include <string.h>

#include "offload/wire/stripe.h"

/* The input for UDP over IPv4: two addresses (64 bits), the source port, the destination port. Its
 * bit for the highest of the steering bits: */
#define INPUT_BIT (64u + 16u - STEER_BITS)
#define KEY_BIT   (INPUT_BIT + 31u)
/* A lane, and the bit that marks it. */
#define STEER_BITS 7u
/* Bytes of a key, if the driver does not report it; and the fewest that a key for IPv4 has. */
#define KEY_BYTES 40u

_Static_assert(1u << STEER_BITS == 2 * BY_LANE_PORT, "the bits of a source port that name a lane");

uint16_t by_steer_of_hash(unsigned index, uint32_t hash, unsigned workers)
{
    uint32_t bits = 0;

    for (unsigned i = 0; i < STEER_BITS; i++)
        bits = bits << 1 | (hash >> i & 1);
    if (!(bits & BY_LANE_PORT))
        return 0;
    return by_steer_queue(index, by_lane_worker(bits % BY_LANE_PORT, workers), workers);
}

static uint32_t key_bytes(const struct rte_eth_dev_info *info)
{
    return info->hash_key_size != 0 ? info->hash_key_size : KEY_BYTES;
}

/* Why RSS cannot steer, or NULL. */
static const char *rss_lacks(const struct rte_eth_dev_info *info)
{
    if (!(info->flow_type_rss_offloads & RTE_ETH_RSS_NONFRAG_IPV4_UDP))
        return "it has no RSS on UDP ports";
    if (info->reta_size < 1u << STEER_BITS || info->reta_size % RTE_ETH_RETA_GROUP_SIZE != 0 ||
        info->reta_size > RTE_ETH_RSS_RETA_SIZE_512)
        return "the table of its RSS does not have 128 to 512 places";
    if (key_bytes(info) < KEY_BYTES || key_bytes(info) > BY_STEER_KEY_BYTES)
        return "the key of its RSS does not have 40 to 64 bytes";
    return NULL;
}

void by_port_steer_give_up(struct by_port *port, const char *why)
{
    port->rx_queues = 1;
    port->steer = BY_STEER_HANDED;
    snprintf(port->steer_why, sizeof port->steer_why, "%s", why);
}

void by_port_steer_choose(struct by_port *port, unsigned workers, bool one_queue)
{
    struct rte_eth_dev_info info;
    const char *lacks = NULL;

    port->rx_queues = port->tx_queues = 1;
    if (workers < 2 || port->link || port->xsk)
        return;
    by_port_steer_give_up(port, "of one queue");
    if (one_queue || !by_port_is_device(port) || rte_eth_dev_info_get(port->id, &info) != 0)
        return;
    snprintf(port->steer_why, sizeof port->steer_why, "of %u workers, and %u queues in, %u out", workers,
             info.max_rx_queues, info.max_tx_queues);
    /* The other side of net_memif chooses how many queues move frames, and the driver does not
     * report it. */
    if (info.max_tx_queues < workers || strcmp(info.driver_name, "net_memif") == 0)
        return;
    port->tx_queues = (uint16_t)workers;
    port->headers_held *= workers;
    if (info.max_rx_queues < workers)
        return;
    if (port->kind == BY_PORT_PCI && (lacks = rss_lacks(&info)) != NULL) {
        by_port_steer_give_up(port, lacks);
        return;
    }
    port->rx_queues = (uint16_t)workers;
    port->frames_held *= workers;
    port->steer = port->kind == BY_PORT_PCI ? BY_STEER_RSS : BY_STEER_SENDER;
    port->steer_why[0] = 0;
}

void by_port_steer_configure(const struct by_port *port, const struct rte_eth_dev_info *info,
                             uint8_t key[BY_STEER_KEY_BYTES], struct rte_eth_conf *config)
{
    if (port->steer != BY_STEER_RSS)
        return;
    memset(key, 0, BY_STEER_KEY_BYTES);
    key[KEY_BIT / 8] = (uint8_t)(0x80u >> KEY_BIT % 8);
    config->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    config->rx_adv_conf.rss_conf = (struct rte_eth_rss_conf){
        .rss_key = key, .rss_key_len = (uint8_t)key_bytes(info), .rss_hf = RTE_ETH_RSS_NONFRAG_IPV4_UDP};
}

int by_port_steer_start(const struct by_port *port)
{
    struct rte_eth_rss_reta_entry64 table[RTE_ETH_RSS_RETA_SIZE_512 / RTE_ETH_RETA_GROUP_SIZE];
    struct rte_eth_dev_info info;
    int result = 0;

    if (port->steer != BY_STEER_RSS)
        return 0;
    if ((result = rte_eth_dev_info_get(port->id, &info)) != 0)
        return result;
    for (unsigned i = 0; i < info.reta_size; i++) {
        struct rte_eth_rss_reta_entry64 *group = &table[i / RTE_ETH_RETA_GROUP_SIZE];

        group->mask = UINT64_MAX;
        group->reta[i % RTE_ETH_RETA_GROUP_SIZE] = by_steer_of_hash(port->index, i, port->rx_queues);
    }
    return rte_eth_dev_rss_reta_update(port->id, table, info.reta_size);
}
