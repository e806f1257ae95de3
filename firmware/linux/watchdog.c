/* The thread that checks the loop's pulse; see watchdog.h. `lock` guards `end`. */
#include "firmware/linux/watchdog.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>

#include "offload/base/errors.h"
#include "offload/linux/notify.h"

/* Checks within a limit (count), and the minimum interval between two (ms). */
#define LOOKS       4u
#define LOOK_MS_MIN 10u
/* Systemd is notified after half of its timeout, as sd_watchdog_enabled(3) advises. */
#define NOTIFY_PART 2u

struct by_watchdog {
    struct by_watchdog_config config;
    uint32_t look_ms;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool end;
};

/* Waits for the next check; returns true when the thread must end. */
static bool wait_look(struct by_watchdog *watchdog)
{
    struct timespec until;
    bool end;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += (long)(watchdog->look_ms % 1000) * 1000000;
    until.tv_sec += watchdog->look_ms / 1000 + until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&watchdog->lock);
    while (!watchdog->end && pthread_cond_timedwait(&watchdog->more, &watchdog->lock, &until) == 0)
        ;
    end = watchdog->end;
    pthread_mutex_unlock(&watchdog->lock);
    return end;
}

static void *watch(void *argument)
{
    struct by_watchdog *watchdog = argument;
    const struct by_watchdog_config *config = &watchdog->config;
    uint64_t last = config->pulse(config->context);
    uint32_t still_ms = 0;

    while (!wait_look(watchdog)) {
        uint64_t pulse = config->pulse(config->context);

        still_ms = pulse == last ? still_ms + watchdog->look_ms : 0;
        last = pulse;
        if (still_ms == 0 && config->notify_ms > 0)
            by_notify("WATCHDOG=1");
        if (config->limit_ms > 0 && still_ms >= config->limit_ms) {
            config->stuck(config->context, pulse, still_ms);
            break;
        }
    }
    return NULL;
}

static uint32_t look_ms(const struct by_watchdog_config *config)
{
    uint32_t ms = config->limit_ms / LOOKS;

    if (config->notify_ms > 0 && (ms == 0 || config->notify_ms / NOTIFY_PART < ms))
        ms = config->notify_ms / NOTIFY_PART;
    return ms > LOOK_MS_MIN ? ms : LOOK_MS_MIN;
}

int by_watchdog_start(struct by_watchdog **out, const struct by_watchdog_config *config)
{
    struct by_watchdog *watchdog;
    pthread_condattr_t attributes;
    sigset_t all, before;
    int result;

    *out = NULL;
    if (config->limit_ms == 0 && config->notify_ms == 0)
        return 0;
    watchdog = calloc(1, sizeof *watchdog);
    if (!watchdog)
        return BY_ENOMEM;
    watchdog->config = *config;
    watchdog->look_ms = look_ms(config);
    pthread_mutex_init(&watchdog->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&watchdog->more, &attributes);
    pthread_condattr_destroy(&attributes);
    /* Signals are handled by other threads. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    result = pthread_create(&watchdog->thread, NULL, watch, watchdog);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (result != 0) {
        free(watchdog);
        return BY_EIO;
    }
    *out = watchdog;
    return 0;
}

void by_watchdog_stop(struct by_watchdog *watchdog)
{
    if (!watchdog)
        return;
    pthread_mutex_lock(&watchdog->lock);
    watchdog->end = true;
    pthread_cond_signal(&watchdog->more);
    pthread_mutex_unlock(&watchdog->lock);
    pthread_join(watchdog->thread, NULL);
    pthread_cond_destroy(&watchdog->more);
    pthread_mutex_destroy(&watchdog->lock);
    free(watchdog);
}
