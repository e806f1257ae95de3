/* The client of etcd, with members that answer what a test sets: which member is asked, what is an
 * error, and how keys, bytes and numbers are written. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/etcd.h"
#include "offload/base/errors.h"

enum { MEMBERS = 3, ASK_MS = 4000 };

/* A member: a thread that answers each request with `answer`, and keeps the last request. */
struct etcd_member {
    int fd;
    unsigned port;
    pthread_t thread;
    const char *answer; /* NULL: it closes the connection */
    unsigned requests;
    char request[4096];
};

static struct etcd_member members[MEMBERS];

/* Reads a request with its body into `text`. */
static void read_request(int fd, char *text, size_t room)
{
    size_t used = 0, body = 0;
    char *end = NULL;

    while (used + 1 < room && (end == NULL || used < (size_t)(end - text) + 4 + body)) {
        ssize_t count = read(fd, text + used, room - 1 - used);

        if (count <= 0)
            return;
        used += (size_t)count;
        text[used] = 0;
        end = strstr(text, "\r\n\r\n");
        if (end != NULL && strstr(text, "Content-Length: ") != NULL)
            body = strtoul(strstr(text, "Content-Length: ") + 16, NULL, 10);
    }
}

static void *run_member(void *context)
{
    struct etcd_member *member = context;
    int fd;

    while ((fd = accept(member->fd, NULL, NULL)) >= 0) {
        read_request(fd, member->request, sizeof(member->request));
        member->requests++;
        if (member->answer != NULL)
            dprintf(fd, "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n%s",
                    strlen(member->answer), member->answer);
        close(fd);
    }
    return NULL;
}

static int members_open(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t bytes = sizeof(address);
        struct etcd_member *member = &members[i];

        *member = (struct etcd_member){.fd = socket(AF_INET, SOCK_STREAM, 0)};
        if (bind(member->fd, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
            listen(member->fd, 8) != 0 || getsockname(member->fd, (struct sockaddr *)&address, &bytes) != 0 ||
            pthread_create(&member->thread, NULL, run_member, member) != 0)
            return -1;
        member->port = ntohs(address.sin_port);
    }
    return 0;
}

static int members_close(void **state)
{
    (void)state;
    for (unsigned i = 0; i < MEMBERS; i++) {
        shutdown(members[i].fd, SHUT_RDWR);
        pthread_join(members[i].thread, NULL);
        close(members[i].fd);
    }
    return 0;
}

/* A client of the first `count` members, whose name is `name`. */
static struct by_etcd *client_of(unsigned count, const char *name)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd;
    char text[200] = "etcd:";

    for (unsigned i = 0; i < count; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "%shttp://127.0.0.1:%u", i > 0 ? "," : "",
                 members[i].port);
    if (name != NULL)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "/%s", name);
    if (by_etcd_open(text, NULL, &etcd, &problem) != 0)
        fail_msg("%s", problem.text);
    return etcd;
}

static void answers_are(const char *a, const char *b, const char *c)
{
    members[0].answer = a;
    members[1].answer = b;
    members[2].answer = c;
    for (unsigned i = 0; i < MEMBERS; i++)
        members[i].requests = 0;
}

static void asked(unsigned a, unsigned b, unsigned c)
{
    assert_int_equal(members[0].requests, a);
    assert_int_equal(members[1].requests, b);
    assert_int_equal(members[2].requests, c);
}

/* Asks with {"n": 1}. Returns the error, and the number "x" of the reply. */
static int ask(struct by_etcd *etcd, int64_t *x, struct by_problem *problem)
{
    json_t *reply = NULL;
    int error = by_etcd_ask(etcd, "/v3/kv/put", json_pack("{s:i}", "n", 1), ASK_MS, &reply, problem);

    if (error != 0)
        assert_null(reply);
    *x = by_etcd_number(reply, "x");
    json_decref(reply);
    return error;
}

static void a_request_is_json_to_a_path(void **state)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = client_of(1, NULL);
    int64_t x;

    (void)state;
    answers_are("{\"x\": \"17\"}", NULL, NULL);
    assert_int_equal(ask(etcd, &x, &problem), 0);
    assert_int_equal(x, 17);
    assert_int_equal(strncmp(members[0].request, "POST /v3/kv/put HTTP/1.1\r\n", 26), 0);
    assert_non_null(strstr(members[0].request, "Content-Type: application/json\r\n"));
    assert_null(strstr(members[0].request, "Expect:"));
    assert_string_equal(strstr(members[0].request, "\r\n\r\n") + 4, "{\"n\":1}");
    by_etcd_close(etcd);
}

static void the_member_that_answered_last_is_asked_first(void **state)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = client_of(3, NULL);
    int64_t x;

    (void)state;
    answers_are(NULL, "{\"x\": \"2\"}", "{\"x\": \"3\"}");
    assert_int_equal(ask(etcd, &x, &problem), 0);
    assert_int_equal(x, 2);
    asked(1, 1, 0);
    assert_int_equal(ask(etcd, &x, &problem), 0);
    asked(1, 2, 0);
    answers_are("{\"x\": \"1\"}", NULL, NULL);
    assert_int_equal(ask(etcd, &x, &problem), 0); /* from the last to the first */
    assert_int_equal(x, 1);
    asked(1, 1, 1);
    answers_are("{\"x\": \"1\"}", "{}", "{}");
    assert_int_equal(ask(etcd, &x, &problem), 0);
    asked(1, 0, 0);
    by_etcd_close(etcd);
}

