/*
 * Units of bandwidth. A fabric names one for all its numbers; rates are printed in it, and whatever
 * needs bytes and seconds (times, tables, meters) converts them here, exactly. Pure functions: any
 * thread.
 */
#ifndef BY_FABRIC_H
#define BY_FABRIC_H

#include "control/fabric/topology.h"

/* Whether a topology may have this unit, and those that it may have, for messages: "B/s, kB/s,
 * ...". */
bool by_unit_is_known(const char *unit);
const char *by_unit_list(void);
/* Whether it counts bytes: "messages", the unit of abstract platforms (control/study/steady), does
 * not. */
bool by_unit_has_bytes(const char *unit);
/* `rate` of the unit in bytes a second. BY_EUNSUPPORTED where it counts no bytes, BY_ERANGE. */
int by_unit_bytes(const char *unit, struct by_fraction rate, struct by_fraction *bytes);
/* `rate` of the unit in 10^9 bytes a second, which is what libbanyan's programs count in. The same
 * errors. */
int by_unit_gigabytes(const char *unit, struct by_fraction rate, struct by_fraction *gigabytes);
/* Bytes a second that an arc of the fabric carries; 0 where the unit counts none or the value
 * exceeds 63 bits. */
struct by_fraction by_unit_arc_bytes(const struct by_topology *topology, uint32_t arc);

#endif
