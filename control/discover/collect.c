/* Asks switches and hosts; see collect.h. Single-threaded: hosts' commands are processes. */
#include "control/discover/collect.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/discover/local.h"
#include "offload/base/errors.h"

/* Time in which a command that was told to end must end (ms). */
#define END_MS 2000u

/* A target while it is asked. */
struct collect_work {
    struct by_session *session; /* of a switch; NULL: failed, or a host */
    by_HelloReply hello;
    pid_t pid; /* of a host's command; 0: ended */
    int fd;    /* its standard output, or -1 */
    char *text;
    size_t bytes, room;
};

void by_collect_switch(struct by_collect *collect, const char *name, size_t length, const char *address)
{
    BY_GROW(collect->targets, collect->target_count, collect->target_room);
    collect->targets[collect->target_count++] =
        (struct by_collect_target){.name = by_copy_part(name, length), .address = by_copy_text(address)};
}

void by_collect_host(struct by_collect *collect, const char *name, size_t length, const char *command)
{
    BY_GROW(collect->targets, collect->target_count, collect->target_room);
    collect->targets[collect->target_count++] =
        (struct by_collect_target){.name = by_copy_part(name, length), .command = by_copy_text(command)};
}

void by_collect_free(struct by_collect *collect)
{
    for (uint32_t i = 0; i < collect->target_count; i++) {
        free(collect->targets[i].name);
        free(collect->targets[i].address);
        free(collect->targets[i].command);
    }
    free(collect->targets);
}

static uint64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- switches ---- */

static void open_switch(const struct by_collect *collect, const struct by_collect_target *target,
                        struct collect_work *work, struct by_report *report)
{
    struct by_problem problem = {0};
    int error = by_session_open(target->address, &collect->access, &work->session, &problem);

    if (error == 0)
        error = by_session_hello(work->session, &work->hello, &problem);
    if (error == 0 && strcmp(work->hello.name, target->name) != 0)
        error =
            by_problem_say(&problem, BY_EINVAL,
                           "%s: it has the name '%.47s': start it with --name %s, or ask for it by that name",
                           target->address, work->hello.name, target->name);
    if (error == 0)
        return;
    by_report_add(report, BY_GRADE_UNSEEN, target->name, "start banyan-switchd, or correct its address",
                  "%.280s", problem.text);
    by_session_close(work->session);
    work->session = NULL;
}

void by_collect_take(struct by_facts *facts, const by_InterfacesReply *reply)
{
    static const uint8_t none[6];

    for (pb_size_t i = 0; i < reply->interfaces_count; i++) {
        const by_Interface *from = &reply->interfaces[i];
        struct by_facts_neighbour neighbour = {.has_mac = true};
        struct by_facts_interface *to = by_facts_interface(facts, from->name);

        to->is_kernel = from->kernel;
        to->is_down = from->down;
        to->has_mac = memcmp(from->mac, none, sizeof(none)) != 0;
        memcpy(to->mac, from->mac, sizeof(to->mac));
        to->mtu = from->mtu;
        to->speed_mbps = from->speed;
        to->queues = from->queues;
        to->numa = from->numa;
        snprintf(to->driver, sizeof(to->driver), "%s", from->driver);
        snprintf(to->bus, sizeof(to->bus), "%s", from->bus);
        snprintf(to->features, sizeof(to->features), "%s", from->features);
        snprintf(to->addresses, sizeof(to->addresses), "%s", from->addresses);
        if (!from->has_neighbour)
            continue;
        memcpy(neighbour.mac, from->neighbour.mac, sizeof(neighbour.mac));
        by_facts_copy_name(neighbour.node, from->neighbour.node);
        by_facts_copy_name(neighbour.port, from->neighbour.port);
        by_facts_copy_name(neighbour.description, from->neighbour.description);
        neighbour.forwards = from->neighbour.forwards;
        if (neighbour.node[0] != 0 && neighbour.port[0] != 0)
            by_facts_hear(to, &neighbour);
    }
}

/* Makes the switch announce itself on all ports. */
static void announce(struct collect_work *work)
{
    static by_InterfacesReply reply;
    struct by_problem problem;

    if (work->session != NULL)
        (void)by_session_interfaces(work->session, UINT32_MAX, true, &reply, &problem);
}

/* Reads the ports of a switch. */
static void finish_switch(const struct by_collect_target *target, struct collect_work *work,
                          struct by_facts_list *list, struct by_report *report)
{
    static by_InterfacesReply reply;
    struct by_problem problem = {0};
    struct by_facts *facts;
    int error;

    if (work->session == NULL)
        return;
    facts = by_facts_add(list, target->name, target->address);
    facts->is_switch = true;
    facts->multicast = (work->hello.able & by_Able_ABLE_REPLICATE) != 0;
    facts->aggregate = (work->hello.able & by_Able_ABLE_SUM) != 0;
    snprintf(facts->control, sizeof(facts->control), "%s", target->address);
    do {
        error = by_session_interfaces(work->session, facts->interface_count, false, &reply, &problem);
        if (error == 0)
            by_collect_take(facts, &reply);
    } while (error == 0 && reply.interfaces_count > 0 && facts->interface_count < reply.total);
    if (error != 0) {
        by_report_add(report, BY_GRADE_UNSEEN, target->name, "update it to the version of this program",
                      "%.280s", problem.text);
        list->count--;
        free(facts->interfaces);
    }
    by_session_close(work->session);
}

/* ---- hosts ---- */

static void start_host(const struct by_collect_target *target, struct collect_work *work,
                       struct by_report *report)
{
    int ends[2];

