/* The election of a leader in etcd. See lead.h. */
#include "control/service/daemon/lead.h"

#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/controller/dial.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/thread.h"
#include "offload/base/errors.h"
#include "offload/linux/notify.h"

/* How long the leadership lasts without renewal (seconds): the least that etcd grants by default,
 * three halves of its election timeout. It finds an expired lease up to 0.5 s late. */
#define LEASE_S "2"
/* Intervals (milliseconds): of renewals, and of looking whether another leads. */
#define RENEW_MS 400
#define LOOK_MS  100
/* Timeout of a confirmation (milliseconds), for which ranks with stopped trees wait: three members
 * have 10 each. */
#define CONFIRM_MS 30u

struct by_lead {
    struct by_etcd *etcd;   /* of the thread that waits, then of the one that writes the state */
    struct by_etcd *keeper; /* of the thread that renews */
    pthread_t thread;
    bool keeps; /* that thread runs */
    atomic_bool lost;
    int stop_fd, lost_fd;
    char text[400];   /* why it is lost */
    char seen[400];   /* the last line of the wait */
    int seen_error;   /* and its error: texts of failed connections differ in times only */
    char value[160];  /* of the key: this process */
    char leader[121]; /* of the key at the last look: another process */
    char lease[32];   /* "" : none */
    int64_t term;
};

int by_lead_open(const char *store, const char *keys, struct by_lead **result, struct by_problem *problem)
{
    struct by_lead *lead = by_alloc(1, sizeof(*lead));
    char host[65] = "?";
    uint64_t nonce = 0;
    int error;

    lead->stop_fd = eventfd(0, EFD_CLOEXEC);
    lead->lost_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    error = by_etcd_open(store, keys, &lead->etcd, problem);
    if (error == 0)
        error = by_etcd_open(store, keys, &lead->keeper, problem);
    if (error == 0 && (lead->stop_fd < 0 || lead->lost_fd < 0 ||
                       getrandom(&nonce, sizeof(nonce), 0) != (ssize_t)sizeof(nonce)))
        error = by_problem_say(problem, BY_EIO, "no descriptor or random number for the election");
    if (error != 0) {
        by_lead_close(lead);
        return error;
    }
    gethostname(host, sizeof(host) - 1);
    snprintf(lead->value, sizeof(lead->value), "banyand on %s, process %ld, %016" PRIx64, host,
             (long)getpid(), nonce);
    *result = lead;
    return 0;
}

/* Logs a line of the wait when it differs from the last one. */
static void report(struct by_lead *lead, int error, const char *text)
{
    char status[sizeof(lead->seen) + 16];

    if (error == lead->seen_error && (error == BY_EIO || strcmp(lead->seen, text) == 0))
        return;
    lead->seen_error = error;
    snprintf(lead->seen, sizeof(lead->seen), "%s", text);
    by_daemon_say("%s", lead->seen);
    snprintf(status, sizeof(status), "STATUS=%s", lead->seen);
    by_notify(status);
}

static int grant(struct by_lead *lead, struct by_problem *problem)
{
    json_t *reply;
    int error = by_etcd_ask(lead->etcd, "/v3/lease/grant", json_pack("{s:s}", "TTL", LEASE_S), BY_ETCD_ASK_MS,
                            &reply, problem);

    snprintf(lead->lease, sizeof(lead->lease), "%" PRId64, by_etcd_number(reply, "ID"));
    json_decref(reply);
    if (error == 0 && strcmp(lead->lease, "0") == 0)
        error = by_problem_say(problem, BY_EIO, "etcd grants no lease");
    if (error != 0)
        lead->lease[0] = 0;
    return error;
}

static void give_back(struct by_lead *lead)
{
    struct by_problem ignored = {0};
    json_t *reply;

    if (lead->lease[0] == 0)
        return;
    by_etcd_ask(lead->etcd, "/v3/lease/revoke", json_pack("{s:s}", "ID", lead->lease), BY_ETCD_ASK_MS, &reply,
                &ignored);
    json_decref(reply);
    lead->lease[0] = 0;
}

/* Creates the key, unless it exists. Only the next look shows the result, also when no answer
 * arrives. */
static int stand(struct by_lead *lead, struct by_problem *problem)
{
    json_t *reply;
    int error = grant(lead, problem);

    if (error != 0)
        return error;
    error = by_etcd_ask(lead->etcd, "/v3/kv/txn",
                        json_pack("{s:[{s:o,s:s,s:s,s:s}],s:[{s:{s:o,s:o,s:s}}]}", "compare", "key",
                                  by_etcd_key(lead->etcd, "leader"), "target", "CREATE", "result", "EQUAL",
                                  "create_revision", "0", "success", "request_put", "key",
                                  by_etcd_key(lead->etcd, "leader"), "value",
                                  by_etcd_bytes(lead->value, strlen(lead->value)), "lease", lead->lease),
                        BY_ETCD_ASK_MS, &reply, problem);
    json_decref(reply);
    return error;
}

/* Reads the leader once. Returns 0 if it is this process, BY_EAGAIN if it is another one, BY_ENOENT
 * if there is none, or the error of etcd. */
