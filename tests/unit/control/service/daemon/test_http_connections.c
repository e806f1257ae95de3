/* The list of a door's connections: which one is ended when a further one comes, and which never
 * is. The HTTP library and the answers are the test's. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/http.h"
#include "control/service/daemon/http_inside.h"
#include "control/service/daemon/http_local.h"
#include "offload/base/errors.h"

#define CONNECTIONS (BY_HTTP_CONNECTIONS_KEPT + 2)

struct MHD_Connection {
    union MHD_ConnectionInfo fd, suspended, context;
    int client; /* the other end of its socket */
    void *request;
};

struct MHD_Daemon {
    union MHD_DaemonInfo info;
    MHD_AccessHandlerCallback handle;
    void *handle_context;
    MHD_RequestCompletedCallback completed;
    void *completed_context;
    MHD_NotifyConnectionCallback notify;
    void *notify_context;
    bool runs;
};

static struct {
    struct by_daemon daemon;
    struct MHD_Daemon server;
    struct MHD_Connection connections[CONNECTIONS];
    unsigned connected;
    unsigned runs;               /* of the server */
    unsigned due;                /* so many times it is to run again at once */
    MHD_UNSIGNED_LONG_LONG wait; /* then after this time; 0: not again */
} rig;

/* ---- the HTTP library ---- */

struct MHD_Daemon *MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept,
                                    void *accept_context, MHD_AccessHandlerCallback handle,
                                    void *handle_context, ...)
{
    enum MHD_OPTION option;
    va_list options;

    assert_int_equal(flags, MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME);
    (void)accept_context;
    assert_int_equal(port, rig.daemon.options.http_port);
    assert_true(accept == by_http_accept_local);
    assert_false(rig.server.runs);
    rig.server.runs = true;
    rig.server.handle = handle;
    rig.server.handle_context = handle_context;
    va_start(options, handle_context);
    while ((option = va_arg(options, enum MHD_OPTION)) != MHD_OPTION_END) {
        if (option == MHD_OPTION_ARRAY) {
            const struct MHD_OptionItem *items = va_arg(options, const struct MHD_OptionItem *);
            const struct sockaddr_in *address = items[0].ptr_value;

            assert_int_equal(items[0].option, MHD_OPTION_SOCK_ADDR);
            assert_int_equal(address->sin_family, AF_INET);
            assert_int_equal(address->sin_port, htons(port));
            assert_int_equal(address->sin_addr.s_addr, htonl(INADDR_LOOPBACK));
            assert_int_equal(items[1].option, MHD_OPTION_END);
        } else if (option == MHD_OPTION_CONNECTION_LIMIT) {
            assert_int_equal(va_arg(options, unsigned), BY_HTTP_CONNECTIONS_MAX);
        } else if (option == MHD_OPTION_CONNECTION_TIMEOUT) {
            assert_int_equal(va_arg(options, unsigned), BY_HTTP_IDLE_S);
        } else if (option == MHD_OPTION_NOTIFY_COMPLETED) {
            rig.server.completed = va_arg(options, MHD_RequestCompletedCallback);
            rig.server.completed_context = va_arg(options, void *);
        } else {
            assert_int_equal(option, MHD_OPTION_NOTIFY_CONNECTION);
            rig.server.notify = va_arg(options, MHD_NotifyConnectionCallback);
            rig.server.notify_context = va_arg(options, void *);
        }
    }
    va_end(options);
    return &rig.server;
}

void MHD_stop_daemon(struct MHD_Daemon *server)
{
    assert_true(server == &rig.server && server->runs);
    server->runs = false;
}

enum MHD_Result MHD_run(struct MHD_Daemon *server)
{
    assert_true(server == &rig.server && server->runs);
    rig.runs++;
    return MHD_YES;
}

enum MHD_Result MHD_get_timeout(struct MHD_Daemon *server, MHD_UNSIGNED_LONG_LONG *timeout)
{
    assert_true(server == &rig.server && server->runs);
    *timeout = rig.due > 0 ? 0 : rig.wait;
    if (rig.due == 0)
        return rig.wait != 0 ? MHD_YES : MHD_NO;
    rig.due--;
    return MHD_YES;
}

