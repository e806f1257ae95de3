/* The HTTP server of the daemon: which requests go where from which door, bodies in pieces, kinds
 * of answers, and how doors are opened, run and closed. The HTTP library and the answers are the
 * test's. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/http.h"
#include "control/service/daemon/http_inside.h"
#include "control/service/daemon/http_local.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"

enum { SOCKET, PORT, DOORS };

struct route_server {
    union MHD_DaemonInfo info;
    MHD_AccessHandlerCallback handle;
    void *handle_context;
    MHD_RequestCompletedCallback completed;
    void *completed_context;
    bool runs;
    unsigned rounds, at_once; /* runs; so many times there is more to do at once */
};

static struct {
    struct by_daemon daemon;
    struct route_server servers[DOORS];
    unsigned started;
    int listen_fd;     /* of the socket; negative: an error */
    unsigned fails_at; /* this server cannot start */
    int watch_error;
    bool no_port, foreign;
    char socket[64];
} rig;

/* ---- the HTTP library ---- */

struct MHD_Daemon *MHD_start_daemon(unsigned flags, uint16_t port, MHD_AcceptPolicyCallback accept,
                                    void *accept_context, MHD_AccessHandlerCallback handle,
                                    void *handle_context, ...)
{
    struct route_server *server = &rig.servers[rig.started];
    enum MHD_OPTION option;
    va_list options;

    (void)accept_context;
    assert_true(flags == (MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME) && port == rig.daemon.options.http_port);
    assert_true(accept == by_http_accept_local && rig.started < DOORS);
    if (rig.started + 1 == rig.fails_at)
        return NULL;
    rig.started++;
    *server = (struct route_server){.runs = true, .handle = handle, .handle_context = handle_context};
    va_start(options, handle_context);
    while ((option = va_arg(options, enum MHD_OPTION)) != MHD_OPTION_END) {
        if (option == MHD_OPTION_ARRAY) {
            const struct MHD_OptionItem *items = va_arg(options, const struct MHD_OptionItem *);

            if (items[0].option == MHD_OPTION_LISTEN_SOCKET) {
                assert_null(items[0].ptr_value);
                record("serve descriptor %d\n", (int)items[0].value);
            } else {
                assert_int_equal(items[0].option, MHD_OPTION_SOCK_ADDR);
                assert_non_null(items[0].ptr_value);
                record("serve port %u\n", port);
            }
        } else if (option == MHD_OPTION_NOTIFY_COMPLETED) {
            server->completed = va_arg(options, MHD_RequestCompletedCallback);
            server->completed_context = va_arg(options, void *);
        } else if (option == MHD_OPTION_NOTIFY_CONNECTION) {
            (void)va_arg(options, MHD_NotifyConnectionCallback);
            (void)va_arg(options, void *);
        } else {
            assert_true(option == MHD_OPTION_CONNECTION_LIMIT || option == MHD_OPTION_CONNECTION_TIMEOUT);
            (void)va_arg(options, unsigned);
        }
    }
    va_end(options);
    return (struct MHD_Daemon *)server;
}

/* Returns a server that runs. */
static struct route_server *own(struct MHD_Daemon *daemon)
{
    struct route_server *server = (struct route_server *)daemon;

    assert_true(server >= rig.servers && server < rig.servers + DOORS && server->runs);
    return server;
}

void MHD_stop_daemon(struct MHD_Daemon *server)
{
    record("stop %d\n", (int)(own(server) - rig.servers));
    own(server)->runs = false;
}

enum MHD_Result MHD_run(struct MHD_Daemon *server)
{
    own(server)->rounds++;
    return MHD_YES;
}

enum MHD_Result MHD_get_timeout(struct MHD_Daemon *server, MHD_UNSIGNED_LONG_LONG *timeout)
{
    *timeout = own(server)->at_once > 0 ? 0 : 5;
    own(server)->at_once -= own(server)->at_once > 0;
    return MHD_YES;
}