static int look(struct by_lead *lead, struct by_problem *problem)
{
    json_t *entry;
    size_t size = 0;
    uint8_t *value;
    int error = by_etcd_get(lead->etcd, "leader", &entry, problem);

    if (error == 0 && entry == NULL)
        error = BY_ENOENT;
    if (error != 0)
        return error;
    value = by_etcd_take_bytes(json_object_get(entry, "value"), &size);
    lead->term = by_etcd_number(entry, "create_revision");
    /* If this process has created it: possibly by an earlier request, with an earlier lease. */
    snprintf(lead->lease, sizeof(lead->lease), "%" PRId64, by_etcd_number(entry, "lease"));
    if (value == NULL || size != strlen(lead->value) || memcmp(value, lead->value, size) != 0) {
        snprintf(lead->leader, sizeof(lead->leader), "%.*s", value != NULL && size < 120 ? (int)size : 120,
                 value != NULL ? (const char *)value : "another banyand");
        error = by_problem_say(problem, BY_EAGAIN, "%s leads: this one takes over when that one ends",
                               lead->leader);
    }
    if (error != 0)
        lead->lease[0] = 0;
    free(value);
    json_decref(entry);
    return error;
}

/* Renews the lease. Returns 0, BY_ESTATE if it has expired, or the error of etcd. */
static int renew(struct by_lead *lead, struct by_problem *problem)
{
    json_t *reply;
    int error = by_etcd_ask(lead->keeper, "/v3/lease/keepalive", json_pack("{s:s}", "ID", lead->lease),
                            BY_ETCD_ASK_MS, &reply, problem);

    if (error == 0 && by_etcd_number(json_object_get(reply, "result"), "TTL") == 0)
        error = by_problem_say(problem, BY_ESTATE,
                               "the lease of the leadership has expired: this one follows now");
    json_decref(reply);
    return error;
}

/* While no member answers, this process goes on: another one may lead by now, whose election id
 * makes the switches refuse this one, and whose term makes etcd refuse its writes. */
static void *keep(void *argument)
{
    struct by_lead *lead = argument;
    struct pollfd stop = {.fd = lead->stop_fd, .events = POLLIN};
    bool silent = false;

    while (poll(&stop, 1, RENEW_MS) == 0) {
        struct by_problem problem = {0};
        int error = renew(lead, &problem);

        if (error == BY_ESTATE || error == BY_EMISMATCH) {
            by_lead_lose(lead, problem.text);
            return NULL;
        }
        if ((error != 0) != silent)
            by_daemon_say("--store: %s", error != 0 ? problem.text : "etcd answers again");
        silent = error != 0;
    }
    return NULL;
}

int by_lead_wait(struct by_lead *lead, int signals, by_lead_seen *see, void *context,
                 struct by_problem *problem)
{
    struct pollfd signal = {.fd = signals, .events = POLLIN};
    uint32_t pause_ms = LOOK_MS;
    bool surveyed = false, ready = false, leads = false;
    int error;

    do {
        error = surveyed ? 0 : by_etcd_survey(lead->etcd, problem);
        surveyed |= error == 0;
        if (error == 0)
            error = look(lead, problem);
        leads = error == 0;
        if (leads)
            break;
        if (error == BY_ENOENT)
            error = stand(lead, problem);
        else if (error == BY_EMISMATCH)
            return error;
        if (error == BY_EAGAIN || error == BY_EIO) {
            report(lead, error, problem->text);
            if (see != NULL &&
                see(context, error == BY_EAGAIN ? lead->leader : NULL, problem->text, problem) != 0)
                return BY_EIO;
        }
        if (error == BY_EAGAIN && !ready)
            by_notify("READY=1");
        ready |= error == BY_EAGAIN;
        by_notify("WATCHDOG=1");
        pause_ms = error == 0 ? 0 : LOOK_MS;
    } while (poll(&signal, 1, (int)pause_ms) == 0);
    if (!leads) /* a signal: also where only the next look would have shown whether this one leads */
        return BY_EABORTED;
    lead->keeps = true;
    by_thread_start(&lead->thread, keep, lead);
    by_notify("STATUS=leads");
    return 0;
}

int by_lead_fd(const struct by_lead *lead)
{
    return lead->lost_fd;
}

const char *by_lead_text(const struct by_lead *lead)
{
    return lead->text;
}

void by_lead_close(struct by_lead *lead)
{
    if (lead == NULL)
        return;
    if (lead->keeps) {
        eventfd_write(lead->stop_fd, 1);
        pthread_join(lead->thread, NULL);
    }
    if (lead->etcd != NULL)
        give_back(lead);
    by_etcd_close(lead->etcd);
    by_etcd_close(lead->keeper);
    close(lead->stop_fd);
    close(lead->lost_fd);
    free(lead);
}

struct by_etcd *by_lead_etcd(struct by_lead *lead)
{
    return lead->etcd;
}

json_t *by_lead_guard(const struct by_lead *lead)
{
    char term[32];

    snprintf(term, sizeof(term), "%" PRId64, lead->term);
    return json_pack("{s:o,s:s,s:s,s:s}", "key", by_etcd_key(lead->etcd, "leader"), "target", "CREATE",
                     "result", "EQUAL", "create_revision", term);
}

int64_t by_lead_term(const struct by_lead *lead)
{
    return lead->term;
}

void by_lead_lose(struct by_lead *lead, const char *why)
{
    if (atomic_exchange(&lead->lost, true))
        return;
    snprintf(lead->text, sizeof(lead->text), "%s", why);
    eventfd_write(lead->lost_fd, 1);
}

int by_lead_confirm(struct by_lead *lead, struct by_problem *problem)
{
    json_t *reply;
    int error =
        by_etcd_ask(lead->etcd, "/v3/kv/range", json_pack("{s:o}", "key", by_etcd_key(lead->etcd, "leader")),
                    CONFIRM_MS, &reply, problem);

    if (error == 0 &&
        by_etcd_number(json_array_get(json_object_get(reply, "kvs"), 0), "create_revision") != lead->term)
        error = by_problem_say(problem, BY_EPERM, "this banyand leads no longer");
    json_decref(reply);
    return error;
}
