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
    int fd, link_fd;
    uint32_t frames;
    size_t page_bytes, ring_bytes;
    struct by_ring_shared *shared;
    unsigned long *consumed;       /* kernel's page, written here: bytes returned */
    const unsigned long *produced; /* kernel's: end of the records (bytes), one page later */
    const uint8_t *data;           /* the ring, mapped twice in a row, so that no record is split */
    unsigned long at;              /* bytes examined so far */
    uint64_t lost_told;
    bool dozing; /* the sleep flag in `shared` may be set */
};

/* Loads the program with a ring whose size is a power of two. Returns 0 or -errno. */
static int load(struct by_ring *ring, const struct by_ring_config *config)
{
    struct by_ring_constants constants = {.all = config->all,
                                          .ip = config->ip,
                                          .udp_port = config->udp_port,
                                          .frame_bytes = ETH_HLEN + config->mtu};
    size_t record = BY_RECORD_BYTES(constants.frame_bytes);
    int error;

    if (config->mtu > MTU_MAX)
        return -EMSGSIZE;
    for (unsigned i = 0; i < 4 && config->ipv6 != NULL; i++) {
        memcpy(&constants.ipv6[i], config->ipv6 + (size_t)4 * i, 4);
        constants.ipv6[i] = ntohl(constants.ipv6[i]);
    }
    ring->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (ring->ring_bytes = ring->page_bytes; ring->ring_bytes <= config->frames * record;)
        ring->ring_bytes *= 2;
    ring->frames = (uint32_t)((ring->ring_bytes - 1) / record);
    ring->object = by_object_open(by_ring_object, by_ring_object_end);
    if (ring->object == NULL)
        return -errno;
    error = bpf_map__set_max_entries(bpf_object__find_map_by_name(ring->object, "by_frames"),
                                     (uint32_t)ring->ring_bytes);
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
    ring->fd = bpf_object__find_map_fd_by_name(ring->object, "by_frames");
    ring->shared = by_object_variables(ring->object, sizeof(*ring->shared));
    ring->consumed = map_memory(ring->fd, ring->page_bytes, PROT_READ | PROT_WRITE, 0);
    ring->produced =
        map_memory(ring->fd, ring->page_bytes + 2 * ring->ring_bytes, PROT_READ, ring->page_bytes);
    if (ring->shared == NULL || ring->consumed == NULL || ring->produced == NULL)
        return -errno;
    ring->data = (const uint8_t *)ring->produced + ring->page_bytes;
    return 0;
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
    if (ring->produced != NULL)
        munmap((void *)(uintptr_t)ring->produced, ring->page_bytes + 2 * ring->ring_bytes);
    if (ring->consumed != NULL)
        munmap(ring->consumed, ring->page_bytes);
    if (ring->shared != NULL)
        munmap(ring->shared, sizeof(*ring->shared));
    bpf_object__close(ring->object);
    free(ring);
}

int by_ring_fd(const struct by_ring *ring)
{
    return ring->fd;
}

uint32_t by_ring_frames(const struct by_ring *ring)
{
    return ring->frames;
}

const uint8_t *by_ring_take(struct by_ring *ring, uint32_t *bytes)
{
    if (ring->dozing) {
        ring->dozing = false;
        __atomic_store_n(&ring->shared->asleep, 0, __ATOMIC_RELAXED);
    }
    for (;;) {
        const uint8_t *record = ring->data + (ring->at & (ring->ring_bytes - 1));
        uint32_t header;

        if (ring->at == __atomic_load_n(ring->produced, __ATOMIC_ACQUIRE))
            return NULL;
        header = __atomic_load_n((const uint32_t *)(const void *)record, __ATOMIC_ACQUIRE);
        if ((header & BPF_RINGBUF_BUSY_BIT) != 0)
            return NULL;
        ring->at += (header & ~BPF_RINGBUF_DISCARD_BIT) + BY_RECORD_KERNEL;
        if ((header & BPF_RINGBUF_DISCARD_BIT) != 0)
            continue;
        memcpy(bytes, record + BY_RECORD_KERNEL, sizeof(*bytes));
        return record + BY_RECORD_FRAME;
    }
}

void by_ring_return(struct by_ring *ring)
{
    if (*ring->consumed != ring->at)
        __atomic_store_n(ring->consumed, ring->at, __ATOMIC_RELEASE);
}

bool by_ring_doze(struct by_ring *ring)
{
    by_ring_return(ring); /* discarded records are no reason to wake */
    ring->dozing = true;
    __atomic_store_n(&ring->shared->asleep, 1, __ATOMIC_SEQ_CST);
    return ring->at == __atomic_load_n(ring->produced, __ATOMIC_SEQ_CST);
}

bool by_ring_is_half_full(const struct by_ring *ring)
{
    return __atomic_load_n(ring->produced, __ATOMIC_RELAXED) - ring->at >= ring->ring_bytes / 2;
}

uint64_t by_ring_lost(struct by_ring *ring)
{
    uint64_t all = __atomic_load_n(&ring->shared->lost, __ATOMIC_RELAXED), lost = all - ring->lost_told;

    ring->lost_told = all;
    return lost;
}
