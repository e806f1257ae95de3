/* Frames between hosts and the controller, of arbitrary bytes: parsing stays inside them, and
 * encoding reproduces what was decoded. */
#include "offload/wire/member.h"
#include "offload/base/errors.h"
#include "tests/fuzz/input.h"

static void check(const uint8_t *data, size_t size, enum by_member_side side)
{
    struct by_member_frame frame;
    size_t at = 0, used;
    int error;

    while ((error = by_member_get(data + at, size - at, side, &frame, &used)) == 0) {
        uint8_t again[BY_MEMBER_FIXED_MAX];
        size_t fixed = by_member_put(&frame, again);

        fuzz_count(1);
        FUZZ_CHECK(used == fixed + frame.bytes && used <= size - at);
        FUZZ_CHECK(frame.data == data + at + fixed && memcmp(again, data + at, fixed) == 0);
        at += used;
    }
    FUZZ_CHECK(error != BY_EAGAIN || used > size - at);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_count(1);
    check(data, size, BY_MEMBER_HOST);
    check(data, size, BY_MEMBER_CONTROLLER);
    return 0;
}
