/*
 * A stream of control messages to one switch: a UNIX socket or TCP, plain, over TLS
 * (firmware/secure/tls.h) or under a pre-shared key (firmware/secure/psk.h). Whole messages with
 * their length in front go out and come in; every wait has a deadline. Neighbours: message.c codes
 * the messages, session.c asks and answers. A stream belongs to one thread.
 */
#ifndef BY_SERVICE_CONTROLLER_STREAM_H
#define BY_SERVICE_CONTROLLER_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"
#include "control/service/controller/session.h"

struct by_stream;

/* As by_session_open. */
int by_stream_open(const char *address, const struct by_session_options *options, struct by_stream **stream,
                   struct by_problem *problem);
void by_stream_close(struct by_stream *stream);
int by_stream_fd(const struct by_stream *stream);
const char *by_stream_address(const struct by_stream *stream);
/* The name in the switch's certificate; NULL without TLS. */
const char *by_stream_peer(const struct by_stream *stream);
/* Whether others on the way could read what is sent: nothing is encrypted, and it leaves the
 * machine. */
bool by_stream_is_exposed(const struct by_stream *stream);
/* When a call that begins now is given up (milliseconds of the monotonic clock). */
int64_t by_stream_deadline(const struct by_stream *stream);

/* Where the next message is written, its length in front: BY_MESSAGE_LENGTH_BYTES +
 * BY_MESSAGE_BYTES_MAX. */
uint8_t *by_stream_room(struct by_stream *stream);
/* Sends what was written there, `bytes` with the length. */
int by_stream_send(struct by_stream *stream, size_t bytes, int64_t deadline, struct by_problem *problem);
/* The next message, with its length in front, until the next call. */
int by_stream_receive(struct by_stream *stream, int64_t deadline, const uint8_t **message, size_t *bytes,
                      struct by_problem *problem);

#endif
