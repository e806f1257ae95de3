/*
 * Packets over ports of DPDK: the plugin that libbanyan loads for the transport dpdk. The ports are
 * those of the switch (dataplane/port.h): network cards by PCI address, kernel interfaces and
 * virtual devices. Frames carry the addresses of the table; on a card the kernel does not take
 * part, so ARP requests are answered here. DPDK starts with the first transport of the process and
 * stays until the process ends. Thread: the communicator's; opening and closing take turns.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "dataplane/eal.h"
#include "dataplane/pool.h"
#include "dataplane/port.h"
#include "dataplane/say.h"
#include "host-driver/dpdk_plugin.h"
#include "host-driver/plugin/dpdk/device.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/wire/frame.h"
#include "offload/wire/stripe.h"

/* Buffers beside those that ports hold: received packets of one step, and frames to send
 * (count). */
#define FRAMES_BASE 1024u
/* Frames that the receive ring of every driver holds (count). */
#define RX_FRAMES 512u
/* Sleeps where a port has no descriptor that tells of frames (ns), as in dataplane/idle.c. */
#define NAP_FIRST_NS 20000u
#define NAP_LAST_NS  200000u
/* Options for DPDK (count). */
#define OPTIONS_MAX 32u
#define TEXT_BYTES  512u

struct dpdk {
    struct by_transport base;
    struct by_image_port address[BY_PORTS_MAX];
    struct by_dpdk_device device[BY_PORTS_MAX];
    /* sockets bound to the job's address, so that no second process uses it and the kernel does not
     * refuse the packets that it sees as well */
    int reserved[BY_PORTS_MAX];
    struct by_port *ports;
    struct rte_mempool *pool;
    uint16_t udp_port;
    uint32_t next_port;            /* where rx starts; rotates for fairness */
    uint64_t unsent[BY_PORTS_MAX]; /* packets without a buffer, and relays */
    int nap_fd;                    /* readable after a nap */
    uint32_t nap_ns;
    uint32_t held_count;
    struct rte_mbuf *held[BY_RX_BATCH]; /* buffers of the packets that rx has returned */
    struct dpdk *next;                  /* open transports of this process */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dpdk *first_open;
static unsigned opened; /* transports so far: makes names unique */
static bool is_started;
static char said[TEXT_BYTES]; /* last message of the dataplane, in terms of a host */

static void take_line(const char *line)
{
    by_dpdk_words(line, said, sizeof(said));
}

/* ---- receive ---- */

/* Answers an ARP request for this port. True if the frame was one. */
static bool answer(struct dpdk *dpdk, uint32_t index, const uint8_t *data, uint32_t bytes)
{
    const struct by_image_port *address = &dpdk->address[index];
    uint8_t reply[BY_FRAME_HEADER_BYTES];
    size_t size = by_arp_reply(data, bytes, address->own_ip, address->own_mac, reply);
    struct rte_mbuf *frame = size > 0 ? rte_pktmbuf_alloc(dpdk->pool) : NULL;

    if (frame == NULL)
        return size > 0;
    memcpy(rte_pktmbuf_append(frame, (uint16_t)size), reply, size);
    by_port_send(&dpdk->ports[index], frame);
    by_port_flush(&dpdk->ports[index]);
    return true;
}

/* Returns the packet in a received frame, or false: it is for others, and freed. */
static bool take(struct dpdk *dpdk, uint32_t index, struct rte_mbuf *buffer, struct by_rx *rx)
{
    const uint8_t *data = rte_pktmbuf_mtod(buffer, const uint8_t *);
    struct by_frame frame;

    if (buffer->nb_segs == 1 && by_frame_parse(data, buffer->data_len, &frame) == 0 &&
        frame.dst_ip == dpdk->address[index].own_ip && frame.dst_port == dpdk->udp_port) {
        *rx = (struct by_rx){.data = frame.data,
                             .bytes = frame.bytes,
                             .port = (uint16_t)index,
                             .src_ip = frame.src_ip,
                             .dst_ip = frame.dst_ip,
                             .ecn = frame.ecn};
        dpdk->base.ports[index].rx_packets++;
        dpdk->base.ports[index].rx_bytes += buffer->pkt_len;
        return true;
    }
    if (!answer(dpdk, index, data, buffer->data_len))
        dpdk->base.ports[index].rx_drop++;
    rte_pktmbuf_free(buffer);
    return false;
}

static uint32_t dpdk_rx(struct by_transport *transport, struct by_rx rx[BY_RX_BATCH])
{
    struct dpdk *dpdk = (struct dpdk *)transport;
    struct rte_mbuf *frames[BY_PORT_BURST];

    for (uint32_t i = 0; i < transport->port_count && dpdk->held_count < BY_RX_BATCH; i++) {
        uint32_t index = dpdk->next_port++ % transport->port_count;
        uint16_t room = (uint16_t)RTE_MIN(BY_PORT_BURST, BY_RX_BATCH - dpdk->held_count);
        uint16_t got = by_port_receive(&dpdk->ports[index], frames, room);

        for (uint16_t j = 0; j < got; j++)
            if (take(dpdk, index, frames[j], &rx[dpdk->held_count]))
                dpdk->held[dpdk->held_count++] = frames[j];
    }
    if (dpdk->held_count > 0)
        dpdk->nap_ns = NAP_FIRST_NS;
    return dpdk->held_count;
}

static void dpdk_rx_done(struct by_transport *transport)
{
    struct dpdk *dpdk = (struct dpdk *)transport;

    rte_pktmbuf_free_bulk(dpdk->held, dpdk->held_count);
    dpdk->held_count = 0;
}

/* ---- send ---- */

static void send_one(struct dpdk *dpdk, const struct by_tx *tx)
{
    const struct by_image_port *address = &dpdk->address[tx->port];
    uint32_t bytes = BY_WIRE_HEADER_BYTES + tx->payload_bytes;
    struct by_frame frame = {.src_ip = address->own_ip,
                             .dst_ip = tx->dst_ip,
                             .src_port =
                                 by_source_port(by_get32(tx->header + BY_HEADER_AT_JOB),
                                                by_get32(tx->header + BY_HEADER_AT_SEQ), tx->udp_port),
                             .dst_port = tx->udp_port,
                             .ecn = tx->ecn,
                             .bytes = (uint16_t)bytes};
    struct rte_mbuf *buffer = rte_pktmbuf_alloc(dpdk->pool);
    uint8_t *data = NULL;

    if (buffer != NULL)
        data = (uint8_t *)rte_pktmbuf_append(buffer, (uint16_t)(BY_FRAME_HEADER_BYTES + bytes));
    if (data == NULL) {
        rte_pktmbuf_free(buffer);
        dpdk->unsent[tx->port]++;
        return;
    }
    memcpy(frame.src_mac, address->own_mac, sizeof(frame.src_mac));
    memcpy(frame.dst_mac, address->peer_mac, sizeof(frame.dst_mac));
    by_frame_build(&frame, data);
    memcpy(data + BY_FRAME_HEADER_BYTES, tx->header, BY_WIRE_HEADER_BYTES);
    memcpy(data + BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES, by_tx_payload(tx), tx->payload_bytes);
    by_port_send(&dpdk->ports[tx->port], buffer);
}

static void dpdk_tx(struct by_transport *transport, const struct by_tx *const *tx, uint32_t count,
                    const struct by_rx *rx)
{
    struct dpdk *dpdk = (struct dpdk *)transport;

    (void)rx;
    for (uint32_t i = 0; i < count; i++) {
        if (tx[i]->port >= transport->port_count)
            continue;
        if (tx[i]->kind == BY_TX_SEND)
            send_one(dpdk, tx[i]);
        else
            dpdk->unsent[tx[i]->port]++; /* frames to others are not accepted: hosts do not relay */
    }
    for (uint32_t i = 0; i < transport->port_count; i++) {
        struct by_port *port = &dpdk->ports[i];

        if (port->queued > 0)
            by_port_flush(port);
        transport->ports[i].tx_packets = port->counters.tx_packets;
        transport->ports[i].tx_bytes = port->counters.tx_bytes;
        transport->ports[i].tx_drop = port->counters.tx_dropped + dpdk->unsent[i];
    }
}

static uint32_t dpdk_fds(struct by_transport *transport, struct pollfd *fds)
{
    struct dpdk *dpdk = (struct dpdk *)transport;
    bool wakes = true;
    uint32_t count = 0;

    for (uint32_t i = 0; i < transport->port_count; i++) {
        struct by_port *port = &dpdk->ports[i];

        if (!by_port_settle(port) || port->bell_count == 0)
            wakes = false;
        for (unsigned j = 0; j < port->bell_count; j++)
            fds[count++] = (struct pollfd){.fd = port->bells[j], .events = POLLIN};
    }
    if (!wakes) {
        struct itimerspec nap = {.it_value.tv_nsec = dpdk->nap_ns};

        timerfd_settime(dpdk->nap_fd, 0, &nap, NULL);
        dpdk->nap_ns = RTE_MIN(dpdk->nap_ns * 2, NAP_LAST_NS);
        fds[count++] = (struct pollfd){.fd = dpdk->nap_fd, .events = POLLIN};
    }
    return count;
}

/* ---- open and close ---- */

/* Frees a transport, open or partly open. Call with the lock. */
static void release(struct dpdk *dpdk)
{
    for (struct dpdk **each = &first_open; *each != NULL; each = &(*each)->next) {
        if (*each == dpdk) {
            *each = dpdk->next;
            break;
        }
    }
    rte_pktmbuf_free_bulk(dpdk->held, dpdk->held_count);
    for (uint32_t i = 0; i < dpdk->base.port_count; i++) {
        if (dpdk->ports != NULL)
            by_port_close(&dpdk->ports[i]);
        if (dpdk->reserved[i] >= 0)
            close(dpdk->reserved[i]);
    }
    rte_mempool_free(dpdk->pool);
    if (dpdk->nap_fd >= 0)
        close(dpdk->nap_fd);
    free(dpdk->ports);
    free(dpdk);
}

static void dpdk_close(struct by_transport *transport)
{
    pthread_mutex_lock(&lock);
    by_say_to(take_line);
    release((struct dpdk *)transport);
    pthread_mutex_unlock(&lock);
}

static const struct by_transport_ops dpdk_ops = {"dpdk",   dpdk_rx,    dpdk_rx_done, dpdk_tx,
                                                 dpdk_fds, dpdk_close, NULL};

static int find_devices(struct dpdk *dpdk, const struct by_transport_config *config)
{
    struct by_port_spec spec[BY_PORTS_MAX];
    struct by_image_header header;
    int error;

    by_image_header(config->image, &header);
    dpdk->base.port_count = header.count[BY_SECTION_PORT];
    for (uint32_t i = 0; i < dpdk->base.port_count; i++)
        by_image_port(config->image, i, &dpdk->address[i]);
    error = by_dpdk_devices_read(config->settings->value[BY_SETTING_DPDK_PORTS], dpdk->address,
                                 dpdk->base.port_count, dpdk->device, said, sizeof(said));
    for (uint32_t i = 0; i < dpdk->base.port_count; i++) {
        spec[i] = (struct by_port_spec){.kind = dpdk->device[i].kind, .text = dpdk->device[i].text};
        for (const struct dpdk *other = first_open; error == 0 && other != NULL; other = other->next)
            for (uint32_t j = 0; error == 0 && j < other->base.port_count; j++)
                if (spec[i].kind != BY_PORT_IFACE && strcmp(other->device[j].text, spec[i].text) == 0) {
                    snprintf(said, sizeof(said),
                             "%s is used by another communicator of this process: a device serves one "
                             "communicator; destroy the other first",
                             spec[i].text);
                    error = BY_EBUSY;
                }
    }
    return error != 0 ? error : by_port_check_all(spec, dpdk->base.port_count);
}

/* Splits BANYAN_DPDK_OPTIONS at blanks; the words stay valid as long as `text`. */
static unsigned split_options(char *text, char *options[OPTIONS_MAX])
{
    unsigned count = 0;
    char *rest = NULL;

    for (char *word = strtok_r(text, " \t", &rest); word != NULL && count < OPTIONS_MAX;
         word = strtok_r(NULL, " \t", &rest))
        options[count++] = word;
    return count;
}

/* Starts DPDK with the cards of the first transport; it can be started once in a process. */
static int start_dpdk(const struct dpdk *dpdk, const struct by_transport_config *config)
{
    static char words[BY_SETTING_BYTES_MAX];
    static int outcome;
    const char *pci[BY_PORTS_MAX];
    struct by_image_header header;
    char *options[OPTIONS_MAX];
    struct by_eal_config eal = {.pci = pci, .extra = options, .port_count = dpdk->base.port_count};

    for (uint32_t i = 0; i < dpdk->base.port_count; i++)
        if (dpdk->device[i].kind == BY_PORT_PCI)
            pci[eal.pci_count++] = dpdk->device[i].text;
    if (is_started) {
        if (outcome != 0 && said[0] == 0)
            snprintf(said, sizeof(said),
                     "DPDK did not start before in this process, and can be started once");
        return outcome;
    }
    by_image_header(config->image, &header);
    eal.name = header.name;
    snprintf(words, sizeof(words), "%s", config->settings->value[BY_SETTING_DPDK_OPTIONS]);
    eal.extra_count = split_options(words, options);
    outcome = by_eal_start(&eal);
    is_started = true;
    return outcome;
}

/* Reserves the job's address where the kernel sees the packets too. It need not have the
 * address. */
static int reserve(struct dpdk *dpdk, uint32_t index)
{
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(dpdk->address[index].own_ip),
                                  .sin_port = htons(dpdk->udp_port)};
    int least = 1;
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    dpdk->reserved[index] = fd;
    if (fd < 0) {
        by_say("no socket: %s", strerror(errno));
        return BY_EIO;
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least, sizeof(least)); /* never read */
    if (bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0 || errno == EADDRNOTAVAIL)
        return 0;
    by_say("%s:%u (%s) cannot be bound: %s; does another process run this job here?",
           inet_ntoa(address.sin_addr), dpdk->udp_port, dpdk->address[index].name, strerror(errno));
    return errno == EADDRINUSE ? BY_EBUSY : BY_EIO;
}

