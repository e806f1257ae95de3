/* The journal of a switch: its last events with their times, in a ring of fixed size, for later
 * inspection (control.proto, Log). Pure; one thread, the agent's. */
#ifndef BY_FIRMWARE_AGENT_JOURNAL_H
#define BY_FIRMWARE_AGENT_JOURNAL_H

#include <stdint.h>

/* Events kept (count, a power of two): some days of pushes, or the last minute of a quickly
 * repeating error. */
#define BY_JOURNAL_EVENTS 256u
/* Text of one event, with its terminating zero (bytes); longer texts are cut off. */
#define BY_JOURNAL_TEXT_BYTES 120u

struct by_journal_event {
    uint64_t time_ns; /* time of the last occurrence */
    uint32_t times;   /* consecutive occurrences */
    char text[BY_JOURNAL_TEXT_BYTES];
};

struct by_journal {
    uint64_t next; /* number of the next event, counted from 0 */
    struct by_journal_event event[BY_JOURNAL_EVENTS];
};

/* Adds an event, in place of the oldest one. A repetition of the previous event only increments its
 * count, so that one repeated line cannot displace all others. */
void by_journal_add(struct by_journal *journal, uint64_t time_ns, const char *text);
/* Returns the number of the oldest event kept. */
uint64_t by_journal_first(const struct by_journal *journal);
/* Returns an event by its number, or NULL when it was overwritten or does not exist yet. */
const struct by_journal_event *by_journal_at(const struct by_journal *journal, uint64_t number);

#endif
