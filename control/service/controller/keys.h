/*
 * Keys for a lab: an authority of one's own, and certificates by it for switches, controllers and
 * hosts, in the folders that control channels read (firmware/secure/tls.h). Elliptic curve P-256,
 * by OpenSSL 3. Single-threaded.
 */
#ifndef BY_SERVICE_CONTROLLER_KEYS_H
#define BY_SERVICE_CONTROLLER_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* Days that certificates may last (count). */
#define BY_KEYS_DAYS_MAX 3650u

enum by_keys_role { BY_KEYS_SWITCH = 1, BY_KEYS_CONTROLLER, BY_KEYS_HOST };

struct by_authority;

/*
 * Opens the authority of `folder` (ca.pem and ca.key); where it has none, makes the folder and a
 * new one. 0; BY_EIO (a file), BY_EFORMAT (one of the two is missing or not what it should be) with
 * `problem`. `*made`: it is new.
 */
int by_authority_open(const char *folder, uint32_t days, struct by_authority **authority, bool *made,
                      struct by_problem *problem);
void by_authority_close(struct by_authority *authority);

/*
 * Makes folder/NAME/{ca.pem,cert.pem,key.pem}: of a controller, or of the switch or host of that
 * name (1 to BY_NAME_MAX letters, digits, '.', '-' and '_'). BY_EEXIST when they are there, unless
 * `renew`; BY_EINVAL (the name), BY_EIO. Files appear whole or not at all; keys are readable by
 * their owner alone.
 */
int by_authority_issue(struct by_authority *authority, const char *name, enum by_keys_role role,
                       uint32_t days, bool renew, struct by_problem *problem);

#endif
