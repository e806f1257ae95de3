/* The reader of a ring and its setting up; see ring.h. One thread. */
#include "offload/linux/ring.h"

#include <errno.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "offload/linux/bpf.h"
#include "offload/linux/program.h"

#define MTU_MAX 65521u /* a frame of 65535 bytes */

struct by_ring {
    int fd, shared_fd, program_fd, link_fd;
    uint32_t frames;
    size_t page_bytes, ring_bytes;
    struct by_ring_shared *shared;
    unsigned long *consumed; /* the kernel's: bytes that we have given back; a page that we write */
    const unsigned long
        *produced;       /* the kernel's: bytes up to which there are records; behind it a page later */
    const uint8_t *data; /* the ring, twice in a row, so that no record is cut */
    unsigned long at;    /* bytes that we have looked at */
    uint64_t lost_told;
    bool dozing; /* `shared` may say so */
};

/* The ring, whose size is a power of two, and the words beside it. */
static int make_memory(struct by_ring *ring, const struct by_ring_config *config)
{
    size_t record = by_record_bytes(ETH_HLEN + config->mtu);

    if (config->mtu > MTU_MAX) {
        errno = EMSGSIZE;
        return -1;
    }
    ring->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    for (ring->ring_bytes = ring->page_bytes; ring->ring_bytes <= config->frames * record;)
        ring->ring_bytes *= 2;
    ring->frames = (uint32_t)((ring->ring_bytes - 1) / record);
    ring->fd = by_map_make(BPF_MAP_TYPE_RINGBUF, 0, 0, (uint32_t)ring->ring_bytes, 0);
    if (ring->fd < 0)
        return -1;
    ring->shared_fd =
        by_map_make(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct by_ring_shared), 1, BPF_F_MMAPABLE);
    if (ring->shared_fd < 0)
        return -1;
    ring->shared = by_map_memory(ring->shared_fd, ring->page_bytes, PROT_READ | PROT_WRITE, 0);
    ring->consumed = by_map_memory(ring->fd, ring->page_bytes, PROT_READ | PROT_WRITE, 0);
    ring->produced =
        by_map_memory(ring->fd, ring->page_bytes + 2 * ring->ring_bytes, PROT_READ, ring->page_bytes);
    if (ring->shared == NULL || ring->consumed == NULL || ring->produced == NULL)
        return -1;
    ring->data = (const uint8_t *)ring->produced + ring->page_bytes;
    return 0;
}

static int attach(struct by_ring *ring, const struct by_ring_config *config, unsigned interface_index)
{
    ring->program_fd = by_ring_program(config, ring->fd, ring->shared_fd);
    if (ring->program_fd < 0)
        return -1;
    ring->link_fd = by_code_attach(ring->program_fd, interface_index, BY_TCX_INGRESS);
    return ring->link_fd < 0 ? -1 : 0;
}

static const char *open_steps(struct by_ring *ring, const struct by_ring_config *config)
{
    const unsigned index = if_nametoindex(config->interface);

    if (index == 0)
        return "if_nametoindex";
    if (make_memory(ring, config) != 0)
        return "ring";
    return attach(ring, config, index) == 0 ? NULL : "tcx";
}

int by_ring_open(struct by_ring **out, const struct by_ring_config *config, const char **step)
{
    struct by_ring *ring = calloc(1, sizeof(*ring));
    int error;

    *step = "memory";
    if (ring == NULL)
        return -ENOMEM;
    ring->fd = ring->shared_fd = ring->program_fd = ring->link_fd = -1;
    errno = 0;
    *step = open_steps(ring, config);
    if (*step == NULL) {
        *out = ring;
        return 0;
    }
    error = errno != 0 ? -errno : -EINVAL;
    by_ring_close(ring);
    return error;
}

static void close_fd(int fd)
{
    if (fd >= 0)
        close(fd);
}

void by_ring_close(struct by_ring *ring)
{
    close_fd(ring->link_fd);
    close_fd(ring->program_fd);
    if (ring->produced != NULL)
        munmap((void *)(uintptr_t)ring->produced, ring->page_bytes + 2 * ring->ring_bytes);
    if (ring->consumed != NULL)
        munmap(ring->consumed, ring->page_bytes);
    if (ring->shared != NULL)
        munmap(ring->shared, ring->page_bytes);
    close_fd(ring->shared_fd);
    close_fd(ring->fd);
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
    by_ring_return(ring); /* what was discarded is no reason to wake */
    ring->dozing = true;
    __atomic_store_n(&ring->shared->asleep, 1, __ATOMIC_SEQ_CST);
    return ring->at == __atomic_load_n(ring->produced, __ATOMIC_SEQ_CST);
}

uint64_t by_ring_lost(struct by_ring *ring)
{
    uint64_t all = __atomic_load_n(&ring->shared->lost, __ATOMIC_RELAXED), lost = all - ring->lost_told;

    ring->lost_told = all;
    return lost;
}