static void without_an_answer_each_member_is_asked_once_and_the_last_reason_is_given(void **state)
{
    static const struct {
        const char *answer, *reason;
    } rows[] = {{NULL, "Empty reply from server"},
                {"no json", "does not answer as etcd 3.4 or later does"},
                {"", "does not answer as etcd 3.4 or later does"},
                {"{\"error\": \"etcdserver: no space\"}", "etcdserver: no space"},
                {"{\"error\": {\"code\": 5}}", "an error"}};
    struct by_etcd *etcd = client_of(3, NULL);

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_problem problem = {0};
        char where[60];
        int64_t x;

        answers_are(NULL, "{\"error\": \"other\"}", rows[i].answer);
        assert_int_equal(ask(etcd, &x, &problem), BY_EIO);
        asked(1, 1, 1);
        snprintf(where, sizeof(where), "(3 asked; http://127.0.0.1:%u", members[2].port);
        if (strstr(problem.text, where) == NULL || strstr(problem.text, rows[i].reason) == NULL)
            fail_msg("\"%s\" lacks \"%s\"", problem.text, rows[i].reason);
    }
    by_etcd_close(etcd);
}

static void members_of_two_clusters_are_refused(void **state)
{
    static const char first[] = "{\"header\": {\"cluster_id\": \"11\"}, \"x\": \"1\"}";
    static const char stream[] = "{\"result\": {\"header\": {\"cluster_id\": \"11\"}}, \"x\": \"2\"}";
    static const char other[] = "{\"result\": {\"header\": {\"cluster_id\": \"12\"}}}";
    struct by_problem problem = {0};
    struct by_etcd *etcd = client_of(2, NULL);
    char words[200];
    int64_t x;

    (void)state;
    answers_are(first, stream, NULL);
    assert_int_equal(by_etcd_survey(etcd, &problem), 0);
    asked(1, 1, 0);
    answers_are(NULL, stream, NULL);
    assert_int_equal(by_etcd_survey(etcd, &problem), 0); /* one is enough */
    asked(1, 1, 0);
    answers_are(NULL, NULL, NULL);
    assert_int_equal(by_etcd_survey(etcd, &problem), BY_EIO);
    answers_are(first, other, NULL);
    assert_int_equal(by_etcd_survey(etcd, &problem), BY_EMISMATCH);
    snprintf(words, sizeof(words), "http://127.0.0.1:%u belongs to another cluster of etcd (12)",
             members[1].port);
    assert_non_null(strstr(problem.text, words));
    assert_non_null(strstr(problem.text, "than the other members (11)"));
    answers_are(NULL, other, NULL);
    assert_int_equal(ask(etcd, &x, &problem), BY_EMISMATCH);
    answers_are(other, first, NULL); /* no further member is asked */
    assert_int_equal(ask(etcd, &x, &problem), BY_EMISMATCH);
    asked(1, 0, 0);
    by_etcd_close(etcd);
}

/* A survey asks for the leader's key, and accepts an answer that is not the cluster's latest. */
static void a_key_begins_with_the_name_of_the_fabric(void **state)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = client_of(1, NULL);
    json_t *key = by_etcd_key(etcd, "leader"), *entry;
    char body[200];
    size_t bytes;
    uint8_t *text = by_etcd_take_bytes(key, &bytes);

    (void)state;
    assert_int_equal(bytes, 22);
    assert_memory_equal(text, "/banyan/default/leader", 22);
    snprintf(body, sizeof(body), "{\"key\":\"%s\",\"serializable\":true}", json_string_value(key));
    answers_are("{\"kvs\": [{\"version\": \"4\"}, {}]}", NULL, NULL);
    assert_int_equal(by_etcd_survey(etcd, &problem), 0);
    assert_string_equal(strstr(members[0].request, "\r\n\r\n") + 4, body);
    free(text);
    assert_int_equal(by_etcd_get(etcd, "leader", &entry, &problem), 0);
    assert_int_equal(by_etcd_number(entry, "version"), 4);
    assert_int_equal(by_etcd_number(entry, "lease"), 0);
    json_decref(entry);
    snprintf(body, sizeof(body), "{\"key\":\"%s\"}", json_string_value(key));
    assert_string_equal(strstr(members[0].request, "\r\n\r\n") + 4, body);
    json_decref(key);
    answers_are("{}", NULL, NULL);
    assert_int_equal(by_etcd_get(etcd, "leader", &entry, &problem), 0);
    assert_null(entry); /* it does not exist */
    by_etcd_close(etcd);
    etcd = client_of(1, "a.B-9_");
    key = by_etcd_key(etcd, "x");
    text = by_etcd_take_bytes(key, &bytes);
    assert_int_equal(bytes, 16);
    assert_memory_equal(text, "/banyan/a.B-9_/x", 16);
    free(text);
    json_decref(key);
    by_etcd_close(etcd);
}

