/* Tables in flash; see store.h. The pages of a copy are written from the second to the last, then
 * the first one with the header, so that an unfinished copy has no header. */
#include "firmware/baremetal/store.h"

#include "firmware/agent/saved.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/memory.h"
#include "offload/base/assert.h"
#include "offload/base/bytes.h"

/* Copies (count). */
#define COPIES 2u

/* Reads one copy and keeps it when it is intact and the newest. The copy may be larger than this
 * image accepts: another build may have written it, within the same sectors. */
static void read_copy(struct by_metal_store *store, uint32_t index, uint32_t image_bytes_max)
{
    uint32_t area = index * store->area_bytes;
    uint64_t bytes, sequence = 0;
    const char *fault;

    by_flash_read(&store->flash, area, store->copy, BY_SAVED_HEADER_BYTES);
    bytes = by_saved_bytes(store->copy);
    if (bytes == 0)
        return; /* erased, or not written by banyan */
    fault =
        bytes > (uint64_t)BY_SAVED_HEADER_BYTES + image_bytes_max ? "larger than this image supports" : NULL;
    if (!fault) {
        by_flash_read(&store->flash, area, store->copy, bytes);
        fault = by_saved_check(store->copy, bytes, &sequence);
    }
    if (fault) {
        by_log_say("flash: ignoring a saved table: ", fault);
        return;
    }
    if (store->saved_bytes > 0 && sequence <= store->sequence)
        return;
    by_copy(store->next, store->copy, bytes);
    store->saved_bytes = (uint32_t)bytes;
    store->sequence = sequence;
    store->newest = index;
}

bool by_metal_store_open(struct by_metal_store *store, uint32_t image_bytes_max)
{
    uint32_t sector;

    *store = (struct by_metal_store){.state = BY_STORE_IDLE};
    if (!by_flash_open(&store->flash))
        return false;
    sector = store->flash.sector_bytes;
    store->area_bytes = (BY_SAVED_HEADER_BYTES + image_bytes_max + sector - 1) / sector * sector;
    if ((uint64_t)COPIES * store->area_bytes > store->flash.bytes)
        return false;
    store->copy = by_memory_take("a table to save", store->area_bytes);
    store->next = by_memory_take("a saved table", store->area_bytes);
    for (uint32_t i = 0; i < COPIES; i++)
        read_copy(store, i, image_bytes_max);
    return true;
}

const uint8_t *by_metal_store_saved(const struct by_metal_store *store, uint32_t *bytes)
{
    *bytes = store->saved_bytes > 0 ? store->saved_bytes - BY_SAVED_HEADER_BYTES : 0;
    return store->saved_bytes > 0 ? store->next + BY_SAVED_HEADER_BYTES : NULL;
}

void by_metal_store_put(struct by_metal_store *store, const uint8_t *image, size_t bytes)
{
    BY_ASSERT(BY_SAVED_HEADER_BYTES + bytes <= store->area_bytes);
    if (store->state == BY_STORE_DEAD)
        return;
    by_copy(store->next + BY_SAVED_HEADER_BYTES, image, bytes);
    store->next_bytes = BY_SAVED_HEADER_BYTES + (uint32_t)bytes;
    store->saved_bytes = 0;
}

/* Seals the waiting copy, to be written in the area without the newest intact copy. */
static void begin(struct by_metal_store *store)
{
    uint8_t *copy = store->next;

    store->next = store->copy;
    store->copy = copy;
    store->bytes = store->next_bytes;
    store->next_bytes = 0;
    by_saved_seal(copy, store->bytes, store->sequence + 1);
    for (uint32_t i = store->bytes; i % BY_FLASH_PAGE != 0; i++)
        copy[i] = 0xff;
    store->state = BY_STORE_ERASE;
    store->at = 0;
}

/* Advances to the next piece after the one at `at`. */
static void advance(struct by_metal_store *store)
{
    if (store->state == BY_STORE_ERASE) {
        store->at += store->flash.sector_bytes;
        if (store->at < store->bytes)
            return;
        store->state = BY_STORE_WRITE;
        store->at = store->bytes > BY_FLASH_PAGE ? BY_FLASH_PAGE : 0;
    } else if (store->at == 0) {
        store->state = BY_STORE_IDLE;
        store->sequence++;
        store->newest = 1 - store->newest;
        store->word = "the table is in flash";
    } else {
        store->at += BY_FLASH_PAGE;
        if (store->at >= store->bytes)
            store->at = 0;
    }
}

/* Polls the piece in progress. */
static void look(struct by_metal_store *store)
{
    switch (by_flash_step(&store->flash)) {
    case BY_FLASH_BUSY:
        return;
    case BY_FLASH_READY:
        advance(store);
        return;
    case BY_FLASH_FAILED:
        store->state = BY_STORE_IDLE;
        store->word = "flash: storing the active table failed: a restart would offer the one stored before";
        return;
    case BY_FLASH_DEAD:
        store->state = BY_STORE_DEAD;
        store->word = "flash: the chips are busy for too long: no table is stored until a restart";
        return;
    }
}

bool by_metal_store_step(struct by_metal_store *store)
{
    uint32_t area = (1 - store->newest) * store->area_bytes;

    if (store->state == BY_STORE_DEAD)
        return false;
    if (store->state == BY_STORE_IDLE) {
        if (store->next_bytes == 0)
            return false;
        begin(store);
    } else if (store->flash.job != BY_FLASH_NOTHING) {
        look(store);
    } else if (store->state == BY_STORE_ERASE) {
        by_flash_erase(&store->flash, area + store->at);
    } else {
        by_flash_write(&store->flash, area + store->at, store->copy + store->at);
    }
    return true;
}

const char *by_metal_store_word(struct by_metal_store *store)
{
    const char *word = store->word;

    store->word = NULL;
    return word;
}
