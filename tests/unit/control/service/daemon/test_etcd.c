/*
 * The store in etcd, with Debian's etcd: banyand is killed before or after each request that
 * writes, at the switches and at etcd, and another one continues; a former leader writes nothing; a
 * state of several parts; a full etcd. Switches are agents without packets. Skipped where etcd is
 * not installed.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "control/service/daemon/lead.h"
#include "control/service/daemon/state.h"
#include "control/service/daemon/state_inside.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/ask.h"
#include "tests/unit/control/service/daemon/rig.h"

#define PATIENCE_MS 10000
#define LAST_MS     1000 /* in which the record of a push ends */
#define PAIRS_MAX   32
#define QUOTA       "40000000" /* of etcd (bytes) */

/* Between banyand and etcd: counts transactions, and kills banyand at one of them. */
struct proxy {
    pthread_t thread;
    int listener;
    unsigned port;
    atomic_bool end;
    struct crash crash;
};

static struct {
    char folder[64];
    pid_t process; /* 0: etcd is not installed */
    unsigned port, runs;
    struct proxy proxy;
} etcd;

/* ---- etcd, and the proxy ---- */

/* Returns a socket that listens on a free port of 127.0.0.1. */
static int listen_anywhere(unsigned *port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t bytes = sizeof(at);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) != 0 || listen(fd, PAIRS_MAX) != 0 ||
        getsockname(fd, (struct sockaddr *)&at, &bytes) != 0)
        return -1;
    *port = ntohs(at.sin_port);
    return fd;
}

static int connect_to(unsigned port)
{
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (connect(fd, (struct sockaddr *)&at, sizeof(at)) == 0)
        return fd;
    close(fd);
    return -1;
}

/* Moves bytes of a connection: fds[0] is banyand's end, fds[1] etcd's. Returns false at its end. */
static bool move(struct proxy *proxy, const int fds[2], int from, bool *last)
{
    static char bytes[1 << 20];
    ssize_t got = recv(fds[from], bytes, sizeof(bytes), 0);

    if (got <= 0)
        return false;
    if (from == 1 && *last) { /* the answer is lost */
        fake_crash(&proxy->crash);
        return false;
    }
    if (from == 0 && got > 18 && memcmp(bytes, "POST /v3/kv/txn HTTP", 16) == 0 &&
        atomic_fetch_sub(&proxy->crash.left, 1) == 1) {
        *last = !proxy->crash.before;
        if (proxy->crash.before) {
            fake_crash(&proxy->crash);
            return false;
        }
    }
    return send(fds[1 - from], bytes, (size_t)got, MSG_NOSIGNAL) == got;
}

static void *proxy_run(void *argument)
{
    struct proxy *proxy = argument;
    struct pollfd fds[1 + 2 * PAIRS_MAX];
    bool last[PAIRS_MAX] = {false};

    for (unsigned i = 0; i < 1 + 2 * PAIRS_MAX; i++)
        fds[i] = (struct pollfd){.fd = -1, .events = POLLIN};
    fds[0].fd = proxy->listener;
    while (!proxy->end) {
        poll(fds, 1 + 2 * PAIRS_MAX, 20);
        for (unsigned p = 0; p < PAIRS_MAX; p++) {
            int pair[2] = {fds[1 + 2 * p].fd, fds[2 + 2 * p].fd};
            bool open = true;

            if (pair[0] < 0 && fds[0].revents != 0) {
                pair[0] = accept4(proxy->listener, NULL, NULL, SOCK_CLOEXEC);
                pair[1] = connect_to(etcd.port);
                fds[1 + 2 * p].fd = pair[0];
                fds[2 + 2 * p].fd = pair[1];
                fds[1 + 2 * p].revents = fds[2 + 2 * p].revents = fds[0].revents = 0;
                last[p] = false;
            }
            for (int from = 0; from < 2 && pair[0] >= 0; from++)
                if (open && fds[1 + 2 * p + (unsigned)from].revents != 0)
                    open = move(proxy, pair, from, &last[p]);
            if (open)
                continue;
            close(pair[0]);
            close(pair[1]);
            fds[1 + 2 * p].fd = fds[2 + 2 * p].fd = -1;
        }
    }
    for (unsigned i = 1; i < 1 + 2 * PAIRS_MAX; i++)
        if (fds[i].fd >= 0)
            close(fds[i].fd);
    return NULL;
}

