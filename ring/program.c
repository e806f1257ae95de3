/*
 * The program of a ring, instruction by instruction; see program.h. Sources: bpf-helpers(7), linux/bpf.h. The
 * kernel knows the size of a record before it knows the frame, so that there are three: for one packet
 * without a payload, for many of them, and for a whole frame. Any thread.
 */
#include "ring/program.h"

#include <linux/bpf.h>
#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

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
/* Frames of these lengths and of the MTU have records of their own size (bytes). */
#define SHORT_BYTES  (2 * BY_RECORD_LINE + BY_RECORD_LINE / 4)
#define MIDDLE_BYTES 704u
#define CLASSES      3u
#define CODE_MAX     128u
/* BPF_LD, BPF_IMM, BPF_ADD and BPF_K are 0. */
#define LOAD_64    BPF_DW
#define ADD_NUMBER BPF_ALU64

/* Registers that outlive calls: the frame, its length, the record, what is shared. */
enum { FRAME = BPF_REG_6, LENGTH = BPF_REG_7, RECORD = BPF_REG_8, SHARED = BPF_REG_9 };

struct code {
    struct bpf_insn at[CODE_MAX];
    unsigned count;
};

static struct bpf_insn *add(struct code *code, struct bpf_insn instruction)
{
    code->at[code->count] = instruction;
    return &code->at[code->count++];
}

static void set(struct code *code, uint8_t reg, int32_t value)
{
    add(code, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = reg, .imm = value});
}

static void copy(struct code *code, uint8_t to, uint8_t from)
{
    add(code, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = to, .src_reg = from});
}

/* reg = *(uint32_t *)(base + at) */
static void load(struct code *code, uint8_t reg, uint8_t base, int16_t at)
{
    add(code,
        (struct bpf_insn){.code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = reg, .src_reg = base, .off = at});
}

/* *(uint32_t *)(base + at) = value */
static void store(struct code *code, uint8_t base, int16_t at, int32_t value)
{
    add(code, (struct bpf_insn){.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = base, .off = at, .imm = value});
}

/* A descriptor, or the address of the value of an array's only element. */
static void map(struct code *code, uint8_t reg, int fd, uint8_t kind)
{
    add(code, (struct bpf_insn){.code = LOAD_64, .dst_reg = reg, .src_reg = kind, .imm = fd});
    add(code, (struct bpf_insn){.imm = 0});
}

static void call(struct code *code, int32_t function)
{
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = function});
}

static void leave(struct code *code, int32_t result)
{
    set(code, BPF_REG_0, result);
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT});
}

/* A jump over what is added before land(): when `operation` holds for the lower 32 bits of reg and value. */
static unsigned jump(struct code *code, uint8_t operation, uint8_t reg, uint32_t value)
{
    add(code,
        (struct bpf_insn){.code = BPF_JMP32 | operation | BPF_K, .dst_reg = reg, .imm = (int32_t)value});
    return code->count - 1;
}

static void land(struct code *code, unsigned from)
{
    code->at[from].off = (int16_t)(code->count - from - 1);
}

/* Frames whose field is another go on up the stack. LD_ABS wants the frame in register 6. */
static void only(struct code *code, uint8_t size, uint32_t at, uint32_t value)
{
    unsigned same;

    add(code, (struct bpf_insn){.code = (uint8_t)(BPF_LD | BPF_ABS | size), .imm = (int32_t)at});
    same = jump(code, BPF_JEQ, BPF_REG_0, value);
    leave(code, TCX_NEXT);
    land(code, same);
}

static void filter(struct code *code, const struct by_ring_config *config)
{
    if (config->all)
        return;
    only(code, BPF_H, AT_TYPE, ETH_P_IP);
    only(code, BPF_B, AT_VERSION, 0x45);
    only(code, BPF_B, AT_PROTOCOL, IPPROTO_UDP);
    only(code, BPF_W, AT_RECEIVER, config->ip);
    only(code, BPF_H, AT_PORT, config->udp_port);
}

/* RECORD = room for a frame of `bytes`; ends here, and counts, when there is none. */
static void reserve(struct code *code, int ring_fd, uint32_t bytes)
{
    unsigned room;

    map(code, BPF_REG_1, ring_fd, BPF_PSEUDO_MAP_FD);
    set(code, BPF_REG_2, (int32_t)(by_record_bytes(bytes) - BY_RECORD_KERNEL));
    set(code, BPF_REG_3, 0);
    call(code, BPF_FUNC_ringbuf_reserve);
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0});
    room = code->count - 1;
    set(code, BPF_REG_1, 1);
    add(code, (struct bpf_insn){.code = BPF_STX | BPF_ATOMIC | BPF_DW,
                                .dst_reg = SHARED,
                                .src_reg = BPF_REG_1,
                                .off = offsetof(struct by_ring_shared, lost),
                                .imm = BPF_ADD});
    leave(code, TCX_DROP);
    land(code, room);
    copy(code, RECORD, BPF_REG_0);
}

