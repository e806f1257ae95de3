/*
 * Units of bandwidth. A fabric names one unit for all its numbers, and rates are printed in it.
 * Code that needs bytes and seconds (times, tables, meters) converts them here, exactly. Pure
 * functions: any thread.
 */
#ifndef BY_FABRIC_UNIT_H
#define BY_FABRIC_UNIT_H

#include "control/fabric/topology.h"

/* Whether a topology may have this unit; and the list of all such units, for messages: "B/s, kB/s,
 * ...". */
bool by_unit_is_known(const char *unit);
const char *by_unit_list(void);
/* Whether the unit counts bytes; "messages", the unit of abstract platforms (control/study/steady),
 * does not. */
bool by_unit_has_bytes(const char *unit);
/* Converts `rate` to bytes per second. BY_EUNSUPPORTED if the unit does not count
 * bytes, BY_ERANGE. */
int by_unit_bytes(const char *unit, struct by_fraction rate, struct by_fraction *bytes);
/* Converts `rate` to 10^9 bytes per second, the unit of libbanyan's programs. Errors as above. */
int by_unit_gigabytes(const char *unit, struct by_fraction rate, struct by_fraction *gigabytes);
/* Returns the bytes per second of an arc of the fabric; 0 if the unit does not count bytes or the
 * value exceeds 63 bits. */
struct by_fraction by_unit_arc_bytes(const struct by_topology *topology, uint32_t arc);

#endif
