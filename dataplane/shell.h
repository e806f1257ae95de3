/*
 * The DPDK shell of a switch: ports, packet pools, the loop that moves packets between them and the
 * engine, and what people see through rte_telemetry. It takes no protocol decision: what a packet
 * means is the engine's business.
 *
 *   by_eal_start -> by_shell_open -> by_shell_run (until by_shell_stop) -> by_shell_close ->
 * by_eal_stop
 *
 * One thread calls everything but by_shell_stop and by_shell_pulse, which any thread or signal
 * handler may call. The control channel is served by the same thread, between two steps, so a
 * commit happens between two packets without a lock.
 */
#ifndef BY_DATAPLANE_SHELL_H
#define BY_DATAPLANE_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port.h"
#include "offload/base/fault.h"
#include "offload/engine/engine.h"

struct by_shell;

struct by_shell_config {
    const char *name;
    const struct by_port_spec *ports;
    unsigned port_count;
    unsigned driver; /* enum by_port_driver, for interfaces */
    uint32_t slot_count;
    uint32_t payload_max;   /* bytes; 0: what fits all ports, at most payload_limit: 8192, 1408 or less */
    uint32_t payload_limit; /* bytes, of the board */
    uint32_t entry_count;
    uint32_t relay_count;
    uint32_t image_bytes_max;
    struct by_fault fault; /* injected at receive */
    /* The control channel: `control_fd` is readable (epoll) when `control(context)` has something
     * to do. -1 for none. */
    int control_fd;
    void (*control)(void *context);
    void *control_context;
};

/* X(name, "help"): counts of the shell since start. */
#define BY_SHELL_COUNTER_LIST(X)                                                                             \
    X(loops, "rounds over all ports")                                                                        \
    X(busy_ns, "nanoseconds of the rounds in which frames came")                                             \
    X(sleeps, "times that the switch slept because nothing came")                                            \
    X(steps, "batches given to the engine")                                                                  \
    X(rx_other, "frames that are not banyan's: passed over")                                                 \
    X(rx_not_ours, "banyan frames for another MAC address or UDP port")                                      \
    X(rx_unaddressed, "frames on a port that the table does not name")                                       \
    X(arp_replies, "ARP requests answered")                                                                  \
    X(fault_dropped, "frames dropped on purpose (--loss)")                                                   \
    X(fault_duplicated, "frames doubled on purpose (--dup)")                                                 \
    X(fault_held, "frames held back on purpose (--reorder)")                                                 \
    X(tx_shared, "packets sent as a header chained to a shared payload")                                     \
    X(tx_copied, "packets sent as a copy, since the port takes no chains or the payload is not shared")      \
    X(tx_relayed, "packets relayed in the buffer that they came in")                                         \
    X(kernel_relayed, "packets relayed in the kernel (driver xdp), which the switch has not seen")           \
    X(kernel_replicated, "packets sent as copies that the kernel made (drivers xdp and ring)")               \
    X(kernel_lost, "packets, or copies, that the kernel had no place for (drivers xdp and ring)")            \
    X(tx_no_memory, "packets dropped: no packet buffer")                                                     \
    X(tx_no_port, "packets dropped: the port does not exist or has no address")

struct by_shell_counters {
#define X(name, help) uint64_t name;
    BY_SHELL_COUNTER_LIST(X)
#undef X
};

/* Where the loop is, in a pulse's low bits. */
enum by_pulse { BY_PULSE_CONTROL = 1, BY_PULSE_PORTS, BY_PULSE_REST };
#define BY_PULSE_MASK 3u

/* Opens the ports, makes pools and the engine. 0, or what failed, reported: BY_ENOENT, BY_EINVAL
 * and BY_ELIMIT are the user's, the rest the environment's. */
int by_shell_open(struct by_shell **shell, const struct by_shell_config *config);
/* Moves packets until by_shell_stop. */
void by_shell_run(struct by_shell *shell);
/* Ends the run soon. Safe in a signal handler and from any thread. */
void by_shell_stop(struct by_shell *shell);
void by_shell_close(struct by_shell *shell);
/* Another number whenever the loop has moved, at least once a second; where it is in the low bits.
 * Any thread. */
uint64_t by_shell_pulse(const struct by_shell *shell);

/* The engine; its table changes only through by_shell_commit, so that the ports' addresses follow
 * it. */
struct by_engine *by_shell_engine(struct by_shell *shell);
/* Commits the engine's staged table and takes the ports' addresses from it. As by_engine_commit. */
int by_shell_commit(struct by_shell *shell);
uint32_t by_shell_payload_max(const struct by_shell *shell);
unsigned by_shell_port_count(const struct by_shell *shell);
struct by_port *by_shell_port(struct by_shell *shell, unsigned index);
const struct by_shell_counters *by_shell_counters(struct by_shell *shell);

#endif
