/*
 * Draws the course of a simulated call (banyan sim --series): the queues and the utilisation of
 * links over time. Neighbours: svg.h. Single-threaded.
 */
#ifndef BY_VIEW_PLOT_COURSE_H
#define BY_VIEW_PLOT_COURSE_H

#include <stdbool.h>
#include <stdio.h>

#include "control/base/problem.h"
#include "control/fabric/topology.h"

/* The first line of a series, which names its columns. */
#define BY_COURSE_HEADER "time_us,from,to,link,queue_bytes,rate,utilisation"

struct by_course;

/* Returns whether a file with this text is a series of banyan sim. */
bool by_course_suits(const char *text);
/*
 * Reads a series of `topology`, which must outlive it. Returns 0, or BY_EINVAL with the problem.
 * The caller frees it by by_course_free.
 */
int by_course_parse(const char *text, const struct by_topology *topology, struct by_course **course,
                    struct by_problem *problem);
void by_course_free(struct by_course *course);
/* Writes the whole SVG file. */
void by_course_write(const struct by_course *course, FILE *out);

#endif
