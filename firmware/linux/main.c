/*
 * banyan-switchd: a Linux machine as a banyan switch. Reads the command line and the board, opens
 * the control sockets, starts DPDK and the shell, reports that it is ready, and runs until a
 * signal. The main thread does everything, except for EAL's own threads, the watchdog, and with
 * several cores the other workers.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "dataplane/eal.h"
#include "dataplane/say.h"
#include "dataplane/shell.h"
#include "firmware/agent/agent.h"
#include "firmware/linux/board.h"
#include "firmware/linux/carrier.h"
#include "firmware/linux/cores.h"
#include "firmware/linux/node.h"
#include "firmware/linux/options.h"
#include "firmware/linux/server.h"
#include "firmware/linux/watchdog.h"
#include "offload/base/errors.h"
#include "offload/linux/notify.h"
#include "offload/linux/output.h"
#include "proto/control.pb.h"

#define EXIT_USAGE       2
#define EXIT_ENVIRONMENT 3
#define AGENT_ALIGNMENT  64u

static struct by_shell *volatile running;
static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    (void)number;
    signalled = 1;
    if (running)
        by_shell_stop(running);
}

static void catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};

    sigemptyset(&action.sa_mask);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Maps an error to an exit status: the user's fault (2) or the environment's (3). Reports the lack
 * of memory; other errors have been reported. */
static int status_of(int error)
{
    if (error == BY_ENOMEM)
        by_say("not enough memory to start: end other programs, or give fewer --slots or ports");
    switch (error) {
    case BY_EINVAL:
    case BY_ENOENT:
    case BY_ELIMIT:
    case BY_EFORMAT:
    case BY_EVERSION:
    case BY_ECHECKSUM:
    case BY_EEXIST:
        return EXIT_USAGE;
    default:
        return EXIT_ENVIRONMENT;
    }
}

static int open_shell(struct by_shell **shell, const struct by_switchd_options *options,
                      const struct by_board *board, const struct by_switchd_cores *cores,
                      struct by_server *server)
{
    struct by_shell_config config = {
        .name = options->name,
        .ports = options->ports,
        .port_count = options->port_count,
        .driver = options->driver ? options->driver : board->driver,
        .slot_count = options->slots ? options->slots : board->slots,
        .payload_max = options->payload_max,
        .payload_limit = board->payload_max,
        .entry_count = board->entries,
        .relay_count = board->relays,
        .image_bytes_max = board->image_bytes,
        .fault = options->fault,
        .worker_count = cores->workers,
        .cpus = cores->pinned ? cores->cpu : NULL,
        .one_queue = options->one_queue,
        .control_fd = by_server_fd(server),
        .control = by_server_serve,
        .control_context = server,
    };

    if (options->port_count > board->ports) {
        by_say("%u ports; board %s supports at most %u", options->port_count, board->name, board->ports);
        return BY_ELIMIT;
    }
    return by_shell_open(shell, &config);
}

/* Opens the agent that controls the shell, in memory that the caller frees. */
static int open_agent(struct by_agent **agent, void **memory, const struct by_switchd_options *options,
                      const struct by_board *board, struct by_switchd_node *node)
{
    struct by_agent_config config = {
        .name = options->name,
        .software = "banyan " BY_VERSION,
        .port_count = by_shell_port_count(node->shell),
        .slot_count = options->slots ? options->slots : board->slots,
        .payload_max = by_shell_payload_max(node->shell),
        .entry_max = board->entries,
        .relay_max = board->relays,
        .share_max = BY_SHARES_MAX,
        .able = (board->replicate ? by_Able_ABLE_REPLICATE : 0u) |
                (board->aggregate ? by_Able_ABLE_SUM | by_Able_ABLE_DET | by_Able_ABLE_EXACT : 0u) |
                by_Able_ABLE_STANDBY,
        .board = board->name,
        .image_bytes_max = board->image_bytes,
        .ops = &by_node_ops,
        .node = node,
    };
    size_t saved_bytes;

    if (node->store) {
        config.saved = by_switchd_store_saved(node->store, &saved_bytes);
        config.saved_bytes = (uint32_t)saved_bytes;
        if (saved_bytes > board->image_bytes) {
            by_say("the saved table has %zu bytes, board %s accepts %u: it is not offered", saved_bytes,
                   board->name, board->image_bytes);
            config.saved = NULL;
        }
    }

    if (getrandom(&config.boot_nonce, sizeof config.boot_nonce, 0) != (ssize_t)sizeof config.boot_nonce)
        config.boot_nonce = (uint64_t)getpid();
    if (posix_memalign(memory, AGENT_ALIGNMENT, by_agent_size(&config)) != 0) {
        by_say("no memory for the agent: %zu bytes", by_agent_size(&config));
        return BY_ENOMEM;
    }
    return by_agent_init(agent, *memory, by_agent_size(&config), &config);
}