/* The addresses of a store of its own: through the proxy or not. */
static const char *store_of(unsigned port)
{
    static char text[2][96];
    char *at = text[port == etcd.port];

    snprintf(at, sizeof(text[0]), "etcd:http://127.0.0.1:%u/run%u", port, etcd.runs);
    return at;
}

static int open_all(void **state)
{
    char client[64], peer[64], log[96], cluster[80], data[96];
    struct by_etcd *asker;
    struct by_problem problem = {0};
    unsigned peer_port = 0;
    int fds[2], error = BY_EIO;

    (void)state;
    /* Leases last two seconds. On a machine with much other work this process and its children,
     * etcd among them, go first, if they may. */
    (void)!setpriority(PRIO_PROCESS, 0, -10);
    snprintf(etcd.folder, sizeof(etcd.folder), "/tmp/by-test-etcd-XXXXXX");
    if (mkdtemp(etcd.folder) == NULL)
        return -1;
    fds[0] = listen_anywhere(&etcd.port);
    fds[1] = listen_anywhere(&peer_port);
    close(fds[0]);
    close(fds[1]);
    snprintf(client, sizeof(client), "http://127.0.0.1:%u", etcd.port);
    snprintf(peer, sizeof(peer), "http://127.0.0.1:%u", peer_port);
    snprintf(cluster, sizeof(cluster), "default=%s", peer);
    snprintf(log, sizeof(log), "%s/log", etcd.folder);
    snprintf(data, sizeof(data), "%s/data", etcd.folder);
    etcd.process = fork();
    if (etcd.process == 0) {
        if (freopen(log, "w", stderr) == NULL || freopen(log, "a", stdout) == NULL)
            _exit(127);
        execlp("etcd", "etcd", "--data-dir", data, "--unsafe-no-fsync", "--quota-backend-bytes", QUOTA,
               "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
               "--initial-advertise-peer-urls", peer, "--initial-cluster", cluster, (char *)NULL);
        _exit(127);
    }
    if (by_etcd_open(store_of(etcd.port), NULL, &asker, &problem) != 0)
        return -1;
    for (unsigned waited = 0; waited < PATIENCE_MS && error != 0; waited += 20) {
        error = by_etcd_survey(asker, &problem);
        if (waitpid(etcd.process, NULL, WNOHANG) == etcd.process) {
            etcd.process = 0; /* not installed */
            break;
        }
        usleep(20000);
    }
    by_etcd_close(asker);
    etcd.proxy.listener = listen_anywhere(&etcd.proxy.port);
    pthread_create(&etcd.proxy.thread, NULL, proxy_run, &etcd.proxy);
    return etcd.process == 0 || error == 0 ? 0 : -1;
}