const union MHD_DaemonInfo *MHD_get_daemon_info(struct MHD_Daemon *server, enum MHD_DaemonInfoType type, ...)
{
    assert_true(server == &rig.server && server->runs);
    memset(&server->info, 0, sizeof(server->info));
    if (type == MHD_DAEMON_INFO_BIND_PORT)
        server->info.port = 1234;
    return &server->info;
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    assert_true(connection >= rig.connections && connection < rig.connections + rig.connected);
    if (type == MHD_CONNECTION_INFO_CONNECTION_SUSPENDED)
        return &connection->suspended;
    if (type == MHD_CONNECTION_INFO_CONNECTION_FD)
        return &connection->fd;
    assert_int_equal(type, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return &connection->context;
}

/* ---- the other parts ---- */

enum MHD_Result by_http_accept_local(void *context, const struct sockaddr *address, socklen_t bytes)
{
    (void)context;
    (void)address;
    (void)bytes;
    return MHD_YES;
}

bool by_http_is_foreign(struct MHD_Connection *connection, bool reads)
{
    (void)connection;
    (void)reads;
    return false;
}

enum MHD_Result by_http_queue(struct MHD_Connection *connection, unsigned status, const char *type,
                              const void *bytes, size_t size, enum MHD_ResponseMemoryMode mode,
                              const char *allow)
{
    (void)connection;
    (void)type;
    (void)bytes;
    (void)size;
    (void)allow;
    assert_int_equal(status, MHD_HTTP_OK);
    assert_int_equal(mode, MHD_RESPMEM_PERSISTENT);
    return MHD_YES;
}

int by_http_listen(const struct by_daemon_options *options, struct by_problem *problem)
{
    (void)options;
    (void)problem;
    fail();
    return -1;
}

int by_http_no_port(const struct by_daemon_options *options, struct by_problem *problem)
{
    (void)options;
    (void)problem;
    fail();
    return BY_EIO;
}

enum MHD_Result by_http_jobs(struct by_http_request *request, const char *rest, const char *method)
{
    (void)request;
    (void)rest;
    (void)method;
    fail();
    return MHD_NO;
}

void by_http_finish(struct by_http_request *request, unsigned status, json_t *result)
{
    (void)request;
    (void)status;
    (void)result;
    fail();
}

void by_http_read_open(struct by_daemon *daemon)
{
    assert_ptr_equal(daemon, &rig.daemon);
}

void by_http_read_close(struct by_daemon *daemon)
{
    assert_ptr_equal(daemon, &rig.daemon);
}

bool by_http_read(struct by_http_request *request, const char *path, bool reads, enum MHD_Result *result)
{
    assert_string_equal(path, "/");
    assert_true(reads);
    *result = by_http_answer_constant(request, "text/plain", "", 0);
    return true;
}

int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    (void)events;
    assert_ptr_equal(daemon, &rig.daemon);
    assert_ptr_equal(watcher, &daemon->http->port.watcher);
    return 0;
}

void by_daemon_unwatch(struct by_daemon *daemon, struct by_watcher *watcher)
{
    assert_ptr_equal(daemon, &rig.daemon);
    assert_ptr_equal(watcher, &daemon->http->port.watcher);
}

/* ---- connections ---- */

static int set_up(void **state)
{
    struct by_problem problem = {0};

    (void)state;
    memset(&rig, 0, sizeof(rig));
    rig.daemon.options.http = true;
    assert_int_equal(by_http_open(&rig.daemon, &problem), 0);
    assert_int_equal(rig.daemon.options.http_port, 1234);
    return 0;
}

/* Begins a connection, whose number is one more than that of the last. */
static void begin(void)
{
    struct MHD_Connection *own = &rig.connections[rig.connected++];
    int fds[2];

    assert_in_range(rig.connected, 1, CONNECTIONS);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    own->fd.connect_fd = fds[0];
    own->client = fds[1];
    rig.server.notify(rig.server.notify_context, own, &own->context.socket_context,
                      MHD_CONNECTION_NOTIFY_STARTED);
}

/* The server closes a connection. */
static void finish(unsigned number)
{
    struct MHD_Connection *own = &rig.connections[number];

    rig.server.notify(rig.server.notify_context, own, &own->context.socket_context,
                      MHD_CONNECTION_NOTIFY_CLOSED);
    assert_null(own->context.socket_context);
    close(own->fd.connect_fd);
    close(own->client);
    own->client = -1;
}

static int tear_down(void **state)
{
    (void)state;
    for (unsigned i = 0; i < rig.connected; i++)
        if (rig.connections[i].client >= 0)
            finish(i);
    assert_null(rig.daemon.http->port.oldest);
    assert_int_equal(rig.daemon.http->port.connection_count, 0);
    by_http_close(&rig.daemon);
    assert_false(rig.server.runs);
    return 0;
}

