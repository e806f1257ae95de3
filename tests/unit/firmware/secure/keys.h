/* Keys for tests, in a folder of their own. Single-threaded. */
#ifndef BY_TEST_KEYS_H
#define BY_TEST_KEYS_H

#include <stdint.h>

#include "control/service/controller/keys.h"

/* Size of a path that keys_path makes (bytes). */
#define KEYS_PATH 128

/* Makes the folder. The functions below use it. */
void keys_open(void);
void keys_close(void);
/* Issues keys for `name` by an authority, which is made if it does not exist. With 0 days the keys
 * have expired. */
void keys_issue(const char *authority, const char *name, enum by_keys_role role, uint32_t days);
/* Returns the folder's name, followed by `rest` if that is not "": "a/leaf0". */
const char *keys_path(const char *rest, char path[KEYS_PATH]);

#endif
