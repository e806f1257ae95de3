/* Setup and reader of a ring; see ring.h. One thread. */
#include "offload/linux/ring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "offload/linux/object.h"
#include "offload/xdp/ring.h"

/* BY_RING_OBJECT is the object's path, from offload/xdp/module.mk. */
BY_OBJECT(by_ring_object, BY_RING_OBJECT);

#define MTU_MAX 65521u /* a frame of 65535 bytes */

struct by_ring {
    struct bpf_object *object;
    int bell_fd, link_fd;
    uint32_t slots, slot_bytes; /* a power of two */
    size_t page_bytes, data_bytes;
    struct by_ring_shared *shared;
    unsigned long *bell_read;          /* the bell's page that is written here: bytes read */
    const unsigned long *bell_written; /* the bell's page that the kernel writes: bytes in all */
    const uint8_t *data;               /* the slots */
    uint64_t at;                       /* frames taken (count) */
    uint64_t lost_told;
    bool dozing; /* the sleep flag in `shared` may be set */
};

#ifdef __x86_64__
#define STORES_ARE_ORDERED 1
#else
#define STORES_ARE_ORDERED 0
#endif

/* Prepares the program and its maps. Returns 0 or -errno. */
static int load(struct by_ring *ring, const struct by_ring_config *config)
{
    struct by_ring_constants constants = {.all = config->all,
                                          .ip = config->ip,
                                          .udp_port = config->udp_port,
                                          .frame_bytes = ETH_HLEN + config->mtu,
                                          .fenced = !STORES_ARE_ORDERED};
    struct bpf_map *slots;
    int error;

    if (config->mtu > MTU_MAX)
        return -EMSGSIZE;
    for (unsigned i = 0; i < 4 && config->ipv6 != NULL; i++) {
        memcpy(&constants.ipv6[i], config->ipv6 + (size_t)4 * i, 4);
        constants.ipv6[i] = ntohl(constants.ipv6[i]);
    }
    for (ring->slots = 1; ring->slots < config->frames;)
        ring->slots *= 2;
    constants.slots = ring->slots;
    ring->slot_bytes = BY_SLOT_BYTES(constants.frame_bytes);
    ring->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    ring->data_bytes = (size_t)ring->slots * ring->slot_bytes;
    ring->object = by_object_open(by_ring_object, by_ring_object_end);
    if (ring->object == NULL)
        return -errno;
    slots = bpf_object__find_map_by_name(ring->object, "by_slots");
    error = bpf_map__set_value_size(slots, ring->slot_bytes);
    if (error == 0)
        error = bpf_map__set_max_entries(slots, ring->slots);
    if (error == 0)
        error = bpf_map__set_max_entries(bpf_object__find_map_by_name(ring->object, "by_bell"),
                                         (uint32_t)ring->page_bytes);
    if (error == 0)
        error = by_object_constants(ring->object, &constants, sizeof(constants));
    return error;
}

static void *map_memory(int fd, size_t bytes, int protection, size_t offset)
{
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, (off_t)offset);

    return memory == MAP_FAILED ? NULL : memory;
}

static int map_ring(struct by_ring *ring)
{
    int slots_fd = bpf_object__find_map_fd_by_name(ring->object, "by_slots");

    ring->bell_fd = bpf_object__find_map_fd_by_name(ring->object, "by_bell");
    ring->shared = by_object_variables(ring->object, sizeof(*ring->shared));
    ring->bell_read = map_memory(ring->bell_fd, ring->page_bytes, PROT_READ | PROT_WRITE, 0);
    ring->bell_written = map_memory(ring->bell_fd, ring->page_bytes, PROT_READ, ring->page_bytes);
    ring->data = map_memory(slots_fd, ring->data_bytes, PROT_READ, 0);
    return ring->shared == NULL || ring->bell_read == NULL || ring->bell_written == NULL || ring->data == NULL
               ? -errno
               : 0;
}