/* A whole request on a connection. */
static void request(unsigned number)
{
    struct MHD_Connection *own = &rig.connections[number];
    size_t bytes = 0;

    for (unsigned i = 0; i < 2; i++) /* its head, and its end */
        assert_int_equal(rig.server.handle(rig.server.handle_context, own, "/", "GET", "HTTP/1.1", NULL,
                                           &bytes, &own->request),
                         MHD_YES);
    rig.server.completed(rig.server.completed_context, own, &own->request,
                         MHD_REQUEST_TERMINATED_COMPLETED_OK);
    assert_null(own->request);
}

static bool is_ended(unsigned number)
{
    char byte;

    return recv(rig.connections[number].client, &byte, 1, MSG_DONTWAIT) == 0;
}

/* Requires that only the connections with these bits are ended. */
static void ended_are(uint64_t numbers)
{
    for (unsigned i = 0; i < rig.connected; i++)
        assert_int_equal(is_ended(i), numbers >> i & 1);
}

static void fill(void)
{
    while (rig.connected < BY_HTTP_CONNECTIONS_KEPT)
        begin();
    ended_are(0);
}

/* ---- tests ---- */

static void a_connection_above_the_limit_ends_the_one_that_came_first(void **state)
{
    (void)state;
    fill();
    begin();
    ended_are(1);
    assert_int_equal(rig.daemon.http->port.connection_count, BY_HTTP_CONNECTIONS_KEPT);
    finish(0); /* the list has as many as before */
    assert_int_equal(rig.daemon.http->port.connection_count, BY_HTTP_CONNECTIONS_KEPT);
    finish(2);
    assert_int_equal(rig.daemon.http->port.connection_count, BY_HTTP_CONNECTIONS_KEPT - 1);
}

static void a_request_makes_its_connection_the_last_to_be_ended(void **state)
{
    (void)state;
    fill();
    request(0);
    begin();
    ended_are(1u << 1);
    request(1); /* an ended one does not return to the list */
    assert_int_equal(rig.daemon.http->port.connection_count, BY_HTTP_CONNECTIONS_KEPT);
    begin();
    ended_are(1u << 1 | 1u << 2);
}

static void a_connection_that_waits_for_its_answer_is_not_ended(void **state)
{
    (void)state;
    fill();
    rig.connections[0].suspended.suspended = MHD_YES;
    rig.connections[1].suspended.suspended = MHD_YES;
    begin();
    ended_are(1u << 2);
    rig.connections[0].suspended.suspended = MHD_NO;
    begin();
    ended_are(1u << 0 | 1u << 2);
}

static void when_all_wait_for_their_answers_none_is_ended(void **state)
{
    (void)state;
    fill();
    for (unsigned i = 0; i < rig.connected; i++)
        rig.connections[i].suspended.suspended = MHD_YES;
    begin();
    ended_are(0);
    assert_int_equal(rig.daemon.http->port.connection_count, BY_HTTP_CONNECTIONS_KEPT + 1);
    begin(); /* the one before is idle */
    ended_are(UINT64_C(1) << BY_HTTP_CONNECTIONS_KEPT);
    assert_int_equal(rig.daemon.http->port.connection_count, BY_HTTP_CONNECTIONS_KEPT + 1);
}

/* So that heartbeats are not late. */
static void the_server_runs_at_most_so_often_in_a_turn(void **state)
{
    static const struct {
        unsigned due, runs;
        MHD_UNSIGNED_LONG_LONG wait;
    } cases[] = {{0, 1, 0}, {0, 1, 5}, {3, 4, 0}, {3, 4, 1}, {16, 17, 0}, {40, 17, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct by_watcher *watcher = &rig.daemon.http->port.watcher;

        for (unsigned ready = 0; ready < 2; ready++) {
            rig.runs = 0;
            rig.due = cases[i].due;
            rig.wait = cases[i].wait;
            if (ready)
                watcher->ready(&rig.daemon, watcher, 0);
            else
                by_http_tick(&rig.daemon);
            assert_int_equal(rig.runs, cases[i].runs);
        }
    }
    rig.due = 0;
    rig.wait = 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_connection_above_the_limit_ends_the_one_that_came_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_request_makes_its_connection_the_last_to_be_ended, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_connection_that_waits_for_its_answer_is_not_ended, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(when_all_wait_for_their_answers_none_is_ended, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_server_runs_at_most_so_often_in_a_turn, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
