/*
 * Loads eBPF programs that are embedded in the binary, by libbpf and without libbpf's messages. For
 * the switch's driver xdp, the host's AF_XDP transport, rings (ring.h) and copies (copies.h). Linux
 * only; libbpf's message handler is global, so one thread at a time.
 */
#ifndef BY_LINUX_OBJECT_H
#define BY_LINUX_OBJECT_H

#include <stddef.h>
#include <stdint.h>

#include <bpf/libbpf.h>

/* Embeds the file at `path` as the bytes from `symbol` to `symbol`_end, for this source only. */
#define BY_OBJECT(symbol, path)                                                                              \
    __asm__(".pushsection .rodata\n.balign 16\n"                                                             \
            ".local " #symbol "\n" #symbol ":\n.incbin \"" path "\"\n"                                       \
            ".local " #symbol "_end\n" #symbol "_end:\n.byte 0\n.popsection\n");                             \
    extern const uint8_t symbol[] __attribute__((visibility("hidden")));                                     \
    extern const uint8_t symbol##_end[] __attribute__((visibility("hidden")))

/* Places of tcx programs, which older headers lack. */
#define BY_TCX_INGRESS 46u
#define BY_TCX_EGRESS  47u

/* For libbpf_set_print: suppresses libbpf's messages on stderr, because the callers report
 * errors. */
static inline int by_object_be_silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

/* Opens an object from `begin` to `end`. Returns NULL and errno on failure. The caller closes it
 * with bpf_object__close, also after an error of the functions below. */
struct bpf_object *by_object_open(const uint8_t *begin, const uint8_t *end);
/* Sets the program's constants before it is loaded: `bytes` is the size of all of them. Returns 0
 * or -errno. */
int by_object_constants(struct bpf_object *object, const void *constants, size_t bytes);
/* Loads the only program of an object as a tcx program. Returns its descriptor, which the object
 * owns, or -errno. Requires CAP_BPF and CAP_NET_ADMIN. */
int by_object_load_tcx(struct bpf_object *object, uint32_t place);
/* Maps the loaded program's variables, initially zero: `bytes` of memory that both sides write.
 * Returns NULL on failure. The caller unmaps it. */
void *by_object_variables(struct bpf_object *object, size_t bytes);
/* Attaches a tcx program after the interface's existing programs. Returns the descriptor of the
 * link, or -errno; -EOPNOTSUPP or -EINVAL: the kernel does not support tcx. */
int by_object_attach_tcx(int program_fd, unsigned interface_index, uint32_t place);

#endif