/* Fills a record for frames of up to `bytes`; jumps from the returned place when it is filled. */
static unsigned take(struct code *code, int ring_fd, uint32_t bytes)
{
    unsigned longer = jump(code, BPF_JGT, LENGTH, bytes), right, filled;

    reserve(code, ring_fd, bytes);
    add(code,
        (struct bpf_insn){.code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = RECORD, .src_reg = LENGTH, .off = 0});
    copy(code, BPF_REG_1, FRAME);
    set(code, BPF_REG_2, 0);
    copy(code, BPF_REG_3, RECORD);
    add(code, (struct bpf_insn){
                  .code = ADD_NUMBER, .dst_reg = BPF_REG_3, .imm = BY_RECORD_FRAME - BY_RECORD_KERNEL});
    copy(code, BPF_REG_4, LENGTH);
    call(code, BPF_FUNC_skb_load_bytes);
    right = jump(code, BPF_JEQ, BPF_REG_0, 0);
    store(code, RECORD, 0, 0);
    land(code, right);
    filled = code->count;
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_JA});
    land(code, longer);
    return filled;
}

/*
 * Shows the record; then, if the reader sleeps, wakes it. In this order, with the submission's barrier in
 * between, since the reader says that it sleeps and then looks once more. A host is woken by its socket, to
 * which the frame goes on; that costs a quarter of the interrupt that this processor sends itself to wake
 * whoever polls a ring. A switch has no such socket; there the word for waking goes with a record of nothing.
 */
static void submit(struct code *code, int ring_fd, bool socket)
{
    unsigned asleep, room;

    copy(code, BPF_REG_1, RECORD);
    set(code, BPF_REG_2, BPF_RB_NO_WAKEUP);
    call(code, BPF_FUNC_ringbuf_submit);
    load(code, BPF_REG_1, SHARED, offsetof(struct by_ring_shared, asleep));
    asleep = jump(code, BPF_JNE, BPF_REG_1, 0);
    leave(code, TCX_DROP);
    land(code, asleep);
    store(code, SHARED, offsetof(struct by_ring_shared, asleep), 0);
    if (socket) {
        leave(code, TCX_NEXT);
        return;
    }
    map(code, BPF_REG_1, ring_fd, BPF_PSEUDO_MAP_FD);
    set(code, BPF_REG_2, (int32_t)(BY_RECORD_LINE - BY_RECORD_KERNEL));
    set(code, BPF_REG_3, 0);
    call(code, BPF_FUNC_ringbuf_reserve);
    add(code, (struct bpf_insn){.code = BPF_JMP | BPF_JNE | BPF_K, .dst_reg = BPF_REG_0});
    room = code->count - 1;
    leave(code, TCX_DROP);
    land(code, room);
    copy(code, BPF_REG_1, BPF_REG_0);
    set(code, BPF_REG_2, BPF_RB_FORCE_WAKEUP);
    call(code, BPF_FUNC_ringbuf_discard);
    leave(code, TCX_DROP);
}

int by_ring_program(const struct by_ring_config *config, int ring_fd, int shared_fd)
{
    const uint32_t bytes[CLASSES] = {SHORT_BYTES, MIDDLE_BYTES, ETH_HLEN + config->mtu};
    unsigned filled[CLASSES], some;
    struct code code = {.count = 0};
    union bpf_attr attributes;

    copy(&code, FRAME, BPF_REG_1);
    filter(&code, config);
    map(&code, SHARED, shared_fd, BPF_PSEUDO_MAP_VALUE);
    load(&code, LENGTH, FRAME, offsetof(struct __sk_buff, len));
    some = jump(&code, BPF_JGT, LENGTH, 0); /* the kernel wants to know */
    leave(&code, TCX_DROP);
    land(&code, some);
    for (unsigned i = 0; i < CLASSES; i++)
        filled[i] = take(&code, ring_fd, bytes[i]);
    reserve(&code, ring_fd, 0);
    store(&code, RECORD, 0, 0);
    for (unsigned i = 0; i < CLASSES; i++)
        land(&code, filled[i]);
    submit(&code, ring_fd, !config->all);

    memset(&attributes, 0, sizeof(attributes));
    attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attributes.expected_attach_type = TCX_INGRESS;
    attributes.insns = (uintptr_t)code.at;
    attributes.insn_cnt = code.count;
    attributes.license = (uintptr_t) "GPL";
    return (int)syscall(SYS_bpf, BPF_PROG_LOAD, &attributes, sizeof(attributes));
}
