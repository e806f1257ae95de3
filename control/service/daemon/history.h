/*
 * One hour of the fabric's past in bounded memory: every two seconds the traffic of all links, the
 * highest load of a link, parts that are down, and how close each job came to its optimum; and
 * every 16 seconds the mean load of each link, for fabrics of at most BY_HISTORY_LINKS_MAX links (8
 * MB). Nothing is stored on disk. Neighbours: rates.c, latency.c; live.c reads. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_HISTORY_H
#define BY_SERVICE_DAEMON_HISTORY_H

#include <stdbool.h>
#include <stdint.h>

#include "control/service/daemon/daemon.h"

/* Period of samples (milliseconds), and their number: one hour. */
#define BY_HISTORY_STEP_MS 2000u
#define BY_HISTORY_SAMPLES 1800u
/* Samples of the fabric in one sample of a link, and the number of these: one hour. */
#define BY_HISTORY_LINK_STEPS   8u
#define BY_HISTORY_LINK_SAMPLES 225u
/* Maximum number of links whose loads are kept (count). */
#define BY_HISTORY_LINKS_MAX 16384u
/* A value that is unknown. */
#define BY_HISTORY_NO_PERMILLE UINT16_MAX
#define BY_HISTORY_NO_PERCENT  UINT8_MAX

struct by_history_job {
    uint16_t job;
    uint16_t permille; /* of the optimum; BY_HISTORY_NO_PERMILLE: it ran no operation */
};

struct by_history_sample {
    uint64_t time_ms;       /* since 1970 */
    uint64_t carried;       /* bytes per second in all links and directions together */
    uint16_t peak_permille; /* highest load of a direction of a link, of its capacity */
    uint32_t links_down, switches_down;
    uint32_t job_count;
    struct by_history_job jobs[BY_DAEMON_JOBS_MAX];
};

struct by_history;

struct by_history *by_history_open(uint32_t link_count);
void by_history_close(struct by_history *history);
/* Takes a sample if the period has passed. At every tick. */
void by_history_tick(struct by_daemon *daemon);
/* Returns the number of samples that are kept. */
uint32_t by_history_count(const struct by_history *history);
/* Returns the sample that is `age` samples older than the latest, or NULL. */
const struct by_history_sample *by_history_at(const struct by_history *history, uint32_t age);
/* Whether the loads of links are kept, and the number of samples of a link. */
bool by_history_has_links(const struct by_history *history);
uint32_t by_history_link_count(const struct by_history *history);
/* Returns the mean load in percent of the capacity, at most 254, `age` samples before the
 * latest. */
uint8_t by_history_link(const struct by_history *history, uint32_t link, unsigned direction, uint32_t age);
/* Returns the rate in permille of the capacity; BY_HISTORY_NO_PERMILLE if one of them is
 * unknown. */
uint16_t by_history_permille(const struct by_daemon *daemon, uint32_t link, unsigned direction);

#endif
