/* The request to end all searches. See clock.h. Global, because a signal handler has no other
 * arguments. */
#include "control/base/clock.h"

atomic_bool by_plan_ended;
