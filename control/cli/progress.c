/* The progress bar. See progress.h. */
#include "control/cli/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "control/base/clock.h"
#include "control/cli/cli.h"

/* Delay before the bar appears (seconds). */
#define QUIET_S 1.0
/*
 * Interval between two updates (milliseconds), and between two lines without a terminal (seconds).
 */
#define LOOK_MS 100
#define LINE_S  5.0
/* Width of the bar (columns). */
#define BAR_WIDTH 24
/* Describes the stage, without the seconds. */
static void describe(const struct by_cli_progress *progress, char *text, size_t bytes)
{
    const char *name = atomic_load_explicit(&progress->stage.name, memory_order_relaxed);
    uint64_t total = atomic_load_explicit(&progress->stage.total, memory_order_relaxed);
    uint64_t done = atomic_load_explicit(&progress->stage.done, memory_order_relaxed);
    const char *what = progress->what ? progress->what : "";
    int used = snprintf(text, bytes, "%s%s%s", what, *what && name ? ": " : "", name ? name : "");

    done = done > total ? total : done;
    if (total > 0 && used > 0 && (size_t)used < bytes)
        snprintf(text + used, bytes - (size_t)used, ", %d%%", (int)(100 * (double)done / (double)total));
}

static void draw(const struct by_cli_progress *progress, double seconds)
{
    char text[160], bar[BAR_WIDTH + 1];
    uint64_t total = atomic_load_explicit(&progress->stage.total, memory_order_relaxed);
    uint64_t done = atomic_load_explicit(&progress->stage.done, memory_order_relaxed);
    int filled = total > 0 && done <= total ? (int)(BAR_WIDTH * (double)done / (double)total) : 0;

    describe(progress, text, sizeof(text));
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    /* If the length of the work is unknown, a mark moves through the bar. */
    if (total == 0)
        bar[(int)(4 * seconds) % BAR_WIDTH] = '#';
    bar[BAR_WIDTH] = 0;
    fprintf(stderr, "\r[%s] %s, %.0f s\033[K", bar, text, seconds);
    fflush(stderr);
}

/* Waits until the next update; returns true if the work completes before. */
static bool wait_for_end(struct by_cli_progress *progress)
{
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    return sem_clockwait(&progress->ends, CLOCK_MONOTONIC, &until) == 0;
}

static void *look(void *context)
{
    struct by_cli_progress *progress = context;
    double start = by_plan_clock(), next = QUIET_S;

    while (!wait_for_end(progress)) {
        double seconds = by_plan_clock() - start;
        char text[160];

        if (seconds >= next && progress->terminal) {
            draw(progress, seconds);
        } else if (seconds >= next) {
            describe(progress, text, sizeof(text));
            fprintf(stderr, "banyan: %s, %.0f s\n", text, seconds);
            next += LINE_S;
        }
    }
    return NULL;
}

void by_cli_progress_start(struct by_cli_progress *progress, const char *what, bool asked)
{
    memset(progress, 0, sizeof(*progress));
    progress->what = what;
    progress->terminal = isatty(STDERR_FILENO) == 1;
    /* If no thread can be created, the work runs without a bar. */
    if ((progress->terminal || asked) && sem_init(&progress->ends, 0, 0) == 0)
        progress->running = pthread_create(&progress->thread, NULL, look, progress) == 0;
}

void by_cli_progress_stop(struct by_cli_progress *progress)
{
    if (!progress->running)
        return;
    progress->running = false;
    sem_post(&progress->ends);
    pthread_join(progress->thread, NULL);
    sem_destroy(&progress->ends);
    if (progress->terminal)
        fputs("\r\033[K", stderr);
}

long long by_cli_memory(void)
{
    struct rusage usage;

    return getrusage(RUSAGE_SELF, &usage) == 0 ? 1024ll * usage.ru_maxrss : 0;
}
