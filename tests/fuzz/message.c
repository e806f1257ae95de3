/* Answers of arbitrary bytes from a switch, in pieces of any size: the controller accepts them,
 * waits for more, or refuses them, and never reads beyond the received bytes. */
#include "control/service/controller/message.h"
#include "offload/base/errors.h"
#include "tests/fuzz/input.h"

static void decode(const uint8_t *data, size_t size)
{
    static by_Response response;
    size_t used = 0;
    uint8_t *copy = malloc(size > 0 ? size : 1); /* exact size, so that reads beyond it are detected */
    int error;

    fuzz_count(1);
    FUZZ_CHECK(copy != NULL);
    if (size > 0)
        memcpy(copy, data, size);
    error = by_message_decode(copy, size, &response, &used);
    FUZZ_CHECK(error == 0 || error == BY_EAGAIN || error == BY_EFORMAT || error == BY_EVERSION);
    if (error == 0)
        FUZZ_CHECK(used >= BY_MESSAGE_LENGTH_BYTES && used <= size && response.version == BY_MESSAGE_VERSION);
    free(copy);
}

/* Tests the bytes as a stream, then after a matching length, which a fuzzer would not find. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t framed[BY_MESSAGE_LENGTH_BYTES + 4096];
    size_t bytes = size < 4096 ? size : 4096;

    for (size_t piece = size; piece > 0; piece /= 2)
        decode(data, piece);
    decode(data, 0);
    framed[0] = framed[1] = 0;
    framed[2] = (uint8_t)(bytes >> 8);
    framed[3] = (uint8_t)bytes;
    memcpy(framed + BY_MESSAGE_LENGTH_BYTES, data, bytes);
    decode(framed, BY_MESSAGE_LENGTH_BYTES + bytes);
    return 0;
}
