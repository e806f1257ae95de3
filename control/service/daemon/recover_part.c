/*
 * Recovery: the state of switches and links. A part is lost when it is down, when its process has
 * ended, or when it is a blackhole. When it comes back, it is used again after a while. An unused
 * blackhole shows no symptom, so it is tried again after a time that doubles with each failed
 * trial. See recover.h. The loop's thread.
 */
#include <stdio.h>

#include "control/service/daemon/recover_inside.h"

/* Longest hold of a blackhole. */
#define TRUST_MAX_NS UINT64_C(3600000000000)
/* A part that was in use for this many times its last hold starts again with the shortest hold
 * (count). */
#define FORGIVE 4u
/* A part on its first hold is tried once after this time if a job has no other path (ns). */
#define TRIAL_NS UINT64_C(1000000000)

static struct by_recover_part *part_of(const struct by_recover *r, bool is_link, uint32_t what)
{
    return &r->parts[is_link ? r->config.node_count + what : what];
}

static bool *lost_of(const struct by_recover *r, bool is_link, uint32_t what)
{
    return is_link ? &r->lost_links[what] : &r->lost_nodes[what];
}

static const char *part_name(const struct by_recover *r, bool is_link, uint32_t what, char text[96])
{
    r->config.name_part(r->config.user, is_link, what, text, 96);
    return text;
}

/* Touches the jobs whose trees use the part. Returns whether there are any. */
static bool touch(struct by_recover *r, bool is_link, uint32_t what, const char *cause)
{
    bool some = false;

    for (uint32_t j = 0; j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];
        bool uses = job->exists && !job->failed && r->config.uses(r->config.user, j, is_link, what);

        /* A job in an attempt may use it in the current plan, so it is touched as well; it keeps
         * the cause of the attempt. */
        if (!job->exists || job->failed || (!job->open && !uses))
            continue;
        by_recover_touch(job, uses ? cause : NULL);
        some = true;
    }
    return some;
}

static void lose(struct by_recover *r, bool is_link, uint32_t what, const char *how)
{
    bool *lost = lost_of(r, is_link, what);
    char name[96], cause[256];

    part_of(r, is_link, what)->back_ns = 0;
    if (*lost)
        return;
    *lost = true;
    snprintf(cause, sizeof(cause), "%s %s", part_name(r, is_link, what, name), how);
    if (touch(r, is_link, what, cause)) {
        by_recover_tell(r, "%s: planning again", cause);
        by_recover_want(r);
    } else {
        by_recover_tell(r, "%s: no job uses it", cause);
    }
}

/* Plans jobs without a path again at once, without waiting until a part has been back for long. */
static void rescue(struct by_recover *r)
{
    bool some = false;

    for (uint32_t j = 0; j < r->job_count; j++) {
        struct by_recover_state *job = &r->jobs[j];

        if (!job->exists || !job->cut)
            continue;
        by_recover_touch(job, NULL);
        job->cut = false;
        some = true;
    }
    if (some)
        by_recover_want(r);
}

static bool is_cut(const struct by_recover *r)
{
    for (uint32_t j = 0; j < r->job_count; j++)
        if (r->jobs[j].exists && r->jobs[j].cut)
            return true;
    return false;
}

static void come_back(struct by_recover *r, bool is_link, uint32_t what)
{
    struct by_recover_part *part = part_of(r, is_link, what);
    bool *lost = lost_of(r, is_link, what);
    char name[96];

    part->down = part->silent = false;
    if (!*lost || part->held || part->back_ns != 0)
        return;
    part_name(r, is_link, what, name);
    if (is_cut(r)) {
        *lost = false;
        by_recover_tell(r, "%s is back: planning again", name);
        rescue(r);
        return;
    }
    part->back_ns = r->now_ns;
    by_recover_tell(r, "%s is back; it will be used once it has been up for a while", name);
}

/* Whether ranks that use the switch make progress and none waits: then only this daemon cannot
 * reach it. */
static bool is_partition(const struct by_recover *r, uint32_t node)
{
    for (uint32_t j = 0; j < r->job_count; j++)
        if (by_recover_moves(r, &r->jobs[j]) && r->config.uses(r->config.user, j, false, node))
            return true;
    return false;
}

static void take_silence(struct by_recover *r, uint32_t node)
{
    struct by_recover_part *part = part_of(r, false, node);
    char name[96];

    if (r->lost_nodes[node] || !is_partition(r, node)) {
        part->silent = false;
        part->down = true;
        lose(r, false, node, "does not answer");
    } else if (!part->silent) {
        part->silent = true;
        by_recover_tell(r, "%s does not answer, but its ranks make progress: check the path from here to it",
                        part_name(r, false, node, name));
    }
}

static void take_reboot(struct by_recover *r, uint32_t node)
{
    char name[96], cause[128];

    if (r->lost_nodes[node]) {
        come_back(r, false, node);
        return;
    }
    /* It is alive; only its tables are lost. */
    part_of(r, false, node)->down = part_of(r, false, node)->silent = false;
    snprintf(cause, sizeof(cause), "%s restarted", part_name(r, false, node, name));
    if (touch(r, false, node, cause)) {
        by_recover_tell(r, "%s: planning again", cause);
        by_recover_want(r);
    }
}

