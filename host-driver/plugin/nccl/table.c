/*
 * The table of the objects that NCCL holds; see core.h. A handle is a number: its kind (4 bits), a
 * request's place plus 1 or 0 (8), the object's slot (20), the request's generation (12) and the
 * slot's generation (20). Slots and their locks live until the plugin is unloaded. Any thread.
 */
#include "host-driver/plugin/nccl/core.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

_Static_assert(sizeof(uintptr_t) == 8, "a handle has 64 bits");

#define BLOCK_SLOTS     256u
#define BLOCKS_MAX      256u
#define GENERATION_MASK 0xfffffu

struct table_slot {
    pthread_mutex_t lock;
    uint32_t generation; /* 20 bits, never 0 */
    enum by_nccl_kind kind;
    void *object; /* NULL: free */
    void (*free_object)(void *object);
    uint32_t next_free; /* number of a slot plus 1; under table_lock */
};

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct table_slot *) blocks[BLOCKS_MAX];
static uint32_t slot_count, first_free;
static _Atomic unsigned object_count;

static struct table_slot *slot_at(uint32_t index)
{
    struct table_slot *block;

    if (index / BLOCK_SLOTS >= BLOCKS_MAX)
        return NULL;
    block = atomic_load_explicit(&blocks[index / BLOCK_SLOTS], memory_order_acquire);
    return block == NULL ? NULL : &block[index % BLOCK_SLOTS];
}

/* ---- numbers ---- */

static uint32_t index_of(uintptr_t number)
{
    return (uint32_t)(number >> 12) & 0xfffffu;
}

static void *number_of(uint32_t index, uint32_t generation, enum by_nccl_kind kind)
{
    return (void *)((uintptr_t)generation << 44 | (uintptr_t)index << 12 | kind);
}

void *by_nccl_ticket_make(void *owner, unsigned index, unsigned generation)
{
    return (void *)((uintptr_t)owner | (uintptr_t)(generation & 0xfffu) << 32 | (uintptr_t)(index + 1) << 4);
}

int by_nccl_ticket_read(void *request, struct by_nccl_ticket *ticket)
{
    uintptr_t number = (uintptr_t)request;
    unsigned place = (unsigned)(number >> 4) & 0xffu;

    if (place == 0)
        return 0;
    ticket->kind = (enum by_nccl_kind)(number & 15u);
    ticket->index = place - 1;
    ticket->generation = (unsigned)(number >> 32) & 0xfffu;
    ticket->owner = number_of(index_of(number), (uint32_t)(number >> 44) & GENERATION_MASK, ticket->kind);
    return 1;
}

/* ---- objects ---- */

/* Under table_lock: one more block of free slots; 0 if there is none. */
static int grow(void)
{
    struct table_slot *block;

    if (slot_count == BLOCKS_MAX * BLOCK_SLOTS)
        return 0;
    block = calloc(BLOCK_SLOTS, sizeof(*block));
    if (block == NULL)
        return 0;
    for (uint32_t i = BLOCK_SLOTS; i-- > 0;) {
        pthread_mutex_init(&block[i].lock, NULL);
        block[i].next_free = first_free;
        first_free = slot_count + i + 1;
    }
    atomic_store_explicit(&blocks[slot_count / BLOCK_SLOTS], block, memory_order_release);
    slot_count += BLOCK_SLOTS;
    return 1;
}

void *by_nccl_add(enum by_nccl_kind kind, void *object, void (*free_object)(void *object))
{
    struct table_slot *slot;
    uint32_t index, generation;

    pthread_mutex_lock(&table_lock);
    if (first_free == 0 && !grow()) {
        pthread_mutex_unlock(&table_lock);
        return NULL;
    }
    index = first_free - 1;
    slot = slot_at(index);
    first_free = slot->next_free;
    pthread_mutex_unlock(&table_lock);
    pthread_mutex_lock(&slot->lock);
    slot->generation = (slot->generation + 1) & GENERATION_MASK;
    if (slot->generation == 0)
        slot->generation = 1;
    generation = slot->generation;
    slot->kind = kind;
    slot->object = object;
    slot->free_object = free_object;
    pthread_mutex_unlock(&slot->lock);
    atomic_fetch_add(&object_count, 1);
    return number_of(index, generation, kind);
}

int by_nccl_keep(enum by_nccl_kind kind, void *object, void (*free_object)(void *object), const char *what,
                 void **handle)
{
    *handle = by_nccl_add(kind, object, free_object);
    if (*handle != NULL)
        return BY_NCCL_OK;
    free_object(object);
    return by_nccl_fail(BY_NCCL_SYSTEM, "the plugin has no place for another %s", what);
}

void *by_nccl_enter(void *handle, enum by_nccl_kind kind)
{
    uint32_t index = index_of((uintptr_t)handle);
    struct table_slot *slot = slot_at(index);

    if (slot == NULL)
        return NULL;
    pthread_mutex_lock(&slot->lock);
    if (slot->object != NULL && slot->kind == kind && handle == number_of(index, slot->generation, kind))
        return slot->object;
    pthread_mutex_unlock(&slot->lock);
    return NULL;
}

void by_nccl_leave(void *handle)
{
    pthread_mutex_unlock(&slot_at(index_of((uintptr_t)handle))->lock);
}

void *by_nccl_remove(void *handle, enum by_nccl_kind kind)
{
    uint32_t index = index_of((uintptr_t)handle);
    void *object = by_nccl_enter(handle, kind);
    struct table_slot *slot;

    if (object == NULL)
        return NULL;
    slot = slot_at(index);
    slot->object = NULL;
    pthread_mutex_unlock(&slot->lock);
    pthread_mutex_lock(&table_lock);
    slot->next_free = first_free;
    first_free = index + 1;
    pthread_mutex_unlock(&table_lock);
    atomic_fetch_sub(&object_count, 1);
    return object;
}

unsigned by_nccl_count(void)
{
    return atomic_load(&object_count);
}

/* When NCCL unloads the plugin: frees what it never closed, such as connections that it gave up. */
__attribute__((destructor)) static void unload(void)
{
    for (uint32_t i = 0; i < slot_count; i++) {
        struct table_slot *slot = slot_at(i);

        if (slot->object != NULL)
            slot->free_object(slot->object);
        pthread_mutex_destroy(&slot->lock);
    }
    for (uint32_t i = 0; i < slot_count / BLOCK_SLOTS; i++)
        free(atomic_exchange(&blocks[i], NULL));
    slot_count = 0;
    first_free = 0;
}