static void bytes_of_any_length_come_back(void **state)
{
    static const char *const wrong[] = {"", "A", "AB*="};
    uint8_t bytes[50];
    json_t *none = json_integer(1);
    size_t size = 0;

    (void)state;
    for (unsigned i = 0; i < sizeof(bytes); i++)
        bytes[i] = (uint8_t)(37 * i + 200);
    for (unsigned count = 1; count <= sizeof(bytes); count++) {
        json_t *value = by_etcd_bytes(bytes, count);
        uint8_t *again = by_etcd_take_bytes(value, &size);

        assert_int_equal(size, count);
        assert_memory_equal(again, bytes, count);
        assert_int_equal(strlen(json_string_value(value)), (count + 2) / 3 * 4);
        free(again);
        json_decref(value);
    }
    for (unsigned i = 0; i < 3; i++) {
        json_t *value = json_string(wrong[i]);

        assert_null(by_etcd_take_bytes(value, &size));
        json_decref(value);
    }
    assert_null(by_etcd_take_bytes(none, &size));
    assert_null(by_etcd_take_bytes(NULL, &size));
    json_decref(none);
}

/* What --store may be. NULL: it is accepted. */
static void address(const char *text, const char *keys, const char *reason)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = NULL;
    int error = by_etcd_open(text, keys, &etcd, &problem);

    assert_int_equal(error, reason != NULL ? BY_EINVAL : 0);
    if (reason != NULL && strstr(problem.text, reason) == NULL)
        fail_msg("%s: \"%s\" lacks \"%s\"", text, problem.text, reason);
    by_etcd_close(etcd);
}

static void addresses_are_refused_with_their_fault(void **state)
{
    char text[BY_ETCD_TEXT_MAX + 30], name[70];

    (void)state;
    address("etcd", NULL, "'etcd' is no store");
    address("etcd:", NULL, "'etcd:' is no store");
    address("etcd:,", NULL, "no address: use etcd:http://HOST:PORT");
    address("etcd:http://h", NULL, "'http://h' is no address of a member of etcd");
    address("etcd:http://:1", NULL, "is no address of a member");
    address("etcd:http://h:1/a,http://h:2", NULL, "after the last address may follow /NAME");
    address("etcd:http://h:1/", NULL, "after the last address may follow /NAME");
    address("etcd:https://h:1", NULL, "'https://h:1' requires keys");
    address("etcd:https://h:1", "/keys", NULL);
    memset(name, 'n', sizeof(name));
    name[64] = 0;
    snprintf(text, sizeof(text), "etcd:http://h:1/%s", name);
    address(text, NULL, NULL);
    name[64] = 'n';
    name[65] = 0;
    snprintf(text, sizeof(text), "etcd:http://h:1/%s", name);
    address(text, NULL, "at most 64 letters");
    address("etcd:http://a:1,http://a:2,http://a:3,http://a:4,http://a:5,http://a:6,http://a:7,http://a:8,"
            "http://a:9",
            NULL, NULL);
    address("etcd:http://a:1,http://a:2,http://a:3,http://a:4,http://a:5,http://a:6,http://a:7,http://a:8,"
            "http://a:9,http://a:10",
            NULL, "more than 9 members");
    memset(text, ',', sizeof(text));
    memcpy(text, "etcd:http://h:1", 15);
    text[5 + BY_ETCD_TEXT_MAX - 1] = 0;
    address(text, NULL, NULL);
    text[5 + BY_ETCD_TEXT_MAX - 1] = ',';
    text[5 + BY_ETCD_TEXT_MAX] = 0;
    address(text, NULL, "the addresses have more than 479 bytes");
}

static void exposed(const char *text, bool expected)
{
    struct by_problem problem = {0};
    struct by_etcd *etcd = NULL;

    assert_int_equal(by_etcd_open(text, "/keys", &etcd, &problem), 0);
    assert_int_equal(by_etcd_is_exposed(etcd), expected);
    by_etcd_close(etcd);
}

static void plain_http_to_another_machine_is_exposed(void **state)
{
    (void)state;
    exposed("etcd:http://127.0.0.1:1,http://[::1]:1,http://localhost:1", false);
    exposed("etcd:https://192.0.2.1:1,https://etcd.example:1", false);
    exposed("etcd:http://192.0.2.1:1,http://127.0.0.1:1", true);
    exposed("etcd:http://127.0.0.1:1,http://etcd.example:1", true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_json_to_a_path),
        cmocka_unit_test(the_member_that_answered_last_is_asked_first),
        cmocka_unit_test(without_an_answer_each_member_is_asked_once_and_the_last_reason_is_given),
        cmocka_unit_test(members_of_two_clusters_are_refused),
        cmocka_unit_test(a_key_begins_with_the_name_of_the_fabric),
        cmocka_unit_test(bytes_of_any_length_come_back),
        cmocka_unit_test(addresses_are_refused_with_their_fault),
        cmocka_unit_test(plain_http_to_another_machine_is_exposed),
    };

    return cmocka_run_group_tests(tests, members_open, members_close);
}
