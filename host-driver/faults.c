/* Applies injected faults; see faults.h. Thread: the node's. */
#include "host-driver/faults.h"

#include <stdlib.h>
#include <string.h>

#include "offload/base/errors.h"

#define OVERTAKEN_MAX 4u /* packets that overtake a held one before its release */
/* maximum hold without other packets: below the minimal retransmission timeout */
#define HELD_MAX_NS 1000000u

static uint32_t parts(double probability)
{
    double scaled = probability * 4294967296.0;

    return scaled >= 4294967295.0 ? 0xffffffffu : (uint32_t)scaled;
}

int by_faults_read(const struct by_settings *settings, uint64_t salt, struct by_fault *fault)
{
    double loss, duplicate, reorder;
    uint64_t seed;
    int error = by_settings_decimal(settings, BY_SETTING_LOSS, 1, &loss);

    if (error == 0)
        error = by_settings_decimal(settings, BY_SETTING_DUP, 1, &duplicate);
    if (error == 0)
        error = by_settings_decimal(settings, BY_SETTING_REORDER, 1, &reorder);
    if (error == 0)
        error = by_settings_number(settings, BY_SETTING_SEED, UINT64_MAX, &seed);
    if (error != 0)
        return error;
    fault->prng.state = seed * 0x9e3779b97f4a7c15u + salt;
    fault->loss = parts(loss);
    fault->duplicate = parts(duplicate);
    fault->reorder = parts(reorder);
    return 0;
}

int by_faults_init(struct by_faults *faults, const struct by_fault *fault, uint32_t packet_bytes_max)
{
    memset(faults, 0, sizeof(*faults));
    faults->fault = *fault;
    faults->packet_bytes_max = packet_bytes_max;
    if (!by_fault_enabled(fault))
        return 0;
    faults->memory = malloc((size_t)packet_bytes_max * 2 * BY_FAULTS_HELD_MAX);
    return faults->memory != NULL ? 0 : BY_ENOMEM;
}

void by_faults_free(struct by_faults *faults)
{
    free(faults->memory);
    faults->memory = NULL;
}

/* Copies `rx` aside. 0 if there is no room: the packet then passes. */
static int hold(struct by_faults *faults, uint64_t now_ns, const struct by_rx *rx)
{
    uint32_t slot;
    uint8_t *copy;

    if (faults->held_count == BY_FAULTS_HELD_MAX || rx->bytes > faults->packet_bytes_max ||
        ~faults->slot_busy == 0)
        return 0;
    slot = (uint32_t)__builtin_ctz(~faults->slot_busy);
    copy = faults->memory + (size_t)slot * faults->packet_bytes_max;
    if (rx->payload != NULL) {
        memcpy(copy, rx->data, BY_WIRE_HEADER_BYTES);
        memcpy(copy + BY_WIRE_HEADER_BYTES, rx->payload, rx->bytes - (size_t)BY_WIRE_HEADER_BYTES);
    } else {
        memcpy(copy, rx->data, rx->bytes);
    }
    faults->slot_busy |= 1u << slot;
    faults->held[faults->held_count].rx = *rx;
    faults->held[faults->held_count].rx.data = copy;
    faults->held[faults->held_count].rx.payload = NULL;
    faults->held[faults->held_count].overtaken = 0;
    faults->held[faults->held_count].since_ns = now_ns;
    faults->held[faults->held_count].slot = slot;
    faults->held_count++;
    faults->delayed++;
    return 1;
}

/* Releases packets that were held long enough; each arriving packet counts as overtaking. */
static uint32_t release(struct by_faults *faults, uint64_t now_ns, unsigned arrived, struct by_rx *out)
{
    uint32_t count = 0;
    uint32_t kept = 0;

    for (uint32_t i = 0; i < faults->held_count; i++) {
        faults->held[i].overtaken += arrived;
        if (faults->held[i].overtaken >= OVERTAKEN_MAX || now_ns - faults->held[i].since_ns >= HELD_MAX_NS) {
            out[count++] = faults->held[i].rx;
            faults->slot_lent |= 1u << faults->held[i].slot;
        } else {
            faults->held[kept++] = faults->held[i];
        }
    }
    faults->held_count = kept;
    return count;
}

uint32_t by_faults_apply(struct by_faults *faults, uint64_t now_ns, const struct by_rx *in, uint32_t in_count,
                         struct by_rx *out)
{
    uint32_t count = 0;

    faults->slot_busy &= ~faults->slot_lent;
    faults->slot_lent = 0;
    for (uint32_t i = 0; i < in_count; i++) {
        switch (by_fault_draw(&faults->fault)) {
        case BY_FAULT_DROP:
            faults->dropped++;
            continue;
        case BY_FAULT_DUPLICATE:
            faults->doubled++;
            out[count++] = in[i];
            out[count++] = in[i];
            break;
        case BY_FAULT_HOLD:
            if (hold(faults, now_ns, &in[i]))
                continue;
            out[count++] = in[i];
            break;
        case BY_FAULT_PASS:
            out[count++] = in[i];
            break;
        }
        count += release(faults, now_ns, 1, out + count);
    }
    return count + release(faults, now_ns, 0, out + count);
}

uint64_t by_faults_deadline(const struct by_faults *faults)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < faults->held_count; i++)
        if (faults->held[i].since_ns + HELD_MAX_NS < first)
            first = faults->held[i].since_ns + HELD_MAX_NS;
    return first;
}
