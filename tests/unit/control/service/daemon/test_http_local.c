/* What both HTTP servers of banyand share: who may connect, which requests are foreign, and the
 * headers of every answer. The HTTP library is the test's. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/http_local.h"
#include "offload/base/errors.h"

static struct {
    const char *host, *origin;
    bool no_response;
    char headers[1200]; /* "name: value\n" */
    unsigned status, destroyed;
    size_t bytes;
} rig;

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                        const char *key)
{
    assert_ptr_equal(connection, &rig);
    assert_int_equal(kind, MHD_HEADER_KIND);
    return strcmp(key, "Host") == 0 ? rig.host : strcmp(key, "Origin") == 0 ? rig.origin : NULL;
}

struct MHD_Response *MHD_create_response_from_buffer(size_t size, void *buffer,
                                                     enum MHD_ResponseMemoryMode mode)
{
    rig.bytes = size;
    if (rig.no_response)
        return NULL;
    if (mode == MHD_RESPMEM_MUST_FREE)
        free(buffer);
    return (struct MHD_Response *)&rig;
}

enum MHD_Result MHD_add_response_header(struct MHD_Response *response, const char *header,
                                        const char *content)
{
    size_t used = strlen(rig.headers);

    assert_ptr_equal(response, &rig);
    snprintf(rig.headers + used, sizeof(rig.headers) - used, "%s: %s\n", header, content);
    return MHD_YES;
}

enum MHD_Result MHD_queue_response(struct MHD_Connection *connection, unsigned status,
                                   struct MHD_Response *response)
{
    assert_ptr_equal(connection, &rig);
    assert_ptr_equal(response, &rig);
    rig.status = status;
    return MHD_YES;
}

void MHD_destroy_response(struct MHD_Response *response)
{
    assert_ptr_equal(response, &rig);
    rig.destroyed++;
}

static struct MHD_Connection *connection(void)
{
    return (struct MHD_Connection *)&rig;
}

static void only_this_machine_may_connect(void **state)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in from = {.sin_family = AF_INET};
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
    static const struct {
        const char *address;
        enum MHD_Result accepted;
    } cases[] = {{"127.0.0.1", MHD_YES}, {"127.255.255.255", MHD_YES}, {"126.255.255.255", MHD_NO},
                 {"128.0.0.1", MHD_NO},  {"10.0.0.127", MHD_NO},       {"0.0.0.0", MHD_NO}};

    (void)state;
    assert_int_equal(by_http_accept_local(NULL, NULL, 0), MHD_YES);
    assert_int_equal(by_http_accept_local(NULL, (struct sockaddr *)&local, sizeof(local)), MHD_YES);
    assert_int_equal(by_http_accept_local(NULL, (struct sockaddr *)&local, sizeof(local.sun_family)),
                     MHD_YES);
    assert_int_equal(by_http_accept_local(NULL, (struct sockaddr *)&from, 1), MHD_YES); /* it has no name */
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(inet_pton(AF_INET, cases[i].address, &from.sin_addr), 1);
        assert_int_equal(by_http_accept_local(NULL, (struct sockaddr *)&from, sizeof(from)),
                         cases[i].accepted);
        assert_int_equal(by_http_accept_local(NULL, (struct sockaddr *)&from, sizeof(from) - 1), MHD_NO);
    }
    assert_int_equal(by_http_accept_local(NULL, (struct sockaddr *)&six, sizeof(six)), MHD_NO);
}

