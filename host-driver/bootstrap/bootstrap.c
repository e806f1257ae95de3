/* Selects one of the sources in bootstrap.h, and fills the meeting from it. */
#include "host-driver/bootstrap/bootstrap.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/address.h"
#include "host-driver/error.h"

/* All ranks open their contexts in the same order, so this number names a context in the launcher's
 * store. */
static atomic_uint key_count;

static bool is_set(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && value[0] != 0;
}

static bool has_pmix(void)
{
    return is_set("PMIX_NAMESPACE") && is_set("PMIX_RANK");
}

static bool has_pmi(void)
{
    return is_set("PMI_FD") && is_set("PMI_RANK") && is_set("PMI_SIZE");
}

void by_bootstrap_tried(char *text, size_t bytes)
{
    snprintf(
        text, bytes,
        "tried: RANK and related variables (%s), PMIx (PMIX_NAMESPACE is %sset), PMI-1 (PMI_FD is %sset)",
        is_set("RANK") || is_set("WORLD_SIZE") || is_set("MASTER_ADDR") || is_set("MASTER_PORT")
            ? "not all set"
            : "not set",
        is_set("PMIX_NAMESPACE") ? "" : "not ", is_set("PMI_FD") ? "" : "not ");
}

static int take_caller(struct by_bootstrap *bootstrap, const struct banyan_bootstrap *caller)
{
    if (caller->size != sizeof(*caller))
        return by_fail(BY_EVERSION, "banyan_init: bootstrap.size is %zu, this library expects %zu",
                       caller->size, sizeof(*caller));
    if (caller->allgather == NULL)
        return by_fail(BY_EINVAL, "banyan_init: bootstrap.allgather is NULL");
    if (caller->rank_count == 0 || caller->rank_count > BY_PEERS_MAX || caller->rank >= caller->rank_count)
        return by_fail(BY_EINVAL, "banyan_init: bootstrap: rank %u of %u; a job has 1 to %u ranks",
                       caller->rank, caller->rank_count, BY_PEERS_MAX);
    bootstrap->caller = *caller;
    bootstrap->source = BY_SOURCE_CALLER;
    return 0;
}

/* Reads the four variables. If another source is available, they count only if all four are set. */
static int take_variables(struct by_bootstrap *bootstrap, bool other)
{
    int error;

    if (other && !(is_set("RANK") && is_set("WORLD_SIZE") && is_set("MASTER_ADDR") && is_set("MASTER_PORT")))
        return 0;
    error = by_meeting_read(&bootstrap->meeting);
    if (error == 0 && bootstrap->meeting.wanted) {
        bootstrap->source = BY_SOURCE_ENV;
        bootstrap->joined = true;
    }
    return error;
}

static int find_automatically(struct by_bootstrap *bootstrap)
{
    int error = take_variables(bootstrap, has_pmix() || has_pmi());

    if (error == 0 && bootstrap->source == BY_SOURCE_NONE)
        bootstrap->source = has_pmix() ? BY_SOURCE_PMIX : has_pmi() ? BY_SOURCE_PMI : BY_SOURCE_NONE;
    return error;
}

void by_bootstrap_init(struct by_bootstrap *bootstrap)
{
    memset(bootstrap, 0, sizeof(*bootstrap));
    bootstrap->meeting.door = -1;
    pthread_mutex_init(&bootstrap->lock, NULL);
}

int by_bootstrap_find(struct by_bootstrap *bootstrap, const struct by_settings *settings,
                      const struct banyan_config *config)
{
    const char *way = config->launcher != NULL ? config->launcher : settings->value[BY_SETTING_BOOTSTRAP];
    char tried[200];

    if (config->bootstrap != NULL) {
        bootstrap->places_only = config->launcher != NULL && strcmp(way, "none") == 0;
        return take_caller(bootstrap, config->bootstrap);
    }
    if (strcmp(way, "auto") == 0)
        return find_automatically(bootstrap);
    if (strcmp(way, "none") == 0)
        return 0;
    if (strcmp(way, "env") == 0) {
        int error = take_variables(bootstrap, false);

        if (error != 0 || bootstrap->source == BY_SOURCE_ENV)
            return error;
    } else if (strcmp(way, "pmix") == 0) {
        bootstrap->source = has_pmix() ? BY_SOURCE_PMIX : BY_SOURCE_NONE;
    } else if (strcmp(way, "pmi") == 0) {
        bootstrap->source = has_pmi() ? BY_SOURCE_PMI : BY_SOURCE_NONE;
    } else {
        return by_fail(BY_EINVAL, "BANYAN_BOOTSTRAP is '%s'; use auto, env, pmix, pmi or none", way);
    }
    by_bootstrap_tried(tried, sizeof(tried));
    return bootstrap->source != BY_SOURCE_NONE
               ? 0
               : by_fail(BY_EINVAL, "BANYAN_BOOTSTRAP is %s, but its variables are not set (%s)", way, tried);
}

/* ---- joining */

/* Rank 0 opens its listener and publishes the address. */
static int open_door(struct by_meeting *meeting, struct by_bootstrap_place *here)
{
    struct sockaddr_in own = {0};
    socklen_t bytes = sizeof(own);

    meeting->door = by_peer_listen(INADDR_ANY, 0);
    if (meeting->door < 0 || getsockname(meeting->door, (struct sockaddr *)&own, &bytes) != 0) {
        meeting->door = -1;
        return by_fail(BY_EIO, "rank 0 cannot listen for the other ranks: %s", strerror(errno));
    }
    meeting->port = ntohs(own.sin_port);
    by_place_here(here, meeting->port);
    return 0;
}

