/*
 * What ports, links and processors have left in a period, and lanes put into it. Private to
 * control/study/steady. One thread for each room.
 */
#ifndef BY_STUDY_STEADY_ROOM_H
#define BY_STUDY_STEADY_ROOM_H

#include "control/study/steady/platform.h"

/*
 * Raises the amounts of a series' lanes, each of which begins as what `wanted` has of it in the
 * period of `series`, rounded down: one operation after the other, on the lanes that lack most, as
 * long as all its messages find room. `class_of` says which message a lane carries; each of
 * `class_count` has `operations` in the beginning. Returns with `operations` raised and the amounts
 * to match.
 */
void by_room_fill(struct by_series *series, const struct by_series *wanted,
                  const struct by_platform *platform, const uint32_t *class_of, uint32_t class_count,
                  mpz_t operations);

#endif
