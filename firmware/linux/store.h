/*
 * The last committed table on disk, for the next life of the switch: two files, NAME.0 and NAME.1
 * in a folder, written in turn, each with a sequence number and a checksum, so that whatever ends
 * the process, one whole copy is left. A thread of its own writes, since a disk may take longer
 * than packets can wait; the switch's thread hands copies over. What is read at start is offered to
 * controllers and never active by itself (firmware/agent/agent.h).
 */
#ifndef BY_FIRMWARE_LINUX_STORE_H
#define BY_FIRMWARE_LINUX_STORE_H

#include <stddef.h>
#include <stdint.h>

struct by_switchd_store;

/*
 * Opens the store of switch `name` in `folder`, which must be there, and reads the newest whole
 * copy. 0, BY_ENOENT (the folder), BY_EIO or BY_ENOMEM, reported. Files that are damaged are said
 * and passed over.
 */
int by_switchd_store_open(struct by_switchd_store **store, const char *folder, const char *name);
/* The image that was read, owned by the store, or NULL. */
const uint8_t *by_switchd_store_saved(const struct by_switchd_store *store, size_t *bytes);
/* Has a copy of the image written; never waits for the disk. Of several in a row the last one is
 * written for sure. The switch's thread. */
void by_switchd_store_put(struct by_switchd_store *store, const uint8_t *image, size_t bytes);
/* Waits until all is written. NULL is allowed. */
void by_switchd_store_close(struct by_switchd_store *store);

#endif
