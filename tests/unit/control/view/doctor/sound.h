/* Facts of the doctor without any problem, which tests then corrupt. */
#ifndef BY_TESTS_UNIT_CONTROL_DOCTOR_SOUND_H
#define BY_TESTS_UNIT_CONTROL_DOCTOR_SOUND_H

#include "control/view/doctor/doctor.h"

#define SOUND_NOW_S 1800000000 /* the time of these facts, in 2027 */

/* Makes the facts of a machine with keys, a host's table with two ports, and two switches with
 * their files. */
struct by_doctor *sound_open(void);
void sound_close(struct by_doctor *doctor);
/* Replaces the expected image of a switch by one with these counts. Frees the old one. */
void sound_image(struct by_switch_facts *facts, const struct by_image_header *header);
/* Replaces the controller's status: the state and table of its switch, the state of its job. */
void sound_status(struct by_doctor *doctor, const char *state, const char *table, const char *job,
                  const char *election, const char *version);

/* Returns the check's finding if it is not well, or NULL if there is none. Fails the test if there
 * are several. */
const struct by_finding *sound_find(const struct by_doctor *doctor, const char *check);

/* Runs the tests of test_report.c. Returns the number of failures. */
int test_report(void);

#endif
