/* How the client of etcd uses libcurl: the options and the time of each request, the size of an
 * answer, and failures. libcurl's requests and the clock are replaced. */
#include <curl/curl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/service/daemon/etcd.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/record.h"

/* The largest answer (bytes). */
#define LARGEST ((size_t)16 << 20)

static struct {
    int64_t now_ms, lasts_ms; /* time, and how long a request lasts */
    bool no_global, no_handle;
    size_t (*take)(char *, size_t, size_t, void *);
    void *answer_context;
    char *reason; /* buffer for it */
    const char *answer, *why;
    CURLcode code;
    size_t further; /* so many further bytes of the answer, spaces */
    unsigned handles;
} rig;

/* ---- libcurl and the clock ---- */

CURLcode __wrap_curl_global_init(long flags);
CURL *__wrap_curl_easy_init(void);
void __wrap_curl_easy_cleanup(CURL *curl);
CURLcode __wrap_curl_easy_setopt(CURL *curl, CURLoption option, ...);
CURLcode __wrap_curl_easy_perform(CURL *curl);
int64_t __wrap_by_dial_now_ms(void);

CURLcode __wrap_curl_global_init(long flags)
{
    assert_int_equal(flags, CURL_GLOBAL_DEFAULT);
    return rig.no_global ? CURLE_OUT_OF_MEMORY : CURLE_OK;
}

CURL *__wrap_curl_easy_init(void)
{
    rig.handles += !rig.no_handle;
    return rig.no_handle ? NULL : (CURL *)&rig;
}

void __wrap_curl_easy_cleanup(CURL *curl)
{
    assert_ptr_equal(curl, &rig);
    rig.handles--;
}

CURLcode __wrap_curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    va_list value;

    assert_ptr_equal(curl, &rig);
    va_start(value, option);
    switch ((unsigned)option) {
    case CURLOPT_HTTPHEADER:
        for (struct curl_slist *line = va_arg(value, struct curl_slist *); line != NULL; line = line->next)
            record("header %s\n", line->data);
        break;
    case CURLOPT_NOSIGNAL:
        record("no signal %ld\n", va_arg(value, long));
        break;
    case CURLOPT_PROXY:
        record("proxy '%s'\n", va_arg(value, const char *));
        break;
    case CURLOPT_PROTOCOLS_STR:
        record("protocols %s\n", va_arg(value, const char *));
        break;
    case CURLOPT_CAINFO:
    case CURLOPT_SSLCERT:
    case CURLOPT_SSLKEY:
        record("%s %s\n",
               option == CURLOPT_CAINFO    ? "ca"
               : option == CURLOPT_SSLCERT ? "certificate"
                                           : "key",
               va_arg(value, const char *));
        break;
    case CURLOPT_WRITEFUNCTION:
        rig.take = va_arg(value, size_t(*)(char *, size_t, size_t, void *));
        break;
    case CURLOPT_WRITEDATA:
        rig.answer_context = va_arg(value, void *);
        break;
    case CURLOPT_ERRORBUFFER:
        rig.reason = va_arg(value, char *);
        break;
    case CURLOPT_URL:
        record("%s", va_arg(value, const char *));
        break;
    case CURLOPT_POSTFIELDS:
        record(" %s", va_arg(value, const char *));
        break;
    case CURLOPT_TIMEOUT_MS:
        record(" in %ld ms\n", va_arg(value, long));
        break;
    default:
        fail_msg("option %u", (unsigned)option);
    }
    va_end(value);
    return CURLE_OK;
}

/* The answer comes in pieces of at most 64 KiB. */
CURLcode __wrap_curl_easy_perform(CURL *curl)
{
    static char spaces[1 << 16];
    size_t left = rig.further;

    assert_ptr_equal(curl, &rig);
    rig.now_ms += rig.lasts_ms;
    if (rig.code != CURLE_OK) {
        if (rig.why != NULL)
            snprintf(rig.reason, CURL_ERROR_SIZE, "%s", rig.why);
        return rig.code;
    }
    memset(spaces, ' ', sizeof(spaces));
    for (size_t piece; left > 0; left -= piece) {
        piece = left < sizeof(spaces) ? left : sizeof(spaces);
        if (rig.take(spaces, 1, piece, rig.answer_context) != piece)
            return CURLE_WRITE_ERROR;
    }
    for (size_t at = 0; at < strlen(rig.answer); at++)
        if (rig.take((char *)(uintptr_t)rig.answer + at, 1, 1, rig.answer_context) != 1)
            return CURLE_WRITE_ERROR;
    return CURLE_OK;
}

int64_t __wrap_by_dial_now_ms(void)
{
    return rig.now_ms;
}

/* ---- requests ---- */

/* A client of members a, b and c. */
static struct by_etcd *open_client(const char *text)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = NULL;

    memset(&rig, 0, sizeof(rig));
    rig.now_ms = 5000;
    rig.answer = "{\"x\":\"1\"}";
    if (by_etcd_open(text, "/etc/keys", &etcd, &problem) != 0)
        fail_msg("%s", problem.text);
    record_clear();
    return etcd;
}

#define MEMBERS "etcd:http://a:1,http://b:2,http://c:3"

static void close_client(struct by_etcd *etcd)
{
    by_etcd_close(etcd);
    assert_int_equal(rig.handles, 0);
}