static int probe_port(struct dpdk *dpdk, uint32_t index, unsigned driver, uint16_t payload_max)
{
    const struct by_port_spec spec = {.kind = dpdk->device[index].kind, .text = dpdk->device[index].text};
    struct by_port *port = &dpdk->ports[index];
    /* the index is part of a virtual device's name */
    int error = by_port_probe(port, opened * BY_PORTS_MAX + index, &spec, driver);

    if (error != 0)
        return error;
    by_port_raise(port, payload_max);
    if (by_port_payload_max(port) < payload_max) {
        by_say("%s has an MTU of %u; chunks of %u bytes need %u: raise it, or make tables with --mtu %u",
               spec.text, port->mtu, payload_max, payload_max + BY_PORT_MTU_OVERHEAD, port->mtu);
        return BY_ELIMIT;
    }
    return spec.kind == BY_PORT_IFACE ? reserve(dpdk, index) : 0;
}

/* Creates the pool of buffers, for what the rings of all ports hold. */
static int make_pool(struct dpdk *dpdk)
{
    unsigned frames = FRAMES_BASE;
    size_t room = 0;
    bool device = false;
    char name[32];

    for (uint32_t i = 0; i < dpdk->base.port_count; i++) {
        const struct by_port *port = &dpdk->ports[i];

        frames += port->frames_held + BY_PORT_BURST;
        room = RTE_MAX(room, by_port_buffer_bytes(port));
        device = device || port->kind == BY_PORT_PCI;
    }
    snprintf(name, sizeof(name), "host%u", opened);
    dpdk->pool = by_pool_make(name, frames, 0, room + RTE_PKTMBUF_HEADROOM, device);
    return dpdk->pool != NULL ? 0 : BY_ENOMEM;
}

