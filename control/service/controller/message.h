/*
 * The controller's end of the control channel, without I/O: encodes requests and decodes responses
 * (firmware/agent/control.proto). Neighbours: session.c and stream.c transfer the bytes. Pure; any
 * thread.
 */
#ifndef BY_SERVICE_CONTROLLER_MESSAGE_H
#define BY_SERVICE_CONTROLLER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb.h"

/* Length field before each message (bytes). */
#define BY_MESSAGE_LENGTH_BYTES 4u
/* Size of the longest message of either side, without its length field (bytes): a chunk of 16 KiB,
 * or the longest list. */
#define BY_MESSAGE_BYTES_MAX (by_Response_size > by_Request_size ? by_Response_size : by_Request_size)
#define BY_MESSAGE_VERSION   1u

/* Writes a request with its length field. Returns the bytes, or 0 when `capacity` is too small. */
size_t by_message_encode(const by_Request *request, uint8_t *bytes, size_t capacity);
/*
 * Decodes one response from the start of a stream. Returns 0 and `*used` bytes consumed; BY_EAGAIN
 * while it is incomplete; BY_EFORMAT when it is malformed or too long; BY_EVERSION for another
 * version of the protocol. Bytes of its texts that are not printable ASCII become '?'.
 */
int by_message_decode(const uint8_t *bytes, size_t size, by_Response *response, size_t *used);

#endif
