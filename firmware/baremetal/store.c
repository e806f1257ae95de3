/* Tables in flash; see store.h. The pages of a copy are written from the second to the last, then the first
 * one with the header: a copy that was not finished has none. */
#include "firmware/baremetal/store.h"

#include "firmware/agent/saved.h"
#include "firmware/baremetal/log.h"
#include "firmware/baremetal/memory.h"
#include "offload/base/assert.h"
#include "offload/base/bytes.h"

/* Copies (count). */
#define COPIES 2u

static uint32_t area_of(const struct by_store *store, uint64_t sequence)
{
    return (uint32_t)(sequence % COPIES) * store->area_bytes;
}

/* Reads one copy and keeps it when it is whole and the newest. An image longer than this one takes may lie
 * there: of another build, within the same sectors. */
static void read_copy(struct by_store *store, uint32_t index, uint32_t image_bytes_max)
{
    uint32_t area = index * store->area_bytes;
    uint64_t bytes, sequence = 0;
    const char *fault;

    by_flash_read(&store->flash, area, store->copy, BY_SAVED_HEADER_BYTES);
    bytes = by_saved_bytes(store->copy);
    if (bytes == 0)
        return; /* erased, or never ours */
    fault =
        bytes > (uint64_t)BY_SAVED_HEADER_BYTES + image_bytes_max ? "longer than there is room for" : NULL;
    if (!fault) {
        by_flash_read(&store->flash, area, store->copy, bytes);
        fault = by_saved_check(store->copy, bytes, &sequence);
    }
    if (fault) {
        by_log_say("flash: a saved table is passed over: ", fault);
        return;
    }
    if (store->saved_bytes > 0 && sequence <= store->sequence)
        return;
    by_copy(store->saved, store->copy, bytes);
    store->saved_bytes = (uint32_t)bytes;
    store->sequence = sequence;
}

bool by_store_open(struct by_store *store, uint32_t image_bytes_max)
{
    uint32_t sector;

    *store = (struct by_store){.state = BY_STORE_IDLE};
    if (!by_flash_open(&store->flash))
        return false;
    sector = store->flash.sector_bytes;
    store->area_bytes = (BY_SAVED_HEADER_BYTES + image_bytes_max + sector - 1) / sector * sector;
    if ((uint64_t)COPIES * store->area_bytes > store->flash.bytes)
        return false;
    store->copy = by_memory_take("a table to save", store->area_bytes);
    store->saved = by_memory_take("a saved table", store->area_bytes);
    for (uint32_t i = 0; i < COPIES; i++)
        read_copy(store, i, image_bytes_max);
    return true;
}

const uint8_t *by_store_saved(const struct by_store *store, uint32_t *bytes)
{
    *bytes = store->saved_bytes > 0 ? store->saved_bytes - BY_SAVED_HEADER_BYTES : 0;
    return store->saved_bytes > 0 ? store->saved + BY_SAVED_HEADER_BYTES : NULL;
}

void by_store_put(struct by_store *store, const uint8_t *image, size_t bytes)
{
    uint32_t pages;

    BY_ASSERT(BY_SAVED_HEADER_BYTES + bytes <= store->area_bytes);
    /* What is under way in the chips must come to its end; its area is written anew. */
    while (store->is_begun && by_flash_look(&store->flash, area_of(store, store->sequence)) == BY_FLASH_BUSY)
        ;
    if (store->state == BY_STORE_IDLE)
        store->sequence++;
    store->bytes = BY_SAVED_HEADER_BYTES + (uint32_t)bytes;
    by_copy(store->copy + BY_SAVED_HEADER_BYTES, image, bytes);
    by_saved_seal(store->copy, store->bytes, store->sequence);
    pages = (store->bytes + BY_FLASH_PAGE - 1) / BY_FLASH_PAGE;
    for (uint32_t i = store->bytes; i < pages * BY_FLASH_PAGE; i++)
        store->copy[i] = 0xff;
    store->state = BY_STORE_ERASE;
    store->at = 0;
    store->is_begun = false;
}

/* The piece at `at` is done: goes to the next one. */
static void advance(struct by_store *store)
{
    if (store->state == BY_STORE_ERASE) {
        store->at += store->flash.sector_bytes;
        if (store->at < store->bytes)
            return;
        store->state = BY_STORE_WRITE;
        store->at = store->bytes > BY_FLASH_PAGE ? BY_FLASH_PAGE : 0;
    } else if (store->at == 0) {
        store->state = BY_STORE_IDLE;
        by_log_say("the table is in flash", NULL);
    } else {
        store->at += BY_FLASH_PAGE;
        if (store->at >= store->bytes)
            store->at = 0;
    }
}

bool by_store_step(struct by_store *store)
{
    uint32_t at = area_of(store, store->sequence) + store->at;
    enum by_flash_state state;

    if (store->state == BY_STORE_IDLE)
        return false;
    if (!store->is_begun) {
        if (store->state == BY_STORE_ERASE)
            by_flash_erase(&store->flash, at);
        else
            by_flash_write(&store->flash, at, store->copy + store->at);
        store->is_begun = true;
        return true;
    }
    state = by_flash_look(&store->flash, at);
    if (state == BY_FLASH_BUSY)
        return true;
    store->is_begun = false;
    if (state == BY_FLASH_READY) {
        advance(store);
        return true;
    }
    store->state = BY_STORE_IDLE;
    by_log_say(
        "flash: it does not take the table: the table is active, but would not be offered after a restart",
        NULL);
    return true;
}