/* Returns 0, or -errno with the failed call in `*step`. */
static int open_steps(struct by_ring *ring, const struct by_ring_config *config, const char **step)
{
    const unsigned index = if_nametoindex(config->interface);
    int error, program_fd;

    *step = "if_nametoindex";
    if (index == 0)
        return -errno;
    *step = "ring";
    error = load(ring, config);
    if (error != 0)
        return error;
    *step = "tcx";
    program_fd = by_object_load_tcx(ring->object, BY_TCX_INGRESS);
    if (program_fd < 0)
        return program_fd;
    *step = "mmap";
    error = map_ring(ring);
    if (error != 0)
        return error;
    *step = "tcx";
    ring->link_fd = by_object_attach_tcx(program_fd, index, BY_TCX_INGRESS);
    return ring->link_fd < 0 ? ring->link_fd : 0;
}

int by_ring_open(struct by_ring **out, const struct by_ring_config *config, const char **step)
{
    struct by_ring *ring = calloc(1, sizeof(*ring));
    int error;

    *step = "memory";
    if (ring == NULL)
        return -ENOMEM;
    ring->link_fd = -1;
    error = open_steps(ring, config, step);
    if (error == 0)
        *out = ring;
    else
        by_ring_close(ring);
    return error;
}

void by_ring_close(struct by_ring *ring)
{
    if (ring->link_fd >= 0)
        close(ring->link_fd);
    if (ring->data != NULL)
        munmap((void *)(uintptr_t)ring->data, ring->data_bytes);
    if (ring->bell_written != NULL)
        munmap((void *)(uintptr_t)ring->bell_written, ring->page_bytes);
    if (ring->bell_read != NULL)
        munmap(ring->bell_read, ring->page_bytes);
    if (ring->shared != NULL)
        munmap(ring->shared, sizeof(*ring->shared));
    bpf_object__close(ring->object);
    free(ring);
}

int by_ring_fd(const struct by_ring *ring)
{
    return ring->bell_fd;
}

uint32_t by_ring_frames(const struct by_ring *ring)
{
    return ring->slots;
}

const uint8_t *by_ring_take(struct by_ring *ring, uint32_t *bytes)
{
    const uint8_t *slot = ring->data + (size_t)(ring->at & (ring->slots - 1)) * ring->slot_bytes;
    uint64_t state = __atomic_load_n((const uint64_t *)(const void *)slot, __ATOMIC_ACQUIRE);

    if (ring->dozing) {
        ring->dozing = false;
        __atomic_store_n(&ring->shared->asleep, 0, __ATOMIC_RELAXED);
    }
    if ((uint32_t)(state >> 32) != (uint32_t)(ring->at + 1))
        return NULL;
    ring->at++;
    *bytes = (uint32_t)state;
    return slot + BY_SLOT_FRAME;
}

void by_ring_return(struct by_ring *ring)
{
    if (ring->shared->returned != ring->at)
        __atomic_store_n(&ring->shared->returned, ring->at, __ATOMIC_RELEASE);
}

bool by_ring_doze(struct by_ring *ring)
{
    unsigned long written = __atomic_load_n(ring->bell_written, __ATOMIC_ACQUIRE);
    bool empty;

    ring->dozing = true;
    __atomic_store_n(&ring->shared->asleep, 1, __ATOMIC_SEQ_CST);
    empty = ring->at == __atomic_load_n(&ring->shared->reserved, __ATOMIC_SEQ_CST);
    /* The kernel reports the bell as readable while some of its bytes have not been read. */
    __atomic_store_n(ring->bell_read, empty ? written : written - 8, __ATOMIC_RELEASE);
    return empty;
}

bool by_ring_is_half_full(const struct by_ring *ring)
{
    return __atomic_load_n(&ring->shared->reserved, __ATOMIC_RELAXED) - ring->at >= ring->slots / 2;
}

uint64_t by_ring_lost(struct by_ring *ring)
{
    uint64_t all = __atomic_load_n(&ring->shared->lost, __ATOMIC_RELAXED), lost = all - ring->lost_told;

    ring->lost_told = all;
    return lost;
}
