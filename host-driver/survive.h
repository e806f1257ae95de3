/*
 * One rank's part in an attempt to continue calls in another generation: the state that is kept
 * until all ranks are level, and the exchange of endpoint, engine and table. Neighbours: member.c
 * moves the messages, progress.c exchanges the parts, offload/endpoint/resume.h does the levelling.
 * Thread: the communicator's.
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
    /* the table in force, if it came from the controller; else NULL */
    uint8_t *image;
    /* the pending generation, or the last one that was reached; 0: none yet */
    uint16_t attempt;
    bool frozen;   /* calls are paused for the attempt */
    bool alone;    /* the attempt is a standby, to which ranks move without the controller (standby.h) */
    bool go;       /* all switches have its tables */
    bool prepared; /* by_survive_prepare has been called in the attempt */
    /* of the attempt; kept after it, while other ranks may still need an answer */
    struct by_resume *resume;
    void *resume_memory;
    uint8_t *coming; /* table of the attempt */
    size_t coming_bytes;
    uint8_t *message;
    size_t message_room;
    uint64_t frozen_ns; /* time of the pause, over all attempts */
    /* of the last attempt: when all ranks were level (0: not yet), when GO came, and when the calls
     * went on in the new trees */
    uint64_t level_ns, go_ns, carried_ns;
    uint64_t results; /* chunks complete at the pause */
    bool quiet;       /* calls continue, but no chunk is complete yet */
};

/* 0 if the bytes are the table of a host; else an error with its text. */
int by_survive_check(const uint8_t *image, size_t bytes, const char *where);
/* Hands over `image`, the table in force. by_survive_free, or the next table, frees it. */
void by_survive_own(struct by_survive *survive, uint8_t *image);
void by_survive_free(struct by_survive *survive);
/* 0 if the bytes are the table of this rank for generation `gen`, with the same cables; else an
 * error with its text. */
int by_survive_check_coming(const struct banyan_comm *comm, uint16_t gen, const uint8_t *image, size_t bytes);
/* Handles the FREEZE of a new attempt. 0, or an error with its text: the calls cannot continue. */
int by_survive_freeze(struct banyan_comm *comm, struct by_survive *survive,
                      const struct by_member_frame *frame, uint64_t now_ns);
/* Pauses the calls to move to the standby `gen`, with its checked table, of which it makes a copy.
 * 0, or an error with its text. */
int by_survive_stand(struct banyan_comm *comm, struct by_survive *survive, uint16_t gen, const uint8_t *image,
                     size_t bytes, uint64_t now_ns);
/* Handles a HEARD of the attempt; ignores damaged ones. The caller then calls by_survive_say until
 * it returns 0. */
int by_survive_hear(struct banyan_comm *comm, struct by_survive *survive,
                    const struct by_member_frame *frame);
/* Returns the next message and the rank to send it to: its bytes, or 0 if there is none. */
size_t by_survive_say(struct by_survive *survive, const uint8_t **message, uint16_t *to);
/* Repeats all messages, since all may have been lost. */
void by_survive_repeat(struct by_survive *survive);
/* Handles the GO of the attempt `gen`: all switches have its tables. */
void by_survive_allow(struct by_survive *survive, uint16_t gen, uint64_t now_ns);
/* Whether all ranks are level and the switches are ready; false in a move to a standby. */
bool by_survive_may_carry(struct by_survive *survive, uint64_t now_ns);
/* Prepares by_survive_carry while ranks are level and switches are not ready. */
void by_survive_prepare(struct banyan_comm *comm, struct by_survive *survive);
/* Continues the calls on the attempt's table. 0, or an error with its text. */
int by_survive_carry(struct banyan_comm *comm, struct by_survive *survive);
/* Ends calls that have waited too long with BY_ETIMEDOUT; the text names what they waited for.
 * Reports the first chunk after a pause, if the log level asks for it. */
int by_survive_watch(struct banyan_comm *comm, struct by_survive *survive, const struct by_host_line *line,
                     uint64_t now_ns);

#endif