/* Prints how etcd ended, and the end of its log. */
static void tell_end(int status)
{
    char path[96], line[512];
    FILE *log;

    snprintf(path, sizeof(path), "%s/log", etcd.folder);
    print_error("etcd has ended before the tests, by %s %d; the end of its log:\n",
                WIFSIGNALED(status) ? "signal" : "status",
                WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    log = fopen(path, "r");
    if (log == NULL)
        return;
    if (fseek(log, -4000, SEEK_END) != 0)
        rewind(log);
    while (fgets(line, sizeof(line), log) != NULL)
        print_error("%s", line);
    fclose(log);
}

static int close_all(void **state)
{
    int status, fd = -1;

    (void)state;
    if (etcd.process > 0 && (fd = connect_to(etcd.port)) < 0) {
        waitpid(etcd.process, &status, 0);
        tell_end(status);
        etcd.process = 0;
    }
    close(fd);
    etcd.proxy.end = true;
    pthread_join(etcd.proxy.thread, NULL);
    close(etcd.proxy.listener);
    if (etcd.process > 0) {
        kill(etcd.process, SIGKILL);
        waitpid(etcd.process, NULL, 0);
    }
    return rig_remove(etcd.folder);
}

static void need_etcd(void)
{
    if (etcd.process == 0)
        skip();
    etcd.runs++;
}

/* Removes the key of the leader, as the end of its lease would two seconds later. */
static void end_term(void)
{
    struct by_problem problem = {0};
    struct by_etcd *asker;
    json_t *reply;

    assert_int_equal(by_etcd_open(store_of(etcd.port), NULL, &asker, &problem), 0);
    if (by_etcd_ask(asker, "/v3/kv/deleterange", json_pack("{s:o}", "key", by_etcd_key(asker, "leader")),
                    PATIENCE_MS, &reply, &problem) != 0)
        fail_msg("%s", problem.text);
    json_decref(reply);
    by_etcd_close(asker);
}

static struct by_lead *lead_now(void)
{
    sigset_t none;
    struct by_problem problem = {0};
    struct by_lead *lead;
    int signals;

    sigemptyset(&none);
    signals = signalfd(-1, &none, SFD_CLOEXEC);
    assert_int_equal(by_lead_open(store_of(etcd.port), NULL, &lead, &problem), 0);
    if (by_lead_wait(lead, signals, NULL, NULL, &problem) != 0)
        fail_msg("%s", problem.text);
    close(signals);
    return lead;
}

/* ---- tests ---- */

/* A leader that makes two jobs one after the other is killed at a request that writes, to a switch
 * or to etcd; another one continues. Returns whether the first was killed. */
static bool kill_at(int step, bool before, bool at_etcd)
{
    struct by_lower_options options = {.mtu = BY_LOWER_MTU};
    struct crash crash = {.left = step, .before = before, .writes = true};
    struct crash *used = at_etcd ? &etcd.proxy.crash : &crash;
    struct by_problem problem = {0};
    struct daemon_rig rig;
    struct rig_daemon daemon;
    struct by_lead *lead;
    struct by_state *store;
    uint64_t active[2];
    bool crashed;

    etcd.runs++;
    rig_open(&rig);
    etcd.proxy.crash.process = 0;
    etcd.proxy.crash.before = before;
    etcd.proxy.crash.left = at_etcd ? step : 0;
    if (!at_etcd)
        rig.fake[0]->crash = rig.fake[1]->crash = &crash;
    daemon = rig_start(&rig, (const char *const[]){"--store", store_of(etcd.proxy.port), "--job",
                                                   "1=allreduce", "--job", "2=allreduce,broadcast", NULL});
    used->process = daemon.process;
    while (used->left > 0 && !rig_has_said(&daemon, "job 2 runs"))
        usleep(2000);
    /* the last transaction follows the line */
    for (unsigned waited = 0; at_etcd && used->left > 0 && waited < LAST_MS; waited += 2)
        usleep(2000);
    crashed = used->left <= 0;
    if (crashed) {
        while (used->process >= 0)
            usleep(1000);
    } else {
        rig_stop(&daemon);
    }
    rig.fake[0]->crash = rig.fake[1]->crash = NULL;
    end_term();
    daemon = rig_start(&rig, (const char *const[]){"--store", store_of(etcd.port), NULL});
    rig_await(&daemon, "ready");
    usleep(20000);
    for (unsigned i = 0; i < 2; i++)
        active[i] = rig_active(rig.fake[i]);
    usleep(50000); /* the second daemon does not change them */
    for (unsigned i = 0; i < 2; i++)
        assert_true(active[i] == rig_active(rig.fake[i]));
    assert_int_equal(rig_stop(&daemon), 0);
    lead = lead_now();
    if (by_state_open_etcd(lead, store_of(etcd.port), rig.topology, &options, &store, &problem) != 0)
        fail_msg("%s", problem.text);
    rig_agrees(&rig, store, active);
    by_state_close(store);
    by_lead_close(lead);
    rig_close(&rig);
    return crashed;
}

static void a_leader_that_dies_at_any_step_of_a_push_leaves_one_generation(void **state)
{
    (void)state;
    need_etcd();
    for (int at_etcd = 0; at_etcd < 2; at_etcd++)
        for (int before = 0; before < 2; before++) {
            int step = 1;

            while (kill_at(step, before, at_etcd))
                step++;
            /* Stage, Validate and Commit at two switches, for each of two jobs; at etcd the
             * election, the new state, the election id, the begin and the end of two pushes. */
            assert_int_equal(step, at_etcd ? 8 : 13);
        }
}

/* A signal right after this one has stood: only the next look would show whether it leads. */
static void a_signal_ends_the_wait_before_the_next_look(void **state)
{
    struct by_problem problem = {0};
    struct by_lead *lead, *other;
    int signals = eventfd(1, EFD_CLOEXEC);

    (void)state;
    need_etcd();
    assert_int_equal(by_lead_open(store_of(etcd.port), NULL, &lead, &problem), 0);
    assert_int_equal(by_lead_wait(lead, signals, NULL, NULL, &problem), BY_EABORTED);
    close(signals);
    by_lead_close(lead);
    other = lead_now(); /* at once: the first has given back what it had */
    by_lead_close(other);
}

static void a_follower_takes_over_and_a_former_leader_writes_nothing(void **state)
{
    struct by_lower_options options = {.mtu = BY_LOWER_MTU};
    struct by_problem problem = {0};
    struct daemon_rig rig;
    struct by_lead *first, *second;
    struct by_state *old, *new, *other;

    (void)state;
    need_etcd();
    rig_open(&rig);
    first = lead_now();
    assert_int_equal(by_state_open_etcd(first, store_of(etcd.port), rig.topology, &options, &old, &problem),
                     0);
    assert_int_equal(by_state_elect(old, 41, &problem), 0);
    end_term();
    second = lead_now();
    assert_true(by_lead_term(second) > by_lead_term(first));
    assert_int_equal(by_state_open_etcd(second, store_of(etcd.port), rig.topology, &options, &new, &problem),
                     0);
    assert_true(by_state_election(new) == 41);
    assert_int_equal(by_state_elect(new, 43, &problem), 0);
    assert_int_equal(by_state_elect(old, 42, &problem), BY_EPERM);
    assert_non_null(strstr(problem.text, "leads no longer"));
    assert_true(poll(&(struct pollfd){.fd = by_lead_fd(first), .events = POLLIN}, 1, 0) == 1);
    by_state_close(old);
    by_lead_close(first);
    options.mtu = 9000;
    assert_int_equal(
        by_state_open_etcd(second, store_of(etcd.port), rig.topology, &options, &other, &problem),
        BY_EMISMATCH);
    assert_non_null(strstr(problem.text, "another /NAME"));
    by_state_close(new);
    by_lead_close(second);
    rig_close(&rig);
}

/* Requires that the answer has all texts (NULL-terminated). */
static void answers(const char *address, const char *method, const char *path, int wanted,
                    const char *const *texts)
{
    char *reply = ask_http(address, method, path, NULL, wanted);

    for (; *texts != NULL; texts++)
        if (strstr(reply, *texts) == NULL)
            fail_msg("%s %s %s: no '%s' in: %s", address, method, path, *texts, reply);
    free(reply);
}

/* Returns the port in a daemon's line that has this text before it. */
static unsigned port_of(const struct rig_daemon *daemon, const char *text)
{
    char line[400];
    unsigned port = 0;
    FILE *stream = fopen(daemon->log, "r");

    assert_non_null(stream);
    while (fgets(line, sizeof(line), stream) != NULL)
        if (strstr(line, text) != NULL)
            port = (unsigned)strtoul(strstr(line, "127.0.0.1:") + 10, NULL, 10);
    fclose(stream);
    return port;
}

static void a_follower_names_itself_and_the_leader(void **state)
{
    char leader[64], socket_path[96], door[2][104], list[212];
    struct daemon_rig rig;
    struct rig_daemon first, second, third;
    struct by_lead *lead;
    unsigned port;
    int one = 0;

    (void)state;
    need_etcd();
    rig_open(&rig);
    lead = lead_now();
    snprintf(leader, sizeof(leader), "process %ld,", (long)getpid());
    snprintf(socket_path, sizeof(socket_path), "%s/follower", rig.folder);
    first = rig_start(&rig, (const char *const[]){"--store", store_of(etcd.port), "--http", "0", "--socket",
                                                  socket_path, NULL});
    rig_await(&first, "this one takes over when that one ends");
    rig_await(&first, "status and metrics of this follower");
    port = port_of(&first, "status and metrics");
    snprintf(door[0], sizeof(door[0]), "unix:%s", socket_path);
    snprintf(door[1], sizeof(door[1]), "http://127.0.0.1:%u", port);
    for (unsigned d = 0; d < 2; d++) {
        answers(door[d], "GET", "/v1/status", 200,
                (const char *const[]){"\"leads\": false", "\"follows\": true", "\"leader\": \"banyand on ",
                                      leader, "takes over when that one ends\"", NULL});
        answers(door[d], "GET", "/metrics", 200,
                (const char *const[]){"\nbanyan_leads 0\n", "\nbanyan_store_up 1\n",
                                      "\nbanyan_follows{leader=\"banyand on ", leader,
                                      "\nbanyan_build_info{version=", NULL});
        answers(door[d], "GET", "/v1/jobs", 503,
                (const char *const[]){"this banyand follows", leader, "to the leader", NULL});
        answers(door[d], "GET", "/", 503, (const char *const[]){leader, NULL});
        answers(door[d], "DELETE", "/v1/jobs/1", 503, (const char *const[]){leader, NULL});
        answers(door[d], "POST", "/metrics", 405, (const char *const[]){"GET and HEAD", NULL});
    }
    /* Another one needs doors of its own. */
    third =
        rig_start(&rig, (const char *const[]){"--store", store_of(etcd.port), "--socket", socket_path, NULL});
    assert_int_equal(rig_wait(&third), 3);
    assert_true(rig_has_said(&third, "another banyand listens there: choose another path"));
    snprintf(socket_path, sizeof(socket_path), "%s/other", rig.folder);
    second =
        rig_start(&rig, (const char *const[]){"--store", store_of(etcd.port), "--socket", socket_path, NULL});
    rig_await(&second, "this one takes over when that one ends");
    snprintf(list, sizeof(list), "%s,unix:%s", door[0], socket_path);
    by_lead_close(lead);
    for (unsigned waited = 0; waited < PATIENCE_MS; waited += 5) {
        one = rig_has_said(&first, "ready, ");
        if (one || rig_has_said(&second, "ready, "))
            break;
        usleep(5000);
    }
    free(ask_http(list, "GET", "/v1/jobs", NULL, 200)); /* the one that leads now, whichever it is */
    answers(list, "GET", "/metrics", 200, (const char *const[]){"\nbanyan_leads 1\n", NULL});
    if (one) /* at the same port */
        assert_int_equal(port_of(&first, "ready, "), port);
    snprintf(leader, sizeof(leader), "process %ld,", (long)(one ? first : second).process);
    for (unsigned waited = 0; waited < PATIENCE_MS; waited += 20) {
        char *reply;
        bool known;

        snprintf(list, sizeof(list), "unix:%s", socket_path);
        reply = ask_http(one ? list : door[0], "GET", "/v1/status", NULL, 200);
        known = strstr(reply, leader) != NULL;
        free(reply);
        if (known)
            break;
        assert_true(waited + 20 < PATIENCE_MS);
        usleep(20000);
    }
    usleep(500000); /* the leader renews its lease, and reports only what changes */
    assert_false(rig_has_said(one ? &first : &second, "answers again"));
    assert_int_equal(rig_stop(&first), 0);
    assert_int_equal(rig_stop(&second), 0);
    rig_close(&rig);
}

/* Returns the store in etcd, opened by the leader. */
static struct by_state *store_now(struct by_lead *lead, const struct daemon_rig *rig)
{
    struct by_lower_options options = {.mtu = BY_LOWER_MTU};
    struct by_problem problem = {0};
    struct by_state *store;

    assert_int_equal(by_state_open_etcd(lead, store_of(etcd.port), rig->topology, &options, &store, &problem),
                     0);
    return store;
}

static void a_state_of_several_parts_comes_back_and_old_parts_are_removed(void **state)
{
    struct by_problem problem = {0};
    struct daemon_rig rig;
    struct by_lead *lead;
    struct by_state *store;
    json_t *reply;

    (void)state;
    need_etcd();
    rig_open(&rig);
    lead = lead_now();
    store = store_now(lead, &rig);
    assert_int_equal(by_state_run(store, &problem,
                                  "INSERT INTO plan VALUES (0, 7, 0, randomblob(1200000));"
                                  "CREATE TABLE kept AS SELECT hex(text) AS text FROM plan"),
                     0);
    for (uint64_t id = 50; id < 53; id++)
        if (by_state_elect(store, id, &problem) != 0)
            fail_msg("%s", problem.text);
    by_state_close(store);
    store = store_now(lead, &rig);
    assert_true(by_state_election(store) == 52);
    assert_int_equal(
        by_state_run(store, &problem,
                     "CREATE TABLE same(yes CHECK (yes = 1));"
                     "INSERT INTO same SELECT hex(plan.text) = kept.text FROM plan, kept WHERE job = 7"),
        0);
    assert_int_equal(
        by_etcd_ask(by_lead_etcd(lead), "/v3/kv/range",
                    json_pack("{s:o,s:o,s:b}", "key", by_etcd_key(by_lead_etcd(lead), "part/"), "range_end",
                              by_etcd_key(by_lead_etcd(lead), "part0"), "keys_only", 1),
                    PATIENCE_MS, &reply, &problem),
        0);
    assert_in_range(by_etcd_number(reply, "count"), 4, 12); /* those of one write */
    json_decref(reply);
    by_state_close(store);
    by_lead_close(lead);
    rig_close(&rig);
}

/* The last test: etcd accepts nothing afterwards. */
static void a_full_etcd_is_reported_and_the_stored_state_stays(void **state)
{
    struct by_problem problem = {0};
    struct daemon_rig rig;
    struct by_lead *lead;
    struct by_state *store;
    uint64_t id = 1;

    (void)state;
    need_etcd();
    rig_open(&rig);
    lead = lead_now();
    store = store_now(lead, &rig);
    assert_int_equal(by_state_run(store, &problem, "INSERT INTO plan VALUES (0, 7, 0, randomblob(3000000))"),
                     0);
    while (id < 30 && by_state_elect(store, id, &problem) == 0)
        id++;
    assert_in_range(id, 2, 29);
    if (strstr(problem.text, "space exceeded") == NULL)
        fail_msg("%s", problem.text);
    assert_non_null(strstr(problem.text, "have space"));
    assert_true(by_state_election(store) == id - 1); /* rolled back */
    /* the last part, and a state of one part, come with the transaction that is tried again */
    problem.text[0] = 0;
    assert_int_equal(by_state_run(store, &problem, "DELETE FROM plan; VACUUM"), 0);
    assert_int_not_equal(by_state_elect(store, id, &problem), 0);
    if (strstr(problem.text, "in 3 attempts") == NULL || strstr(problem.text, "space exceeded") == NULL)
        fail_msg("%s", problem.text);
    by_state_close(store);
    store = store_now(lead, &rig);
    assert_true(by_state_election(store) == id - 1);
    by_state_close(store);
    by_lead_close(lead);
    rig_close(&rig);
}

static void addresses_that_are_wrong_are_refused(void **state)
{
    static const char *const wrong[] = {
        "etcd:",
        "http://127.0.0.1:2379",
        "etcd:http://127.0.0.1",
        "etcd:ftp://127.0.0.1:2379",
        "etcd:http://:2379",
        "etcd:http://a:1/name,http://b:1",
        "etcd:http://a:1/",
        "etcd:http://a:1/a/b",
        "etcd:http://a:1/a b",
        "etcd:https://a:1",
        "etcd:http://a:1,http://a:2,http://a:3,http://a:4,http://a:5,http://a:6,"
        "http://a:7,http://a:8,http://a:9,http://a:10"};
    struct by_problem problem = {0};
    struct by_etcd *client;

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
        assert_int_equal(by_etcd_open(wrong[i], NULL, &client, &problem), BY_EINVAL);
    assert_int_equal(by_etcd_open("etcd:http://127.0.0.1:1,http://[::1]:2/a.b", NULL, &client, &problem), 0);
    assert_false(by_etcd_is_exposed(client));
    assert_int_equal(by_etcd_survey(client, &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "no member of etcd serves the request (2 asked"));
    by_etcd_close(client);
    assert_int_equal(by_etcd_open("etcd:http://127.0.0.1:1,http://192.0.2.1:2", NULL, &client, &problem), 0);
    assert_true(by_etcd_is_exposed(client));
    by_etcd_close(client);
}

static void a_former_leader_that_several_switches_refuse_follows(void **state)
{
    struct by_daemon *daemon = calloc(1, sizeof(*daemon));
    struct by_problem problem = {0};

    (void)state;
    assert_non_null(daemon);
    assert_int_equal(by_lead_open("etcd:http://127.0.0.1:1", NULL, &daemon->lead, &problem), 0);
    by_daemon_retire(daemon, "the first switch is led by another one");
    assert_true(daemon->retires);
    by_daemon_retire(daemon, "so is the second");
    assert_true(daemon->retires);
    by_lead_close(daemon->lead);
    free(daemon);
}

/* Started as "banyand", this program is the daemon of rig_start. */
int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_that_are_wrong_are_refused),
        cmocka_unit_test(a_former_leader_that_several_switches_refuse_follows),
        cmocka_unit_test(a_signal_ends_the_wait_before_the_next_look),
        cmocka_unit_test(a_follower_takes_over_and_a_former_leader_writes_nothing),
        cmocka_unit_test(a_follower_names_itself_and_the_leader),
        cmocka_unit_test(a_state_of_several_parts_comes_back_and_old_parts_are_removed),
        cmocka_unit_test(a_leader_that_dies_at_any_step_of_a_push_leaves_one_generation),
        cmocka_unit_test(a_full_etcd_is_reported_and_the_stored_state_stays),
    };

    if (strcmp(argv[0], "banyand") == 0)
        return by_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, open_all, close_all);
}
