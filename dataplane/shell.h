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
    unsigned worker_count; /* at most BY_WORKERS_MAX; 0: one */
    const int *cpus;       /* the core of each worker; NULL: any */
    bool one_queue;        /* ports have one queue in each direction, also with several workers */
    /* The control channel: `control_fd` is readable (epoll) when `control(context)` has work.
     * -1: none. */
    int control_fd;
    void (*control)(void *context);
    void *control_context;
};

/* X(name, "help"): counters of the shell since the start, beside those of its batch. */
#define BY_SHELL_COUNTER_LIST(X)                                                                             \
    X(busy_ns, "nanoseconds of the rounds in which frames arrived")                                          \
    X(handed, "frames handed over to the worker that has their chunks")                                      \
    X(hand_full, "frames dropped, because too many waited for their worker")                                 \
    X(kernel_relayed, "packets that the kernel relayed (driver xdp), not seen by the switch")                \
    X(kernel_replicated, "packets sent as copies made by the kernel (drivers xdp and ring)")                 \
    X(kernel_lost, "packets or copies for which the kernel had no space (drivers xdp and ring)")

struct by_shell_counters {
    struct by_batch_counters batch;
#define X(name, help) uint64_t name;
    BY_SHELL_COUNTER_LIST(X)
#undef X
};

/* Current place of the loop, in the low bits of a pulse, and where there are several loops, the
 * number of the one that has not moved for the longest time. */
enum by_pulse { BY_PULSE_CONTROL = 1, BY_PULSE_PORTS, BY_PULSE_REST };
#define BY_PULSE_MASK   3u
#define BY_PULSE_WORKER 2u /* the first bit of that number, and the first one behind it */
#define BY_PULSE_BITS   8u

/* Opens the ports, creates pools and the engine. 0, or an error, reported: BY_ENOENT, BY_EINVAL and
 * BY_ELIMIT are due to the user's arguments, others to the environment. */
int by_shell_open(struct by_shell **shell, const struct by_shell_config *config);
/* Moves packets until by_shell_stop. */
void by_shell_run(struct by_shell *shell);
/* Ends the run soon. Safe in a signal handler and from any thread. */
void by_shell_stop(struct by_shell *shell);
void by_shell_close(struct by_shell *shell);
/* Returns a number that changes with the progress of all loops, about once a second at least; its
 * low bits are a loop's place. One thread, any. */
uint64_t by_shell_pulse(const struct by_shell *shell);
unsigned by_shell_worker_count(const struct by_shell *shell);

/* Returns the engine of the first worker, for readers of its table. */
struct by_engine *by_shell_engine(struct by_shell *shell);
/* As the functions of the engine, for all workers' engines. A stage also refuses tables that these
 * ports cannot serve: an interface of another VLAN, or IPv6 with a driver that has none. A commit
 * also sets the ports' addresses from the table; no worker moves a packet meanwhile. */
int by_shell_stage(struct by_shell *shell, const uint8_t *image, size_t bytes, struct by_image_fault *fault);
int by_shell_commit(struct by_shell *shell);
void by_shell_abort(struct by_shell *shell);
int by_shell_share(struct by_shell *shell, uint32_t index, struct by_engine_share *out);
int by_shell_oldest(struct by_shell *shell, uint32_t entry, struct by_bank_view *view);
int by_shell_bank(struct by_shell *shell, uint32_t entry, uint32_t slot, unsigned bank,
                  struct by_bank_view *view);
const struct by_engine_counters *by_shell_engine_counters(struct by_shell *shell);
uint32_t by_shell_payload_max(const struct by_shell *shell);
unsigned by_shell_port_count(const struct by_shell *shell);
struct by_port *by_shell_port(struct by_shell *shell, unsigned index);
/* The counters of port `index`, of all workers. */
void by_shell_port_read(struct by_shell *shell, unsigned index, struct by_dp_port_counters *counters);
/* Returns the address of a neighbour at a port that does not answer ARP or neighbour discovery; 0:
 * there is none. */
uint32_t by_shell_silent(struct by_shell *shell, unsigned index);
const struct by_shell_counters *by_shell_counters(struct by_shell *shell);
/* facts.c: sends an LLDP frame on each port that has a cable. It states `name`, the switch's,
 * and the name of the port. */
void by_shell_announce(struct by_shell *shell, const char *name);
/* Returns what the port has heard of its neighbour, or NULL; as by_batch_neighbour. Valid until the
 * request is served. */
const struct by_lldp *by_shell_neighbour(struct by_shell *shell, unsigned index);

#endif
