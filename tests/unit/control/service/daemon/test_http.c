/* The HTTP answers of a whole banyand: the live page and its data, headers, methods, errors,
 * crowds of slow clients, and faults, which must be in the data within a second. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>

#include "control/base/alloc.h"
#include "control/service/daemon/http.h"
#include "tests/unit/control/service/daemon/rig.h"

/* Timeout of every answer (milliseconds); a loaded machine is slow. */
#define PATIENCE_MS 10000
/* Until a fault is in the data, from the moment at which a switch reports it. */
#define FAULT_MS 1000
#define CROWD    300u

static struct daemon_rig rig;
static struct rig_daemon running;
static uint16_t port;

static int64_t now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static int start(void **state)
{
    char path[96], line[400];
    FILE *stream;

    (void)state;
    rig_open(&rig);
    snprintf(path, sizeof(path), "%s/http", rig.folder);
    running = rig_start(&rig, (const char *const[]){"--keyed", "--state", rig.state, "--http", "0",
                                                    "--socket", path, "--job", "1=allreduce", NULL});
    rig_await(&running, "job 1 runs");
    rig_await(&running, "ready");
    stream = fopen(running.log, "r");
    assert_non_null(stream);
    while (fgets(line, sizeof(line), stream) != NULL)
        if (strstr(line, "http 127.0.0.1:") != NULL)
            port = (uint16_t)strtoul(strstr(line, "127.0.0.1:") + 10, NULL, 10);
    fclose(stream);
    assert_int_not_equal(port, 0);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_int_equal(rig_stop(&running), 0);
    rig_close(&rig);
    return 0;
}

static int dial(void)
{
    struct sockaddr_in there = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct timeval patience = {.tv_sec = PATIENCE_MS / 1000};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof(there)), 0);
    return fd;
}

/* Sends a request and returns the whole answer. */
static char *ask_raw(const char *request, size_t bytes)
{
    size_t room = 1 << 20, count = 0;
    char *answer = by_alloc(room, 1);
    int fd = dial();
    ssize_t got;

    for (size_t done = 0; done < bytes;) {
        ssize_t sent = send(fd, request + done, bytes - done, MSG_NOSIGNAL);

        if (sent <= 0)
            break; /* it may refuse before it has read everything */
        done += (size_t)sent;
    }
    while (count + 1 < room && (got = recv(fd, answer + count, room - count - 1, 0)) > 0)
        count += (size_t)got;
    close(fd);
    return answer;
}

static char *ask(const char *method, const char *path, const char *headers)
{
    char request[2000];

    snprintf(request, sizeof(request), "%s %s HTTP/1.0\r\nHost: localhost:%u\r\n%s\r\n", method, path, port,
             headers);
    return ask_raw(request, strlen(request));
}

static void has(char *answer, const char *text)
{
    if (strstr(answer, text) == NULL)
        fail_msg("no \"%s\" in: %.600s", text, answer);
}

static void answers(const char *method, const char *path, const char *headers, const char *status)
{
    char *answer = ask(method, path, headers);

    has(answer, status);
    free(answer);
}

static json_t *json_of(const char *path)
{
    char *answer = ask("GET", path, "");
    json_error_t fault;
    json_t *value;

    has(answer, " 200 OK");
    value = json_loads(strstr(answer, "\r\n\r\n"), JSON_REJECT_DUPLICATES, &fault);
    if (value == NULL)
        fail_msg("%s: %s", path, fault.text);
    free(answer);
    return value;
}

static void the_page_and_its_files_have_their_types_and_load_nothing_from_elsewhere(void **state)
{
    static const char *const files[][2] = {{"/", "text/html"},
                                           {"/page.css", "text/css"},
                                           {"/page.js", "text/javascript"},
                                           {"/fabric.js", "text/javascript"},
                                           {"/layout.js", "text/javascript"},
                                           {"/tables.js", "text/javascript"},
                                           {"/chart.js", "text/javascript"},
                                           {"/text.js", "text/javascript"},
                                           {"/page.svg", "image/svg+xml"}};

    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char *answer = ask("GET", files[i][0], "");

        has(answer, " 200 OK");
        has(answer, files[i][1]);
        has(answer, "Content-Security-Policy: default-src 'none'; script-src 'self';");
        has(answer, "X-Content-Type-Options: nosniff");
        has(answer, "Cross-Origin-Resource-Policy: same-origin");
        assert_null(strstr(answer, "https://"));
        assert_null(strstr(answer, "<script>"));
        assert_null(strstr(answer, "innerHTML"));
        assert_null(strstr(answer, "style=\""));
        free(answer);
    }
}

