/* What a banyand serves while it follows: its status, its metrics, and refusals that name the
 * leader, at the socket and at the port. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "control/service/daemon/follow.h"
#include "control/service/daemon/say.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/ask.h"
#include "tests/unit/control/service/daemon/descriptors.h"

/* Timeout of every answer (milliseconds); a loaded machine is slow. */
#define PATIENCE_MS 10000

static struct {
    char folder[64], path[96], doors[2][120]; /* addresses of the socket and of the port */
    struct by_daemon_options options;
    struct by_follow *follow;
    unsigned descriptors; /* of the process before a door was open */
    char said[200];       /* the last line */
} rig;

void by_daemon_say(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(rig.said, sizeof(rig.said), format, arguments);
    va_end(arguments);
}

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    snprintf(rig.folder, sizeof(rig.folder), "/tmp/by-test-follow-XXXXXX");
    assert_non_null(mkdtemp(rig.folder));
    snprintf(rig.path, sizeof(rig.path), "%s/http", rig.folder);
    rig.descriptors = count_descriptors();
    rig.options.socket = rig.path;
    rig.options.http = true;
    rig.follow = by_follow_open(&rig.options, "ring");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    by_follow_close(rig.follow);
    assert_int_equal(count_descriptors(), rig.descriptors);
    return rmdir(rig.folder); /* the socket is removed */
}

/* A look that must succeed. */
static void see(const char *leader, const char *text)
{
    struct by_problem problem = {0};

    if (by_follow_see(rig.follow, leader, text, &problem) != 0)
        fail_msg("%s", problem.text);
    snprintf(rig.doors[0], sizeof(rig.doors[0]), "unix:%s", rig.path);
    snprintf(rig.doors[1], sizeof(rig.doors[1]), "http://127.0.0.1:%u", rig.options.http_port);
}

/* Requires the JSON of an answer (compact, members sorted) at both doors. */
static void answers(const char *method, const char *path, int wanted, const char *expected)
{
    for (unsigned d = 0; d < 2; d++) {
        char *reply = ask_http(rig.doors[d], method, path, NULL, wanted), *text;
        json_t *object = json_loads(reply, JSON_REJECT_DUPLICATES, NULL);

        if (object == NULL)
            fail_msg("not JSON: %s", reply);
        text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
        assert_string_equal(text, expected);
        free(text);
        json_decref(object);
        free(reply);
    }
}

/* Requires that the metrics have all texts (NULL-terminated). */
static void metrics_have(const char *const *texts)
{
    for (unsigned d = 0; d < 2; d++) {
        char *reply = ask_http(rig.doors[d], "GET", "/metrics", NULL, 200);

        for (unsigned i = 0; texts[i] != NULL; i++)
            if (strstr(reply, texts[i]) == NULL)
                fail_msg("no '%s' in: %s", texts[i], reply);
        free(reply);
    }
}

/* Sends bytes to the port and returns the whole answer, with its head. */
static void exchange(const char *request, char *answer, size_t room)
{
    struct sockaddr_in there = {.sin_family = AF_INET,
                                .sin_port = htons(rig.options.http_port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    size_t count = 0;
    ssize_t got;

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
    assert_int_equal(send(fd, request, strlen(request), MSG_NOSIGNAL), strlen(request));
    while (count + 1 < room && (got = recv(fd, answer + count, room - count - 1, 0)) > 0)
        count += (size_t)got;
    answer[count] = 0;
    close(fd);
}

/* Whether the only port is one of the loopback address. */
static bool is_local(void)
{
    unsigned ports = 0, local = 0;

    for (int fd = 0; fd < 256; fd++) {
        struct sockaddr_in at = {0};
        socklen_t bytes = sizeof(at), size = sizeof(int);
        int listens = 0;

        if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &size) != 0 || !listens ||
            getsockname(fd, (struct sockaddr *)&at, &bytes) != 0 || at.sin_family == AF_UNIX)
            continue;
        ports++;
        local += at.sin_family == AF_INET && at.sin_addr.s_addr == htonl(INADDR_LOOPBACK);
    }
    return ports == 1 && local == 1;
}

