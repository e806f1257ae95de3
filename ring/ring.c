/* A packet socket with a ring, and the program that ends the way of what it took; see ring.h. One thread. */
#include "ring/ring.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define BLOCK_BYTES 65536u
#define LINE        64u
/* So that the payload of a banyan packet, behind 82 bytes of headers, begins on a cache line. */
#define RESERVE 44u
/* Bytes of a slot before the frame: the kernel's header and address, in 16s, and what is reserved. */
#define BEFORE (80u - ETH_HLEN + RESERVE)
/* Since Linux 6.6; older headers lack it. */
#define TCX_INGRESS 46u
#define TCX_NEXT    (-1)
#define TCX_DROP    2
/* Where fields lie in a frame. */
#define AT_TYPE     12u
#define AT_VERSION  14u
#define AT_PROTOCOL 23u
#define AT_RECEIVER 30u
#define AT_PORT     36u

struct by_ring {
    int fd, program_fd, link_fd;
    uint32_t slot_bytes, slots_in_block, slot_count;
    uint32_t at;    /* next slot to look at */
    uint32_t taken; /* slots before it that are not given back */
    uint8_t *memory;
    size_t memory_bytes;
};

static struct tpacket2_hdr *slot_of(const struct by_ring *ring, uint32_t index)
{
    return (struct tpacket2_hdr *)(void *)(ring->memory +
                                           (size_t)(index / ring->slots_in_block) * BLOCK_BYTES +
                                           (size_t)(index % ring->slots_in_block) * ring->slot_bytes);
}

/* The socket takes what the program drops, and nothing else. */
static int filter(int fd, const struct by_ring_config *config)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_TYPE),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, ETH_P_IP, 0, 9),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_VERSION),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x45, 0, 7),
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, AT_PROTOCOL),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, IPPROTO_UDP, 0, 5),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, AT_RECEIVER),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, config->ip, 0, 3),
        BPF_STMT(BPF_LD | BPF_H | BPF_ABS, AT_PORT),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, config->udp_port, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, UINT32_MAX),
        BPF_STMT(BPF_RET | BPF_K, 0),
    };
    struct sock_fprog program = {.len = sizeof(code) / sizeof(code[0]), .filter = code};

    return config->all ? 0 : setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

static struct bpf_insn load(unsigned size, uint32_t at)
{
    return (struct bpf_insn){.code = (uint8_t)(BPF_LD | BPF_ABS | size), .imm = (int32_t)at};
}

static struct bpf_insn unless(uint32_t value, int16_t skip)
{
    return (struct bpf_insn){
        .code = BPF_JMP32 | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0, .off = skip, .imm = (int32_t)value};
}

static struct bpf_insn result(int32_t value)
{
    return (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = value};
}

/* The program behind the ring: drops what the socket takes. */
static int end_here(struct by_ring *ring, const struct by_ring_config *config, unsigned interface_index)
{
    const struct bpf_insn leave = {.code = BPF_JMP | BPF_EXIT};
    const struct bpf_insn every[] = {result(TCX_DROP), leave};
    const struct bpf_insn ours[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = BPF_REG_6, .src_reg = BPF_REG_1},
        load(BPF_H, AT_TYPE),
        unless(ETH_P_IP, 10),
        load(BPF_B, AT_VERSION),
        unless(0x45, 8),
        load(BPF_B, AT_PROTOCOL),
        unless(IPPROTO_UDP, 6),
        load(BPF_W, AT_RECEIVER),
        unless(config->ip, 4),
        load(BPF_H, AT_PORT),
        unless(config->udp_port, 2),
        result(TCX_DROP),
        leave,
        result(TCX_NEXT),
        leave,
    };
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attributes.expected_attach_type = TCX_INGRESS;
    attributes.insns = (uintptr_t)(config->all ? every : ours);
    attributes.insn_cnt = config->all ? sizeof(every) / sizeof(every[0]) : sizeof(ours) / sizeof(ours[0]);
    attributes.license = (uintptr_t) "GPL";
    ring->program_fd = (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
    if (ring->program_fd < 0)
        return -1;
    memset(&attributes, 0, sizeof(attributes));
    attributes.link_create.prog_fd = (uint32_t)ring->program_fd;
    attributes.link_create.target_ifindex = interface_index;
    attributes.link_create.attach_type = TCX_INGRESS;
    ring->link_fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attributes, sizeof(attributes));
    return ring->link_fd < 0 ? -1 : 0;
}

