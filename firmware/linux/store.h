/*
 * The last committed table on disk, for the next start of the switch: two files, NAME.0 and NAME.1
 * in a folder, written in turn, each with a sequence number and a checksum. So one intact copy
 * remains however the process ends. A thread of its own writes them, because a disk may take longer
 * than packets can wait; the switch's thread passes copies to it. The copy read at start is offered
 * to controllers and never activated automatically (firmware/agent/agent.h).
 */
#ifndef BY_FIRMWARE_LINUX_STORE_H
#define BY_FIRMWARE_LINUX_STORE_H

#include <stddef.h>
#include <stdint.h>

struct by_switchd_store;

/*
 * Opens the store of switch `name` in `folder`, which must exist, and reads the newest intact copy.
 * Returns 0, or BY_ENOENT (the folder), BY_EIO or BY_ENOMEM after reporting it. Damaged files are
 * reported and ignored.
 */
int by_switchd_store_open(struct by_switchd_store **store, const char *folder, const char *name);
/* Returns the image that was read, owned by the store, or NULL. */
const uint8_t *by_switchd_store_saved(const struct by_switchd_store *store, size_t *bytes);
/* Has a copy of the image written; never waits for the disk. Of several calls in a row only the
 * last copy is certain to be written. The switch's thread. */
void by_switchd_store_put(struct by_switchd_store *store, const uint8_t *image, size_t bytes);
/* Waits until everything is written, then frees the store. NULL is allowed. */
void by_switchd_store_close(struct by_switchd_store *store);

#endif