#define STATUS(leader, text)                                                                                 \
    "{\"follows\":true,\"leader\":" leader ",\"leads\":false,\"text\":\"" text                               \
    "\",\"topology\":\"ring\",\"version\":\"" BY_VERSION "\"}"

static void both_doors_report_what_the_last_look_saw(void **state)
{
    (void)state;
    see(NULL, "etcd does not answer");
    assert_int_not_equal(rig.options.http_port, 0);
    answers("GET", "/v1/status", 200, STATUS("null", "etcd does not answer"));
    metrics_have((const char *const[]){"\nbanyan_leads 0\n", "\nbanyan_store_up 0\n", NULL});
    see("a", "a leads");
    answers("GET", "/v1/status", 200, STATUS("\"a\"", "a leads"));
    metrics_have((const char *const[]){"\nbanyan_store_up 1\n", "\nbanyan_follows{leader=\"a\"} 1\n", NULL});
    see(NULL, "etcd does not answer any more"); /* the leader is the last one seen */
    answers("GET", "/v1/status", 200, STATUS("\"a\"", "etcd does not answer any more"));
    metrics_have((const char *const[]){"\nbanyan_store_up 0\n", "\nbanyan_follows{leader=\"a\"} 1\n", NULL});
    see("b\xff", "b leads"); /* not UTF-8 */
    answers("GET", "/v1/status", 200, STATUS("\"b?\"", "b leads"));
}

static void other_requests_are_refused_with_the_leader(void **state)
{
    static const char *const paths[] = {"/", "/v1/jobs", "/v1/status/", "/v1/live", "/metrics/a"};

    (void)state;
    see("a", "a leads");
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
        answers("GET", paths[i], 503,
                "{\"error\":\"this banyand follows and accepts no requests: a leads. Send them to the "
                "leader; here are GET /v1/status and GET /metrics\"}");
    answers("DELETE", "/v1/status", 405, "{\"error\":\"this path supports GET and HEAD\"}");
    answers("POST", "/metrics", 405, "{\"error\":\"this path supports GET and HEAD\"}");
}

static void a_long_text_is_in_the_refusal(void **state)
{
    char text[400], expected[600];

    (void)state;
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = 0;
    see("a", text);
    snprintf(
        expected, sizeof(expected),
        "{\"error\":\"this banyand follows and accepts no requests: %s. Send them to the leader; here are "
        "GET /v1/status and GET /metrics\"}",
        text);
    answers("GET", "/", 503, expected);
}

static void the_head_of_an_answer_is_that_of_its_path(void **state)
{
    static const struct {
        const char *request, *texts[3];
    } cases[] = {
        {"GET /v1/status HTTP/1.0\r\nHost: localhost\r\n\r\n",
         {" 200 OK", "Content-Type: application/json\r\n", "\n \"follows\": true"}},
        {"GET /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n",
         {" 200 OK", "Content-Type: text/plain; version=0.0.4", "\nbanyan_leads 0\n"}},
        {"HEAD /metrics HTTP/1.0\r\nHost: localhost\r\n\r\n",
         {" 200 OK", "Content-Type: text/plain; version=0.0.4"}},
        {"PUT /metrics HTTP/1.0\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello",
         {" 405 ", "Allow: GET, HEAD\r\n"}},
        {"PUT /metrics HTTP/1.0\r\nHost: localhost\r\nContent-Length: 1\r\n\r\nh", {" 405 "}},
        {"PUT /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
         "GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
         {" 405 ", " 200 OK"}}, /* the body is not the next request */
        {"GET /v1/jobs HTTP/1.0\r\nHost: localhost\r\n\r\n", {" 503 ", "{\n \"error\": ", "a leads"}},
        {"GET /v1/status HTTP/1.0\r\nHost: elsewhere\r\n\r\n", {" 403 ", "use Host: localhost"}},
        {"PUT /v1/status HTTP/1.0\r\nHost: localhost\r\nOrigin: http://localhost\r\n\r\n",
         {" 403 ", "omit Origin"}},
    };
    char answer[8192];

    (void)state;
    see("a", "a leads");
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        exchange(cases[i].request, answer, sizeof(answer));
        for (unsigned t = 0; t < 3 && cases[i].texts[t] != NULL; t++)
            if (strstr(answer, cases[i].texts[t]) == NULL)
                fail_msg("no '%s' in: %s", cases[i].texts[t], answer);
        assert_true((strstr(answer, "Allow: ") != NULL) == (strstr(answer, " 405 ") != NULL));
        if (cases[i].request[0] == 'H')
            assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
    }
}