int by_bootstrap_exchange(const struct banyan_bootstrap *caller, const void *mine, void *all, size_t bytes)
{
    char why[BY_ERROR_TEXT_MAX];
    int status;

    by_fail(0, "%s", ""); /* removes the text of an earlier error */
    status = caller->allgather(caller->context, mine, all, bytes);
    if (status == 0)
        return 0;
    snprintf(why, sizeof(why), "%s", by_fail_text());
    return by_fail(BY_EIO, "bootstrap.allgather failed: it returned %d%s%.400s", status,
                   why[0] != 0 ? ": " : "", why);
}

static int share_by_caller(const struct by_bootstrap *bootstrap, char text[BY_PLACE_TEXT])
{
    uint32_t count = bootstrap->caller.rank_count;
    char *all = calloc(count, BY_PLACE_TEXT);
    int status;

    if (all == NULL)
        return by_fail(BY_ENOMEM, "no memory for the addresses of %u ranks", count);
    status = by_bootstrap_exchange(&bootstrap->caller, text, all, BY_PLACE_TEXT);
    memcpy(text, all, BY_PLACE_TEXT);
    free(all);
    text[BY_PLACE_TEXT - 1] = 0;
    return status;
}

static int share(struct by_bootstrap *bootstrap, char text[BY_PLACE_TEXT], uint64_t deadline_ns)
{
    char key[32];

    if (bootstrap->source == BY_SOURCE_CALLER)
        return share_by_caller(bootstrap, text);
    snprintf(key, sizeof(key), "banyan-place-%u", atomic_fetch_add(&key_count, 1));
    return bootstrap->source == BY_SOURCE_PMIX ? by_pmix_share(key, text, BY_PLACE_TEXT, deadline_ns)
                                               : by_pmi_share(key, text, BY_PLACE_TEXT, deadline_ns);
}

static int who_we_are(const struct by_bootstrap *bootstrap, struct by_meeting *meeting, uint64_t deadline_ns)
{
    switch (bootstrap->source) {
    case BY_SOURCE_CALLER:
        meeting->rank = bootstrap->caller.rank;
        meeting->rank_count = bootstrap->caller.rank_count;
        return 0;
    case BY_SOURCE_PMIX:
        return by_pmix_join(&meeting->rank, &meeting->rank_count);
    case BY_SOURCE_PMI:
        return by_pmi_join(&meeting->rank, &meeting->rank_count, deadline_ns);
    case BY_SOURCE_NONE:
    case BY_SOURCE_ENV:
    default:
        return by_fail(BY_EINVAL, "no setting states where ranks meet");
    }
}

uint32_t by_bootstrap_rank_count(struct by_bootstrap *bootstrap, uint64_t deadline_ns)
{
    struct by_meeting meeting = {0};

    if (bootstrap->joined)
        return bootstrap->meeting.rank_count;
    if (bootstrap->source == BY_SOURCE_NONE || who_we_are(bootstrap, &meeting, deadline_ns) != 0)
        return 0;
    return meeting.rank_count;
}

int by_bootstrap_offer(struct by_bootstrap *bootstrap, char *text)
{
    struct by_bootstrap_place here;
    int error = 0;

    if (bootstrap->meeting.rank == 0) {
        error = open_door(&bootstrap->meeting, &here);
        if (error == 0)
            by_place_write(&here, text);
    }
    return error;
}

int by_bootstrap_take(struct by_bootstrap *bootstrap, const char *text)
{
    struct by_meeting *meeting = &bootstrap->meeting;
    struct by_bootstrap_place here, place;

    if (by_place_read(text, &place) != 0)
        return by_fail(BY_EFORMAT,
                       "the listening address of rank 0 is malformed; does rank 0 run another version?");
    by_place_here(&here, 0);
    meeting->port = place.port;
    meeting->ip_count = by_place_order(&place, &here, meeting->ip);
    if (meeting->ip_count == 0)
        return by_fail(BY_ENOENT, "rank 0 has no IPv4 address that rank %u can reach", meeting->rank);
    by_ip_text(meeting->ip[0], meeting->host);
    meeting->wanted = true;
    bootstrap->joined = true;
    return 0;
}

static int join(struct by_bootstrap *bootstrap, uint64_t deadline_ns)
{
    struct by_meeting *meeting = &bootstrap->meeting;
    char text[BY_PLACE_TEXT] = "";
    int error = who_we_are(bootstrap, meeting, deadline_ns);

    if (error != 0)
        return error;
    if (meeting->rank_count > BY_PEERS_MAX || meeting->rank >= meeting->rank_count)
        return by_fail(BY_ELIMIT, "rank %u of %u: the limit is %u ranks", meeting->rank, meeting->rank_count,
                       BY_PEERS_MAX);
    error = by_bootstrap_offer(bootstrap, text);
    if (error == 0)
        error = share(bootstrap, text, deadline_ns);
    return error == 0 ? by_bootstrap_take(bootstrap, text) : error;
}

int by_bootstrap_join(struct by_bootstrap *bootstrap, uint64_t deadline_ns)
{
    int error = 0;

    pthread_mutex_lock(&bootstrap->lock);
    if (!bootstrap->joined) {
        error = join(bootstrap, deadline_ns);
        if (error != 0 && bootstrap->meeting.door >= 0) {
            close(bootstrap->meeting.door);
            bootstrap->meeting.door = -1;
        }
    }
    pthread_mutex_unlock(&bootstrap->lock);
    return error;
}

void by_bootstrap_close(struct by_bootstrap *bootstrap)
{
    if (bootstrap->meeting.door >= 0)
        close(bootstrap->meeting.door);
    bootstrap->meeting.door = -1;
    pthread_mutex_destroy(&bootstrap->lock);
}
