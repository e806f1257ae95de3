/* NAME=ADDR; see target.h. */
#include "control/service/controller/target.h"

#include <string.h>

size_t by_target_split(const char *text, const char **address)
{
    size_t length = strcspn(text, "=");

    if (text[length] == 0)
        return 0;
    *address = text + length + 1;
    return length;
}
