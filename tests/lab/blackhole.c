/*
 * A cable that swallows packets and keeps its carrier up: drops, before anybody sees it, every
 * frame that comes to an interface, until it is ended. A program of two instructions at the
 * interface's XDP hook (generic mode: any device, any MTU, and packet sockets see nothing of what
 * it drops), which the kernel takes away with this process. In the network namespace of the
 * interface, as root: lab-blackhole INTERFACE... Says "swallowing" once it does.
 */
#include <errno.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static int bpf(int command, union bpf_attr *attributes)
{
    return (int)syscall(SYS_bpf, command, attributes, sizeof *attributes);
}

/* Attached until the process ends: 0, or -1 and errno. */
static int blackhole(const char *interface)
{
    static const struct bpf_insn code[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0, .imm = XDP_DROP},
        {.code = BPF_JMP | BPF_EXIT},
    };
    static const char license[] = "Dual MIT/GPL";
    union bpf_attr attributes = {0};
    int program, index = (int)if_nametoindex(interface);

    if (index == 0)
        return -1;
    attributes.prog_type = BPF_PROG_TYPE_XDP;
    attributes.insns = (uint64_t)(uintptr_t)code;
    attributes.insn_cnt = sizeof code / sizeof code[0];
    attributes.license = (uint64_t)(uintptr_t)license;
    program = bpf(BPF_PROG_LOAD, &attributes);
    if (program < 0)
        return -1;
    memset(&attributes, 0, sizeof attributes);
    attributes.link_create.prog_fd = (uint32_t)program;
    attributes.link_create.target_ifindex = (uint32_t)index;
    attributes.link_create.attach_type = BPF_XDP;
    attributes.link_create.flags = XDP_FLAGS_SKB_MODE;
    return bpf(BPF_LINK_CREATE, &attributes) < 0 ? -1 : 0;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (blackhole(argv[i]) != 0) {
            fprintf(stderr, "lab-blackhole: %s: %s\n", argv[i], strerror(errno));
            return 3;
        }
    puts("swallowing");
    fflush(stdout);
    for (;;)
        pause();
}
