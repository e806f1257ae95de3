/* Requests that only read: which path gives what, how long an answer is kept, and what is refused.
 * The HTTP library and what the answers contain are replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/http_inside.h"
#include "control/service/daemon/live.h"
#include "control/service/daemon/metrics.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/page.h"
#include "control/service/daemon/status.h"
#include "tests/unit/control/service/daemon/record.h"

#define LINKS 12u

static struct {
    struct by_daemon daemon;
    struct by_http http;
    struct by_topology topology;
    const char *link;   /* the argument of the request */
    uint64_t news;      /* lines */
    unsigned made;      /* objects so far: each one has its number */
    bool without_links; /* loads of links are not kept */
    bool no_memory;
} rig;

/* ---- the HTTP library ---- */

const char *MHD_lookup_connection_value(struct MHD_Connection *connection, enum MHD_ValueKind kind,
                                        const char *key)
{
    assert_ptr_equal(connection, &rig);
    assert_int_equal(kind, MHD_GET_ARGUMENT_KIND);
    assert_string_equal(key, "link");
    return rig.link;
}

enum MHD_Result by_http_answer(struct by_http_request *request, unsigned status, const char *type,
                               void *bytes, size_t size)
{
    (void)request;
    assert_int_equal(strlen(bytes), size);
    record("%u %s: %s\n", status, type, (const char *)bytes);
    free(bytes);
    return MHD_YES;
}

enum MHD_Result by_http_answer_copy(struct by_http_request *request, const char *type, const void *bytes,
                                    size_t size)
{
    (void)request;
    assert_int_equal(strlen(bytes), size);
    record("kept %s: %s\n", type, (const char *)bytes);
    return MHD_YES;
}

enum MHD_Result by_http_answer_constant(struct by_http_request *request, const char *type, const void *bytes,
                                        size_t size)
{
    (void)request;
    record("page %s: %.*s\n", type, (int)size, (const char *)bytes);
    return MHD_YES;
}

enum MHD_Result by_http_answer_json(struct by_http_request *request, unsigned status, json_t *object)
{
    char *text = json_dumps(object, JSON_COMPACT);

    (void)request;
    record("%u %s\n", status, text);
    free(text);
    json_decref(object);
    return MHD_YES;
}

enum MHD_Result by_http_refuse(struct by_http_request *request, unsigned status, const char *text)
{
    (void)request;
    record("refuse %u: %s\n", status, text);
    return MHD_NO;
}

/* ---- what the answers contain ---- */

uint64_t by_news_count(const struct by_news *news)
{
    (void)news;
    return rig.news;
}

static json_t *make(const char *name)
{
    return rig.no_memory ? NULL : json_pack("{s:i}", name, (int)++rig.made);
}

json_t *by_live_fabric(const struct by_daemon *daemon)
{
    assert_ptr_equal(daemon, &rig.daemon);
    return make("fabric");
}

json_t *by_live_state(const struct by_daemon *daemon)
{
    assert_ptr_equal(daemon, &rig.daemon);
    return make("state");
}

json_t *by_live_history(const struct by_daemon *daemon)
{
    assert_ptr_equal(daemon, &rig.daemon);
    return make("history");
}

json_t *by_live_history_link(const struct by_daemon *daemon, uint32_t link)
{
    assert_ptr_equal(daemon, &rig.daemon);
    return rig.without_links ? NULL : json_pack("{s:i}", "link", (int)link);
}

json_t *by_status_json(struct by_daemon *daemon)
{
    assert_ptr_equal(daemon, &rig.daemon);
    return make("status");
}

void by_metrics_write(struct by_daemon *daemon, FILE *out)
{
    assert_ptr_equal(daemon, &rig.daemon);
    fprintf(out, "metrics");
}

const struct by_page_file *by_page_find(const char *path)
{
    static const struct by_page_file page = {"/", "text/html", (const unsigned char *)"<html>", 6};

    return strcmp(path, "/") == 0 ? &page : NULL;
}

/* ---- requests ---- */

static void open_http(void)
{
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.topology.link_count = LINKS;
    rig.daemon.topology = &rig.topology;
    rig.daemon.http = &rig.http;
    rig.daemon.now_ms = 1000;
    by_http_read_open(&rig.daemon);
}

static void close_http(void)
{
    by_http_read_close(&rig.daemon);
}

