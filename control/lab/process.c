/*
 * The lab's children: banyan-switchd, banyan-perf or a program of the user, and the process of the
 * wires (wire.c), which is a copy of the lab. Each runs in its node's namespace, entered
 * with setns only, so mounts stay unchanged. Each has its own process group: Ctrl-C reaches only
 * the lab, which ends the children in order. They die with the lab, unless it is left up.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/lab/lab.h"

double lab_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int lab_process_find(struct lab *lab)
{
    static const char *const needed[] = {"banyan-perf", "banyan-switchd", "banyand"};
    ssize_t bytes = readlink("/proc/self/exe", lab->programs, sizeof(lab->programs) - 1);
    char path[LAB_PATH + 32];

    lab->programs[bytes > 0 ? bytes : 0] = 0;
    char *slash = strrchr(lab->programs, '/');
    if (slash != NULL)
        *slash = 0;
    for (size_t i = 0; i < (lab->options.in_process ? 1 : lab->options.controller ? 3 : 2); i++) {
        snprintf(path, sizeof(path), "%s/%s", lab->programs, needed[i]);
        if (access(path, X_OK) != 0)
            return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: %s: build it first (`make`)", path, strerror(errno));
    }
    return 0;
}

/* What a child does: a program, or a function of this one. */
struct work {
    char *const *argv;
    char *const *environment;
    int (*call)(struct lab *); /* NULL: the program */
};

/* Runs in the child after the fork: sets its session, its class, its namespace and its files. */
static void settle(const struct lab *lab, uint32_t node, const char *log, int out, pid_t parent)
{
    int fd = log != NULL ? open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644) : out;
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC);

    /*
     * A session of its own. Where the kernel shares processors between sessions
     * (sched_autogroup_enabled), a node then gets as much as an MPI rank, which is in a session of
     * its own, too, and not a part of what the whole session of `lab up` gets (decision 609). And
     * Ctrl-C reaches only the lab, which ends its processes in order.
     */
    setsid();
    /*
     * Nodes share a few cores and depend on one another. With SCHED_BATCH a process that is woken
     * does not preempt the running one in the middle of a packet batch; it waits for its turn and
     * then finds more work. The controller keeps the default class, because it must react in time.
     * If the user has started the lab in another class, that class is kept.
     */
    if (node != LAB_NODE_NONE && sched_getscheduler(0) == SCHED_OTHER)
        sched_setscheduler(0, SCHED_BATCH, &(struct sched_param){0});
    if (!lab->detached) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
    }
    dup2(null, STDIN_FILENO);
    dup2(out >= 0 ? out : fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    for (int i = 1; i < NSIG; i++)
        signal(i, SIG_DFL);
    if (lab->ns != NULL && node != LAB_NODE_NONE && lab_net_enter(lab->ns[node]) != 0) {
        fprintf(stderr, "banyan: lab: cannot enter namespace %s: %s\n", lab->ns[node], strerror(errno));
        _exit(126);
    }
}

/* Replaces the child by its program. Does not return. */
static void become(const struct lab *lab, char *const *argv, char *const *environment)
{
    char path[LAB_PATH + 64];

    for (; environment != NULL && *environment != NULL; environment++)
        putenv(*environment);
    snprintf(path, sizeof(path), "%s/%s", lab->programs, argv[0]);
    if (strchr(argv[0], '/') == NULL && access(path, X_OK) == 0)
        execv(path, argv);
    else
        execvp(argv[0], argv);
    fprintf(stderr, "banyan: lab: cannot run %s: %s\n", argv[0], strerror(errno));
    _exit(127);
}

static struct lab_process *start(struct lab *lab, uint32_t node, uint32_t job, const struct work *work,
                                 const char *log, bool pipe_out)
{
    struct lab_process *process = &lab->processes[lab->process_count];
    int ends[2] = {-1, -1};
    pid_t parent = getpid();

    if (pipe_out && pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) {
        by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: pipe: %s", strerror(errno));
        return NULL;
    }
    if (pipe_out) /* the child's end blocks, so a full pipe is no error for it */
        fcntl(ends[1], F_SETFL, 0);
    fflush(NULL);
    *process = (struct lab_process){.node = node, .job = job, .out = ends[0]};
    process->pid = fork();
    if (process->pid == 0) {
        settle(lab, node, log, ends[1], parent);
        if (work->call != NULL)
            _exit(work->call(lab));
        become(lab, work->argv, work->environment);
    }
    if (ends[1] >= 0)
        close(ends[1]);
    if (process->pid < 0) {
        process->pid = 0;
        if (ends[0] >= 0)
            close(ends[0]);
        by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: fork: %s", strerror(errno));
        return NULL;
    }
    lab->process_count++;
    lab_state_note(lab, "process %ld %llu %s", (long)process->pid, lab_state_started(process->pid),
                   node != LAB_NODE_NONE ? lab_name(lab, node) : work->argv[0]);
    return process;
}

struct lab_process *lab_process_start(struct lab *lab, uint32_t node, uint32_t job, char *const *argv,
                                      char *const *environment, const char *log, bool pipe_out)
{
    return start(lab, node, job, &(struct work){argv, environment, NULL}, log, pipe_out);
}

