/*
 * The program that copies, and what it shares with the sender; see copies.h. It runs inside of the
 * sender's system call, so that memory between the two wants no order. A packet is meant when it
 * has our mark and a send is under way; others go on as they are. A clone keeps the headers it was
 * made with, since the kernel gives the original new ones before they are written again; it is
 * marked no more, so that a program of ours at another interface's exit lets it pass. Sources:
 * bpf-helpers(7), packet(7), socket(7). Sender's thread.
 */
#include "offload/linux/copies.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "offload/linux/bpf.h"

#define MARK 0x62796370u

/* In pages of its own. */
struct copies_shared {
    uint32_t armed; /* a send is under way, and the program has not seen it yet */
    uint8_t room[60];
    struct by_copy copy[BY_COPIES_MAX];
};

struct by_copies {
    int map_fd, program_fd;
    struct copies_shared *shared;
    unsigned link_count;
    int link_fd[BY_COPIES_MAX];
};

/* Registers that outlive calls: the packet, the copy's place in the list (bytes), the copy, what is
 * shared.
 */
enum { PACKET = BPF_REG_6, AT = BPF_REG_7, COPY = BPF_REG_8, SHARED = BPF_REG_9 };

/* Packets without the mark, or while nothing is sent with copies, go on. */
static void only_ours(struct by_code *code, int map_fd)
{
    unsigned ours, armed;

    by_code_load(code, BPF_REG_1, PACKET, offsetof(struct __sk_buff, mark));
    ours = by_code_jump(code, BPF_JEQ, BPF_REG_1, MARK);
    by_code_leave(code, BY_TCX_NEXT);
    by_code_land(code, ours);
    by_code_map(code, SHARED, map_fd, BPF_PSEUDO_MAP_VALUE);
    by_code_load(code, BPF_REG_1, SHARED, offsetof(struct copies_shared, armed));
    armed = by_code_jump(code, BPF_JNE, BPF_REG_1, 0);
    by_code_leave(code, BY_TCX_NEXT);
    by_code_land(code, armed);
    by_code_store(code, SHARED, offsetof(struct copies_shared, armed), 0);
    by_code_set(code, BPF_REG_1, 0);
    by_code_put(code, PACKET, offsetof(struct __sk_buff, mark), BPF_REG_1);
}

/* The packet's headers become those of the copy. */
static void write_header(struct by_code *code)
{
    unsigned written;

    by_code_copy(code, BPF_REG_1, PACKET);
    by_code_set(code, BPF_REG_2, 0);
    by_code_copy(code, BPF_REG_3, COPY);
    by_code_increase(code, BPF_REG_3, offsetof(struct by_copy, header));
    by_code_set(code, BPF_REG_4, BY_COPY_HEADER_BYTES);
    by_code_set(code, BPF_REG_5, 0);
    by_code_call(code, BPF_FUNC_skb_store_bytes);
    written = by_code_jump(code, BPF_JEQ, BPF_REG_0, 0);
    by_code_leave(code, BY_TCX_DROP);
    by_code_land(code, written);
}

static int load_program(int map_fd)
{
    struct by_code code = {.count = 0};
    unsigned again, other;

    by_code_copy(&code, PACKET, BPF_REG_1);
    only_ours(&code, map_fd);
    by_code_set(&code, AT, 0);
    again = code.count;
    by_code_copy(&code, COPY, SHARED);
    by_code_add(&code,
                (struct bpf_insn){.code = BPF_ALU64 | BPF_ADD | BPF_X, .dst_reg = COPY, .src_reg = AT});
    by_code_increase(&code, COPY, offsetof(struct copies_shared, copy));
    write_header(&code);
    by_code_load(&code, BPF_REG_2, COPY, offsetof(struct by_copy, interface));
    other = by_code_jump(&code, BPF_JNE, BPF_REG_2, 0);
    by_code_leave(&code, BY_TCX_NEXT);
    by_code_land(&code, other);
    by_code_copy(&code, BPF_REG_1, PACKET);
    by_code_set(&code, BPF_REG_3, 0);
    by_code_call(&code, BPF_FUNC_clone_redirect);
    by_code_put(&code, COPY, offsetof(struct by_copy, result), BPF_REG_0);
    by_code_increase(&code, AT, sizeof(struct by_copy));
    (void)by_code_jump(&code, BPF_JLT, AT, BY_COPIES_MAX * sizeof(struct by_copy));
    code.at[code.count - 1].off = (int16_t)(again - code.count);
    by_code_leave(&code, BY_TCX_DROP);
    return by_code_program(&code, BY_TCX_EGRESS);
}

