/* Texts of the error list. Pure; any thread. */
#include "offload/base/errors.h"

const char *by_error_text(int error)
{
    switch (error) {
    case BY_OK:
        return "done";
#define X(name, value, text)                                                                                 \
    case BY_##name:                                                                                          \
        return text;
        BY_ERROR_LIST(X)
#undef X
    default:
        return "unknown error";
    }
}

const char *by_error_name(int error)
{
    switch (error) {
    case BY_OK:
        return "OK";
#define X(name, value, text)                                                                                 \
    case BY_##name:                                                                                          \
        return #name;
        BY_ERROR_LIST(X)
#undef X
    default:
        return "UNKNOWN";
    }
}
