/* A note that survives a reset; see note.h. */
#include "firmware/baremetal/note.h"

#include "firmware/baremetal/cache.h"
#include "firmware/baremetal/hal.h"
#include "offload/base/assert.h"

/* Marks a valid note: RAM has arbitrary contents after power-on. */
#define MARK UINT64_C(0x62796e6f74653031)
/* A boot that ran this long counts as good (ns). */
#define GOOD_NS UINT64_C(600000000000)
/* The first wait, and how often it is doubled (count). */
#define WAIT_NS UINT64_C(1000000000)
#define DOUBLED 6u

struct note_place {
    uint64_t mark, check;
    struct by_note note;
};

BY_STATIC_ASSERT(sizeof(struct note_place) <= BY_NOTE_BYTES, "the memory plan leaves room for a note");

static struct note_place *note_place(void)
{
    return (struct note_place *)(uintptr_t)(by_hal.ram.end - BY_NOTE_BYTES);
}

static uint64_t check_of(const struct by_note *note)
{
    return MARK ^ note->end ^ note->at << 1 ^ note->value << 2 ^ note->other << 3 ^ note->ends << 4;
}

bool by_note_take(struct by_note *note)
{
    struct note_place *place = note_place();
    bool is_there = place->mark == MARK && place->check == check_of(&place->note);

    *note = place->note;
    place->mark = 0;
    by_cache_keep(place, sizeof *place);
    return is_there;
}

void by_note_leave(const struct by_note *note)
{
    struct note_place *place = note_place();

    *place = (struct note_place){.mark = MARK, .check = check_of(note), .note = *note};
    by_cache_keep(place, sizeof *place);
}

uint64_t by_note_ends(uint64_t before, uint64_t lived_ns)
{
    return lived_ns >= GOOD_NS ? 1 : before + 1;
}

uint64_t by_note_wait_ns(uint64_t ends)
{
    return ends > DOUBLED ? WAIT_NS << DOUBLED : WAIT_NS << (ends > 0 ? ends - 1 : 0);
}
