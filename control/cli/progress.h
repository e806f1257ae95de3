/*
 * A progress bar for work that takes longer than a second. A thread reads the work's stage ten
 * times a second. On a terminal it draws a bar on standard error. Elsewhere, if requested, it
 * prints a line from time to time. Stop the bar, which erases it, before printing anything else.
 * One caller thread for each bar, in addition to the bar's own.
 */
#ifndef BY_CLI_PROGRESS_H
#define BY_CLI_PROGRESS_H

#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>

#include "control/base/stage.h"

/* The rows of --time-limit and --progress; AT is the table's BY_OPTION_AT. */
#define BY_CLI_TIME_LIMIT_MAX 31536000u /* seconds: a year */
#define BY_CLI_TIME_LIMIT(member, help)                                                                      \
    BY_ROW_DECIMAL(0, "time-limit", "S", AT(member), BY_CLI_TIME_LIMIT_MAX, help)
#define BY_CLI_PROGRESS(member)                                                                              \
    BY_ROW_FLAG(0, "progress", AT(member), "show progress even if standard error is not a terminal")

struct by_cli_progress {
    struct by_stage stage; /* passed to the work, which updates it */
    const char *what;      /* printed before the stage's name: "allgather, multitree"; NULL: nothing */
    bool running, terminal;
    sem_t ends; /* posted when the work is complete */
    pthread_t thread;
};

/*
 * Starts the progress thread if standard error is a terminal or `asked` is set; otherwise does
 * nothing.
 */
void by_cli_progress_start(struct by_cli_progress *progress, const char *what, bool asked);
/*
 * Erases the bar. Does nothing for a progress that was never started (all zero) or is already
 * stopped.
 */
void by_cli_progress_stop(struct by_cli_progress *progress);

/* Returns the peak memory of this process (bytes). */
long long by_cli_memory(void);

#endif
