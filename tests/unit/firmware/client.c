/* Implements client.h: requests and responses for tests. */
#include "tests/unit/firmware/client.h"

#include <pb_decode.h>
#include <pb_encode.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"

size_t client_frame(const by_Request *request, uint8_t *frame)
{
    pb_ostream_t stream = pb_ostream_from_buffer(frame + BY_CONTROL_LENGTH_BYTES, BY_REQUEST_BYTES_MAX);

    if (!pb_encode(&stream, by_Request_fields, request))
        abort();
    by_put32(frame, (uint32_t)stream.bytes_written);
    return BY_CONTROL_LENGTH_BYTES + stream.bytes_written;
}

void client_decode(const uint8_t *frame, size_t bytes, by_Response *response)
{
    pb_istream_t stream =
        pb_istream_from_buffer(frame + BY_CONTROL_LENGTH_BYTES, bytes - BY_CONTROL_LENGTH_BYTES);

    if (bytes < BY_CONTROL_LENGTH_BYTES || by_get32(frame) != bytes - BY_CONTROL_LENGTH_BYTES)
        abort();
    if (!pb_decode(&stream, by_Response_fields, response))
        abort();
}

void client_request(by_Request *request, pb_size_t which)
{
    static uint64_t id;

    memset(request, 0, sizeof *request);
    request->version = BY_CONTROL_VERSION;
    request->id = ++id;
    request->which_body = which;
}

void client_stage(by_Request *request, const uint8_t *image, size_t bytes, uint32_t offset, uint32_t count)
{
    by_Stage *stage = &request->body.stage;

    client_request(request, by_Request_stage_tag);
    stage->total = (uint32_t)bytes;
    stage->offset = offset;
    stage->data.size = (pb_size_t)count;
    memcpy(stage->data.bytes, image + offset, count);
}
