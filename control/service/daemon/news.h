/*
 * News: the latest lines about the fabric and its jobs, which the live page shows to every user of
 * the machine. by_news_tell also logs the line. Lines for the operator alone, such as those about
 * connections, files and keys, use by_daemon_say. The memory is bounded: a new line replaces the
 * oldest. Neighbours: switches.c, jobs.c and recovery.c tell; live.c reads. The loop's thread.
 */
#ifndef BY_SERVICE_DAEMON_NEWS_H
#define BY_SERVICE_DAEMON_NEWS_H

#include <stddef.h>
#include <stdint.h>

/* Maximum number of lines that are kept (count). */
#define BY_NEWS_MAX 256u
/* Maximum size of a line with its terminating zero (bytes). Longer ones are cut. */
#define BY_NEWS_BYTES 320u

enum by_news_grade {
    BY_NEWS_GOOD = 1, /* something works again */
    BY_NEWS_PLAIN,
    BY_NEWS_BAD, /* something has failed */
};

struct by_news_line {
    uint64_t number;  /* counts all lines, from 1 */
    uint64_t time_ms; /* since 1970 */
    enum by_news_grade grade;
    char text[BY_NEWS_BYTES];
};

struct by_news;

/* Returns the time of day: milliseconds since 1970. */
uint64_t by_news_clock_ms(void);

struct by_news *by_news_open(void);
void by_news_close(struct by_news *news);
/* Logs a line and keeps it. `news` may be NULL: then it is only logged. */
void by_news_tell(struct by_news *news, enum by_news_grade grade, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Keeps a line without logging it, where the log has more than every user may read. */
void by_news_keep(struct by_news *news, enum by_news_grade grade, const char *text);
/* Returns the line that is `age` lines older than the latest, or NULL. */
const struct by_news_line *by_news_at(const struct by_news *news, uint32_t age);
/* Returns the number of the latest line, 0 without lines. */
uint64_t by_news_count(const struct by_news *news);

#endif
