/*
 * Error texts, and other information that needs no object: version, names, capabilities, settings.
 * Any thread.
 */
#include "host-driver/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <banyan/banyan.h>

#include "host-driver/settings.h"
#include "offload/base/assert.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/types.h"

/* Identifies the version of a linked file; `banyan doctor` searches for it. */
static const char mark[] __attribute__((used)) = "@(#)banyan " BY_VERSION;

static _Thread_local char last_text[BY_ERROR_TEXT_MAX];

#define X(name, value, text) BY_STATIC_ASSERT((int)BY_##name == (int)BANYAN_##name, "public status " #name);
BY_ERROR_LIST(X)
#undef X
#define X(name, value, text)                                                                                 \
    BY_STATIC_ASSERT((int)BY_OP_##name == (int)BANYAN_##name, "public operator " #name);
BY_OP_LIST(X)
#undef X
#define X(name, value, text, bytes)                                                                          \
    BY_STATIC_ASSERT((int)BY_DTYPE_##name == (int)BANYAN_##name, "public type " #name);
BY_DTYPE_LIST(X)
#undef X
#define X(name, value, text, root, shards, reduces, way)                                                     \
    BY_STATIC_ASSERT((int)BY_COLLECTIVE_##name == (int)BANYAN_##name, "public collective " #name);
BY_COLLECTIVE_LIST(X)
#undef X
BY_STATIC_ASSERT((int)BY_COLLECTIVE_COUNT <= (int)BANYAN_ALLTOALL, "collectives without trees follow");

int by_fail(int status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(last_text, sizeof(last_text), format, arguments);
    va_end(arguments);
    return status;
}

const char *by_fail_text(void)
{
    return last_text;
}

int banyan_version(void)
{
    return BANYAN_VERSION;
}

const char *banyan_strerror(banyan_status_t status)
{
    return by_error_text((int)status);
}

const char *banyan_last_error(void)
{
    return last_text;
}

int banyan_supports(banyan_op_t op, banyan_dtype_t dtype)
{
    return by_reducer_get(BY_ISA_SCALAR, (unsigned)op, (unsigned)dtype) != NULL;
}

int banyan_supports_mode(banyan_mode_t mode, banyan_op_t op, banyan_dtype_t dtype)
{
    return banyan_supports(op, dtype) &&
           by_reduction_dtype((unsigned)mode, (unsigned)op, (unsigned)dtype) != 0;
}

size_t banyan_dtype_size(banyan_dtype_t dtype)
{
    return by_dtype_bytes((unsigned)dtype);
}

const char *banyan_op_name(banyan_op_t op)
{
    return by_op_name((unsigned)op);
}

const char *banyan_dtype_name(banyan_dtype_t dtype)
{
    return by_dtype_name((unsigned)dtype);
}

const char *banyan_mode_name(banyan_mode_t mode)
{
    return by_mode_name((unsigned)mode);
}

void by_append(char *text, size_t bytes, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text + used, bytes - used, format, arguments);
    va_end(arguments);
}
