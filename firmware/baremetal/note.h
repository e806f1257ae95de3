/*
 * A note for the next boot: why this one ended. It is in the last bytes of RAM, which the memory
 * plan leaves alone (memory.c) and a reset preserves. It lasts while RAM is powered; data that was
 * only in a cache is lost, on every board. Neighbours: watchdog.c and fault.c, which end a boot;
 * reset.c, which writes the note.
 */
#ifndef BY_BAREMETAL_NOTE_H
#define BY_BAREMETAL_NOTE_H

#include <stdbool.h>
#include <stdint.h>

/* Size of the note, at the end of RAM (bytes). */
#define BY_NOTE_BYTES 64u

enum by_note_end {
    BY_NOTE_HANG = 1,  /* the loop hung: `value` is how long (ms), `other` the caller */
    BY_NOTE_EXCEPTION, /* `value` is the syndrome, `other` the address */
    BY_NOTE_BROKEN     /* an impossible state, and the place where it was found */
};

struct by_note {
    uint64_t end; /* enum by_note_end */
    uint64_t at;  /* address in the code */
    uint64_t value, other;
    uint64_t ends; /* consecutive boots that ended this way, including this one (count) */
};

/* Reads and clears the note of the previous boot; returns false when there is none. */
bool by_note_take(struct by_note *note);
/* Writes the note: it is in memory on return. */
void by_note_leave(const struct by_note *note);

/* Returns the number of consecutive failed boots when one more, of `lived_ns`, ends after `before`
 * others. A boot of ten minutes restarts the count. */
uint64_t by_note_ends(uint64_t before, uint64_t lived_ns);
/* Returns the wait before the next boot (ns) after so many failed ones: a second, doubled each
 * time, 64 s at most. */
uint64_t by_note_wait_ns(uint64_t ends);

#endif
