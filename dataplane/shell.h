/*
 * The DPDK shell of a switch: ports, packet pools, the loop that moves packets between them and the
 * engine, and the statistics in rte_telemetry. It takes no protocol decisions; the engine
 * interprets the packets.
 *
 *   by_eal_start -> by_shell_open -> by_shell_run (until by_shell_stop) -> by_shell_close
 *   -> by_eal_stop
 *
 * One thread calls everything except by_shell_stop and by_shell_pulse, which any thread or signal
 * handler may call. The same thread serves the control channel between two steps, so a commit
 * happens between two packets without a lock.
 */
#ifndef BY_DATAPLANE_SHELL_H
#define BY_DATAPLANE_SHELL_H

#include <stdbool.h>
#include <stdint.h>

#include "dataplane/port.h"
#include "offload/engine/engine.h"
#include "offload/shell/batch.h"

struct by_shell;

struct by_shell_config {
    const char *name;
    const struct by_port_spec *ports;
    unsigned port_count;
    unsigned driver; /* enum by_port_driver, for interfaces */
    uint32_t slot_count;
    /* bytes; 0: the largest that fits all ports, up to payload_limit: 8192, 1408 or less */
    uint32_t payload_max;
    uint32_t payload_limit; /* bytes; limit of the board */
    uint32_t entry_count;
    uint32_t relay_count;
    uint32_t image_bytes_max;
    struct by_fault fault; /* injected at receive */
    /* The control channel: `control_fd` is readable (epoll) when `control(context)` has work.
     * -1: none. */
    int control_fd;
    void (*control)(void *context);
    void *control_context;
};

/* X(name, "help"): counters of the shell since the start, beside those of its batch. */
#define BY_SHELL_COUNTER_LIST(X)                                                                             \
    X(busy_ns, "nanoseconds of the rounds in which frames arrived")                                          \
    X(kernel_relayed, "packets that the kernel relayed (driver xdp), not seen by the switch")                \
    X(kernel_replicated, "packets sent as copies made by the kernel (drivers xdp and ring)")                 \
    X(kernel_lost, "packets or copies for which the kernel had no space (drivers xdp and ring)")

struct by_shell_counters {
    struct by_batch_counters batch;
#define X(name, help) uint64_t name;
    BY_SHELL_COUNTER_LIST(X)
#undef X
};

/* Current place of the loop, in the low bits of a pulse. */
enum by_pulse { BY_PULSE_CONTROL = 1, BY_PULSE_PORTS, BY_PULSE_REST };
#define BY_PULSE_MASK 3u

/* Opens the ports, creates pools and the engine. 0, or an error, reported: BY_ENOENT, BY_EINVAL and
 * BY_ELIMIT are due to the user's arguments, others to the environment. */
int by_shell_open(struct by_shell **shell, const struct by_shell_config *config);
/* Moves packets until by_shell_stop. */
void by_shell_run(struct by_shell *shell);
/* Ends the run soon. Safe in a signal handler and from any thread. */
void by_shell_stop(struct by_shell *shell);
void by_shell_close(struct by_shell *shell);
/* Returns a number that changes with the loop's progress, at least once a second; its low bits are
 * the loop's place. Any thread. */
uint64_t by_shell_pulse(const struct by_shell *shell);

/* Returns the engine. Its table must change only through by_shell_commit, which keeps the ports'
 * addresses consistent with it. */
struct by_engine *by_shell_engine(struct by_shell *shell);
/* Commits the engine's staged table and sets the ports' addresses from it. Returns as
 * by_engine_commit. */
int by_shell_commit(struct by_shell *shell);
uint32_t by_shell_payload_max(const struct by_shell *shell);
unsigned by_shell_port_count(const struct by_shell *shell);
struct by_port *by_shell_port(struct by_shell *shell, unsigned index);
const struct by_shell_counters *by_shell_counters(struct by_shell *shell);
/* facts.c: sends an LLDP frame on each port that has a cable. It states `name`, the switch's,
 * and the name of the port. */
void by_shell_announce(struct by_shell *shell, const char *name);
/* facts.c: returns what the port has heard of its neighbour, or NULL; as by_batch_neighbour. */
const struct by_lldp *by_shell_neighbour(const struct by_shell *shell, unsigned index);

#endif
