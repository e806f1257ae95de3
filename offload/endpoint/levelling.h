/*
 * One rank's state of levelling, and the messages, shared by resume.c, resume_copy.c and rounds.c
 * only. Everything is in one block of the caller's memory.
 */
#ifndef BY_ENDPOINT_LEVELLING_H
#define BY_ENDPOINT_LEVELLING_H

#include "offload/endpoint/resume.h"
#include "offload/endpoint/state.h"

/* Messages: version, type, job, attempt, rank, then the fields of the type. NEED and COPY go on
 * with generation, lane (2 bytes each) and chunk (4), COPY with a psum (4) and the data. */
enum by_levelling_type { BY_LEVELLING_REPORT = 1, BY_LEVELLING_NEED, BY_LEVELLING_COPY, BY_LEVELLING_LEVEL };
#define BY_LEVELLING_HEAD_BYTES 8u
#define BY_LEVELLING_NEED_BYTES (BY_LEVELLING_HEAD_BYTES + 8u)
#define BY_LEVELLING_COPY_BYTES (BY_LEVELLING_NEED_BYTES + 4u)

/* What a rank has sent. DETAIL: its report is of this endpoint's generation. */
enum by_heard { BY_HEARD_REPORT = 1, BY_HEARD_DETAIL = 2, BY_HEARD_LEVEL = 4 };

struct by_resume {
    struct by_endpoint *endpoint; /* frozen; invalid once `over` is set */
    uint16_t attempt, job, rank, rank_count;
    uint8_t was_level; /* the endpoint was level when this attempt began */
    uint8_t agreed;    /* some rank's session has begun; otherwise there is nothing to level */
    uint8_t decided;
    uint8_t over;      /* the endpoint has been carried over; only LEVEL is left to send */
    uint8_t shared;    /* every message reaches all ranks */
    uint8_t *heard;    /* enum by_heard, for each rank */
    uint32_t *lane_at; /* offset of each lane in a report */
    uint8_t *reports;  /* report_bytes for each rank */
    uint32_t report_bytes;
    uint32_t report_count, level_count; /* level_count: excludes this rank */
    uint64_t missing;                   /* chunks that others have and this rank still lacks */
    /* The messages still to send. */
    uint32_t report_next, level_next; /* ranks */
    uint32_t need_lane, need_at;
    uint32_t ask_to; /* NEED: rank, or BY_RANK_NONE */
    uint32_t ask_seq, answer_seq;
    uint16_t ask_lane, answer_lane;
    uint16_t answer_to; /* COPY: rank, or BY_RANK_NONE */
};

/* Writes a COPY of a chunk that this rank holds (by_retain_held); returns its bytes. */
size_t by_resume_put_copy(const struct by_resume *resume, uint16_t l, uint32_t seq, uint8_t *data);

#endif
