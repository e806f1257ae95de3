/*
 * Takes samples from the status of a banyand, or from the switches themselves. Neighbour: view.h,
 * which the samples fill. Single-threaded; calls block, with a timeout.
 */
#ifndef BY_VIEW_TOP_SOURCE_H
#define BY_VIEW_TOP_SOURCE_H

#include <stddef.h>

#include "control/service/controller/session.h"
#include "control/view/top/view.h"

/* A switch that is queried directly, its session, and its table. */
struct by_top_target {
    char *name, *address;
    struct by_session *session; /* NULL: not connected */
    uint64_t retry_ns;          /* earliest time of the next attempt to connect */
    char text[BY_TOP_TEXT];     /* the reason if it is not connected */
    uint64_t hash;              /* hash of `image` */
    uint8_t *image;
    size_t bytes;
};

struct by_top_source {
    const char *http; /* address of a banyand, as for by_http_ask; NULL: `targets` are queried */
    struct by_top_target *targets;
    uint32_t target_count, target_room;
    struct by_session_options access;
    const struct by_topology *topology; /* for names and capacities, or NULL */
};

/*
 * Takes a sample into an empty view. Returns 0, or an error with `problem` filled. A switch that
 * does not answer is no error; the view shows it.
 */
int by_top_sample(struct by_top_source *source, struct by_top_view *view, struct by_problem *problem);
/* Reads a status (JSON, control/service/daemon/status.h) into a view. Returns 0, BY_EFORMAT, or
 * BY_EAGAIN when it is a follower's, with the leader in `problem`. */
int by_top_read_status(const char *text, struct by_top_view *view, struct by_problem *problem);
/* Adds the answers of one switch to a view, with its active image or NULL. */
void by_top_read_switch(struct by_top_view *view, const char *name, const by_HelloReply *hello,
                        const by_CountersReply *counters, const by_WaitingReply *waiting,
                        const uint8_t *image, const struct by_topology *topology);
void by_top_source_close(struct by_top_source *source);

#endif
