/* The controller's end of the control channel for tests: encodes requests as frames and decodes
 * responses. Uses no sockets. */
#ifndef BY_TESTS_UNIT_FIRMWARE_CLIENT_H
#define BY_TESTS_UNIT_FIRMWARE_CLIENT_H

#include <stddef.h>
#include <stdint.h>

#include "firmware/agent/agent.h"
#include "proto/control.pb.h"

#define CLIENT_FRAME_MAX (BY_CONTROL_LENGTH_BYTES + BY_REQUEST_BYTES_MAX)

/* Encodes a request preceded by its length. Returns the size of the frame (bytes). */
size_t client_frame(const by_Request *request, uint8_t *frame);
/* Decodes a frame of `bytes`. Aborts if it is invalid. */
void client_decode(const uint8_t *frame, size_t bytes, by_Response *response);
/* Initialize requests, ready to send. `which` is a by_Request_*_tag. */
void client_request(by_Request *request, pb_size_t which);
/* Stages the chunk of an image at `offset`. */
void client_stage(by_Request *request, const uint8_t *image, size_t bytes, uint32_t offset, uint32_t count);

#endif