static int ask(struct by_etcd *etcd, uint32_t timeout_ms, struct by_problem *problem)
{
    json_t *reply = NULL;
    int error = by_etcd_ask(etcd, "/p", json_object(), timeout_ms, &reply, problem);

    assert_int_equal(reply != NULL, error == 0);
    assert_null(rig.reason); /* no buffer stays */
    json_decref(reply);
    return error;
}

/* ---- tests ---- */

static void the_options_of_all_requests_are_set_once(void **state)
{
    static const char plain[] =
        "header Content-Type: application/json\nheader Expect:\nno signal 1\nproxy ''\n"
        "protocols http,https\n";
    struct by_problem problem = {0};
    struct by_etcd *etcd = NULL;
    char long_keys[520], line[600];

    (void)state;
    memset(&rig, 0, sizeof(rig));
    record_clear();
    assert_int_equal(by_etcd_open("etcd:http://a:1", NULL, &etcd, &problem), 0);
    record_expect(plain);
    close_client(etcd);
    assert_int_equal(by_etcd_open("etcd:https://a:1", "/etc/keys", &etcd, &problem), 0);
    assert_int_equal(strncmp(recorded, plain, strlen(plain)), 0);
    assert_string_equal(recorded + strlen(plain),
                        "ca /etc/keys/ca.pem\ncertificate /etc/keys/cert.pem\nkey /etc/keys/key.pem\n");
    close_client(etcd);
    memset(long_keys, 'k', sizeof(long_keys)); /* a folder of 500 characters */
    long_keys[500] = 0;
    record_clear();
    assert_int_equal(by_etcd_open("etcd:https://a:1", long_keys, &etcd, &problem), 0);
    snprintf(line, sizeof(line), "\ncertificate %s/cert.pem\n", long_keys);
    assert_non_null(strstr(recorded, line));
    close_client(etcd);
}

static void without_libcurl_there_is_no_client(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        struct by_problem problem = {0};
        struct by_etcd *etcd = NULL;

        memset(&rig, 0, sizeof(rig));
        rig.no_global = i == 0;
        rig.no_handle = i == 1;
        assert_int_equal(by_etcd_open(MEMBERS, NULL, &etcd, &problem), BY_EIO);
        assert_string_equal(problem.text, "libcurl cannot start");
        assert_true(etcd == NULL && rig.handles == 0);
    }
    by_etcd_close(NULL);
}

/* Each member gets its part of the time that is left. */
static void members_share_the_time_of_a_request(void **state)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = open_client(MEMBERS);

    (void)state;
    assert_int_equal(ask(etcd, 9000, &problem), 0);
    record_expect("http://a:1/p {} in 3001 ms\n");
    rig.code = CURLE_COULDNT_CONNECT;
    rig.lasts_ms = 1000;
    assert_int_equal(ask(etcd, 9000, &problem), BY_EIO);
    record_expect("http://a:1/p {} in 3001 ms\nhttp://b:2/p {} in 4001 ms\nhttp://c:3/p {} in 7001 ms\n");
    assert_int_equal(ask(etcd, 2001, &problem), BY_EIO);
    record_expect("http://a:1/p {} in 668 ms\nhttp://b:2/p {} in 501 ms\nhttp://c:3/p {} in 2 ms\n");
    assert_int_equal(ask(etcd, 2000, &problem), BY_EIO); /* no time is left for the third */
    record_expect("http://a:1/p {} in 667 ms\nhttp://b:2/p {} in 501 ms\n");
    assert_int_equal(ask(etcd, 0, &problem), BY_EIO);
    record_expect("");
    close_client(etcd);
    etcd = open_client("etcd:https://a:1/name"); /* the name is no part of the address */
    assert_int_equal(ask(etcd, 100, &problem), 0);
    record_expect("https://a:1/p {} in 101 ms\n");
    close_client(etcd);
}

static void a_survey_asks_all_members_for_an_equal_time(void **state)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = open_client(MEMBERS);
    char *at = recorded;

    (void)state;
    assert_int_equal(by_etcd_survey(etcd, &problem), 0);
    for (unsigned i = 0; i < 3; i++) {
        at = strstr(at, " in 500 ms\n");
        assert_non_null(at);
        at++;
    }
    assert_null(strstr(at, " in "));
    close_client(etcd);
}

static void the_reason_is_that_of_libcurl(void **state)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = open_client("etcd:http://a:1");

    (void)state;
    rig.code = CURLE_COULDNT_CONNECT;
    assert_int_equal(ask(etcd, 100, &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "(1 asked; http://a:1: Could"));
    rig.why = "the cable is cut";
    assert_int_equal(ask(etcd, 100, &problem), BY_EIO);
    assert_non_null(strstr(problem.text, "(1 asked; http://a:1: the cable is cut)"));
    close_client(etcd);
}

static void an_answer_has_a_largest_size(void **state)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = open_client("etcd:http://a:1");

    (void)state;
    rig.further = LARGEST - strlen(rig.answer);
    assert_int_equal(ask(etcd, 100, &problem), 0);
    rig.further++;
    assert_int_equal(ask(etcd, 100, &problem), BY_EIO);
    rig.further = 0;
    assert_int_equal(ask(etcd, 100, &problem), 0);
    close_client(etcd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_options_of_all_requests_are_set_once),
        cmocka_unit_test(without_libcurl_there_is_no_client),
        cmocka_unit_test(members_share_the_time_of_a_request),
        cmocka_unit_test(a_survey_asks_all_members_for_an_equal_time),
        cmocka_unit_test(the_reason_is_that_of_libcurl),
        cmocka_unit_test(an_answer_has_a_largest_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
