/*
 * A controller's connection to one switch: blocking calls, each with a deadline, over a UNIX socket
 * or TCP, plain or under a pre-shared key, or over TLS. Every failure has a text that names the
 * switch's address and what to do. A session belongs to one thread.
 */
#ifndef BY_SERVICE_CONTROLLER_SESSION_H
#define BY_SERVICE_CONTROLLER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"
#include "control/service/controller/message.h"

struct by_session;

struct by_session_options {
    uint32_t timeout_ms;  /* of each call, opening included */
    uint64_t election_id; /* goes with each request that writes */
    uint64_t push_id;     /* names the push that images are validated for; 0: the election id does */
    uint32_t at_once;     /* of a push: switches that are spoken with at a time; 0: push.h says */
    uint8_t plain_keys;   /* images with keys of jobs go over plain tcp: as well */
    const char *keys; /* for tls: the folder of the controller's keys (firmware/secure/tls.h), else NULL */
    const char *psk;  /* for psk+: the file of the pre-shared key (psk_file.h), else NULL */
};
/* Rows of --keys and --psk (offload/linux/options.h); AT is the table's BY_OPTION_AT. */
#define BY_SESSION_ROWS(access)                                                                              \
    {BY_ROW_TEXT(0, "keys", "DIR", AT(access.keys),                                                          \
                 "take the keys for tls: from DIR, as `banyan keys` makes them (default BANYAN_KEYS)")},     \
    {                                                                                                        \
        BY_ROW_TEXT(0, "psk", "FILE", AT(access.psk),                                                        \
                    "take the key for psk+ addresses from FILE, as `banyan keys --psk` makes it (default "   \
                    "BANYAN_PSK)")                                                                           \
    }

/* What the environment names (BANYAN_KEYS, BANYAN_PSK) where the options do not. */
void by_session_access_complete(struct by_session_options *access);
/* Whether a text begins as an address does, and not as a path. */
bool by_session_is_address(const char *text);

/*
 * Connects to "unix:PATH", "tcp:HOST:PORT" or "tls:HOST:PORT", or to one of the first two under a
 * pre-shared key, with "psk+" in front. BY_EINVAL (the address, or keys that are missing or wrong),
 * BY_EPERM (the switch and we do not accept each other), BY_EAGAIN (nobody listens there now),
 * BY_EIO, BY_ETIMEDOUT with `problem`.
 */
int by_session_open(const char *address, const struct by_session_options *options,
                    struct by_session **session, struct by_problem *problem);
void by_session_close(struct by_session *session);
/* Its socket, to see when the switch ends it. */
int by_session_fd(const struct by_session *session);
/* Whether the last call failed by the switch's own word: it lives, and the session is as good as
 * before. */
bool by_session_refused(const struct by_session *session);
/* The election id of a later controller, for which the switch refused the last call; else 0. */
uint64_t by_session_leader(const struct by_session *session);
const char *by_session_address(const struct by_session *session);
/* Bytes of requests so far, as they were before TLS or a tag. */
uint64_t by_session_sent(const struct by_session *session);

/*
 * What the calls of control.proto do, one each. 0; BY_EIO, BY_ETIMEDOUT, BY_EFORMAT (the channel is
 * then of no more use); or the error that the switch answered, with its text in `problem`:
 * BY_EAGAIN when it is asked more often than it takes. by_session_refused tells these from the
 * former.
 */
/* Over TLS the name in the answer must be that of the certificate: BY_EPERM. */
int by_session_hello(struct by_session *session, by_HelloReply *reply, struct by_problem *problem);
/* Sends an image in pieces, and has it validated: nothing is active yet. BY_EPERM: it holds keys,
 * which tcp: would show. */
int by_session_stage(struct by_session *session, const uint8_t *image, size_t bytes,
                     struct by_problem *problem);
/* The same, where `base` is the active image: only what differs is sent. BY_ESTATE when another one
 * is active. */
int by_session_stage_over(struct by_session *session, const uint8_t *base, size_t base_bytes,
                          const uint8_t *image, size_t bytes, struct by_problem *problem);
/* Stages the table of the switch's earlier life, of that hash (Hello names it). */
int by_session_restore(struct by_session *session, uint64_t hash, struct by_problem *problem);
/* For the push that the options name. */
int by_session_validate(struct by_session *session, uint64_t hash, struct by_problem *problem);
int by_session_commit(struct by_session *session, uint64_t hash, struct by_problem *problem);
int by_session_abort(struct by_session *session, struct by_problem *problem);
/* Reads the active image back and checks its hash: *image is the caller's to free. BY_ENOENT when
 * none is active. */
int by_session_read(struct by_session *session, uint8_t **image, size_t *bytes, struct by_problem *problem);
int by_session_counters(struct by_session *session, by_CountersReply *reply, struct by_problem *problem);
int by_session_waiting(struct by_session *session, by_WaitingReply *reply, struct by_problem *problem);
/* What the switch remembers, from event number `from` on: as much as one answer holds. */
int by_session_log(struct by_session *session, uint64_t from, by_LogReply *reply, struct by_problem *problem);

#endif
