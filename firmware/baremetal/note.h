/*
 * A note for the next life: why this one ended, in the last bytes of RAM, which the memory plan
 * leaves alone (memory.c) and a reset leaves as they are. It lasts where RAM keeps its power; what
 * was in a cache alone is lost, on every board. Neighbours: watchdog.c and fault.c, which end
 * lives; reset.c, which leaves the note.
 */
#ifndef BY_BAREMETAL_NOTE_H
#define BY_BAREMETAL_NOTE_H

#include <stdbool.h>
#include <stdint.h>

/* The end of RAM (bytes). */
#define BY_NOTE_BYTES 64u

enum by_note_end {
    BY_NOTE_HANG = 1,  /* the loop stood still: `value` is how long (ms), `other` who called */
    BY_NOTE_EXCEPTION, /* `value` is the syndrome, `other` the address */
    BY_NOTE_BROKEN     /* something that cannot be, where it was found */
};

struct by_note {
    uint64_t end; /* of enum by_note_end */
    uint64_t at;  /* where in the code */
    uint64_t value, other;
    uint64_t ends; /* lives in a row that ended so, this one included (count) */
};

/* What the last life left behind; false when there is nothing. Told once. */
bool by_note_take(struct by_note *note);
/* Leaves it: in memory when this returns. */
void by_note_leave(const struct by_note *note);

/* How many lives in a row have ended, when there were `before` and another one of `lived_ns` ends:
 * one that went on for ten minutes begins anew. */
uint64_t by_note_ends(uint64_t before, uint64_t lived_ns);
/* How long to wait before the next life begins (ns), after so many: a second, twice as long each
 * time, 64 s at most. */
uint64_t by_note_wait_ns(uint64_t ends);

#endif