struct lab_process *lab_process_fork(struct lab *lab, uint32_t job, const char *name, const char *log,
                                     int (*call)(struct lab *))
{
    char *argv[] = {(char *)(uintptr_t)name, NULL};

    return start(lab, LAB_NODE_NONE, job, &(struct work){argv, NULL, call}, log, true);
}

/* Splits a child's output into lines. */
static void take_output(struct lab *lab, struct lab_process *process,
                        void (*line)(struct lab *, struct lab_process *, const char *))
{
    char bytes[4096];
    ssize_t count = read(process->out, bytes, sizeof(bytes));

    if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) {
        close(process->out);
        process->out = -1;
        return;
    }
    for (ssize_t i = 0; i < count; i++) {
        bool full = process->line_bytes == sizeof(process->line) - 1;
        if (bytes[i] != '\n' && !full) {
            process->line[process->line_bytes++] = bytes[i];
            continue;
        }
        process->line[process->line_bytes] = 0;
        process->line_bytes = 0;
        if (line != NULL)
            line(lab, process, process->line);
    }
}

void lab_process_poll(struct lab *lab, int ms, void (*line)(struct lab *, struct lab_process *, const char *))
{
    struct pollfd *entries = by_alloc(lab->process_count, sizeof(*entries));
    struct lab_process **of = by_alloc(lab->process_count, sizeof(struct lab_process *));
    nfds_t count = 0;

    for (uint32_t i = 0; i < lab->process_count; i++) {
        if (lab->processes[i].out < 0)
            continue;
        entries[count] = (struct pollfd){.fd = lab->processes[i].out, .events = POLLIN};
        of[count++] = &lab->processes[i];
    }
    if (poll(entries, count, ms) > 0)
        for (nfds_t i = 0; i < count; i++)
            if (entries[i].revents != 0)
                take_output(lab, of[i], line);
    for (uint32_t i = 0; i < lab->process_count; i++) {
        struct lab_process *process = &lab->processes[i];
        if (process->pid > 0 && !process->ended &&
            waitpid(process->pid, &process->status, WNOHANG) == process->pid)
            process->ended = true;
    }
    free(entries);
    free(of);
}

static uint32_t running(const struct lab *lab, uint32_t job)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < lab->process_count; i++)
        count += lab->processes[i].pid > 0 && !lab->processes[i].ended && lab->processes[i].job == job;
    return count;
}

static void signal_all(struct lab *lab, uint32_t job, int number)
{
    for (uint32_t i = 0; i < lab->process_count; i++) {
        struct lab_process *process = &lab->processes[i];
        if (process->pid <= 0 || process->ended || process->job != job)
            continue;
        process->expected = true;
        kill(process->pid, number);
    }
}

void lab_process_stop(struct lab *lab, uint32_t job, uint32_t grace_ms)
{
    double deadline = lab_now() + grace_ms / 1e3;

    if (running(lab, job) == 0)
        return;
    signal_all(lab, job, SIGTERM);
    while (running(lab, job) > 0 && lab_now() < deadline)
        lab_process_poll(lab, 20, NULL);
    signal_all(lab, job, SIGKILL);
    for (deadline = lab_now() + 5; running(lab, job) > 0 && lab_now() < deadline;)
        lab_process_poll(lab, 20, NULL);
}

/* Returns the processor time of a process; 0 if it has ended or the kernel does not report it. */
static double run_seconds(long pid)
{
    unsigned long long ns = 0;
    char path[64];
    FILE *stream;

    snprintf(path, sizeof(path), "/proc/%ld/schedstat", pid);
    stream = fopen(path, "r");
    if (stream == NULL)
        return 0;
    if (fscanf(stream, "%llu", &ns) != 1)
        ns = 0;
    fclose(stream);
    return (double)ns / 1e9;
}

double lab_process_seconds(const struct lab *lab, uint32_t job)
{
    double sum = 0;

    for (uint32_t i = 0; i < lab->process_count; i++)
        if (lab->processes[i].job == job && lab->processes[i].pid > 0 && !lab->processes[i].ended)
            sum += run_seconds(lab->processes[i].pid);
    return sum;
}

double lab_process_kernel_seconds(void)
{
    DIR *all = opendir("/proc");
    double sum = 0;

    for (struct dirent *entry; all != NULL && (entry = readdir(all)) != NULL;) {
        char path[300], name[32] = "";
        FILE *stream;

        if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
            continue;
        snprintf(path, sizeof(path), "/proc/%s/comm", entry->d_name);
        stream = fopen(path, "r");
        if (stream == NULL)
            continue;
        if (fgets(name, sizeof(name), stream) != NULL && strncmp(name, "ksoftirqd/", 10) == 0)
            sum += run_seconds(strtol(entry->d_name, NULL, 10));
        fclose(stream);
    }
    if (all != NULL)
        closedir(all);
    return sum;
}

const char *lab_process_end(const struct lab_process *process, char text[32])
{
    if (!process->ended)
        snprintf(text, 32, "still running");
    else if (WIFEXITED(process->status))
        snprintf(text, 32, "exit status %d", WEXITSTATUS(process->status));
    else
        snprintf(text, 32, "signal %d", WTERMSIG(process->status));
    return text;
}
