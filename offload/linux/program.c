/*
 * The program of a ring, instruction by instruction; see program.h. Sources: bpf-helpers(7),
 * linux/bpf.h. The kernel knows the size of a record before it knows the frame, so that there are
 * three: for one packet without a payload, for many of them, and for a whole frame. Any thread.
 */
#include "offload/linux/program.h"

#include <linux/if_ether.h>
#include <netinet/in.h>
#include <stddef.h>

#include "offload/linux/bpf.h"

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

/* Registers that outlive calls: the frame, its length, the record, what is shared. */
enum { FRAME = BPF_REG_6, LENGTH = BPF_REG_7, RECORD = BPF_REG_8, SHARED = BPF_REG_9 };

/* Frames whose field is another go on up the stack. LD_ABS wants the frame in register 6. */
static void only(struct by_code *code, uint8_t size, uint32_t at, uint32_t value)
{
    unsigned same;

    by_code_add(code, (struct bpf_insn){.code = (uint8_t)(BPF_LD | BPF_ABS | size), .imm = (int32_t)at});
    same = by_code_jump(code, BPF_JEQ, BPF_REG_0, value);
    by_code_leave(code, BY_TCX_NEXT);
    by_code_land(code, same);
}

static void filter(struct by_code *code, const struct by_ring_config *config)
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
static void reserve(struct by_code *code, int ring_fd, uint32_t bytes)
{
    unsigned room;

    by_code_map(code, BPF_REG_1, ring_fd, BPF_PSEUDO_MAP_FD);
    by_code_set(code, BPF_REG_2, (int32_t)(by_record_bytes(bytes) - BY_RECORD_KERNEL));
    by_code_set(code, BPF_REG_3, 0);
    by_code_call(code, BPF_FUNC_ringbuf_reserve);
    room = by_code_jump_null(code, BPF_JNE, BPF_REG_0);
    by_code_set(code, BPF_REG_1, 1);
    by_code_add(code, (struct bpf_insn){.code = BPF_STX | BPF_ATOMIC | BPF_DW,
                                        .dst_reg = SHARED,
                                        .src_reg = BPF_REG_1,
                                        .off = offsetof(struct by_ring_shared, lost),
                                        .imm = BPF_ADD});
    by_code_leave(code, BY_TCX_DROP);
    by_code_land(code, room);
    by_code_copy(code, RECORD, BPF_REG_0);
}

/* Fills a record for frames of up to `bytes`; jumps from the returned place when it is filled. */
static unsigned take(struct by_code *code, int ring_fd, uint32_t bytes)
{
    unsigned longer = by_code_jump(code, BPF_JGT, LENGTH, bytes), right, filled;

    reserve(code, ring_fd, bytes);
    by_code_put(code, RECORD, 0, LENGTH);
    by_code_copy(code, BPF_REG_1, FRAME);
    by_code_set(code, BPF_REG_2, 0);
    by_code_copy(code, BPF_REG_3, RECORD);
    by_code_increase(code, BPF_REG_3, BY_RECORD_FRAME - BY_RECORD_KERNEL);
    by_code_copy(code, BPF_REG_4, LENGTH);
    by_code_call(code, BPF_FUNC_skb_load_bytes);
    right = by_code_jump(code, BPF_JEQ, BPF_REG_0, 0);
    by_code_store(code, RECORD, 0, 0);
    by_code_land(code, right);
    filled = code->count;
    by_code_add(code, (struct bpf_insn){.code = BPF_JMP | BPF_JA});
    by_code_land(code, longer);
    return filled;
}

/*
 * Shows the record; then, if the reader sleeps, wakes it. In this order, with the submission's
 * barrier in between, since the reader says that it sleeps and then looks once more. A host is
 * woken by its socket, to which the frame goes on; that costs a quarter of the interrupt that this
 * processor sends itself to wake whoever polls a ring. A switch has no such socket; there the word
 * for waking goes with a record of nothing.
 */
static void submit(struct by_code *code, int ring_fd, bool socket)
{
    unsigned asleep, room;

    by_code_copy(code, BPF_REG_1, RECORD);
    by_code_set(code, BPF_REG_2, BPF_RB_NO_WAKEUP);
    by_code_call(code, BPF_FUNC_ringbuf_submit);
    by_code_load(code, BPF_REG_1, SHARED, offsetof(struct by_ring_shared, asleep));
    asleep = by_code_jump(code, BPF_JNE, BPF_REG_1, 0);
    by_code_leave(code, BY_TCX_DROP);
    by_code_land(code, asleep);
    by_code_store(code, SHARED, offsetof(struct by_ring_shared, asleep), 0);
    if (socket) {
        by_code_leave(code, BY_TCX_NEXT);
        return;
    }
    by_code_map(code, BPF_REG_1, ring_fd, BPF_PSEUDO_MAP_FD);
    by_code_set(code, BPF_REG_2, (int32_t)(BY_RECORD_LINE - BY_RECORD_KERNEL));
    by_code_set(code, BPF_REG_3, 0);
    by_code_call(code, BPF_FUNC_ringbuf_reserve);
    room = by_code_jump_null(code, BPF_JNE, BPF_REG_0);
    by_code_leave(code, BY_TCX_DROP);
    by_code_land(code, room);
    by_code_copy(code, BPF_REG_1, BPF_REG_0);
    by_code_set(code, BPF_REG_2, BPF_RB_FORCE_WAKEUP);
    by_code_call(code, BPF_FUNC_ringbuf_discard);
    by_code_leave(code, BY_TCX_DROP);
}

int by_ring_program(const struct by_ring_config *config, int ring_fd, int shared_fd)
{
    const uint32_t bytes[CLASSES] = {SHORT_BYTES, MIDDLE_BYTES, ETH_HLEN + config->mtu};
    unsigned filled[CLASSES], some;
    struct by_code code = {.count = 0};

    by_code_copy(&code, FRAME, BPF_REG_1);
    filter(&code, config);
    by_code_map(&code, SHARED, shared_fd, BPF_PSEUDO_MAP_VALUE);
    by_code_load(&code, LENGTH, FRAME, offsetof(struct __sk_buff, len));
    some = by_code_jump(&code, BPF_JGT, LENGTH, 0); /* the kernel wants to know */
    by_code_leave(&code, BY_TCX_DROP);
    by_code_land(&code, some);
    for (unsigned i = 0; i < CLASSES; i++)
        filled[i] = take(&code, ring_fd, bytes[i]);
    reserve(&code, ring_fd, 0);
    by_code_store(&code, RECORD, 0, 0);
    for (unsigned i = 0; i < CLASSES; i++)
        by_code_land(&code, filled[i]);
    submit(&code, ring_fd, !config->all);

    return by_code_program(&code, BY_TCX_INGRESS);
}
