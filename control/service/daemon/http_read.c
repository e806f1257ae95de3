/* Requests that only read: the live page and its data, status, metrics. See http.h. The data of the
 * page are kept for a moment: its readers, however many, cost as much as one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/service/daemon/history.h"
#include "control/service/daemon/http_inside.h"
#include "control/service/daemon/live.h"
#include "control/service/daemon/metrics.h"
#include "control/service/daemon/news.h"
#include "control/service/daemon/page.h"
#include "control/service/daemon/status.h"

/* How long an answer with the present state is kept (milliseconds), unless there is news. */
#define LIVE_MS 200u

static void keep(const struct by_daemon *daemon, struct by_http_kept *kept, json_t *object)
{
    free(kept->text);
    kept->text = json_dumps(object, JSON_COMPACT);
    kept->bytes = kept->text != NULL ? strlen(kept->text) : 0;
    kept->made_ms = daemon->now_ms;
    kept->news = by_news_count(daemon->news);
    json_decref(object);
}

static bool is_current(const struct by_daemon *daemon, const struct by_http_kept *kept, uint64_t age_ms)
{
    return kept->text != NULL && kept->news == by_news_count(daemon->news) &&
           daemon->now_ms - kept->made_ms < age_ms;
}

static enum MHD_Result answer_kept(struct by_http_request *request, const struct by_http_kept *kept)
{
    if (kept->text == NULL)
        return by_http_refuse(request, MHD_HTTP_INTERNAL_SERVER_ERROR, "no memory for the answer");
    return by_http_answer_copy(request, "application/json", kept->text, kept->bytes);
}

static enum MHD_Result answer_fabric(struct by_http_request *request)
{
    return answer_kept(request, &request->daemon->http->fabric);
}

static enum MHD_Result answer_live(struct by_http_request *request)
{
    struct by_http_kept *kept = &request->daemon->http->live;

    if (!is_current(request->daemon, kept, LIVE_MS))
        keep(request->daemon, kept, by_live_state(request->daemon));
    return answer_kept(request, kept);
}

/* Without `link`, the hour of the fabric; else that of one link. */
static enum MHD_Result answer_history(struct by_http_request *request)
{
    const char *link = MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, "link");
    struct by_daemon *daemon = request->daemon;
    struct by_http_kept *kept = &daemon->http->history;
    unsigned long number;
    json_t *object;
    char text[200], *end;

    if (link == NULL) {
        if (!is_current(daemon, kept, BY_HISTORY_STEP_MS))
            keep(daemon, kept, by_live_history(daemon));
        return answer_kept(request, kept);
    }
    number = strtoul(link, &end, 10);
    if (link[0] < '0' || link[0] > '9' || *end != 0 || number >= daemon->topology->link_count) {
        snprintf(text, sizeof(text), "link=%.40s: it must be the number of a link, below %u (GET /v1/fabric)",
                 link, daemon->topology->link_count);
        return by_http_refuse(request, MHD_HTTP_BAD_REQUEST, text);
    }
    object = by_live_history_link(daemon, (uint32_t)number);
    if (object != NULL)
        return by_http_answer_json(request, MHD_HTTP_OK, object);
    snprintf(text, sizeof(text), "loads of links are kept for fabrics of at most %u links; this one has %u",
             BY_HISTORY_LINKS_MAX, daemon->topology->link_count);
    return by_http_refuse(request, MHD_HTTP_NOT_FOUND, text);
}

static enum MHD_Result answer_metrics(struct by_http_request *request)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = by_text_open(&text, &bytes);

    by_metrics_write(request->daemon, stream);
    fclose(stream);
    return by_http_answer(request, MHD_HTTP_OK, BY_METRICS_TYPE, text, bytes);
}

static enum MHD_Result answer_status(struct by_http_request *request)
{
    return by_http_answer_json(request, MHD_HTTP_OK, by_status_json(request->daemon));
}

static const struct {
    const char *path;
    enum MHD_Result (*answer)(struct by_http_request *request);
} paths[] = {{"/metrics", answer_metrics},
             {"/v1/status", answer_status},
             {"/v1/fabric", answer_fabric},
             {"/v1/live", answer_live},
             {"/v1/history", answer_history}};

void by_http_read_open(struct by_daemon *daemon)
{
    /* The layout of a large fabric takes long, and a topology does not change. */
    keep(daemon, &daemon->http->fabric, by_live_fabric(daemon));
}

void by_http_read_close(struct by_daemon *daemon)
{
    free(daemon->http->fabric.text);
    free(daemon->http->live.text);
    free(daemon->http->history.text);
}

bool by_http_read(struct by_http_request *request, const char *path, bool reads, enum MHD_Result *result)
{
    const struct by_page_file *file = by_page_find(path);
    size_t i = 0;

    while (i < sizeof(paths) / sizeof(paths[0]) && strcmp(path, paths[i].path) != 0)
        i++;
    if (file == NULL && i == sizeof(paths) / sizeof(paths[0]))
        return false;
    request->allow = "GET, HEAD";
    if (!reads)
        *result = by_http_refuse(request, MHD_HTTP_METHOD_NOT_ALLOWED, "this path supports GET and HEAD");
    else if (file != NULL)
        *result = by_http_answer_constant(request, file->type, file->bytes, file->size);
    else
        *result = paths[i].answer(request);
    return true;
}
