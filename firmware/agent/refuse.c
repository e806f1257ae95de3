/* The texts of refusals that do not belong to a request handler; see refuse.h. Pure; any thread. */
#include "firmware/agent/refuse.h"

#include <pb_encode.h>

#include "firmware/agent/agent.h"
#include "offload/base/errors.h"
#include "proto/control.pb.h"

/* Encodes field by field, because a whole Response is too large for a small stack. */
size_t by_refuse(int error, const char *text, uint8_t *out, size_t capacity)
{
    pb_ostream_t stream = pb_ostream_from_buffer(out, capacity);
    size_t bytes = 0;

    while (text[bytes])
        bytes++;
    if (!pb_encode_tag(&stream, PB_WT_VARINT, by_Response_version_tag) ||
        !pb_encode_varint(&stream, BY_CONTROL_VERSION) ||
        !pb_encode_tag(&stream, PB_WT_VARINT, by_Response_error_tag) || !pb_encode_svarint(&stream, error) ||
        !pb_encode_tag(&stream, PB_WT_STRING, by_Response_text_tag) ||
        !pb_encode_string(&stream, (const pb_byte_t *)text, bytes))
        return 0;
    return stream.bytes_written;
}

size_t by_refuse_length(uint32_t length, uint8_t *out, size_t capacity)
{
    char buffer[128];
    struct by_text text;

    by_text_start(&text, buffer, sizeof buffer);
    by_text_add(&text, "frame: a length of ");
    by_text_number(&text, length);
    by_text_add(&text, " bytes; a request has 1 to ");
    by_text_number(&text, BY_REQUEST_BYTES_MAX);
    by_text_add(&text, ": connect again");
    return by_refuse(BY_ELIMIT, buffer, out, capacity);
}

size_t by_refuse_rate(uint8_t *out, size_t capacity)
{
    char buffer[160];
    struct by_text text;

    by_text_start(&text, buffer, sizeof buffer);
    by_text_add(&text, "request: this client sends more than ");
    by_text_number(&text, BY_CHANNEL_REQUESTS_BURST);
    by_text_add(&text, " at once and ");
    by_text_number(&text, BY_CHANNEL_REQUESTS_PER_S);
    by_text_add(&text, " a second: the switch serves packets first; send fewer");
    return by_refuse(BY_EAGAIN, buffer, out, capacity);
}

void by_refuse_image(struct by_text *text, int error, const struct by_image_fault *fault)
{
    by_text_add(text, "validate: ");
    if (fault->section) {
        by_text_add(text, fault->section);
        by_text_add(text, " ");
        by_text_number(text, fault->index);
        by_text_add(text, ": ");
    }
    by_text_add(text, fault->what ? fault->what : by_error_text(error));
    if (fault->what) {
        by_text_add(text, " (");
        by_text_number(text, fault->value);
        by_text_add(text, ")");
    }
    by_text_add(text, "; the active table is unchanged: correct the image and push it again");
}
