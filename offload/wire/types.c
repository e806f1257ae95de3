/* Names and sizes of the protocol's constants. Pure; any thread. */
#include "offload/wire/types.h"

#include <stddef.h>

#define X(name, value, text) [value] = (text),
static const char *const op_name[] = {BY_OP_LIST(X)};
static const char *const mode_name[] = {BY_MODE_LIST(X)};
#undef X
#define X(name, value, text, bytes) [value] = (text),
static const char *const dtype_name[] = {BY_DTYPE_LIST(X)};
#undef X
#define X(name, value, text, bytes) [value] = (bytes),
static const unsigned char dtype_bytes[] = {BY_DTYPE_LIST(X)};
#undef X
#define X(name, value, text, root, shards, reduces, way) [value] = (text),
static const char *const collective_name[] = {BY_COLLECTIVE_LIST(X)};
#undef X
#define X(name, value, text, root, shards, reduces, way) [value] = {root, shards, reduces, way},
static const struct {
    unsigned char rooted, sharded, reduces, way;
} collective_row[BY_COLLECTIVE_COUNT] = {BY_COLLECTIVE_LIST(X)};
#undef X

static const char *name_at(const char *const *names, unsigned count, unsigned value)
{
    return value > 0 && value < count ? names[value] : "?";
}

static unsigned value_of(const char *const *names, unsigned count, const char *name)
{
    for (unsigned v = 1; v < count; v++) {
        const char *a = names[v];
        const char *b = name;

        while (*a != 0 && *a == *b) {
            a++;
            b++;
        }
        if (*a == *b)
            return v;
    }
    return 0;
}

unsigned by_dtype_bytes(unsigned dtype)
{
    return dtype < BY_DTYPE_COUNT ? dtype_bytes[dtype] : 0;
}

const char *by_op_name(unsigned op)
{
    return name_at(op_name, BY_OP_COUNT, op);
}

const char *by_dtype_name(unsigned dtype)
{
    return name_at(dtype_name, BY_DTYPE_COUNT, dtype);
}

const char *by_collective_name(unsigned collective)
{
    return name_at(collective_name, BY_COLLECTIVE_COUNT, collective);
}

int by_collective_is_rooted(unsigned collective)
{
    return collective < BY_COLLECTIVE_COUNT && collective_row[collective].rooted;
}

int by_collective_is_sharded(unsigned collective)
{
    return collective < BY_COLLECTIVE_COUNT && collective_row[collective].sharded;
}

int by_collective_reduces(unsigned collective)
{
    return collective < BY_COLLECTIVE_COUNT && collective_row[collective].reduces;
}

unsigned by_collective_way(unsigned collective)
{
    return collective < BY_COLLECTIVE_COUNT ? collective_row[collective].way : 0;
}

const char *by_mode_name(unsigned mode)
{
    return name_at(mode_name, BY_MODE_COUNT, mode);
}

unsigned by_op_from_name(const char *name)
{
    return value_of(op_name, BY_OP_COUNT, name);
}

unsigned by_dtype_from_name(const char *name)
{
    return value_of(dtype_name, BY_DTYPE_COUNT, name);
}

unsigned by_collective_from_name(const char *name)
{
    return value_of(collective_name, BY_COLLECTIVE_COUNT, name);
}

unsigned by_mode_from_name(const char *name)
{
    return value_of(mode_name, BY_MODE_COUNT, name);
}