static void the_first_look_opens_the_doors_of_the_options(void **state)
{
    struct stat status;
    char line[100];
    uint16_t port;

    (void)state;
    assert_int_not_equal(stat(rig.path, &status), 0);
    see("a", "a leads");
    assert_int_equal(stat(rig.path, &status), 0);
    assert_true(is_local());
    port = rig.options.http_port;
    snprintf(line, sizeof(line), "status and metrics of this follower are at http 127.0.0.1:%u", port);
    assert_string_equal(rig.said, line);
    rig.said[0] = 0;
    see("a", "a leads");
    assert_int_equal(rig.options.http_port, port);
    assert_string_equal(rig.said, "");
    by_follow_close(rig.follow);
    assert_int_not_equal(stat(rig.path, &status), 0);
    rig.options.http = false; /* the socket alone */
    rig.options.http_port = 0;
    rig.follow = by_follow_open(&rig.options, "ring");
    see("a", "a leads");
    free(ask_http(rig.doors[0], "GET", "/v1/status", NULL, 200));
    assert_int_equal(rig.options.http_port, 0);
    by_follow_close(rig.follow);
    rig.options.http = true; /* the port alone */
    rig.options.socket = NULL;
    rig.follow = by_follow_open(&rig.options, "ring");
    see("a", "a leads");
    free(ask_http(rig.doors[1], "GET", "/v1/status", NULL, 200));
    assert_int_not_equal(stat(rig.path, &status), 0);
    by_follow_close(rig.follow);
    rig.options.http = false; /* none */
    rig.options.http_port = 0;
    rig.follow = by_follow_open(&rig.options, "ring");
    see("a", "a leads");
    assert_int_equal(rig.options.http_port, 0);
    by_follow_close(NULL);
}

static void a_door_that_another_one_has_is_an_error(void **state)
{
    char other[96];
    struct by_daemon_options options = {.http = true, .socket = other};
    struct by_problem problem = {0};
    struct by_follow *second;
    struct stat status;

    (void)state;
    see("a", "a leads");
    snprintf(other, sizeof(other), "%s", rig.path);
    second = by_follow_open(&options, "ring");
    assert_int_equal(by_follow_see(second, "a", "a leads", &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "another banyand listens there: choose another path"));
    by_follow_close(second);
    assert_int_equal(stat(rig.path, &status), 0);
    snprintf(other, sizeof(other), "%s/other", rig.folder);
    options.http_port = rig.options.http_port;
    second = by_follow_open(&options, "ring");
    assert_int_equal(by_follow_see(second, "a", "a leads", &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "cannot listen on 127.0.0.1"));
    by_follow_close(second);
    assert_int_not_equal(stat(other, &status), 0);
    answers("GET", "/v1/status", 200, STATUS("\"a\"", "a leads"));
}

/* Of the descriptors that a door requires, only that of the socket can be opened. */
static void a_door_that_cannot_be_served_is_an_error_and_is_closed(void **state)
{
    struct by_problem problem = {0};
    struct rlimit limit, low;
    int next = dup(STDERR_FILENO), error;

    (void)state;
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = (struct rlimit){.rlim_cur = (rlim_t)next + 1, .rlim_max = limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    error = by_follow_see(rig.follow, "a", "a leads", &problem);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(error, BY_EIO);
    assert_non_null(strstr(problem.text, "cannot serve HTTP there"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(both_doors_report_what_the_last_look_saw, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_requests_are_refused_with_the_leader, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_long_text_is_in_the_refusal, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_head_of_an_answer_is_that_of_its_path, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_first_look_opens_the_doors_of_the_options, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_door_that_another_one_has_is_an_error, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_door_that_cannot_be_served_is_an_error_and_is_closed, set_up,
                                        tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