    work->fd = -1;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        by_report_add(report, BY_GRADE_UNSEEN, target->name, "raise the limit of open files: `ulimit -n`",
                      "cannot start its command: %s", strerror(errno));
        return;
    }
    work->pid = fork();
    if (work->pid == 0) {
        setpgid(0, 0); /* a command may start others, which must end with it */
        dup2(ends[1], STDOUT_FILENO);
        execl("/bin/sh", "sh", "-c", target->command, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    work->fd = ends[0];
    if (work->pid < 0) {
        by_report_add(report, BY_GRADE_UNSEEN, target->name, "raise the limit of processes: `ulimit -u`",
                      "cannot start its command: %s", strerror(errno));
        close(work->fd);
        work->fd = -1;
        work->pid = 0;
    }
}

/* Reads what a command has printed; closes its pipe at the end. */
static void read_host(struct collect_work *work)
{
    ssize_t count;

    if (work->room - work->bytes < 65536) {
        work->room = 2 * work->room + 65536;
        work->text = by_realloc(work->text, work->room, 1);
    }
    count = read(work->fd, work->text + work->bytes, work->room - work->bytes);
    if (count < 0 && errno == EINTR)
        return;
    if (count > 0)
        work->bytes += (size_t)count;
    if (count <= 0 || work->bytes > BY_FACTS_BYTES_MAX) {
        close(work->fd);
        work->fd = -1;
    }
}

/* Waits for a command whose pipe is closed, or ends it. Returns its status as from waitpid. */
static int reap_host(struct collect_work *work)
{
    uint64_t until = now_ms() + END_MS;
    int status = 0;

    while (waitpid(work->pid, &status, WNOHANG) == 0) {
        if (now_ms() >= until) {
            kill(-work->pid, SIGKILL);
            waitpid(work->pid, &status, 0);
            break;
        }
        usleep(10000);
    }
    work->pid = 0;
    return status;
}

static void finish_host(const struct by_collect *collect, const struct by_collect_target *target,
                        struct collect_work *work, struct by_facts_list *list, struct by_report *report)
{
    struct by_problem problem = {0};
    char remedy[256], source[192];
    bool late = work->fd >= 0;
    int status;

    if (work->pid == 0)
        return;
    if (late) {
        close(work->fd);
        kill(-work->pid, SIGTERM);
    }
    status = reap_host(work);
    snprintf(remedy, sizeof(remedy), "run this command by hand: %.200s", target->command);
    snprintf(source, sizeof(source), "the command of '%s'", target->name);
    if (late)
        by_report_add(report, BY_GRADE_UNSEEN, target->name, remedy, "its command has not ended after %u s",
                      collect->command_ms / 1000);
    else if (work->bytes == 0)
        by_report_add(report, BY_GRADE_UNSEEN, target->name, remedy,
                      "its command has printed nothing (exit status %d)",
                      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    else if (by_facts_parse(list, source, work->text, work->bytes, &problem) != 0)
        by_report_add(report, BY_GRADE_UNSEEN, target->name, remedy, "%.280s", problem.text);
    else if (strcmp(list->nodes[list->count - 1].node, target->name) != 0)
        by_report_add(report, BY_GRADE_TROUBLE, target->name,
                      "add --name to its command, or correct the name",
                      "its command reports the facts of '%s'", list->nodes[list->count - 1].node);
}

/* ---- all ---- */

static bool any_runs(const struct by_collect *collect, const struct collect_work *work)
{
    for (uint32_t i = 0; i < collect->target_count; i++)
        if (work[i].fd >= 0)
            return true;
    return false;
}

/* Lets the switches announce themselves until the hosts' commands have ended, and for
 * `listen_ms` at least; reads what the commands print. */
static void run(struct by_collect *collect, struct collect_work *work)
{
    struct pollfd *pollers = by_alloc(collect->target_count, sizeof(*pollers));
    uint64_t begin = now_ms(), now = begin, due = begin;

    while (now < begin + collect->listen_ms ||
           (any_runs(collect, work) && now < begin + collect->command_ms)) {
        for (uint32_t i = 0; now >= due && i < collect->target_count; i++)
            announce(&work[i]);
        if (now >= due)
            due = now + BY_ANNOUNCE_MS;
        for (uint32_t i = 0; i < collect->target_count; i++)
            pollers[i] = (struct pollfd){.fd = work[i].fd, .events = POLLIN};
        (void)poll(pollers, collect->target_count, 50);
        for (uint32_t i = 0; i < collect->target_count; i++)
            if (work[i].fd >= 0 && (pollers[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
                read_host(&work[i]);
        now = now_ms();
    }
    free(pollers);
}

void by_collect_run(struct by_collect *collect, struct by_facts_list *list, struct by_report *report)
{
    struct collect_work *work = by_alloc(collect->target_count, sizeof(*work));

    report->check = "reach";
    for (uint32_t i = 0; i < collect->target_count; i++) {
        work[i].fd = -1;
        if (collect->targets[i].address != NULL)
            open_switch(collect, &collect->targets[i], &work[i], report);
    }
    for (uint32_t i = 0; i < collect->target_count; i++)
        if (collect->targets[i].command != NULL)
            start_host(&collect->targets[i], &work[i], report);
    if (collect->target_count > 0)
        run(collect, work);
    for (uint32_t i = 0; i < collect->target_count; i++) {
        finish_switch(&collect->targets[i], &work[i], list, report);
        finish_host(collect, &collect->targets[i], &work[i], list, report);
        free(work[i].text);
    }
    free(work);
}
