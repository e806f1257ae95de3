/*
 * From lanes to a period: how long it is, how often each lane runs, and which links are busy at the
 * same time. Private to control/study/steady. One thread for each call.
 */
#ifndef BY_STUDY_STEADY_SCHEDULE_H
#define BY_STUDY_STEADY_SCHEDULE_H

#include "control/study/steady/program.h"

/* Hands the lanes over to the series: the least period in which each runs a whole number of times.
 */
void by_schedule_lanes(struct by_series *series, struct by_lanes *lanes);
/* Fills in the slots from the lanes and the period. */
void by_schedule_slots(struct by_series *series, const struct by_platform *platform);

#endif