static uint64_t pulse(void *shell)
{
    return by_shell_pulse(shell);
}

/* Reports a hung loop and ends the process, because the cause cannot be removed from here; the
 * supervisor restarts it. */
static void on_stuck(void *shell, uint64_t last, uint32_t still_ms)
{
    static const char *const places[] = {"starting", "at the control channel", "at its ports", "asleep"};
    char worker[32] = "";

    if (by_shell_worker_count(shell) > 1)
        snprintf(worker, sizeof worker, " of worker %u",
                 (unsigned)(last >> BY_PULSE_WORKER & (BY_WORKERS_MAX - 1)));
    by_say("the loop%s made no progress for %u s, %s: ending, to be restarted", worker, still_ms / 1000,
           places[last & BY_PULSE_MASK]);
    by_notify("STATUS=the loop made no progress");
    _exit(EXIT_ENVIRONMENT);
}

/* Moves packets until a signal, supervised by the watchdog. */
static int run_shell(struct by_shell *shell, const struct by_switchd_options *options)
{
    const struct by_watchdog_config config = {.limit_ms = options->watchdog_s * 1000,
                                              .notify_ms = by_notify_watchdog_ms(),
                                              .pulse = pulse,
                                              .stuck = on_stuck,
                                              .context = shell};
    struct by_watchdog *watchdog;
    int result = by_watchdog_start(&watchdog, &config);

    if (result != 0) {
        by_say("cannot start a thread to watch the loop; --watchdog 0 runs without it");
        return result;
    }
    printf("banyan-switchd: %s: ready, %u ports, control %s", options->name, by_shell_port_count(shell),
           options->control_count ? options->control[0] : "none");
    printf(by_shell_worker_count(shell) > 1 ? ", %u workers\n" : "\n", by_shell_worker_count(shell));
    fflush(stdout);
    by_notify("READY=1");
    by_shell_run(shell);
    by_notify("STOPPING=1");
    by_watchdog_stop(watchdog);
    return 0;
}

/* Runs everything that needs a started EAL. */
static int run(const struct by_switchd_options *options, const struct by_board *board,
               const struct by_switchd_cores *cores, struct by_server *server)
{
    struct by_shell *shell;
    struct by_switchd_node node = {.name = options->name};
    struct by_carrier *carrier = NULL;
    struct by_agent *agent;
    void *memory = NULL;
    int result = open_shell(&shell, options, board, cores, server);

    if (result != 0)
        return result;
    node.shell = shell;
    if (options->state && (result = by_switchd_store_open(&node.store, options->state, options->name)) != 0)
        goto out;
    result = open_agent(&agent, &memory, options, board, &node);
    if (result != 0)
        goto out;
    if (options->table && (result = by_node_load(shell, options->table)) != 0)
        goto out;
    carrier = by_node_carrier(shell);
    if (!carrier) {
        result = BY_ENOMEM;
        goto out;
    }
    by_server_attach(server, agent);
    by_server_watch(server, carrier);
    running = shell;
    if (!signalled)
        result = run_shell(shell, options);
    running = NULL;
out:
    by_server_watch(server, NULL);
    by_carrier_close(carrier);
    by_switchd_store_close(node.store);
    by_shell_close(shell);
    free(memory);
    return result;
}

static int serve(int argc, char **argv)
{
    struct by_switchd_options options;
    struct by_board board;
    struct by_switchd_cores cores;
    struct by_server *server;
    cpu_set_t may;
    const char *pci[BY_PORTS_MAX];
    struct by_eal_config eal = {.pci = pci};
    int result = by_switchd_options_parse(&options, argc, argv);

    if (result >= 0)
        return result;
    by_say_name(options.name);
    if (sched_getaffinity(0, sizeof may, &may) != 0) {
        CPU_ZERO(&may);
        CPU_SET(0, &may);
    }
    if ((result = by_switchd_cores_choose(&cores, options.cores, options.workers, &may)) != 0)
        return status_of(result);
    if ((result = by_board_read(options.board ? options.board : by_board_default(), &board)) != 0)
        return status_of(result);
    catch_signals();
    if ((result = by_server_open(&server, options.control, options.control_count, options.keys)) != 0)
        return status_of(result);
    eal.name = options.name;
    eal.port_count = options.port_count;
    eal.no_huge = options.no_huge;
    eal.extra = options.eal;
    eal.extra_count = options.eal_count;
    for (unsigned i = 0; i < options.port_count; i++)
        if (options.ports[i].kind == BY_PORT_PCI)
            pci[eal.pci_count++] = options.ports[i].text;
    result = by_port_check_all(options.ports, options.port_count);
    if (result == 0 && (result = by_eal_start(&eal)) == 0) {
        result = run(&options, &board, &cores, server);
        by_eal_stop();
    }
    by_server_close(server);
    return result == 0 ? 0 : status_of(result);
}

int main(int argc, char **argv)
{
    return by_output_end(serve(argc, argv));
}