static void head_has_the_headers_without_the_body(void **state)
{
    static const char *const paths[] = {"/",           "/v1/live",   "/v1/fabric",
                                        "/v1/history", "/v1/status", "/metrics"};

    (void)state;
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        char *answer = ask("HEAD", paths[i], "");

        has(answer, " 200 OK");
        assert_string_equal(strstr(answer, "\r\n\r\n"), "\r\n\r\n");
        free(answer);
    }
}

/* A name of another site that resolves to this machine; some are as long as the names of this
 * one. */
static void requests_to_another_name_are_refused(void **state)
{
    static const struct {
        const char *host, *status;
    } cases[] = {{"localhost", " 200 OK"},       {"localhost:80", " 200 OK"}, {"127.0.0.1", " 200 OK"},
                 {"127.0.0.1:1", " 200 OK"},     {"elsewhere", " 403 "},      {"elsewhere:80", " 403 "},
                 {"localhost.example", " 403 "}, {"127.0.0.10:80", " 403 "},  {"a.example:80", " 403 "},
                 {"localhos", " 403 "},          {"mylocalhost:80", " 403 "}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char request[200], *answer;

        snprintf(request, sizeof(request), "GET /v1/live HTTP/1.0\r\nHost: %s\r\n\r\n", cases[i].host);
        answer = ask_raw(request, strlen(request));
        has(answer, cases[i].status);
        free(answer);
    }
}

static void other_methods_paths_and_origins_are_refused(void **state)
{
    char origin[100];

    (void)state;
    answers("POST", "/", "Content-Length: 0\r\n", " 405 ");
    answers("POST", "/v1/live", "Content-Length: 0\r\n", "Allow: GET, HEAD");
    answers("DELETE", "/v1/history", "", " 405 ");
    answers("PUT", "/page.js", "Content-Length: 0\r\n", " 405 ");
    answers("POST", "/v1/jobs", "Content-Length: 0\r\n", " 403 ");
    answers("DELETE", "/v1/jobs/1", "", " 403 ");
    answers("GET", "/v1/none", "", " 404 ");
    answers("GET", "/page.css/", "", " 404 ");
    answers("GET", "/../page.css", "", " 404 ");
    answers("GET", "/v1/history?link=2x", "", " 400 ");
    answers("GET", "/v1/history?link=-1", "", " 400 ");
    answers("GET", "/v1/history?link=", "", " 400 ");
    answers("GET", "/v1/history?link=99999999999999999999", "", "it must be the number of a link, below 3");
    answers("GET", "/v1/live", "Origin: http://somewhere.example\r\n", " 403 ");
    answers("GET", "/v1/live", "Origin: http://localhost:1\r\n", " 403 ");
    answers("GET", "/v1/live", "Origin: null\r\n", " 403 ");
    snprintf(origin, sizeof(origin), "Origin: http://localhost:%u\r\n", port);
    answers("GET", "/v1/live", origin, " 200 OK");
    snprintf(origin, sizeof(origin), "Content-Length: 0\r\nOrigin: http://localhost:%u\r\n", port);
    answers("POST", "/v1/jobs", origin, " 403 ");
}

static void oversized_requests_are_refused(void **state)
{
    static const char head[] = "GET /v1/live HTTP/1.0\r\nHost: localhost\r\nX-Long: ";
    size_t bytes = 1 << 18;
    char *request = by_alloc(bytes + 1, 1), *answer;

    (void)state;
    memset(request, 'x', bytes);
    snprintf(request, bytes, "%s", head);
    request[strlen(head)] = 'x';
    snprintf(request + bytes - 4, 5, "\r\n\r\n");
    answer = ask_raw(request, bytes);
    assert_null(strstr(answer, " 200 OK"));
    has(answer, " 431 ");
    free(answer);
    free(request);
    bytes = BY_HTTP_BODY_MAX + 400;
    request = by_alloc(bytes + 1, 1);
    memset(request, 'x', bytes);
    snprintf(request, 300, "PUT /v1/live HTTP/1.0\r\nHost: localhost\r\nContent-Length: %zu\r\n\r\n",
             bytes - 300);
    request[strlen(request)] = 'x';
    answer = ask_raw(request, bytes);
    has(answer, " 413 ");
    free(answer);
    free(request);
}

