/*
 * The format in which a switch keeps the last committed table across restarts: a header in front of
 * the image, with a sequence number and a checksum. Two copies are written in turn, and the newer
 * intact one is used. Neighbours: firmware/linux/store.c keeps them in files,
 * firmware/baremetal/store.c in flash. Pure.
 */
#ifndef BY_FIRMWARE_AGENT_SAVED_H
#define BY_FIRMWARE_AGENT_SAVED_H

#include <stddef.h>
#include <stdint.h>

/* Magic (8 bytes), sequence (8), bytes of the image (4), CRC-32C of these 20 and the image (4), 0
 * (8); integers are big-endian. */
#define BY_SAVED_HEADER_BYTES 32u

/* Fills the header at the start of `copy`, whose `bytes` include it; the image must be there
 * already. */
void by_saved_seal(uint8_t *copy, size_t bytes, uint64_t sequence);
/* Returns the bytes of the copy that begins with this header; 0 for an invalid header. */
uint64_t by_saved_bytes(const uint8_t header[BY_SAVED_HEADER_BYTES]);
/* Returns the defect of a copy of `bytes`, or NULL; then also its sequence number. */
const char *by_saved_check(const uint8_t *copy, size_t bytes, uint64_t *sequence);

#endif