static int map(struct by_ring *ring, const struct by_ring_config *config)
{
    const int version = TPACKET_V2, reserve = RESERVE;
    struct tpacket_req request = {.tp_block_size = BLOCK_BYTES};

    ring->slot_bytes = (BEFORE + ETH_HLEN + config->mtu + LINE - 1) / LINE * LINE;
    ring->slots_in_block = BLOCK_BYTES / ring->slot_bytes;
    if (ring->slots_in_block == 0) {
        errno = EMSGSIZE;
        return -1;
    }
    request.tp_block_nr = (config->frames + ring->slots_in_block - 1) / ring->slots_in_block;
    ring->slot_count = request.tp_block_nr * ring->slots_in_block;
    request.tp_frame_size = ring->slot_bytes;
    request.tp_frame_nr = ring->slot_count;
    ring->memory_bytes = (size_t)request.tp_block_nr * BLOCK_BYTES;
    if (setsockopt(ring->fd, SOL_PACKET, PACKET_VERSION, &version, sizeof(version)) != 0 ||
        setsockopt(ring->fd, SOL_PACKET, PACKET_RESERVE, &reserve, sizeof(reserve)) != 0 ||
        setsockopt(ring->fd, SOL_PACKET, PACKET_RX_RING, &request, sizeof(request)) != 0)
        return -1;
    ring->memory =
        mmap(NULL, ring->memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, ring->fd, 0);
    if (ring->memory != MAP_FAILED)
        return 0;
    ring->memory = NULL;
    return -1;
}

static const char *open_steps(struct by_ring *ring, const struct by_ring_config *config)
{
    const unsigned index = if_nametoindex(config->interface);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = (int)index};
    struct packet_mreq every = {.mr_ifindex = (int)index, .mr_type = PACKET_MR_PROMISC};
    const int one = 1;

    if (index == 0)
        return "if_nametoindex";
    ring->fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (ring->fd < 0)
        return "socket";
    if (filter(ring->fd, config) != 0)
        return "filter";
    if (map(ring, config) != 0)
        return "ring";
    if (setsockopt(ring->fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) != 0)
        return "PACKET_IGNORE_OUTGOING";
    if (bind(ring->fd, (struct sockaddr *)&address, sizeof(address)) != 0)
        return "bind";
    /* Frames of a switch carry the addresses of its table, which need not be the interface's. */
    if (config->all)
        setsockopt(ring->fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &every, sizeof(every));
    return end_here(ring, config, index) == 0 ? NULL : "tcx";
}

int by_ring_open(struct by_ring **out, const struct by_ring_config *config, const char **step)
{
    struct by_ring *ring = calloc(1, sizeof(*ring));
    int error;

    *step = "memory";
    if (ring == NULL)
        return -ENOMEM;
    ring->fd = ring->program_fd = ring->link_fd = -1;
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

void by_ring_close(struct by_ring *ring)
{
    if (ring->link_fd >= 0)
        close(ring->link_fd);
    if (ring->program_fd >= 0)
        close(ring->program_fd);
    if (ring->memory != NULL)
        munmap(ring->memory, ring->memory_bytes);
    if (ring->fd >= 0)
        close(ring->fd);
    free(ring);
}

int by_ring_fd(const struct by_ring *ring)
{
    return ring->fd;
}

uint32_t by_ring_frames(const struct by_ring *ring)
{
    return ring->slot_count;
}

const uint8_t *by_ring_take(struct by_ring *ring, uint32_t *bytes)
{
    struct tpacket2_hdr *slot = slot_of(ring, ring->at);

    if (ring->taken == ring->slot_count ||
        (__atomic_load_n(&slot->tp_status, __ATOMIC_ACQUIRE) & TP_STATUS_USER) == 0)
        return NULL;
    ring->at = ring->at + 1 == ring->slot_count ? 0 : ring->at + 1;
    ring->taken++;
    *bytes = slot->tp_len == slot->tp_snaplen ? slot->tp_snaplen : 0;
    return (const uint8_t *)slot + slot->tp_mac;
}

void by_ring_return(struct by_ring *ring)
{
    uint32_t index = ring->at + ring->slot_count - ring->taken;

    for (index %= ring->slot_count; ring->taken > 0; ring->taken--) {
        __atomic_store_n(&slot_of(ring, index)->tp_status, TP_STATUS_KERNEL, __ATOMIC_RELEASE);
        index = index + 1 == ring->slot_count ? 0 : index + 1;
    }
}

uint64_t by_ring_lost(struct by_ring *ring)
{
    struct tpacket_stats statistics = {0};
    socklen_t bytes = sizeof(statistics);

    return getsockopt(ring->fd, SOL_PACKET, PACKET_STATISTICS, &statistics, &bytes) == 0 ? statistics.tp_drops
                                                                                         : 0;
}
