/* The part of <limits.h> that nanopb's header requires: the compiler's own file includes that of a
 * C library, which does not exist here. */
#ifndef BY_BAREMETAL_LIMITS_H
#define BY_BAREMETAL_LIMITS_H

#define CHAR_BIT  __CHAR_BIT__
#define SCHAR_MAX __SCHAR_MAX__
#define UCHAR_MAX (2 * SCHAR_MAX + 1)
#define INT_MAX   __INT_MAX__
#define INT_MIN   (-INT_MAX - 1)
#define UINT_MAX  (2u * INT_MAX + 1)

#endif
