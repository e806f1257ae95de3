/* What a switch remembers of what happened to it: the last events with their times, in a ring of
 * fixed size, for people who come later (control.proto, Log). Pure; one thread, the agent's. */
#ifndef BY_FIRMWARE_AGENT_JOURNAL_H
#define BY_FIRMWARE_AGENT_JOURNAL_H

#include <stdint.h>

/* Events that are remembered (count, a power of two): some days of pushes, or the last minute of a
 * quarrel.
 */
#define BY_JOURNAL_EVENTS 256u
/* Text of one, with its end (bytes); what is longer is cut off. */
#define BY_JOURNAL_TEXT_BYTES 120u

struct by_journal_event {
    uint64_t time_ns; /* of the last time */
    uint32_t times;   /* that it came in a row */
    char text[BY_JOURNAL_TEXT_BYTES];
};

struct by_journal {
    uint64_t next; /* number of the next event: they count up from 0 */
    struct by_journal_event event[BY_JOURNAL_EVENTS];
};

/* Remembers an event, in place of the oldest one. What repeats the one before is counted with it,
 * so that nobody can wash the ring out with one line. */
void by_journal_add(struct by_journal *journal, uint64_t time_ns, const char *text);
/* The number of the oldest event that is remembered. */
uint64_t by_journal_first(const struct by_journal *journal);
/* An event by its number, or NULL when it is forgotten or still to come. */
const struct by_journal_event *by_journal_at(const struct by_journal *journal, uint64_t number);

#endif