static const char *open_steps(struct by_copies *copies)
{
    copies->map_fd =
        by_map_make(BPF_MAP_TYPE_ARRAY, sizeof(uint32_t), sizeof(struct copies_shared), 1, BPF_F_MMAPABLE);
    if (copies->map_fd < 0)
        return "map";
    copies->shared = by_map_memory(copies->map_fd, sizeof(struct copies_shared), PROT_READ | PROT_WRITE, 0);
    if (copies->shared == NULL)
        return "memory";
    copies->program_fd = load_program(copies->map_fd);
    return copies->program_fd < 0 ? "program" : NULL;
}

int by_copies_open(struct by_copies **out, const char **step)
{
    struct by_copies *copies = calloc(1, sizeof(*copies));
    int error;

    *step = "memory";
    if (copies == NULL)
        return -ENOMEM;
    copies->map_fd = copies->program_fd = -1;
    *step = open_steps(copies);
    if (*step == NULL) {
        *out = copies;
        return 0;
    }
    error = -errno;
    by_copies_close(copies);
    return error;
}

int by_copies_add(struct by_copies *copies, unsigned interface_index)
{
    int link;

    if (copies->link_count == BY_COPIES_MAX)
        return -ENOSPC;
    link = by_code_attach(copies->program_fd, interface_index, BY_TCX_EGRESS);
    if (link < 0)
        return -errno;
    copies->link_fd[copies->link_count++] = link;
    return 0;
}

void by_copies_close(struct by_copies *copies)
{
    if (copies == NULL)
        return;
    while (copies->link_count > 0)
        close(copies->link_fd[--copies->link_count]);
    if (copies->program_fd >= 0)
        close(copies->program_fd);
    if (copies->shared != NULL)
        munmap(copies->shared, sizeof(struct copies_shared));
    if (copies->map_fd >= 0)
        close(copies->map_fd);
    free(copies);
}

struct by_copy *by_copies_list(struct by_copies *copies)
{
    return copies->shared->copy;
}

int by_copies_send(struct by_copies *copies, unsigned count, int fd, struct msghdr *message)
{
    uint8_t control[CMSG_SPACE(sizeof(uint32_t))] __attribute__((aligned(8))) = {0};
    volatile uint32_t *armed = &copies->shared->armed; /* the kernel's program clears it */
    const uint32_t mark = MARK;
    struct cmsghdr *head;
    ssize_t sent;
    bool seen;
    int error;

    message->msg_control = control;
    message->msg_controllen = sizeof(control);
    head = CMSG_FIRSTHDR(message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SO_MARK;
    head->cmsg_len = CMSG_LEN(sizeof(mark));
    memcpy(CMSG_DATA(head), &mark, sizeof(mark));
    for (unsigned i = 0; i < count; i++) /* the program may end before it comes to them */
        copies->shared->copy[i].result = -EIO;
    *armed = 1;
    sent = sendmsg(fd, message, MSG_DONTWAIT);
    error = errno;
    seen = *armed == 0;
    *armed = 0;
    message->msg_control = NULL;
    message->msg_controllen = 0;
    /* Where the own interface refuses its copy, the others have left all the same. */
    copies->shared->copy[count - 1].result = sent < 0 ? -error : 0;
    if (seen)
        return 0;
    return sent < 0 ? -error : -ENOEXEC;
}