static void slow_clients_do_not_delay_the_page(void **state)
{
    int fds[CROWD];

    (void)state;
    for (unsigned i = 0; i < CROWD; i++) { /* some send half a request, some never read the answer */
        const char *text = i % 3 == 0   ? ""
                           : i % 3 == 1 ? "GET /v1/live HTTP/1.1\r\nHost: loc"
                                        : "GET /v1/history HTTP/1.1\r\nHost: localhost\r\n\r\n";

        fds[i] = dial();
        (void)!send(fds[i], text, strlen(text), MSG_NOSIGNAL);
    }
    for (unsigned i = 0; i < 5; i++) {
        int64_t since = now_ms();

        answers("GET", "/v1/live", "", " 200 OK");
        assert_in_range(now_ms() - since, 0, FAULT_MS);
    }
    for (unsigned i = 0; i < CROWD; i++)
        close(fds[i]);
}

/* Waits until an array of the state has an element, or is empty. Returns the milliseconds. */
static int64_t until(const char *name, bool filled)
{
    int64_t since = now_ms();

    for (;;) {
        json_t *live = json_of("/v1/live");
        bool is = (json_array_size(json_object_get(live, name)) > 0) == filled;

        json_decref(live);
        if (is)
            return now_ms() - since;
        assert_in_range(now_ms() - since, 0, PATIENCE_MS);
        usleep(10000);
    }
}

static void faults_are_in_the_data_within_a_second(void **state)
{
    json_t *live, *event;

    (void)state;
    rig.fake[0]->down[1] = true;
    assert_in_range(until("links_down", true), 0, FAULT_MS);
    live = json_of("/v1/live");
    event = json_array_get(json_object_get(live, "events"), 0);
    assert_non_null(strstr(json_string_value(json_object_get(event, "text")), "x0"));
    json_decref(live);
    rig.fake[0]->down[1] = false;
    assert_in_range(until("links_down", false), 0, FAULT_MS);
    rig.fake[1]->silent = 1;
    assert_in_range(until("nodes_down", true), 0, FAULT_MS);
    rig.fake[1]->silent = 0;
    assert_in_range(until("nodes_down", false), 0, PATIENCE_MS);
}

static void the_history_grows_and_jobs_are_in_the_state(void **state)
{
    json_t *history, *live, *job;

    (void)state;
    until("sample", true);
    history = json_of("/v1/history");
    assert_true(json_array_size(json_object_get(history, "samples")) > 0);
    assert_true(json_array_size(json_object_get(history, "events")) > 0);
    json_decref(history);
    live = json_of("/v1/live");
    job = json_array_get(json_object_get(live, "jobs"), 0);
    assert_int_equal(json_integer_value(json_object_get(job, "job")), 1);
    assert_int_equal(json_integer_value(json_object_get(job, "joined")), 0);
    assert_int_equal(json_integer_value(json_object_get(job, "ranks")), 2);
    assert_string_equal(json_string_value(json_array_get(json_object_get(job, "missing"), 1)), "h1");
    json_decref(live);
    json_decref(json_of("/v1/history?link=1"));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_page_and_its_files_have_their_types_and_load_nothing_from_elsewhere),
        cmocka_unit_test(head_has_the_headers_without_the_body),
        cmocka_unit_test(requests_to_another_name_are_refused),
        cmocka_unit_test(other_methods_paths_and_origins_are_refused),
        cmocka_unit_test(oversized_requests_are_refused),
        cmocka_unit_test(slow_clients_do_not_delay_the_page),
        cmocka_unit_test(faults_are_in_the_data_within_a_second),
        cmocka_unit_test(the_history_grows_and_jobs_are_in_the_state),
    };

    if (argc > 1)
        return by_daemon_main(argc, argv); /* rig_start runs this program as the daemon */
    return cmocka_run_group_tests(tests, start, stop);
}
