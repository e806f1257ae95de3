/*
 * Finds what swallows packets and keeps its carrier up: a cable, one direction of it, or a switch
 * that answers its agent's requests and moves no frame. The evidence are the frame counters of both
 * ends of each link, read again and again. A loss here and there, however heavy, leaves some frames
 * over, and the protocol repairs it: what counts is that one end sends on and the other gets
 * nothing at all for a time. Pure but for memory; no clock: times are arguments (ms). Neighbour:
 * recovery.c gives the samples, and asks while ranks stand still. The loop's thread.
 *
 * Clocks of two ends never meet: a sample was taken between when it was asked for and when its
 * answer came. What an end received is judged over the inside of its window, what the other sent
 * over an inner part of that window, so that a frame that was counted as sent had time to be
 * counted as received.
 */
#ifndef BY_SERVICE_DAEMON_BLACKHOLE_H
#define BY_SERVICE_DAEMON_BLACKHOLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frames that must have been sent while none was received (count). Few, since who waits repeats
 * ever more slowly; those before the window have been lost as well. */
#define BY_BLACKHOLE_FRAMES 3u
/* For how long none was received, at least (ms, where samples come every 100 ms or more often). */
#define BY_BLACKHOLE_WINDOW_MS 450u
/* A frame counts as lost when it was sent so long before the end of the window (ms). */
#define BY_BLACKHOLE_TRANSIT_MS 60u
/* Samples of one end that lie further apart do not make one window: it stood still itself, and
 * frames may wait for it (ms). */
#define BY_BLACKHOLE_GAP_MS 280u
/* Samples that are kept of each end of a link (count): 0.8 s at least, of which those that come
 * faster than every 50 ms are thinned out; longer where heartbeats are. */
#define BY_BLACKHOLE_SAMPLES 16u

struct by_blackhole;

struct by_blackhole_sample {
    uint64_t asked_ms, answered_ms; /* the counters were read in between */
    uint64_t sent, received;        /* frames since the end's start */
};

struct by_blackhole_found {
    bool is_link;
    bool silent;      /* a switch that takes frames and sends none; else frames to it are lost */
    bool both;        /* a link: in either direction */
    uint32_t what;    /* link or node */
    uint32_t from;    /* a link: the end that sent (0: a, 1: b) */
    uint64_t frames;  /* sent on it, or to the switch, of which nothing came, or nothing came of */
    uint64_t span_ms; /* in this time */
};

struct by_blackhole_link {
    uint32_t node[2]; /* its ends */
};

/* `links`, and by node whether it is a switch, are copied: hosts are never found, but links to them
 * are. Samples come every `beat_ms`; where that is long, so are the times above. NULL: no memory.
 */
struct by_blackhole *by_blackhole_open(const struct by_blackhole_link *links, uint32_t link_count,
                                       const bool *switches, uint32_t node_count, uint32_t beat_ms);
void by_blackhole_close(struct by_blackhole *blackhole);
/* What one end (0 or 1) of a link counts. Counters that went back are those of an end that has
 * restarted: what was known of it is forgotten. Samples must come in their order. */
void by_blackhole_take(struct by_blackhole *blackhole, uint32_t link, unsigned end,
                       const struct by_blackhole_sample *sample);
/* Forgets the samples of a link, or of all of a node's. */
void by_blackhole_forget(struct by_blackhole *blackhole, bool is_link, uint32_t what);
/*
 * What swallows packets now, among the links that are `used` (by link: ranks that stand still use
 * them): a switch to or from which none of its used links brings anything, else a link. False when
 * there is nothing. Deterministic: the lowest number of equals.
 */
bool by_blackhole_find(struct by_blackhole *blackhole, const bool *used, struct by_blackhole_found *found);

#endif
