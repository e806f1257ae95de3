/*
 * A controller's connection to one switch: blocking calls, each with a deadline, over a UNIX socket
 * or TCP, in the clear or with a pre-shared key, or over TLS. Every error text names the address of
 * the switch and the remedy. A session belongs to one thread.
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
    uint32_t timeout_ms;  /* of each call, including the opening */
    uint64_t election_id; /* sent with each request that writes */
    uint64_t push_id;     /* names the push that images are validated for; 0: the election id */
    uint32_t at_once;     /* of a push: switches contacted at a time; 0: the default of push.h */
    int stop_fd;          /* calls return BY_EABORTED when it is readable; 0: none */
    uint8_t notify;       /* requests for counters request notices, too */
    uint8_t plain_keys;   /* allow images with keys of jobs on plain tcp: */
    const char *keys; /* for tls: the folder of the controller's keys (firmware/secure/tls.h), else NULL */
    const char *psk;  /* for psk+: the file of the pre-shared key (psk_file.h), else NULL */
};
/* Rows for --keys and --psk (offload/linux/options.h). AT is the table's BY_OPTION_AT. */
#define BY_SESSION_ROWS(access)                                                                              \
    {BY_ROW_TEXT(0, "keys", "DIR", AT(access.keys),                                                          \
                 "read the keys for tls: from DIR, made by `banyan keys` (default BANYAN_KEYS)")},           \
    {                                                                                                        \
        BY_ROW_TEXT(0, "psk", "FILE", AT(access.psk),                                                        \
                    "read the key for psk+ addresses from FILE, made by `banyan keys --psk` (default "       \
                    "BANYAN_PSK)")                                                                           \
    }

/* Sets options that are NULL from the environment (BANYAN_KEYS, BANYAN_PSK). */
void by_session_access_complete(struct by_session_options *access);
/* Whether a text begins with the scheme of an address. All other texts are paths. */
bool by_session_is_address(const char *text);

/*
 * Connects to "unix:PATH", "tcp:HOST:PORT" or "tls:HOST:PORT". The prefix "psk+" selects a
 * pre-shared key, for the first two. Returns BY_EINVAL (the address, or missing or wrong keys),
 * BY_EPERM (authentication failed at either end), BY_EAGAIN (no program listens there now), BY_EIO
 * or BY_ETIMEDOUT with `problem`.
 */
int by_session_open(const char *address, const struct by_session_options *options,
                    struct by_session **session, struct by_problem *problem);
void by_session_close(struct by_session *session);
/* Changes the timeout and stop_fd of the following calls. */
void by_session_limit(struct by_session *session, uint32_t timeout_ms, int stop_fd);
/* Returns its socket, so that callers can poll for the end of the connection. */
int by_session_fd(const struct by_session *session);
/* Whether the last call failed because the switch answered with an error. The switch is then alive
 * and the session still usable. */
bool by_session_refused(const struct by_session *session);
/* Whether the last call timed out or was stopped while it waited for its answer. The session is
 * still usable: later calls discard that answer. */
bool by_session_is_late(const struct by_session *session);
/* Returns the election id of a later controller because of which the switch refused the last call;
 * else 0. */
uint64_t by_session_leader(const struct by_session *session);
const char *by_session_address(const struct by_session *session);
/* Returns the bytes of requests so far, without those of TLS or tags. */
uint64_t by_session_sent(const struct by_session *session);

/*
 * The calls of control.proto. Each returns 0; or BY_EIO, BY_ETIMEDOUT or BY_EFORMAT, after which
 * the channel is unusable unless by_session_is_late; or the error that the switch answered, with
 * its text in `problem`, such as BY_EAGAIN when its rate limit is exceeded. by_session_refused
 * distinguishes the two.
 */
/* Over TLS, a name in the answer that differs from the certificate's is BY_EPERM. */
int by_session_hello(struct by_session *session, by_HelloReply *reply, struct by_problem *problem);
/* An image that a switch is to validate. */
struct by_session_load {
    const uint8_t *base; /* the image that is active, over which only the difference is sent; or NULL */
    size_t base_bytes;
    const uint8_t *image;
    size_t bytes;
    uint64_t hash; /* of `image`; 0: it is only staged */
};
/*
 * Sends Hello, unless `hello` is NULL, and the image, and has it validated for the push of the
 * options, without waiting for the answers in between. Returns the error of the first request that
 * failed; hello->name is empty if that was Hello. BY_ESTATE: another image than `base`
 * is active, or none; see hello->table_hash. BY_EPERM: as by_session_stage.
 */
int by_session_load(struct by_session *session, const struct by_session_load *load, by_HelloReply *hello,
                    struct by_problem *problem);
/* Sends an image in chunks. It becomes active with by_session_validate and by_session_commit.
 * Returns BY_EPERM if it contains keys and the connection is not encrypted. */
int by_session_stage(struct by_session *session, const uint8_t *image, size_t bytes,
                     struct by_problem *problem);
/* The same when `base` is the active image: sends only the difference. Returns BY_ESTATE when
 * another image is active. */
int by_session_stage_over(struct by_session *session, const uint8_t *base, size_t base_bytes,
                          const uint8_t *image, size_t bytes, struct by_problem *problem);
/* Stages the table of that hash, which the switch saved before it restarted (Hello reports the
 * hash). */
int by_session_restore(struct by_session *session, uint64_t hash, struct by_problem *problem);
/* Validates for the push of the options. */
int by_session_validate(struct by_session *session, uint64_t hash, struct by_problem *problem);
int by_session_commit(struct by_session *session, uint64_t hash, struct by_problem *problem);
int by_session_abort(struct by_session *session, struct by_problem *problem);
/* Reads the active image and checks its hash. The caller frees *image. Returns BY_ENOENT when no
 * image is active. */
int by_session_read(struct by_session *session, uint8_t **image, size_t *bytes, struct by_problem *problem);
int by_session_counters(struct by_session *session, by_CountersReply *reply, struct by_problem *problem);
/* Reads a notice that has arrived, or one that came with an answer, without waiting: the counters
 * after a port has lost its carrier or has it again. A switch sends them once counters were
 * requested with `notify`. Returns BY_EAGAIN if there is none. Notices that precede an answer of
 * by_session_counters are discarded, because that answer is newer. */
int by_session_notice(struct by_session *session, by_CountersReply *reply, struct by_problem *problem);
int by_session_waiting(struct by_session *session, by_WaitingReply *reply, struct by_problem *problem);
/* Reads what the ports are and what is at the other ends of their cables, from port `from` on:
 * as many as one answer holds. With `announce` each port first sends an LLDP frame. */
int by_session_interfaces(struct by_session *session, uint32_t from, bool announce, by_InterfacesReply *reply,
                          struct by_problem *problem);
/* Reads how ports move packets, from port `from` on. BY_EUNSUPPORTED: an older or bare-metal
 * switch. */
int by_session_ports(struct by_session *session, uint32_t from, by_PortsReply *reply,
                     struct by_problem *problem);
/* Reads the event log of the switch, from event number `from` on: as much as one answer holds. */
int by_session_log(struct by_session *session, uint64_t from, by_LogReply *reply, struct by_problem *problem);

#endif