/* Adds the port's device to the note about the transport. */
static void note_port(struct dpdk *dpdk, uint32_t index)
{
    size_t used = strlen(dpdk->base.note);

    snprintf(dpdk->base.note + used, sizeof(dpdk->base.note) - used, "%s%s %s", used > 0 ? ", " : "",
             dpdk->device[index].text, by_port_pmd(&dpdk->ports[index]));
}

static int open_all(struct dpdk *dpdk, const struct by_transport_config *config)
{
    unsigned driver = by_driver_named("BANYAN_DPDK_DRIVER", config->settings->value[BY_SETTING_DPDK_DRIVER]);
    int error;

    if (driver == BY_DRIVER_NONE)
        return BY_EINVAL;
    if (driver == BY_DRIVER_XDP) {
        by_say("BANYAN_DPDK_DRIVER=xdp is a driver of switches: use af_packet, af_xdp, ring, gso or auto");
        return BY_EUNSUPPORTED;
    }
    error = find_devices(dpdk, config);
    if (error == 0)
        error = start_dpdk(dpdk, config);
    dpdk->ports = error == 0 ? calloc(dpdk->base.port_count, sizeof(*dpdk->ports)) : NULL;
    if (error == 0 && dpdk->ports == NULL)
        error = BY_ENOMEM;
    for (uint32_t i = 0; error == 0 && i < dpdk->base.port_count; i++)
        error = probe_port(dpdk, i, driver, config->payload_max);
    if (error == 0)
        error = make_pool(dpdk);
    for (uint32_t i = 0; error == 0 && i < dpdk->base.port_count; i++) {
        error = by_port_start(&dpdk->ports[i], dpdk->pool, config->payload_max, NULL);
        if (error == 0)
            note_port(dpdk, i);
    }
    dpdk->nap_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    if (error == 0 && dpdk->nap_fd < 0) {
        by_say("no timer: %s", strerror(errno));
        error = BY_EIO;
    }
    return error;
}

