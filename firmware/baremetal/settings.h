/* Settings of the switch: small texts by name, from the board's storage, read at start-up. */
#ifndef BY_BAREMETAL_SETTINGS_H
#define BY_BAREMETAL_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

/* Reads setting `name` into `text` (cut off at `bytes`, zero-terminated); returns 0 when there is
 * none. */
int by_setting_text(const char *name, char *text, size_t bytes);
/* Reads a decimal number; returns `otherwise` when there is no such setting. Halts on text that is
 * no number or above `most`, and names the setting. */
uint64_t by_setting_number(const char *name, uint64_t otherwise, uint64_t most);

#endif
