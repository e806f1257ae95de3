/*
 * Converts lanes to a period: its length, how often each lane runs in it, and which links are busy
 * at the same time. Private to control/study/steady. One thread for each call.
 */
#ifndef BY_STUDY_STEADY_SCHEDULE_H
#define BY_STUDY_STEADY_SCHEDULE_H

#include "control/study/steady/program.h"

/*
 * Moves the lanes into the series, with the least period in which each lane runs a whole number of
 * times.
 */
void by_schedule_lanes(struct by_series *series, struct by_lanes *lanes);
/* Computes the slots from the lanes and the period. */
void by_schedule_slots(struct by_series *series, const struct by_platform *platform);

#endif
