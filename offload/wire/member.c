/*
 * Frames between hosts and the controller; see member.h. The row of a type in the list defines
 * which side sends it, how many bytes of fields it has, and how much data. Pure; any thread.
 */
#include "offload/wire/member.h"

#include "offload/base/assert.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

enum { AT_VERSION = 4, AT_TYPE = 5, AT_JOB = 6, AT_RANK = 8, AT_GEN = 10, LENGTH_BYTES = 4 };

struct member_shape {
    const char *name;
    uint8_t type, side, fields;
    uint32_t least, most;
};

#define X(name, value, side, fields, least, most) {#name, value, BY_MEMBER_##side, fields, least, most},
static const struct member_shape shapes[] = {BY_MEMBER_LIST(X)};
#undef X

#define X(name, value, side, fields, least, most)                                                            \
    BY_STATIC_ASSERT(BY_MEMBER_HEAD_BYTES + (fields) <= BY_MEMBER_FIXED_MAX, "fields of " #name);
BY_MEMBER_LIST(X)
#undef X

static const struct member_shape *shape_of(unsigned type)
{
    for (unsigned i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (shapes[i].type == type)
            return &shapes[i];
    return NULL;
}

const char *by_member_name(unsigned type)
{
    const struct member_shape *shape = shape_of(type);

    return shape != NULL ? shape->name : "?";
}

size_t by_member_put(const struct by_member_frame *frame, uint8_t fixed[BY_MEMBER_FIXED_MAX])
{
    const struct member_shape *shape = shape_of(frame->type);
    uint8_t *at = fixed + BY_MEMBER_HEAD_BYTES;

    BY_ASSERT(shape != NULL && frame->bytes >= shape->least && frame->bytes <= shape->most);
    by_put32(fixed, BY_MEMBER_HEAD_BYTES - LENGTH_BYTES + shape->fields + frame->bytes);
    fixed[AT_VERSION] = BY_MEMBER_VERSION;
    fixed[AT_TYPE] = frame->type;
    by_put16(fixed + AT_JOB, frame->job);
    by_put16(fixed + AT_RANK, frame->rank);
    by_put16(fixed + AT_GEN, frame->gen);
    switch (frame->type) {
    case BY_MEMBER_HELLO:
    case BY_MEMBER_ALIVE:
    case BY_MEMBER_MEASURED:
    case BY_MEMBER_GROUP:
        by_put64(at, frame->number);
        break;
    case BY_MEMBER_SUSPECT:
        by_put16(at, frame->peer);
        by_put32(at + 2, (uint32_t)frame->code);
        break;
    case BY_MEMBER_SAY:
    case BY_MEMBER_HEARD:
        by_put16(at, frame->peer);
        break;
    case BY_MEMBER_FAIL:
        by_put32(at, (uint32_t)frame->code);
        break;
    case BY_MEMBER_STANDBY:
        BY_ASSERT(frame->mask_bytes <= BY_MEMBER_MASK_MAX && frame->mask_bytes <= frame->bytes);
        by_put16(at, frame->base);
        by_put16(at + 2, frame->mask_bytes);
        break;
    default:
        break;
    }
    return BY_MEMBER_HEAD_BYTES + shape->fields;
}

static void get_fields(const uint8_t *at, struct by_member_frame *frame)
{
    switch (frame->type) {
    case BY_MEMBER_HELLO:
    case BY_MEMBER_ALIVE:
    case BY_MEMBER_MEASURED:
    case BY_MEMBER_GROUP:
        frame->number = by_get64(at);
        break;
    case BY_MEMBER_SUSPECT:
        frame->peer = by_get16(at);
        frame->code = (int32_t)by_get32(at + 2);
        break;
    case BY_MEMBER_SAY:
    case BY_MEMBER_HEARD:
        frame->peer = by_get16(at);
        break;
    case BY_MEMBER_FAIL:
        frame->code = (int32_t)by_get32(at);
        break;
    case BY_MEMBER_STANDBY:
        frame->base = by_get16(at);
        frame->mask_bytes = by_get16(at + 2);
        break;
    default:
        break;
    }
}

int by_member_get(const uint8_t *bytes, size_t size, enum by_member_side side, struct by_member_frame *frame,
                  size_t *used)
{
    const struct member_shape *shape;
    uint32_t length, fields;

    *used = BY_MEMBER_HEAD_BYTES;
    /* A peer with another protocol version is detected from the first bytes, even if no more
     * follow. */
    if (size > AT_VERSION && bytes[AT_VERSION] != BY_MEMBER_VERSION)
        return BY_EVERSION;
    if (size < BY_MEMBER_HEAD_BYTES)
        return BY_EAGAIN;
    shape = shape_of(bytes[AT_TYPE]);
    if (shape == NULL || shape->side != side)
        return BY_EFORMAT;
    length = by_get32(bytes);
    fields = BY_MEMBER_HEAD_BYTES - LENGTH_BYTES + shape->fields;
    if (length < fields + shape->least)
        return BY_EFORMAT;
    if (length > fields + shape->most) {
        *used = LENGTH_BYTES + fields + (size_t)shape->most;
        return BY_ELIMIT;
    }
    *used = LENGTH_BYTES + (size_t)length;
    if (size < *used)
        return BY_EAGAIN;
    by_zero(frame, sizeof(*frame));
    frame->type = bytes[AT_TYPE];
    frame->job = by_get16(bytes + AT_JOB);
    frame->rank = by_get16(bytes + AT_RANK);
    frame->gen = by_get16(bytes + AT_GEN);
    get_fields(bytes + BY_MEMBER_HEAD_BYTES, frame);
    frame->bytes = length - fields;
    frame->data = bytes + LENGTH_BYTES + fields;
    if (frame->mask_bytes > BY_MEMBER_MASK_MAX || frame->mask_bytes > frame->bytes)
        return BY_EFORMAT;
    return 0;
}
