/* Congestion window and time-out; see tempo.h. */
#include "host-driver/fallback/tempo.h"

#include <string.h>

#define WINDOW_FIRST 10u /* RFC 6928 */
#define WINDOW_LEAST 2u
#define WINDOW_MOST  65535u

static bool is_before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static uint64_t clamp(uint64_t ns)
{
    return ns < BY_TEMPO_LEAST_NS ? BY_TEMPO_LEAST_NS : ns > BY_TEMPO_MOST_NS ? BY_TEMPO_MOST_NS : ns;
}

static uint32_t half_of(uint32_t window)
{
    return window / 2 > WINDOW_LEAST ? window / 2 : WINDOW_LEAST;
}

void by_tempo_begin(struct by_tempo *tempo, uint32_t order)
{
    memset(tempo, 0, sizeof(*tempo));
    tempo->window = WINDOW_FIRST;
    tempo->threshold = WINDOW_MOST;
    tempo->recover = order;
    tempo->timeout_ns = BY_TEMPO_FIRST_NS;
}

void by_tempo_sample(struct by_tempo *tempo, uint64_t rtt_ns)
{
    if (tempo->smooth_ns == 0) {
        tempo->smooth_ns = rtt_ns > 0 ? rtt_ns : 1;
        tempo->variance_ns = rtt_ns / 2;
    } else {
        uint64_t far = rtt_ns > tempo->smooth_ns ? rtt_ns - tempo->smooth_ns : tempo->smooth_ns - rtt_ns;

        tempo->variance_ns = (3 * tempo->variance_ns + far) / 4;
        tempo->smooth_ns = (7 * tempo->smooth_ns + rtt_ns) / 8;
    }
    tempo->timeout_ns = clamp(tempo->smooth_ns + 4 * tempo->variance_ns);
}

void by_tempo_arrived(struct by_tempo *tempo, uint32_t count, bool full)
{
    if (!full || tempo->window >= WINDOW_MOST)
        return;
    if (tempo->window < tempo->threshold) {
        tempo->window += count;
        return;
    }
    tempo->part += count;
    if (tempo->part >= tempo->window) {
        tempo->part -= tempo->window;
        tempo->window++;
    }
}

void by_tempo_lost(struct by_tempo *tempo, uint32_t order, uint32_t next)
{
    /* Counted back from the next: the last loss may lie further behind than numbers compare. */
    if (next - order > next - tempo->recover)
        return;
    tempo->recover = next;
    tempo->window = tempo->threshold = half_of(tempo->window);
    tempo->part = 0;
}

void by_tempo_timeout(struct by_tempo *tempo, uint32_t flight, uint32_t next)
{
    if (!tempo->late) {
        tempo->late_window = tempo->window;
        tempo->late_threshold = tempo->threshold;
        tempo->late_order = next;
        tempo->late = true;
        tempo->threshold = half_of(flight);
    }
    tempo->window = 1;
    tempo->part = 0;
    tempo->recover = next;
    by_tempo_wait(tempo);
}

void by_tempo_wait(struct by_tempo *tempo)
{
    tempo->timeout_ns = clamp(2 * tempo->timeout_ns);
}

bool by_tempo_answer(struct by_tempo *tempo, uint32_t newest)
{
    bool undo = tempo->late && is_before(newest, tempo->late_order);

    tempo->late = false;
    if (!undo)
        return false;
    tempo->window = tempo->late_window;
    tempo->threshold = tempo->late_threshold;
    return true;
}
