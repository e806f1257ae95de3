/*
 * The controller's end of the control channel, without input or output: requests to bytes, bytes to
 * responses (firmware/agent/control.proto). Neighbours: session.c moves the bytes. Pure; any
 * thread.
 */
#ifndef BY_SERVICE_CONTROLLER_MESSAGE_H
#define BY_SERVICE_CONTROLLER_MESSAGE_H

#include <stddef.h>
#include <stdint.h>

#include "proto/control.pb.h"

/* Length in front of each message (bytes). */
#define BY_MESSAGE_LENGTH_BYTES 4u
/* Longest message that either side sends, without its length (bytes): a chunk of 16 KiB, or the
 * longest list.
 */
#define BY_MESSAGE_BYTES_MAX (by_Response_size > by_Request_size ? by_Response_size : by_Request_size)
#define BY_MESSAGE_VERSION   1u

/* Writes a request with its length in front. Returns the bytes, or 0 when `capacity` is too small.
 */
size_t by_message_encode(const by_Request *request, uint8_t *bytes, size_t capacity);
/*
 * Reads one response from the start of a stream. 0 and `*used` bytes consumed; BY_EAGAIN while it
 * is incomplete; BY_EFORMAT when it is not a response, or longer than any can be; BY_EVERSION when
 * it speaks another version. Its texts are printable ASCII, whatever was sent.
 */
int by_message_decode(const uint8_t *bytes, size_t size, by_Response *response, size_t *used);

#endif
