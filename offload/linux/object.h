/*
 * A compiled eBPF program inside of ours, and libbpf without its own words. For those who load one:
 * the switch's driver xdp, and the host's AF_XDP transport.
 */
#ifndef BY_LINUX_OBJECT_H
#define BY_LINUX_OBJECT_H

#include <stdint.h>

#include <bpf/libbpf.h>

/* The file at `path` as the bytes from `symbol` to `symbol`_end, in this translation unit alone. */
#define BY_OBJECT(symbol, path)                                                                              \
    __asm__(".pushsection .rodata\n.balign 16\n"                                                             \
            ".local " #symbol "\n" #symbol ":\n.incbin \"" path "\"\n"                                       \
            ".local " #symbol "_end\n" #symbol "_end:\n.byte 0\n.popsection\n");                             \
    extern const uint8_t symbol[] __attribute__((visibility("hidden")));                                     \
    extern const uint8_t symbol##_end[] __attribute__((visibility("hidden")))

/* For libbpf_set_print: it would speak on stderr of what we report ourselves. */
static inline int by_object_be_silent(enum libbpf_print_level level, const char *format, va_list arguments)
{
    (void)level;
    (void)format;
    (void)arguments;
    return 0;
}

#endif
