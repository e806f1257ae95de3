/*
 * Places the frames of a summary: a frame's own nodes in rows above, its parts side by side below.
 * In a frame that is drawn whole, hosts form a row, or a circle if links join them directly. See
 * summary.h.
 */
#include <math.h>

#include "control/base/alloc.h"
#include "control/view/plot/layout.h"
#include "control/view/plot/summary.h"

#define PAD        18.0
#define HEAD       26.0  /* room for the frame's number of copies */
#define GAP        26.0  /* distance between frames */
#define RISE       96.0  /* distance between the rows of a frame */
#define FALL       104.0 /* distance from a frame's own nodes to its parts */
#define HOST_STEP  40.0
#define NODE_GAP   26.0
#define LOOP_ROOM  34.0  /* room above a group whose nodes are joined to each other */
#define LOOP_WIDTH 168.0 /* width of a frame with such a group */
#define PI         3.14159265358979323846

/* Whether links join two hosts of a frame that is drawn whole. */
static bool hosts_are_joined(const struct by_summary *summary, uint32_t frame)
{
    for (uint32_t i = 0; i < summary->bundle_count; i++) {
        const struct by_plot_group *a = &summary->groups[summary->bundles[i].a];
        const struct by_plot_group *b = &summary->groups[summary->bundles[i].b];

        if (a->frame == frame && b->frame == frame && a->level == 0 && b->level == 0 && a != b)
            return true;
    }
    return false;
}

static void size_group(const struct by_summary *summary, struct by_plot_group *group)
{
    const struct by_node *node = &summary->fabric->topology->nodes[group->sample];
    char label[BY_LABEL_BYTES];

    if (node->compute) {
        group->half_width = group->half_height = summary->frames[group->frame].whole ? 14 : 24;
        return;
    }
    group->half_width = fmax(30, by_layout_text_width(by_layout_label(node->name, label), 11) / 2 + 10);
    group->half_height = group->within > 1 || !summary->frames[group->frame].whole ? 19 : 14;
}

/* Places the groups of one level of a frame side by side, centred on 0; returns the width. */
static double place_row(struct by_summary *summary, uint32_t frame, uint32_t level, double y)
{
    double width = -NODE_GAP, x;

    for (uint32_t i = 0; i < summary->group_count; i++)
        if (summary->groups[i].frame == frame && summary->groups[i].level == level)
            width += 2 * summary->groups[i].half_width + (level ? NODE_GAP : HOST_STEP - 28);
    if (level == 0)
        width += NODE_GAP - (HOST_STEP - 28);
    x = -width / 2;
    for (uint32_t i = 0; i < summary->group_count; i++) {
        struct by_plot_group *group = &summary->groups[i];

        if (group->frame != frame || group->level != level)
            continue;
        group->x = x + group->half_width;
        group->y = y;
        x += 2 * group->half_width + (level ? NODE_GAP : HOST_STEP - 28);
    }
    return width < 0 ? 0 : width;
}

/* Places hosts on a circle; returns its diameter. */
static double place_circle(struct by_summary *summary, uint32_t frame, double y)
{
    uint32_t count = 0;
    double radius;

    for (uint32_t i = 0; i < summary->group_count; i++)
        count += summary->groups[i].frame == frame && summary->groups[i].level == 0;
    radius = fmax(60, count * HOST_STEP / (2 * PI));
    for (uint32_t i = 0; i < summary->group_count; i++) {
        struct by_plot_group *group = &summary->groups[i];
        double angle = 2 * PI * (group->position + 0.5) / count - PI / 2;

        if (group->frame != frame || group->level != 0)
            continue;
        group->x = radius * cos(angle);
        group->y = y + radius + radius * sin(angle);
    }
    return 2 * radius;
}

/* Whether a group of the frame has links inside; their label is beside the frame's number. */
static bool has_loop(const struct by_summary *summary, uint32_t frame)
{
    for (uint32_t i = 0; i < summary->bundle_count; i++)
        if (summary->bundles[i].a == summary->bundles[i].b &&
            summary->groups[summary->bundles[i].a].frame == frame)
            return true;
    return false;
}

/*
 * Places a frame's own groups around x = 0 below y = 0. Returns the y coordinate where its parts
 * may begin, and sets the width.
 */
static double place_own(struct by_summary *summary, uint32_t frame, double *width)
{
    uint32_t top = 0;
    double y = HEAD + 14;
    bool any = false, circle = summary->frames[frame].whole && hosts_are_joined(summary, frame);

    *width = 0;
    for (uint32_t i = 0; i < summary->group_count; i++) {
        if (summary->groups[i].frame != frame)
            continue;
        size_group(summary, &summary->groups[i]);
        top = summary->groups[i].level > top ? summary->groups[i].level : top;
        any = true;
    }
    if (any && has_loop(summary, frame))
        y += LOOP_ROOM;
    for (uint32_t level = top + 1; level-- > 0 && any;) {
        double row =
            level == 0 && circle ? place_circle(summary, frame, y - 14) : place_row(summary, frame, level, y);

        *width = fmax(*width, row);
        if (level == 0 && circle)
            y += row - 28;
        else if (row > 0 && level > 0)
            y += RISE;
    }
    if (summary->frames[frame].whole || top == 0)
        return y + 14 + PAD;
    return y - RISE + FALL;
}

static void move(struct by_summary *summary, uint32_t frame, double dx, double dy)
{
    summary->frames[frame].x += dx;
    summary->frames[frame].y += dy;
    for (uint32_t i = 0; i < summary->group_count; i++)
        if (summary->groups[i].frame == frame) {
            summary->groups[i].x += dx;
            summary->groups[i].y += dy;
        }
    for (uint32_t f = frame + 1; f < summary->frame_count; f++)
        if (summary->frames[f].parent == frame)
            move(summary, f, dx, dy);
}

/* Places a frame and its parts, with the middle of its upper edge at (0, 0). */
static void place_frame(struct by_summary *summary, uint32_t frame)
{
    struct by_plot_frame *self = &summary->frames[frame];
    double own, parts = -GAP, x, y = place_own(summary, frame, &own), height = 0;

    for (uint32_t f = frame + 1; f < summary->frame_count; f++) {
        if (summary->frames[f].parent != frame)
            continue;
        place_frame(summary, f);
        parts += summary->frames[f].width + GAP;
        height = fmax(height, summary->frames[f].height);
    }
    x = -parts / 2;
    for (uint32_t f = frame + 1; f < summary->frame_count; f++) {
        if (summary->frames[f].parent != frame)
            continue;
        move(summary, f, x + summary->frames[f].width / 2, y);
        x += summary->frames[f].width + GAP;
    }
    self->width = fmax(fmax(own, parts) + 2 * PAD, self->bare                 ? 60
                                                   : has_loop(summary, frame) ? LOOP_WIDTH
                                                                              : 96);
    self->height = height > 0 ? y + height + PAD : fmax(y, 60);
    self->x = self->y = 0;
}

void by_summary_place(struct by_summary *summary)
{
    place_frame(summary, 0);
    summary->width = summary->frames[0].width;
    summary->height = summary->frames[0].height;
    move(summary, 0, summary->width / 2, 0);
}