/* Host, origin, and whether a request that reads, or one that writes, is foreign. */
static void requests_of_other_pages_and_to_other_names_are_foreign(void **state)
{
    static const struct {
        const char *host, *origin;
        bool reads, writes;
    } cases[] = {
        {NULL, NULL, false, false},
        {"localhost", NULL, false, false},
        {"localhost:80", NULL, false, false},
        {"127.0.0.1", NULL, false, false},
        {"127.0.0.1:8080", NULL, false, false},
        {"localhost.example", NULL, true, true},
        {"localhos", NULL, true, true},
        {"127.0.0.10", NULL, true, true},
        {"example", NULL, true, true},
        {"", NULL, true, true},
        {"localhost:80", "http://localhost:80", false, true}, /* the page itself may read */
        {"localhost:80", "http://localhost", true, true},
        {"localhost:80", "https://localhost:80", true, true},
        {"localhost:80", "null", true, true},
        {NULL, "http://localhost", true, true},
        {"example", "http://example", true, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig.host = cases[i].host;
        rig.origin = cases[i].origin;
        if (by_http_is_foreign(connection(), true) != cases[i].reads ||
            by_http_is_foreign(connection(), false) != cases[i].writes)
            fail_msg("case %zu", i);
    }
}

#define HEADERS                                                                                              \
    "Content-Type: text/plain\nCache-Control: no-store\nContent-Security-Policy: default-src 'none'; "       \
    "script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "             \
    "form-action 'none'; frame-ancestors 'none'\nCross-Origin-Opener-Policy: same-origin\n"                  \
    "Cross-Origin-Resource-Policy: same-origin\nReferrer-Policy: no-referrer\n"                              \
    "X-Content-Type-Options: nosniff\n"

static void each_answer_has_the_headers_and_one_that_names_methods_has_those(void **state)
{
    static const char text[] = "hello";

    (void)state;
    memset(&rig, 0, sizeof(rig));
    assert_int_equal(by_http_queue(connection(), 200, "text/plain", text, 5, MHD_RESPMEM_PERSISTENT, NULL),
                     MHD_YES);
    assert_string_equal(rig.headers, HEADERS);
    assert_true(rig.status == 200 && rig.bytes == 5 && rig.destroyed == 1);
    rig.headers[0] = 0;
    assert_int_equal(
        by_http_queue(connection(), 405, "text/plain", strdup(text), 6, MHD_RESPMEM_MUST_FREE, "GET, HEAD"),
        MHD_YES);
    assert_string_equal(rig.headers, HEADERS "Allow: GET, HEAD\n");
    assert_true(rig.status == 405 && rig.destroyed == 2);
    rig.no_response = true; /* what it should free is freed */
    assert_int_equal(
        by_http_queue(connection(), 200, "text/plain", strdup(text), 6, MHD_RESPMEM_MUST_FREE, NULL), MHD_NO);
    assert_int_equal(by_http_queue(connection(), 200, "text/plain", text, 5, MHD_RESPMEM_PERSISTENT, NULL),
                     MHD_NO);
    assert_int_equal(rig.destroyed, 2);
}

static void the_socket_of_the_default_path_gets_its_folder(void **state)
{
    char folder[] = "/tmp/by-test-local-XXXXXX", path[96], inner[64];
    struct by_daemon_options options = {.socket = path};
    struct by_problem problem = {0};
    struct stat status;
    int fd, second;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(inner, sizeof(inner), "%s/inner", folder);
    snprintf(path, sizeof(path), "%s/http", inner);
    snprintf(options.socket_default, sizeof(options.socket_default), "%s/other", folder);
    assert_true(by_http_listen(&options, &problem) < 0); /* a path that was given must have one */
    assert_non_null(strstr(problem.text, "choose another path, or --socket off"));
    snprintf(options.socket_default, sizeof(options.socket_default), "%s", path);
    fd = by_http_listen(&options, &problem);
    assert_true(fd >= 0);
    assert_int_equal(stat(inner, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0755);
    second = by_http_listen(&options, &problem);
    assert_true(second < 0);
    assert_non_null(strstr(problem.text, "another banyand listens there: choose another path"));
    close(fd);
    unlink(path);
    rmdir(inner);
    assert_int_equal(rmdir(folder), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_this_machine_may_connect),
        cmocka_unit_test(requests_of_other_pages_and_to_other_names_are_foreign),
        cmocka_unit_test(each_answer_has_the_headers_and_one_that_names_methods_has_those),
        cmocka_unit_test(the_socket_of_the_default_path_gets_its_folder),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
