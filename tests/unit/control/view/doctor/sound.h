/* A doctor's facts in which nothing is wrong, to be spoilt by tests. */
#ifndef BY_TESTS_UNIT_CONTROL_DOCTOR_SOUND_H
#define BY_TESTS_UNIT_CONTROL_DOCTOR_SOUND_H

#include "control/view/doctor/doctor.h"

#define SOUND_NOW_S 1800000000 /* the day of these facts: in 2027 */

/* A machine with keys, a host's table of two ports, and two switches with their files. */
struct by_doctor *sound_open(void);
void sound_close(struct by_doctor *doctor);
/* The image that a switch should have, afresh with these counts: frees the one before. */
void sound_image(struct by_switch_facts *facts, const struct by_image_header *header);
/* The controller's status afresh: the state and the table of its switch, the state of its job. */
void sound_status(struct by_doctor *doctor, const char *state, const char *table, const char *job,
                  const char *election, const char *version);

/* The finding of a check that is not well, or NULL when there is none; fails the test when there
 * are several.
 */
const struct by_finding *sound_find(const struct by_doctor *doctor, const char *check);

/* test_report.c: its tests; returns how many failed. */
int test_report(void);

#endif
