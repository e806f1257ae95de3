/* What the switch is told before it starts: small texts by name, from where the board keeps them.
 */
#ifndef BY_BAREMETAL_SETTINGS_H
#define BY_BAREMETAL_SETTINGS_H

#include <stddef.h>
#include <stdint.h>

/* The text of setting `name` in `text` (cut off at `bytes`, ended with a zero); 0 when there is
 * none. */
int by_setting_text(const char *name, char *text, size_t bytes);
/* A decimal number; `otherwise` when there is no such setting. Halts on one that is no number or
 * above `most`, naming it. */
uint64_t by_setting_number(const char *name, uint64_t otherwise, uint64_t most);

#endif