/* Returns whether there is such a path. */
static bool ask(const char *path, bool reads)
{
    struct by_http_request request = {.daemon = &rig.daemon, .connection = (struct MHD_Connection *)&rig};
    enum MHD_Result result = (enum MHD_Result)7;
    bool found = by_http_read(&request, path, reads, &result);

    if (found) {
        assert_string_equal(request.allow, "GET, HEAD");
        assert_int_equal(result, strncmp(recorded, "refuse", 6) == 0 ? MHD_NO : MHD_YES);
    } else {
        assert_true(request.allow == NULL && result == (enum MHD_Result)7);
    }
    return found;
}

static void expect(const char *path, const char *line)
{
    assert_true(ask(path, true));
    record_expect(line);
}

/* ---- tests ---- */

static void each_path_has_its_answer(void **state)
{
    (void)state;
    open_http();
    expect("/", "page text/html: <html>\n");
    expect("/metrics", "200 " BY_METRICS_TYPE ": metrics\n");
    expect("/v1/status", "200 {\"status\":2}\n");
    expect("/v1/fabric", "kept application/json: {\"fabric\":1}\n");
    expect("/v1/live", "kept application/json: {\"state\":3}\n");
    expect("/v1/history", "kept application/json: {\"history\":4}\n");
    assert_false(ask("/v1/histor", true) || ask("/v1/history/", true) || ask("", true) || ask("", false));
    record_expect("");
    close_http();
}

static void paths_that_only_read_refuse_other_methods(void **state)
{
    static const char *const paths[] = {"/",          "/metrics", "/v1/status",
                                        "/v1/fabric", "/v1/live", "/v1/history"};

    (void)state;
    open_http();
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        assert_true(ask(paths[i], false));
        record_expect("refuse 405: this path supports GET and HEAD\n");
    }
    assert_int_equal(rig.made, 1);
    close_http();
}

/* The layout is made once; the state is kept for a fifth of a second, and the hour for the time
 * between two samples. News end both. */
static void answers_are_kept_for_a_while(void **state)
{
    static const struct {
        const char *path, *name;
        uint64_t age_ms;
    } rows[] = {{"/v1/live", "state", 200}, {"/v1/history", "history", BY_HISTORY_STEP_MS}};
    char line[80];

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        open_http();
        for (int made = 2; made < 5; made++) {
            snprintf(line, sizeof(line), "kept application/json: {\"%s\":%d}\n", rows[i].name, made);
            expect(rows[i].path, line);
            rig.daemon.now_ms += rows[i].age_ms - 1;
            expect(rows[i].path, line);
            rig.daemon.now_ms += made == 2;
            rig.news += made == 3;
        }
        expect("/v1/fabric", "kept application/json: {\"fabric\":1}\n");
        close_http();
    }
}

static void a_link_is_chosen_by_its_number(void **state)
{
    static const char *const wrong[] = {"12", "-1", " 1",  "+1",         "1 ", "1x",
                                        "",   "x",  "0x1", "4294967296", ":",  "/"};
    char line[200];

    (void)state;
    open_http();
    rig.link = "0";
    expect("/v1/history", "200 {\"link\":0}\n");
    rig.link = "9";
    expect("/v1/history", "200 {\"link\":9}\n");
    rig.link = "11";
    expect("/v1/history", "200 {\"link\":11}\n");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        rig.link = wrong[i];
        snprintf(line, sizeof(line),
                 "refuse 400: link=%s: it must be the number of a link, below 12 (GET /v1/fabric)\n",
                 wrong[i]);
        expect("/v1/history", line);
    }
    rig.link = "5";
    rig.without_links = true;
    expect("/v1/history",
           "refuse 404: loads of links are kept for fabrics of at most 16384 links; this one has 12\n");
    close_http();
}

static void without_memory_the_answer_is_an_error(void **state)
{
    (void)state;
    open_http();
    rig.no_memory = true;
    expect("/v1/live", "refuse 500: no memory for the answer\n");
    rig.no_memory = false;
    expect("/v1/live", "kept application/json: {\"state\":2}\n"); /* at once */
    close_http();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_path_has_its_answer),
        cmocka_unit_test(paths_that_only_read_refuse_other_methods),
        cmocka_unit_test(answers_are_kept_for_a_while),
        cmocka_unit_test(a_link_is_chosen_by_its_number),
        cmocka_unit_test(without_memory_the_answer_is_an_error),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