static int plugin_open(const struct by_transport_config *config, struct by_transport **transport, char *text,
                       size_t text_bytes)
{
    struct dpdk *dpdk = calloc(1, sizeof(*dpdk));
    int error;

    if (dpdk == NULL) {
        snprintf(text, text_bytes, "no memory for a transport: %zu bytes", sizeof(*dpdk));
        return BY_ENOMEM;
    }
    pthread_mutex_lock(&lock);
    said[0] = 0;
    by_say_to(take_line);
    for (uint32_t i = 0; i < BY_PORTS_MAX; i++)
        dpdk->reserved[i] = -1;
    dpdk->nap_fd = -1;
    dpdk->nap_ns = NAP_FIRST_NS;
    dpdk->base.ops = &dpdk_ops;
    dpdk->udp_port = config->udp_port;
    error = open_all(dpdk, config);
    opened++;
    snprintf(text, text_bytes, "%s", said[0] != 0 || error == 0 ? said : by_error_text(error));
    if (error != 0) {
        release(dpdk);
    } else {
        /* Trees are spread over the ports, so the buffers of the ports add up. */
        dpdk->base.inflight_max = RX_FRAMES * dpdk->base.port_count;
        dpdk->next = first_open;
        first_open = dpdk;
        *transport = &dpdk->base;
    }
    pthread_mutex_unlock(&lock);
    return error;
}

/* DPDK's files are removed when the process ends. */
__attribute__((destructor)) static void stop_dpdk(void)
{
    if (is_started && first_open == NULL)
        by_eal_stop();
}

__attribute__((visibility("default"))) extern const struct by_dpdk_plugin by_dpdk_plugin;
const struct by_dpdk_plugin by_dpdk_plugin = {.version = BY_VERSION,
                                              .transport_bytes = sizeof(struct by_transport),
                                              .settings_bytes = sizeof(struct by_settings),
                                              .open = plugin_open};
