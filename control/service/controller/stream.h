/*
 * A stream of control messages to one switch: a UNIX socket or TCP, in the clear, over TLS
 * (firmware/secure/tls.h) or with a pre-shared key (firmware/secure/psk.h). It sends and receives
 * whole messages with their length fields; every wait has a deadline. Neighbours: message.c encodes
 * the messages, session.c makes the calls. A stream belongs to one thread.
 */
#ifndef BY_SERVICE_CONTROLLER_STREAM_H
#define BY_SERVICE_CONTROLLER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"
#include "control/service/controller/session.h"

struct by_stream;

/* See by_session_open. */
int by_stream_open(const char *address, const struct by_session_options *options, struct by_stream **stream,
                   struct by_problem *problem);
void by_stream_close(struct by_stream *stream);
int by_stream_fd(const struct by_stream *stream);
const char *by_stream_address(const struct by_stream *stream);
/* Returns the name in the switch's certificate; NULL without TLS. */
const char *by_stream_peer(const struct by_stream *stream);
/* Whether other machines on the path could read the messages, which leave this one unencrypted. */
bool by_stream_is_exposed(const struct by_stream *stream);
/* Changes the timeout and stop_fd of the following calls. */
void by_stream_limit(struct by_stream *stream, uint32_t timeout_ms, int stop_fd);
/* Returns the deadline of a call that begins now (milliseconds of the monotonic clock). */
int64_t by_stream_deadline(const struct by_stream *stream);
/* Returns a deadline with which by_stream_receive does not wait. */
int64_t by_stream_deadline_now(void);

/* Returns the buffer for the next message with its length field: BY_MESSAGE_LENGTH_BYTES +
 * BY_MESSAGE_BYTES_MAX. */
uint8_t *by_stream_room(struct by_stream *stream);
/* Sends the message in that buffer, of `bytes` bytes with its length field. */
int by_stream_send(struct by_stream *stream, size_t bytes, int64_t deadline, struct by_problem *problem);
/* Receives the next message with its length field. It is valid until the next call. */
int by_stream_receive(struct by_stream *stream, int64_t deadline, const uint8_t **message, size_t *bytes,
                      struct by_problem *problem);

#endif