const union MHD_DaemonInfo *MHD_get_daemon_info(struct MHD_Daemon *server, enum MHD_DaemonInfoType type, ...)
{
    if (type == MHD_DAEMON_INFO_BIND_PORT) {
        own(server)->info.port = 1234;
        return rig.no_port ? NULL : &own(server)->info;
    }
    assert_int_equal(type, MHD_DAEMON_INFO_EPOLL_FD);
    own(server)->info.epoll_fd = 70 + (int)(own(server) - rig.servers);
    return &own(server)->info;
}

const union MHD_ConnectionInfo *MHD_get_connection_info(struct MHD_Connection *connection,
                                                        enum MHD_ConnectionInfoType type, ...)
{
    static const union MHD_ConnectionInfo none;

    assert_ptr_equal(connection, &rig);
    assert_int_equal(type, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return &none;
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
    assert_ptr_equal(connection, &rig);
    return rig.foreign && !reads;
}

enum MHD_Result by_http_queue(struct MHD_Connection *connection, unsigned status, const char *type,
                              const void *bytes, size_t size, enum MHD_ResponseMemoryMode mode,
                              const char *allow)
{
    json_t *object = strcmp(type, "application/json") == 0 ? json_loadb(bytes, size, 0, NULL) : NULL;
    const char *error = json_string_value(json_object_get(object, "error"));

    assert_ptr_equal(connection, &rig);
    record("%u", status);
    if (error != NULL)
        record(" %.40s", error);
    else
        record(" %s '%.*s'", type, (int)size, (const char *)bytes);
    record("%s%s%s\n",
           mode == MHD_RESPMEM_MUST_COPY    ? " copied"
           : mode == MHD_RESPMEM_PERSISTENT ? " kept"
                                            : "",
           allow != NULL ? " allow " : "", allow != NULL ? allow : "");
    json_decref(object);
    if (mode == MHD_RESPMEM_MUST_FREE)
        free((void *)(uintptr_t)bytes);
    return MHD_YES;
}

int by_http_listen(const struct by_daemon_options *options, struct by_problem *problem)
{
    assert_ptr_equal(options, &rig.daemon.options);
    return rig.listen_fd >= 0 ? rig.listen_fd : by_problem_say(problem, BY_EIO, "cannot listen");
}

int by_http_no_port(const struct by_daemon_options *options, struct by_problem *problem)
{
    assert_ptr_equal(options, &rig.daemon.options);
    return by_problem_say(problem, BY_EIO, "no port");
}

enum MHD_Result by_http_jobs(struct by_http_request *request, const char *rest, const char *method)
{
    record("jobs %s '%s' with %zu bytes", method, rest, request->body_bytes);
    if (request->body != NULL)
        record(" %.20s", request->body);
    record("\n");
    if (request->body != NULL)
        assert_int_equal(strlen(request->body), request->body_bytes);
    return MHD_YES;
}

void by_http_finish(struct by_http_request *request, unsigned status, json_t *result)
{
    record("finish with %u %s\n", status, json_string_value(json_object_get(result, "error")));
    request->status = status;
    request->result = result;
    request->phase = BY_HTTP_DONE;
}

void by_http_read_open(struct by_daemon *daemon)
{
    assert_non_null(daemon->http);
    record("open\n");
}

void by_http_read_close(struct by_daemon *daemon)
{
    assert_non_null(daemon->http);
    record("close\n");
}

bool by_http_read(struct by_http_request *request, const char *path, bool reads, enum MHD_Result *result)
{
    if (strcmp(path, "/copy") == 0) {
        *result = by_http_answer_copy(request, "text/plain", "abc", 3);
    } else if (strcmp(path, "/constant") == 0) {
        request->allow = "GET, HEAD";
        *result = by_http_answer_constant(request, "text/css", "abcd", 4);
    } else if (strcmp(path, "/refuse") == 0) {
        request->allow = "GET, HEAD";
        *result = by_http_refuse(request, MHD_HTTP_METHOD_NOT_ALLOWED, reads ? "read" : "write");
    } else {
        return false;
    }
    return true;
}

int by_daemon_watch(struct by_daemon *daemon, struct by_watcher *watcher, uint32_t events)
{
    assert_true(daemon == &rig.daemon && events == EPOLLIN);
    record("watch %d\n", watcher->fd);
    return rig.watch_error;
}

void by_daemon_unwatch(struct by_daemon *daemon, struct by_watcher *watcher)
{
    assert_ptr_equal(daemon, &rig.daemon);
    record("unwatch %d\n", watcher->fd);
}

/* ---- the server ---- */

static int set_up(void **state)
{
    int fd;

    (void)state;
    memset(&rig, 0, sizeof(rig));
    record_clear();
    snprintf(rig.socket, sizeof(rig.socket), "/tmp/by-test-route-XXXXXX");
    fd = mkstemp(rig.socket);
    close(fd);
    rig.listen_fd = 33;
    rig.daemon.options.socket = rig.socket;
    rig.daemon.options.http = true;
    rig.daemon.options.http_port = 8080;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    by_http_close(&rig.daemon);
    assert_null(rig.daemon.http);
    unlink(rig.socket);
    return 0;
}

static void opens(int expected, const char *text)
{
    struct by_problem problem = {0};

    assert_int_equal(by_http_open(&rig.daemon, &problem), expected);
    assert_string_equal(problem.text, text);
}

/* The library reports the head, pieces of the body, and the end. */
static void begin(unsigned door, void **state)
{
    const struct route_server *server = &rig.servers[door];
    size_t bytes = 0;

    *state = NULL;
    assert_int_equal(server->handle(server->handle_context, (struct MHD_Connection *)&rig, "/", "GET",
                                    "HTTP/1.1", NULL, &bytes, state),
                     MHD_YES);
    assert_non_null(*state);
}

static void upload(unsigned door, void **state, const char *text, size_t bytes)
{
    const struct route_server *server = &rig.servers[door];

    assert_int_equal(server->handle(server->handle_context, (struct MHD_Connection *)&rig, "/v1/jobs", "POST",
                                    "HTTP/1.1", text, &bytes, state),
                     MHD_YES);
    assert_int_equal(bytes, 0); /* all of it is taken */
}

static void end(unsigned door, void **state, const char *method, const char *path)
{
    const struct route_server *server = &rig.servers[door];
    size_t bytes = 0;

    assert_int_equal(server->handle(server->handle_context, (struct MHD_Connection *)&rig, path, method,
                                    "HTTP/1.1", NULL, &bytes, state),
                     MHD_YES);
}

static void forget(unsigned door, void **state)
{
    const struct route_server *server = &rig.servers[door];

    server->completed(server->completed_context, (struct MHD_Connection *)&rig, state,
                      MHD_REQUEST_TERMINATED_COMPLETED_OK);
    assert_null(*state);
}

static void expect(unsigned door, const char *method, const char *path, const char *line)
{
    void *state;

    begin(door, &state);
    end(door, &state, method, path);
    forget(door, &state);
    assert_null(rig.daemon.http->first);
    record_expect(line);
}

#define READ_ONLY "403 this port is open to every user of the m\n"
#define NO_PATH   "404 no such path; available: GET / (the live\n"

/* ---- tests ---- */

static void both_doors_are_opened_and_closed(void **state)
{
    (void)state;
    opens(0, "");
    record_expect("open\nserve descriptor 33\nwatch 70\nserve port 8080\nwatch 71\n");
    assert_int_equal(rig.daemon.options.http_port, 1234);
    assert_int_equal(access(rig.socket, F_OK), 0);
    by_http_close(&rig.daemon);
    record_expect("unwatch 70\nstop 0\nunwatch 71\nstop 1\nclose\n");
    assert_int_equal(access(rig.socket, F_OK), -1);
    assert_true(rig.servers[SOCKET].rounds == 1 && rig.servers[PORT].rounds == 1);
}

static void each_door_may_be_off(void **state)
{
    (void)state;
    rig.daemon.options.socket = NULL;
    rig.no_port = true;
    opens(0, "");
    record_expect("open\nserve port 8080\nwatch 70\n");
    assert_int_equal(rig.daemon.options.http_port, 8080);
    by_http_tick(&rig.daemon); /* the other door has no server */
    by_http_close(&rig.daemon);
    record_expect("unwatch 70\nstop 0\nclose\n");
    assert_int_equal(access(rig.socket, F_OK), 0); /* not this process's */
    rig.started = 0;
    rig.daemon.options.socket = rig.socket;
    rig.daemon.options.http = false;
    rig.listen_fd = 0; /* a descriptor as any other */
    opens(0, "");
    record_expect("open\nserve descriptor 0\nwatch 70\n");
    by_http_close(&rig.daemon);
    record_clear();
    rig.daemon.options.socket = NULL;
    opens(0, "");
    record_expect("");
    assert_null(rig.daemon.http);
    by_http_tick(&rig.daemon);
}

static void a_door_that_cannot_be_opened_is_named(void **state)
{
    char text[120];

    (void)state;
    rig.listen_fd = -1;
    opens(BY_EIO, "cannot listen");
    record_expect("open\n");
    by_http_close(&rig.daemon);
    record_expect("close\n");
    assert_int_equal(access(rig.socket, F_OK), 0); /* another process's */
    rig.listen_fd = 33;
    rig.fails_at = 1;
    snprintf(text, sizeof(text), "--socket %s: cannot serve HTTP there", rig.socket);
    opens(BY_EIO, text);
    by_http_close(&rig.daemon);
    assert_int_equal(access(rig.socket, F_OK), -1);
    rig.fails_at = 2;
    opens(BY_EIO, "no port");
    by_http_close(&rig.daemon);
    rig.fails_at = rig.started = 0;
    rig.watch_error = BY_EIO;
    opens(BY_EIO, text);
}

/* The port is read-only unless it was opened. */
static void requests_for_jobs_depend_on_the_door(void **state)
{
    char foreign[60];

    (void)state;
    opens(0, "");
    record_clear();
    expect(SOCKET, "POST", "/v1/jobs", "jobs POST '' with 0 bytes\n");
    expect(SOCKET, "DELETE", "/v1/jobs/3", "jobs DELETE '/3' with 0 bytes\n");
    expect(SOCKET, "HEAD", "/v1/jobs", "jobs GET '' with 0 bytes\n");
    expect(PORT, "GET", "/v1/jobs/3", "jobs GET '/3' with 0 bytes\n");
    expect(PORT, "HEAD", "/v1/jobs", "jobs GET '' with 0 bytes\n");
    expect(PORT, "POST", "/v1/jobs", READ_ONLY);
    expect(PORT, "DELETE", "/v1/jobs/3", READ_ONLY);
    expect(PORT, "POST", "/v1/jobsx", NO_PATH);
    expect(PORT, "GET", "/v1/jobsx", NO_PATH);
    expect(PORT, "GET", "/v1/job", NO_PATH);
    rig.foreign = true;
    snprintf(foreign, sizeof(foreign), "403 %.40s\n", BY_HTTP_FOREIGN);
    expect(SOCKET, "POST", "/v1/jobs", foreign);
    expect(SOCKET, "GET", "/v1/jobs", "jobs GET '' with 0 bytes\n");
    by_http_close(&rig.daemon);
    rig.foreign = false;
    rig.started = 0;
    rig.daemon.options.http_open = true;
    opens(0, "");
    record_clear();
    expect(PORT, "POST", "/v1/jobs", "jobs POST '' with 0 bytes\n");
}

static void answers_have_their_kind_of_memory_and_methods(void **state)
{
    (void)state;
    opens(0, "");
    record_clear();
    expect(PORT, "GET", "/copy", "200 text/plain 'abc' copied\n");
    expect(PORT, "GET", "/constant", "200 text/css 'abcd' kept\n");
    expect(PORT, "GET", "/refuse", "405 read allow GET, HEAD\n");
    expect(PORT, "HEAD", "/refuse", "405 read allow GET, HEAD\n");
    expect(PORT, "POST", "/refuse", "405 write allow GET, HEAD\n");
    expect(PORT, "GETS", "/refuse", "405 write allow GET, HEAD\n");
    expect(PORT, "GET", "/none", NO_PATH);
}

static void a_body_may_come_in_pieces_up_to_the_limit(void **state)
{
    char *piece = by_alloc(BY_HTTP_BODY_MAX, 1);
    void *one, *two;

    (void)state;
    opens(0, "");
    record_clear();
    begin(SOCKET, &one);
    begin(SOCKET, &two); /* at the same time */
    upload(SOCKET, &one, "first", 5);
    upload(SOCKET, &two, "other", 5);
    upload(SOCKET, &one, " second", 7);
    record_expect("");
    end(SOCKET, &one, "POST", "/v1/jobs");
    record_expect("jobs POST '' with 12 bytes first second\n");
    forget(SOCKET, &one);
    end(SOCKET, &two, "POST", "/v1/jobs");
    record_expect("jobs POST '' with 5 bytes other\n");
    forget(SOCKET, &two);
    memset(piece, 'b', BY_HTTP_BODY_MAX);
    for (unsigned more = 0; more < 2; more++) {
        begin(SOCKET, &one);
        upload(SOCKET, &one, piece, BY_HTTP_BODY_MAX - 3);
        upload(SOCKET, &one, piece, 3 + more);
        end(SOCKET, &one, "POST", "/v1/jobs");
        record_expect(more ? "413 a body has at most 1 MiB\n"
                           : "jobs POST '' with 1048576 bytes bbbbbbbbbbbbbbbbbbbb\n");
        forget(SOCKET, &one);
    }
    forget(SOCKET, &one); /* there is none any more */
    free(piece);
}

static void an_answer_that_came_later_is_given_and_the_end_answers_the_rest(void **state)
{
    struct by_http_request *request;
    void *states[3];

    (void)state;
    opens(0, "");
    for (unsigned i = 0; i < 3; i++)
        begin(SOCKET, &states[i]);
    request = states[1];
    request->phase = BY_HTTP_DONE;
    request->status = 409;
    request->result = json_pack("{s:s}", "error", "there is a job 3");
    record_clear();
    end(SOCKET, &states[1], "POST", "/v1/jobs");
    record_expect("409 there is a job 3\n");
    forget(SOCKET, &states[1]); /* from the middle of the list */
    request = states[2];
    request->phase = BY_HTTP_WAITS;
    request = states[0];
    request->phase = BY_HTTP_ASKED;
    by_http_close(&rig.daemon);
    record_expect("finish with 503 banyand is ending\nunwatch 70\nstop 0\nunwatch 71\nstop 1\nclose\n");
    for (unsigned i = 0; i < 3; i += 2) {
        request = states[i];
        json_decref(request->result);
        free(request);
    }
}

/* So that heartbeats are not delayed. */
static void a_door_runs_while_there_is_something_to_do_but_not_for_long(void **state)
{
    struct by_watcher *watcher;

    (void)state;
    opens(0, "");
    watcher = &rig.daemon.http->port.watcher;
    watcher->ready(&rig.daemon, watcher, EPOLLIN);
    assert_true(rig.servers[SOCKET].rounds == 0 && rig.servers[PORT].rounds == 1);
    rig.servers[PORT].at_once = 3;
    watcher->ready(&rig.daemon, watcher, EPOLLIN);
    assert_int_equal(rig.servers[PORT].rounds, 1 + 4);
    rig.servers[PORT].at_once = 100;
    watcher->ready(&rig.daemon, watcher, EPOLLIN);
    assert_int_equal(rig.servers[PORT].rounds, 5 + 1 + 16);
    rig.servers[PORT].at_once = 0;
    by_http_tick(&rig.daemon);
    assert_true(rig.servers[SOCKET].rounds == 1 && rig.servers[PORT].rounds == 23);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_doors_are_opened_and_closed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(each_door_may_be_off, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_door_that_cannot_be_opened_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(requests_for_jobs_depend_on_the_door, set_up, tear_down),
        cmocka_unit_test_setup_teardown(answers_have_their_kind_of_memory_and_methods, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_body_may_come_in_pieces_up_to_the_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_that_came_later_is_given_and_the_end_answers_the_rest,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_door_runs_while_there_is_something_to_do_but_not_for_long, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
