/*
 * Which of several banyands leads: the one that owns the key `leader` in etcd. The key is bound to
 * a lease, which the leader renews; when it has not for LEASE_S seconds, etcd removes the key, and
 * another banyand creates it. The key's create revision names a term of leadership. Every write of
 * the state is a transaction on condition of that revision (by_lead_guard), so that a former leader
 * cannot write, however late. Neighbours: daemon.c waits for the leadership, state_etcd.c writes.
 */
#ifndef BY_SERVICE_DAEMON_LEAD_H
#define BY_SERVICE_DAEMON_LEAD_H

#include "control/service/daemon/etcd.h"

struct by_lead;
typedef int by_lead_seen(void *context, const char *leader, const char *text, struct by_problem *problem);

/* Opens the clients. Returns 0, or BY_EINVAL with `problem`. */
int by_lead_open(const char *store, const char *keys, struct by_lead **lead, struct by_problem *problem);
/*
 * Waits until this process leads; `signals` is a signalfd. Logs the present leader meanwhile, and
 * passes each look to `see` (unless that is NULL): the leader, or NULL if etcd did not tell, and
 * the line of the log. From then on a thread renews the lease. Returns 0, BY_EABORTED after a
 * signal (not read), or with `problem` BY_EMISMATCH, or the error of `see`.
 */
int by_lead_wait(struct by_lead *lead, int signals, by_lead_seen *see, void *context,
                 struct by_problem *problem);
/* Returns a descriptor that becomes readable when the leadership is lost, and why it was. */
int by_lead_fd(const struct by_lead *lead);
const char *by_lead_text(const struct by_lead *lead);
/* Gives up the leadership, so that another leads at once, and frees everything. NULL is allowed. */
void by_lead_close(struct by_lead *lead);

/* For the state, on one thread at a time: its client; the condition of a transaction (a new
 * reference); the term, unique among all leaders; and reports that a condition did not hold. */
struct by_etcd *by_lead_etcd(struct by_lead *lead);
json_t *by_lead_guard(const struct by_lead *lead);
int64_t by_lead_term(const struct by_lead *lead);
void by_lead_lose(struct by_lead *lead, const char *why);
/* Reads from a majority of etcd whether this process leads at this moment. Returns 0 if so,
 * BY_EPERM if not, or BY_EIO without an answer within 30 ms. */
int by_lead_confirm(struct by_lead *lead, struct by_problem *problem);

#endif