/* Marks the part as a blackhole and holds it. */
static void condemn(struct by_recover *r, bool is_link, uint32_t what, const char *text)
{
    struct by_recover_part *part = part_of(r, is_link, what);
    bool again = r->now_ns - part->free_ns < FORGIVE * part->trust_ns; /* false without a former hold */

    if (part->held || *lost_of(r, is_link, what))
        return;
    part->trust_ns = again ? 2 * part->trust_ns : r->config.trust_ns;
    if (part->trust_ns > TRUST_MAX_NS)
        part->trust_ns = TRUST_MAX_NS;
    part->held = true;
    part->until_ns = r->now_ns + part->trust_ns;
    lose(r, is_link, what, text);
}

static void free_part(struct by_recover *r, struct by_recover_part *part)
{
    part->held = false;
    part->free_ns = r->now_ns;
    if (!part->down) /* it has been up during the hold */
        part->back_ns = r->now_ns > r->config.quiet_ns ? r->now_ns - r->config.quiet_ns : 1;
}

/* Ends holds that have expired. While a job has no path, also ends first holds early, once each, to
 * test whether the part still drops packets. Such a job uses these parts at once, and also parts
 * that have not been back for long. */
static void look_at_held(struct by_recover *r)
{
    uint32_t nodes = r->config.node_count, all = nodes + r->config.link_count;
    bool cut = is_cut(r), tried = false, back = false;

    for (uint32_t i = 0; i < all; i++) {
        struct by_recover_part *part = &r->parts[i];
        bool held = part->held, trial = cut && !part->down && part->trust_ns == r->config.trust_ns &&
                                        r->now_ns + part->trust_ns >= part->until_ns + TRIAL_NS;

        if (held && (r->now_ns >= part->until_ns || trial))
            free_part(r, part);
        if (!cut || part->held || part->back_ns == 0)
            continue;
        part->back_ns = 0;
        *lost_of(r, i >= nodes, i >= nodes ? i - nodes : i) = false;
        tried |= held;
        back |= !held;
    }
    for (uint32_t j = 0; tried && j < r->job_count; j++)
        if (r->jobs[j].exists && r->jobs[j].cut)
            r->jobs[j].tried_ns = r->now_ns;
    if (tried)
        by_recover_tell(r, "using parts that dropped packets again, because a job has no other path");
    if (back)
        by_recover_tell(r, "using returned parts at once, because a job has no other path");
    if (tried || back)
        rescue(r);
}

void by_recover_parts_tick(struct by_recover *r)
{
    for (uint32_t n = 0; n < r->config.node_count; n++)
        if (r->parts[n].silent)
            take_silence(r, n);
    look_at_held(r);
}

void by_recover_parts_recovery(struct by_recover *r)
{
    uint32_t nodes = r->config.node_count, all = nodes + r->config.link_count;
    bool some = false;

    if (r->phase != IDLE)
        return;
    for (uint32_t i = 0; i < all; i++) {
        struct by_recover_part *part = &r->parts[i];

        if (part->back_ns == 0 || r->now_ns - part->back_ns < r->config.quiet_ns)
            continue;
        part->back_ns = 0;
        *lost_of(r, i >= nodes, i >= nodes ? i - nodes : i) = false;
        some = true;
    }
    if (!some)
        return;
    for (uint32_t j = 0; j < r->job_count; j++)
        if (r->jobs[j].exists && !r->jobs[j].failed)
            by_recover_touch(&r->jobs[j], "the fabric has recovered");
    by_recover_tell(r, "the fabric has recovered: planning again");
    by_recover_want(r);
}

bool by_recover_held(const struct by_recover *r, bool is_link, uint32_t what)
{
    return part_of(r, is_link, what)->held;
}

void by_recover_part(struct by_recover *r, const struct by_recover_event *event)
{
    bool is_link = event->type == BY_RECOVER_LINK_DOWN || event->type == BY_RECOVER_LINK_UP ||
                   event->type == BY_RECOVER_LINK_SWALLOWS;

    switch (event->type) {
    case BY_RECOVER_SWITCH_DOWN:
        take_silence(r, event->what);
        break;
    case BY_RECOVER_SWITCH_GONE:
    case BY_RECOVER_LINK_DOWN:
        part_of(r, is_link, event->what)->silent = false;
        part_of(r, is_link, event->what)->down = true;
        lose(r, is_link, event->what, is_link ? "is down" : "has ended");
        break;
    case BY_RECOVER_SWITCH_REBOOTED:
        take_reboot(r, event->what);
        break;
    case BY_RECOVER_SWITCH_SWALLOWS:
    case BY_RECOVER_LINK_SWALLOWS:
        condemn(r, is_link, event->what, event->text);
        break;
    case BY_RECOVER_SWITCH_UP:
    case BY_RECOVER_LINK_UP:
    case BY_RECOVER_RANK_CAME:
    case BY_RECOVER_RANK_LEFT:
    case BY_RECOVER_RANK_DIED:
    case BY_RECOVER_RANK_ALIVE:
    case BY_RECOVER_RANK_SUSPECTS:
    case BY_RECOVER_RANK_STUCK:
    case BY_RECOVER_RANK_CARRIED:
    case BY_RECOVER_RENEW:
    case BY_RECOVER_NO_PLAN:
    case BY_RECOVER_PLANNED:
    case BY_RECOVER_RECORDED:
    case BY_RECOVER_PUSHED:
    case BY_RECOVER_TICK:
    default: /* UP */
        come_back(r, is_link, event->what);
        break;
    }
}
