/* Keys for tests, in a folder of their own. Single-threaded. */
#ifndef BY_TEST_KEYS_H
#define BY_TEST_KEYS_H

#include <stdint.h>

#include "control/service/controller/keys.h"

/* Bytes of a path that keys_path makes. */
#define KEYS_PATH 128

/* Makes the folder; its name is kept for the functions below. */
void keys_open(void);
void keys_close(void);
/* Keys of NAME by an authority, which is made when it is not there. Of 0 days: they have expired.
 */
void keys_issue(const char *authority, const char *name, enum by_keys_role role, uint32_t days);
/* The folder's name, with `rest` behind it when that is not "": "a/leaf0". */
const char *keys_path(const char *rest, char path[KEYS_PATH]);

#endif
