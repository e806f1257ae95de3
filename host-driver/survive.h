/*
 * One rank's part in an attempt to go on in another generation: what is kept until all are level,
 * and the exchange of endpoint, engine and table. Neighbours: member.c moves the messages,
 * progress.c exchanges the parts, offload/endpoint/resume.h levels. The communicator's thread.
 */
#ifndef BY_HOST_SURVIVE_H
#define BY_HOST_SURVIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offload/wire/member.h"

struct banyan_comm;
struct by_host_line;
struct by_resume;

struct by_survive {
    uint8_t *image;           /* that runs now, when it came from the controller; else NULL */
    uint16_t attempt;         /* the generation to come, or that has come last; 0: none yet */
    bool frozen;              /* its calls wait for it */
    bool go;                  /* all switches have its tables */
    struct by_resume *resume; /* of the attempt; also after it, while others may wait for a word */
    void *resume_memory;
    uint8_t *coming; /* the attempt's table */
    size_t coming_bytes;
    uint8_t *message;
    size_t message_room;
    uint64_t frozen_ns; /* since when the calls wait, over all attempts */
    uint64_t results;   /* chunks done when they froze */
    bool quiet;         /* gone on, and no chunk is done yet */
};

/* 0 when the bytes are a host's table; else an error with its text. */
int by_survive_check(const uint8_t *image, size_t bytes, const char *where);
/* `image` is what runs now, and freed by by_survive_free or with its successor. */
void by_survive_own(struct by_survive *survive, uint8_t *image);
void by_survive_free(struct by_survive *survive);
/* A FREEZE of an attempt that is new here. 0, or an error with its text: the calls cannot go on. */
int by_survive_freeze(struct banyan_comm *comm, struct by_survive *survive,
                      const struct by_member_frame *frame, uint64_t now_ns);
/* A HEARD of the attempt; damaged ones are passed over. Then by_survive_say until it says nothing.
 */
int by_survive_hear(struct banyan_comm *comm, struct by_survive *survive,
                    const struct by_member_frame *frame);
/* What is to be said next, to which rank: bytes, or 0. */
size_t by_survive_say(struct by_survive *survive, const uint8_t **message, uint16_t *to);
/* All that was said may have been lost. */
void by_survive_repeat(struct by_survive *survive);
/* All are level, and the switches are ready. */
bool by_survive_may_carry(const struct by_survive *survive);
/* The calls go on with the attempt's table. 0, or an error with its text. */
int by_survive_carry(struct banyan_comm *comm, struct by_survive *survive);
/* Calls that wait too long end: BY_ETIMEDOUT, whose text says for what they waited. Tells of the
 * first chunk after a pause, where the log wants it. */
int by_survive_watch(struct banyan_comm *comm, struct by_survive *survive, const struct by_host_line *line,
                     uint64_t now_ns);

#endif
