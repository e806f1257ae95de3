/*
 * Answers ARP requests for a port's own address, so that hosts and routers with an ordinary stack
 * can reach the switch. The address comes from the active table. Loop's thread.
 */
#include "dataplane/state.h"
#include "offload/wire/frame.h"

#define ETHERTYPE_ARP 0x0806u
#define ETHERTYPE_AT  12u

int by_shell_arp(struct by_shell *shell, struct by_port *port, const struct rte_mbuf *frame)
{
    const uint8_t *data = rte_pktmbuf_mtod(frame, const uint8_t *);
    uint8_t reply[BY_FRAME_HEADER_BYTES];
    struct rte_mbuf *answer;
    size_t bytes;
    char *room;

    if (frame->data_len < BY_FRAME_HEADER_BYTES ||
        (data[ETHERTYPE_AT] << 8 | data[ETHERTYPE_AT + 1]) != ETHERTYPE_ARP)
        return 0;
    if (!port->addressed)
        return 1;
    bytes = by_arp_reply(data, frame->data_len, port->carrier.src_ip, port->carrier.src_mac, reply);
    if (bytes == 0)
        return 1;
    answer = rte_pktmbuf_alloc(shell->frame_pool);
    room = answer ? rte_pktmbuf_append(answer, (uint16_t)bytes) : NULL;
    if (!room) {
        rte_pktmbuf_free(answer);
        shell->counters.tx_no_memory++;
        return 1;
    }
    memcpy(room, reply, bytes);
    shell->counters.arp_replies++;
    by_port_send(port, answer);
    return 1;
}
