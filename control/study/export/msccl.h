/*
 * MSCCL XML: its limits, as the runtime's reader defines them, and a schedule read from a file.
 * Private to export/. One thread for each schedule.
 */
#ifndef BY_STUDY_EXPORT_MSCCL_H
#define BY_STUDY_EXPORT_MSCCL_H

#include "control/fabric/build.h"

/*
 * The runtime's limits:
 * - steps of a thread block;
 * - chunks in one step;
 * - channels;
 * - thread blocks of a GPU that send (or receive) on one channel;
 * - thread blocks of a GPU.
 *
 * Offsets have 16 bits.
 */
#define BY_MSCCL_STEPS_MAX    256u
#define BY_MSCCL_COUNT_MAX    71
#define BY_MSCCL_CHANNELS_MAX 32u
#define BY_MSCCL_PEERS_MAX    32u
#define BY_MSCCL_BLOCKS_MAX   1024u
#define BY_MSCCL_CHUNKS_MAX   32767u
/* Limits of a schedule that banyan reads (count). */
#define BY_MSCCL_GPUS_MAX       4096u
#define BY_MSCCL_ALL_STEPS_MAX  (1u << 24)
#define BY_MSCCL_ALL_CHUNKS_MAX (1u << 26)

enum by_msccl_buffer { BY_MSCCL_INPUT, BY_MSCCL_OUTPUT, BY_MSCCL_SCRATCH, BY_MSCCL_BUFFERS };

/* X(NAME, "type", receives, sends, reads its source, writes its target) */
#define BY_MSCCL_STEP_LIST(X)                                                                                \
    X(SEND, "s", false, true, true, false)                                                                   \
    X(RECV, "r", true, false, false, true)                                                                   \
    X(RECV_COPY_SEND, "rcs", true, true, false, true)                                                        \
    X(RECV_REDUCE_SEND, "rrs", true, true, true, false)                                                      \
    X(RECV_REDUCE_COPY, "rrc", true, false, true, true)                                                      \
    X(RECV_REDUCE_COPY_SEND, "rrcs", true, true, true, true)                                                 \
    X(COPY, "cpy", false, false, true, true)                                                                 \
    X(REDUCE, "re", false, false, true, true)                                                                \
    X(NOP, "nop", false, false, false, false)

enum by_msccl_type {
#define X(name, text, receives, sends, reads, writes) BY_MSCCL_##name,
    BY_MSCCL_STEP_LIST(X)
#undef X
        BY_MSCCL_TYPES
};

struct by_msccl_step {
    uint8_t type;
    uint8_t source, target; /* enum by_msccl_buffer */
    bool awaited;
    int32_t source_at, target_at, count;
    int32_t after_block; /* ID of a thread block of the same GPU, or -1 */
    int32_t after_step;
    int32_t line;
};

struct by_msccl_block {
    uint32_t gpu;
    int32_t id;
    int32_t send, receive; /* peer GPUs, or -1 */
    int32_t channel;
    int32_t line;
    uint32_t step_first, step_count;
};

struct by_msccl_gpu {
    bool present;
    uint32_t chunks[BY_MSCCL_BUFFERS];
    uint32_t block_first, block_count; /* thread blocks, sorted by ID; IDs begin at 0 */
};

struct by_msccl {
    unsigned collective; /* enum by_collective */
    uint32_t root;
    uint32_t gpu_count;
    uint32_t chunk_count; /* chunks of the whole data */
    bool in_place, out_of_place;
    struct by_msccl_gpu *gpus;
    uint32_t block_count, block_room;
    struct by_msccl_block *blocks;
    uint32_t step_count, step_room;
    struct by_msccl_step *steps;
};

/* Returns the format's name of a collective, or NULL. */
const char *by_msccl_collective(unsigned collective);
bool by_msccl_receives(unsigned type);
bool by_msccl_sends(unsigned type);
bool by_msccl_reads(unsigned type);
bool by_msccl_writes(unsigned type);
const char *by_msccl_type_name(unsigned type);

/*
 * Reads the elements of a schedule: a start handler and an end handler for by_xml_*.
 * by_msccl_reader_new makes `state`. by_msccl_reader_finish checks the whole schedule and returns
 * it; the caller then owns it.
 */
struct by_msccl_reader;
struct by_xml_element;
struct by_msccl_reader *by_msccl_reader_new(void);
void by_msccl_reader_free(struct by_msccl_reader *reader);
int by_msccl_reader_start(void *reader, const struct by_xml_element *element, struct by_problem *problem);
int by_msccl_reader_finish(struct by_msccl_reader *reader, struct by_msccl **msccl,
                           struct by_problem *problem);
void by_msccl_free(struct by_msccl *msccl);

/*
 * Executes the schedule symbolically, in place or out of place. `slots`: how many messages a sender
 * may be ahead of its receiver, at least 1. `depth` becomes the length of the longest chain of
 * messages that wait for each other. Returns 0; BY_EINVAL with the first fault in `problem`;
 * BY_ELIMIT if it needs too much memory.
 */
int by_msccl_execute(const struct by_msccl *msccl, bool in_place, uint32_t slots, uint32_t *depth,
                     struct by_problem *problem);

#endif
