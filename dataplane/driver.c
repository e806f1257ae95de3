/* Names of drivers; see interface.h. Start-up only. */
#include <string.h>

#include "dataplane/interface.h"
#include "dataplane/say.h"

unsigned by_driver_named(const char *source, const char *text)
{
#define X(name, word)                                                                                        \
    if (strcmp(text, word) == 0)                                                                             \
        return BY_DRIVER_##name;
    BY_DRIVER_LIST(X)
#undef X
#define X(name, word) " " word
    by_say("%s %s: no such driver; available:" BY_DRIVER_LIST(X), source, text);
#undef X
    return BY_DRIVER_NONE;
}
