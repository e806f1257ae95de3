/*
 * The command `banyan sim`: lowers plans to the tables that nodes load; banyan-sim runs them on
 * links with the topology's rates. This command has the proved bounds, and banyan-sim the model of
 * a fabric; they exchange a folder and a JSON object. Single-threaded; one child process.
 */
#include "control/cli/sim.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/unit.h"
#include "offload/wire/types.h"

/* Slots of a simulated node: enough for all windows of its trees. */
#define SLOTS_MAX (1u << 24)

static int read_plans(struct sim *sim)
{
    for (uint32_t i = 0; i < sim->options.plan_count; i++) {
        struct by_problem problem = {0};

        if (by_plan_read(sim->options.plans[i], sim->topology, &sim->plans[i], &problem) != 0)
            return by_cli_refuse(sim->options.plans[i], &problem);
        if (sim->plans[i]->shares)
            return by_cli_fail(
                BY_EXIT_USAGE,
                "%s: the plan is for shares of unequal size; the simulation supports only equal ones: plan "
                "it again without --shares",
                sim->options.plans[i]);
    }
    return 0;
}

/* Chooses the collective and root of the run: the requested ones, or those of the first plan. */
static int choose_call(struct sim *sim)
{
    const struct sim_options *options = &sim->options;
    bool rooted;

    sim->ranks = by_lowering_rank_count(sim->lowering, 1);
    sim->collective = options->collective ? options->collective : sim->plans[0]->collective;
    rooted = by_collective_is_rooted(sim->collective);
    if (options->root >= sim->ranks)
        return by_cli_fail(BY_EXIT_USAGE, "--root %" PRId64 ": %s has ranks 0 to %u", options->root,
                           options->topology, sim->ranks - 1);
    sim->root = options->root >= 0 ? (uint32_t)options->root : 0;
    for (uint32_t i = 0; i < options->plan_count && sim->plan == NULL; i++) {
        const struct by_plan *plan = sim->plans[i];

        if (plan->collective != sim->collective)
            continue;
        if (rooted && options->root >= 0 &&
            by_lowering_rank(sim->lowering, 1, (uint32_t)plan->root) != sim->root)
            continue;
        sim->plan = plan;
        if (rooted)
            sim->root = by_lowering_rank(sim->lowering, 1, (uint32_t)plan->root);
    }
    if (by_unit_bytes(sim->topology->unit, (struct by_fraction){1, 1}, &sim->unit) != 0)
        return by_cli_fail(
            BY_EXIT_USAGE,
            "%s: the unit is '%s', which does not count bytes; a simulation needs one that does: %s",
            options->topology, sim->topology->unit, by_unit_list());
    return 0;
}

static int lower(struct sim *sim, uint32_t mtu, uint32_t window)
{
    struct by_lower_options options = {.window = window, .slots = SLOTS_MAX, .mtu = mtu, .bare = true};
    struct by_lower_job job = {
        .job = 1, .plan_count = sim->options.plan_count, .plans = (const struct by_plan *const *)sim->plans};
    struct by_problem problem = {0};

    by_lowering_free(sim->lowering);
    sim->lowering = NULL;
    if (by_lower(sim->topology, &job, 1, &options, &sim->lowering, &problem) != 0)
        return by_cli_refuse(sim->options.topology, &problem);
    return 0;
}

/*
 * Chooses the elements of a call. Bytes are counted as in nccl-tests: those of all shards together.
 * Only the first frame of a batch is simulated.
 */
static int choose_size(struct sim *sim)
{
    bool sharded = by_collective_is_sharded(sim->collective);
    uint64_t unit = (uint64_t)SIM_ELEMENT * (sharded ? sim->ranks : 1) * sim->choice.batch;

    if (sim->collective == BY_COLLECTIVE_BARRIER)
        return 0;
    sim->count = sim->options.bytes / unit;
    sim->bytes = sim->count * unit;
    if (sim->count == 0)
        return by_cli_fail(BY_EXIT_USAGE, "--bytes %" PRIu64 ": %s of %u ranks needs %" PRIu64 " or more",
                           sim->options.bytes, by_collective_name(sim->collective), sim->ranks, unit);
    return 0;
}

static int make_folder(struct sim *sim)
{
    const char *base = getenv("TMPDIR");

    snprintf(sim->folder, sizeof(sim->folder), "%.400s/banyan-sim-XXXXXX",
             base != NULL && base[0] == '/' && strlen(base) < 400 ? base : "/tmp");
    if (mkdtemp(sim->folder) != NULL)
        return 0;
    sim->folder[0] = 0;
    return by_cli_fail(BY_EXIT_ENVIRONMENT, "sim: cannot make a folder for the tables: %s; set TMPDIR",
                       strerror(errno));
}

