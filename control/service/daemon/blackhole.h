/*
 * Detects blackholes: a cable, one direction of a cable, or a switch whose agent answers, with the
 * carrier up, and that drops every frame. The evidence is the frame counters of both ends of each
 * link, sampled periodically and whenever ranks report a wait. A loss, however heavy, that lets
 * some frames pass is left to the protocol, which repairs it. A blackhole is reported only if one
 * end sends and the other receives no frame for a time. Pure, except that it allocates memory;
 * times are arguments (ms). Neighbour: notice.c supplies the samples and calls it while ranks wait.
 * The loop's thread.
 *
 * The clocks of the two ends are not synchronized: a sample was taken between its request and its
 * answer. The frames received at one end are counted over the inside of its window. The frames sent
 * by the other end are counted over an inner part of that window, so that each of them had time to
 * arrive.
 */
#ifndef BY_SERVICE_DAEMON_BLACKHOLE_H
#define BY_SERVICE_DAEMON_BLACKHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Minimum number of frames sent while none was received (count). It is small because waiting ranks
 * retransmit with growing intervals, and frames before the window were lost as well. */
#define BY_BLACKHOLE_FRAMES 3u
/* ... and in less than this time, in which a heavy loss may take so few (count, ms). */
#define BY_BLACKHOLE_FRAMES_SOON 6u
#define BY_BLACKHOLE_SOON_MS     450u
/* Minimum time without a received frame, with at least four samples (ms, and longer if heartbeats
 * come less often than every 100 ms). */
#define BY_BLACKHOLE_WINDOW_MS 32u
/* Minimum time in which a switch receives frames on several links and sends none. It is longer: a
 * switch on a busy machine may be late with all it has received, while ranks repeat what they sent
 * (decision 572). */
#define BY_BLACKHOLE_SILENT_MS 450u
/* A frame counts as lost if it was sent this long before the end of the window (ms). */
#define BY_BLACKHOLE_TRANSIT_MS 12u
/* Samples of one end with a longer gap do not form a window: the end itself stood still, and frames
 * may wait for it (ms). */
#define BY_BLACKHOLE_GAP_MS 280u
/* A sample is removed if its neighbours are closer than this (ms), or than this part of its age. */
#define BY_BLACKHOLE_PACE_MS 8u
#define BY_BLACKHOLE_THIN    3u
/* Samples kept for each end of a link (count). They span a second or more, in which even frames at
 * the longest interval of retransmissions suffice. */
#define BY_BLACKHOLE_SAMPLES 20u

struct by_blackhole;

struct by_blackhole_sample {
    uint64_t asked_ms, answered_ms; /* the counters were read in between */
    uint64_t sent, received;        /* frames since the end started */
};

struct by_blackhole_found {
    bool is_link;
    bool silent;      /* a switch that receives frames and sends none; else frames to and from it are lost */
    bool both;        /* a link: in either direction */
    uint32_t what;    /* number of the link or node */
    uint32_t from;    /* a link: the sending end (0: a, 1: b) */
    uint64_t frames;  /* frames sent on the link or to the switch without effect */
    uint64_t span_ms; /* in this time */
};

struct by_blackhole_link {
    uint32_t node[2]; /* its ends */
};

/* Copies `links` and, by node, whether it is a switch. Hosts are never found, links to hosts are.
 * Samples come every `beat_ms`; a long interval extends the times above. Returns NULL without
 * memory. */
struct by_blackhole *by_blackhole_open(const struct by_blackhole_link *links, uint32_t link_count,
                                       const bool *switches, uint32_t node_count, uint32_t beat_ms);
void by_blackhole_close(struct by_blackhole *blackhole);
/* Adds a sample of one end (0 or 1) of a link. Samples must come in order. If the counters
 * decrease, the end has restarted, and its older samples are discarded. */
void by_blackhole_take(struct by_blackhole *blackhole, uint32_t link, unsigned end,
                       const struct by_blackhole_sample *sample);
/* Discards the samples of a link, or of all links of a node. */
void by_blackhole_forget(struct by_blackhole *blackhole, bool is_link, uint32_t what);
/*
 * Finds a blackhole among the links that are `used` (by link: waiting ranks use them): a switch
 * whose used links deliver no frame in either direction, else a link. Returns false when there is
 * none. Deterministic: of equals, the lowest number.
 */
bool by_blackhole_find(struct by_blackhole *blackhole, const bool *used, struct by_blackhole_found *found);

#endif
