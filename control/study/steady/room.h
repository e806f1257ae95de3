/*
 * The unused time of ports, links and processors in a period, and the lanes that fill it. Private
 * to control/study/steady. One thread for each room.
 */
#ifndef BY_STUDY_STEADY_ROOM_H
#define BY_STUDY_STEADY_ROOM_H

#include "control/study/steady/platform.h"

/*
 * Raises the amounts of a series' lanes. Each amount starts as the one that `wanted` has, scaled to
 * the period of `series` and rounded down. The function adds one operation after the other, on the
 * lanes that lack most, as long as all messages of the operation fit. `class_of` is the message
 * that a lane carries; each of `class_count` messages has `operations` at the start. On return,
 * `operations` and the amounts are raised.
 */
void by_room_fill(struct by_series *series, const struct by_series *wanted,
                  const struct by_platform *platform, const uint32_t *class_of, uint32_t class_count,
                  mpz_t operations);

#endif