static void remove_folder(struct sim *sim)
{
    DIR *directory;

    if (sim->folder[0] == 0 || sim->options.keep)
        return;
    directory = opendir(sim->folder);
    if (directory == NULL)
        return;
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(directory), entry->d_name, 0);
    closedir(directory);
    rmdir(sim->folder);
}

/* The running child, or 0. Global, because a signal handler has no other arguments. */
static volatile sig_atomic_t child;

/* Ends the child with the same signal, then removes the folder. */
static void on_signal(int signal_number)
{
    if (child > 0)
        kill((pid_t)child, signal_number);
}

static void catch_signals(bool on)
{
    struct sigaction action = {.sa_handler = on ? on_signal : SIG_DFL};

    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, &action, NULL);
}

/* Runs in the child. Does not return. */
static void become(const struct sim *sim, const char *result)
{
    char program[SIM_PATH + 32];
    ssize_t bytes = readlink("/proc/self/exe", program, SIM_PATH - 1);
    int out = open(result, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    char *slash;

    program[bytes > 0 ? bytes : 0] = 0;
    slash = strrchr(program, '/');
    snprintf(slash != NULL ? slash + 1 : program, 16, "banyan-sim");
    catch_signals(false);
    if (out >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execl(program, "banyan-sim", sim->folder, (char *)NULL);
    fprintf(stderr, "banyan: sim: cannot run %s: %s: build it first (`make`)\n", program, strerror(errno));
    _exit(BY_EXIT_ENVIRONMENT);
}

int sim_run(struct sim *sim)
{
    char result[SIM_PATH + 32];
    int ended = 0, status = sim_work_write(sim);
    pid_t pid;

    if (status != 0)
        return status;
    json_decref(sim->result);
    sim->result = NULL;
    snprintf(result, sizeof(result), "%s/result.json", sim->folder);
    fflush(NULL);
    catch_signals(true);
    pid = fork();
    if (pid == 0)
        become(sim, result);
    child = pid;
    while (pid > 0 && waitpid(pid, &ended, 0) < 0 && errno == EINTR)
        ;
    child = 0;
    catch_signals(false);
    if (pid < 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "sim: fork: %s", strerror(errno));
    if (!WIFEXITED(ended))
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "sim: banyan-sim ended by signal %d", WTERMSIG(ended));
    sim->status = WEXITSTATUS(ended);
    sim->result = json_load_file(result, 0, NULL);
    if (sim->result == NULL)
        return sim->status != 0 ? sim->status
                                : by_cli_fail(BY_EXIT_ENVIRONMENT, "sim: banyan-sim left no result");
    return 0;
}

static int simulate(struct sim *sim)
{
    int status;

    sim->topology = by_cli_topology(sim->options.topology);
    if (sim->topology == NULL)
        return BY_EXIT_USAGE;
    status = read_plans(sim);
    if (status == 0)
        status = lower(sim, BY_LOWER_MTU, 1);
    if (status == 0)
        status = choose_call(sim);
    if (status != 0)
        return status;
    sim_choose(sim);
    status = choose_size(sim);
    if (status == 0)
        status = lower(sim, sim->choice.chunk + BY_LOWER_HEADER_BYTES - 14, sim->choice.window);
    if (status == 0)
        status = make_folder(sim);
    if (status == 0 && sim->options.sweep.word != NULL)
        return sim_sweep(sim);
    if (status == 0)
        status = sim_run(sim);
    if (status == 0 && sim->options.series != NULL)
        status = sim_series_write(sim);
    return status != 0 ? status : sim_report(sim);
}

int by_command_sim(int argc, char **argv)
{
    struct sim sim = {0};
    int status = sim_options_read(argc, argv, &sim.options);

    if (status != 0)
        return status < 0 ? BY_EXIT_DONE : status;
    status = simulate(&sim);
    if (sim.options.keep && sim.folder[0] != 0 && !sim.options.json)
        printf("# the folder of banyan-sim: %s\n", sim.folder);
    remove_folder(&sim);
    json_decref(sim.result);
    by_lowering_free(sim.lowering);
    for (uint32_t i = 0; i < sim.options.plan_count; i++)
        by_plan_free(sim.plans[i]);
    by_topology_free(sim.topology);
    return status;
}
