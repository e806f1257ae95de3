/* The sentences of refusals that are not a request handler's own; see refuse.h. Pure; any thread. */
#include "firmware/agent/refuse.h"

#include <pb_encode.h>

#include "firmware/agent/agent.h"
#include "offload/base/errors.h"
#include "proto/control.pb.h"

size_t by_refuse_length(uint32_t length, uint8_t *out, size_t capacity)
{
    /* Encoded field by field: a whole Response is too large for a small stack. */
    pb_ostream_t stream = pb_ostream_from_buffer(out, capacity);
    char buffer[128];
    struct by_text text;

    by_text_start(&text, buffer, sizeof buffer);
    by_text_add(&text, "frame: a length of ");
    by_text_number(&text, length);
    by_text_add(&text, " bytes; a request has 1 to ");
    by_text_number(&text, BY_REQUEST_BYTES_MAX);
    by_text_add(&text, ": connect again");
    if (!pb_encode_tag(&stream, PB_WT_VARINT, by_Response_version_tag) ||
        !pb_encode_varint(&stream, BY_CONTROL_VERSION) ||
        !pb_encode_tag(&stream, PB_WT_VARINT, by_Response_error_tag) ||
        !pb_encode_svarint(&stream, BY_ELIMIT) ||
        !pb_encode_tag(&stream, PB_WT_STRING, by_Response_text_tag) ||
        !pb_encode_string(&stream, (const pb_byte_t *)buffer, text.used))
        return 0;
    return stream.bytes_written;
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
