/*
 * A client of etcd 3, through the JSON gateway that each member serves at its client address
 * (/v3/kv/..., /v3/lease/...). A request goes to the member that answered last, and after a failure
 * to the others in turn. Neighbours: lead.c elects the leader, state_etcd.c keeps the state. A
 * client belongs to one thread at a time.
 */
#ifndef BY_SERVICE_DAEMON_ETCD_H
#define BY_SERVICE_DAEMON_ETCD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* Maximum number of members in an address list (count), and length of the whole list. */
#define BY_ETCD_MEMBERS_MAX 9u
#define BY_ETCD_TEXT_MAX    480u
/* Timeout of short requests (milliseconds): less than the time that the leadership lasts without
 * renewal, so that a silent member does not cost it. */
#define BY_ETCD_ASK_MS 1500u

struct by_etcd;

/*
 * Opens a client for "etcd:URL,URL...[/NAME]", where a URL is http://HOST:PORT or
 * https://HOST:PORT. All keys begin with /banyan/NAME/ (NAME: default), so that several fabrics can
 * share one etcd. `keys` is a folder with ca.pem, cert.pem and key.pem for https, or NULL. Connects
 * to nothing yet. Returns 0, or BY_EINVAL with `problem`.
 */
int by_etcd_open(const char *text, const char *keys, struct by_etcd **etcd, struct by_problem *problem);
void by_etcd_close(struct by_etcd *etcd);
/* Whether another machine is addressed over http, where others may read what is stored. */
bool by_etcd_is_exposed(const struct by_etcd *etcd);

/*
 * Sends a request (whose reference it takes) to `path`, such as "/v3/kv/txn". Waits at most
 * `timeout_ms` for all members together. Returns 0 and *reply, a reference of the caller;
 * BY_EMISMATCH when members belong to different clusters; BY_EIO when no member answers (then a
 * write may have taken effect or not), or the error that etcd answered, as text.
 */
int by_etcd_ask(struct by_etcd *etcd, const char *path, json_t *request, uint32_t timeout_ms, json_t **reply,
                struct by_problem *problem);
/* Asks every member, ignoring those that do not answer. Returns 0, BY_EMISMATCH when they belong to
 * different clusters, or BY_EIO when none answers. */
int by_etcd_survey(struct by_etcd *etcd, struct by_problem *problem);

/* Requests and replies: a key of this client; bytes as JSON (base64) and back (the caller frees
 * them; NULL: there are none); a number, which etcd writes as text, 0 if it is absent. */
json_t *by_etcd_key(const struct by_etcd *etcd, const char *name);
json_t *by_etcd_bytes(const void *bytes, size_t size);
uint8_t *by_etcd_take_bytes(const json_t *text, size_t *size);
int64_t by_etcd_number(const json_t *object, const char *name);
/* Reads a key: *entry is its KeyValue, a reference of the caller, or NULL if it does not exist. */
int by_etcd_get(struct by_etcd *etcd, const char *name, json_t **entry, struct by_problem *problem);

#endif
