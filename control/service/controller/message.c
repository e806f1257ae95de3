/* Encoding and decoding of control messages. See message.h. */
#include "control/service/controller/message.h"

#include <pb_decode.h>
#include <pb_encode.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

size_t by_message_encode(const by_Request *request, uint8_t *bytes, size_t capacity)
{
    pb_ostream_t stream;

    if (capacity < BY_MESSAGE_LENGTH_BYTES)
        return 0;
    stream = pb_ostream_from_buffer(bytes + BY_MESSAGE_LENGTH_BYTES, capacity - BY_MESSAGE_LENGTH_BYTES);
    if (!pb_encode(&stream, by_Request_fields, request))
        return 0;
    by_put32(bytes, (uint32_t)stream.bytes_written);
    return stream.bytes_written + BY_MESSAGE_LENGTH_BYTES;
}

static void make_plain(char *text)
{
    for (; *text != 0; text++)
        if (*text < ' ' || *text > '~')
            *text = '?';
}

static void make_interface_plain(by_Interface *interface)
{
    make_plain(interface->name);
    make_plain(interface->driver);
    make_plain(interface->bus);
    make_plain(interface->features);
    make_plain(interface->addresses);
    make_plain(interface->neighbour.node);
    make_plain(interface->neighbour.port);
    make_plain(interface->neighbour.description);
}

/* The texts go to terminals, logs and JSON, and may come from a program that is not a switch. Only
 * printable ASCII remains. */
static void make_texts_plain(by_Response *response)
{
    make_plain(response->text);
    switch (response->which_body) {
    case by_Response_hello_tag:
        make_plain(response->body.hello.name);
        make_plain(response->body.hello.software);
        make_plain(response->body.hello.board);
        break;
    case by_Response_counters_tag:
        for (pb_size_t i = 0; i < response->body.counters.engine_count; i++)
            make_plain(response->body.counters.engine[i].name);
        for (pb_size_t i = 0; i < response->body.counters.ports_count; i++)
            make_plain(response->body.counters.ports[i].name);
        break;
    case by_Response_log_tag:
        for (pb_size_t i = 0; i < response->body.log.events_count; i++)
            make_plain(response->body.log.events[i].text);
        break;
    case by_Response_interfaces_tag:
        for (pb_size_t i = 0; i < response->body.interfaces.interfaces_count; i++)
            make_interface_plain(&response->body.interfaces.interfaces[i]);
        break;
    default:
        break;
    }
}

int by_message_decode(const uint8_t *bytes, size_t size, by_Response *response, size_t *used)
{
    pb_istream_t stream;
    uint32_t length;

    if (size < BY_MESSAGE_LENGTH_BYTES)
        return BY_EAGAIN;
    length = by_get32(bytes);
    if (length > BY_MESSAGE_BYTES_MAX)
        return BY_EFORMAT;
    if (size - BY_MESSAGE_LENGTH_BYTES < length)
        return BY_EAGAIN;
    stream = pb_istream_from_buffer(bytes + BY_MESSAGE_LENGTH_BYTES, length);
    *response = (by_Response)by_Response_init_zero;
    if (!pb_decode(&stream, by_Response_fields, response))
        return BY_EFORMAT;
    if (response->version != BY_MESSAGE_VERSION)
        return BY_EVERSION;
    make_texts_plain(response);
    *used = BY_MESSAGE_LENGTH_BYTES + length;
    return 0;
}
