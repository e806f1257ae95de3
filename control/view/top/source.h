/*
 * Where samples come from: a banyand's status, or the switches themselves. Neighbours: view.h is
 * what they fill. Single-threaded; calls block, for a bounded time.
 */
#ifndef BY_VIEW_TOP_SOURCE_H
#define BY_VIEW_TOP_SOURCE_H

#include <stddef.h>

#include "control/service/controller/session.h"
#include "control/view/top/view.h"

/* A switch that is asked directly, its connection, and what is kept of its table. */
struct by_top_target {
    char *name, *address;
    struct by_session *session; /* NULL: not connected */
    uint64_t retry_ns;          /* not before that */
    char text[BY_TOP_TEXT];     /* why not */
    uint64_t hash;              /* of `image` */
    uint8_t *image;
    size_t bytes;
};

struct by_top_source {
    const char *http; /* a banyand, as by_http_ask takes it; NULL: `targets` are asked */
    struct by_top_target *targets;
    uint32_t target_count, target_room;
    struct by_session_options access;
    const struct by_topology *topology; /* names and capacities, or NULL */
};

/* Takes a sample into an empty view. 0, or why there is none in `problem`: a switch that does not
 * answer is no error, but in the view. */
int by_top_sample(struct by_top_source *source, struct by_top_view *view, struct by_problem *problem);
/* The part of it that reads a status (control/service/daemon/status.h), a text in JSON. 0 or
 * BY_EFORMAT. */
int by_top_read_status(const char *text, struct by_top_view *view, struct by_problem *problem);
/* What one switch told, with its active image or NULL, added to a view. */
void by_top_read_switch(struct by_top_view *view, const char *name, const by_HelloReply *hello,
                        const by_CountersReply *counters, const by_WaitingReply *waiting,
                        const uint8_t *image, const struct by_topology *topology);
void by_top_source_close(struct by_top_source *source);

#endif
