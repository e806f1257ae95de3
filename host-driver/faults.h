/*
 * Fault injection at the receive side of a node: offload/base/fault.h decides each packet's fate,
 * this code applies it. A delayed packet is copied, and released after a few others have overtaken
 * it, or after some time without packets.
 */
#ifndef BY_HOST_FAULTS_H
#define BY_HOST_FAULTS_H

#include <stdint.h>

#include "host-driver/settings.h"
#include "host-driver/transport.h"
#include "offload/base/fault.h"

/* Maximum number of packets held back at a time. */
#define BY_FAULTS_HELD_MAX 16u
/* Maximum output of by_faults_apply. */
#define BY_FAULTS_OUT_MAX (2u * BY_RX_BATCH + BY_FAULTS_HELD_MAX)

struct by_faults {
    struct by_fault fault;
    uint32_t packet_bytes_max;
    uint32_t held_count;
    uint8_t *memory; /* (BY_FAULTS_HELD_MAX held + as many released) packets */
    struct {
        struct by_rx rx;
        uint32_t overtaken;
        uint64_t since_ns;
        uint32_t slot;
    } held[BY_FAULTS_HELD_MAX];
    uint32_t slot_busy; /* bit: memory slot is in use */
    uint32_t slot_lent; /* bit: the slot is in the last output */
    uint64_t dropped, doubled, delayed;
};

/* Reads BANYAN_LOSS, BANYAN_DUP, BANYAN_REORDER and BANYAN_SEED; `salt` gives each node its own
 * sequence. 0 or an error with its text. */
int by_faults_read(const struct by_settings *settings, uint64_t salt, struct by_fault *fault);
/* 0 or BY_ENOMEM. */
int by_faults_init(struct by_faults *faults, const struct by_fault *fault, uint32_t packet_bytes_max);
void by_faults_free(struct by_faults *faults);
/* Transforms `in` into `out` (BY_FAULTS_OUT_MAX) and returns the count. The output is valid until
 * the next call. */
uint32_t by_faults_apply(struct by_faults *faults, uint64_t now_ns, const struct by_rx *in, uint32_t in_count,
                         struct by_rx *out);
/* When a held packet is due; UINT64_MAX if none is held. */
uint64_t by_faults_deadline(const struct by_faults *faults);

#endif
