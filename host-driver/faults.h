/*
 * Fault injection at the receive side of a node: offload/base/fault.h draws the verdicts, this
 * carries them out. Packets held back are copied, and come back after a few others have overtaken
 * them, or when nothing comes for a while.
 */
#ifndef BY_HOST_FAULTS_H
#define BY_HOST_FAULTS_H

#include <stdint.h>

#include "host-driver/settings.h"
#include "host-driver/transport.h"
#include "offload/base/fault.h"

/* Packets held back at a time. */
#define BY_FAULTS_HELD_MAX 16u
/* What by_faults_apply may write. */
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
    uint32_t slot_lent; /* bit: slot was released into the last output */
    uint64_t dropped, doubled, delayed;
};

/* Reads BANYAN_LOSS, BANYAN_DUP, BANYAN_REORDER and BANYAN_SEED; `salt` makes nodes differ. 0 or an
 * error with its text. */
int by_faults_read(const struct by_settings *settings, uint64_t salt, struct by_fault *fault);
/* 0 or BY_ENOMEM. */
int by_faults_init(struct by_faults *faults, const struct by_fault *fault, uint32_t packet_bytes_max);
void by_faults_free(struct by_faults *faults);
/* Turns `in` into `out` (BY_FAULTS_OUT_MAX) and returns the count. What it gives stays valid until
 * the next call. */
uint32_t by_faults_apply(struct by_faults *faults, uint64_t now_ns, const struct by_rx *in, uint32_t in_count,
                         struct by_rx *out);
/* When a held packet is due, UINT64_MAX when none is held. */
uint64_t by_faults_deadline(const struct by_faults *faults);

#endif
