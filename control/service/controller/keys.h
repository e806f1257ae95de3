/*
 * Keys for a lab: a private certificate authority and its certificates for switches, controllers
 * and hosts, in the folders that control channels read (firmware/secure/tls.h). Elliptic curve
 * P-256, by OpenSSL 3. Single-threaded.
 */
#ifndef BY_SERVICE_CONTROLLER_KEYS_H
#define BY_SERVICE_CONTROLLER_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "control/fabric/topology.h"

/* Maximum validity of a certificate (days). */
#define BY_KEYS_DAYS_MAX 3650u

enum by_keys_role { BY_KEYS_SWITCH = 1, BY_KEYS_CONTROLLER, BY_KEYS_HOST };

struct by_authority;

/*
 * Opens the authority in `folder` (ca.pem and ca.key). If there is none, creates the folder and a
 * new authority, and sets `*made`. Returns 0, BY_EIO (a file) or BY_EFORMAT (one of the two files
 * is missing or malformed) with `problem`.
 */
int by_authority_open(const char *folder, uint32_t days, struct by_authority **authority, bool *made,
                      struct by_problem *problem);
void by_authority_close(struct by_authority *authority);

/*
 * Creates folder/NAME/{ca.pem,cert.pem,key.pem} for a controller, switch or host of that name (1 to
 * BY_NAME_MAX letters, digits, '.', '-' and '_'). Returns BY_EEXIST when the files exist, unless
 * `renew`; BY_EINVAL (the name) or BY_EIO. Each file is written atomically. Keys are readable by
 * their owner only.
 */
int by_authority_issue(struct by_authority *authority, const char *name, enum by_keys_role role,
                       uint32_t days, bool renew, struct by_problem *problem);

#endif
