/*
 * Programs of the kernel's own machine (eBPF) without a compiler or a loader: instructions one by
 * one, maps, and a program's place at an interface (tcx, since Linux 6.6). Neighbours: program.c (a
 * ring's), copies.c. Linux alone; any thread.
 */
#ifndef BY_LINUX_BPF_H
#define BY_LINUX_BPF_H

#include <linux/bpf.h>
#include <stddef.h>
#include <stdint.h>

#define BY_CODE_MAX 128u
/* Where a program stands, and what it answers: for others to decide, to go on, to end. Older
 * headers lack these. */
#define BY_TCX_INGRESS 46u
#define BY_TCX_EGRESS  47u
#define BY_TCX_NEXT    (-1)
#define BY_TCX_DROP    2

struct by_code {
    struct bpf_insn at[BY_CODE_MAX];
    unsigned count;
};

void by_code_add(struct by_code *code, struct bpf_insn instruction);
/* reg = value */
void by_code_set(struct by_code *code, uint8_t reg, int32_t value);
/* to = from */
void by_code_copy(struct by_code *code, uint8_t to, uint8_t from);
/* reg += value */
void by_code_increase(struct by_code *code, uint8_t reg, int32_t value);
/* reg = *(uint32_t *)(base + at) */
void by_code_load(struct by_code *code, uint8_t reg, uint8_t base, int16_t at);
/* *(uint32_t *)(base + at) = value */
void by_code_store(struct by_code *code, uint8_t base, int16_t at, int32_t value);
/* The same of a register's lower half. */
void by_code_put(struct by_code *code, uint8_t base, int16_t at, uint8_t reg);
/* A map's descriptor (BPF_PSEUDO_MAP_FD), or the address of the value of an array's only element
 * (BPF_PSEUDO_MAP_VALUE). */
void by_code_map(struct by_code *code, uint8_t reg, int fd, uint8_t kind);
void by_code_call(struct by_code *code, int32_t function);
/* Ends the program. */
void by_code_leave(struct by_code *code, int32_t result);
/* A jump over what is added before by_code_land: when `operation` holds for the lower 32 bits of
 * reg and value. */
unsigned by_code_jump(struct by_code *code, uint8_t operation, uint8_t reg, uint32_t value);
/* The same when a pointer in `reg` is none. */
unsigned by_code_jump_null(struct by_code *code, uint8_t operation, uint8_t reg);
void by_code_land(struct by_code *code, unsigned from);

/* The program's descriptor, or -1 and errno. */
int by_code_program(const struct by_code *code, uint32_t place);
/* Puts it there, as the last of what is there; a descriptor that holds it there, or -1 and errno.
 */
int by_code_attach(int program_fd, unsigned interface_index, uint32_t place);

/* A map's descriptor, or -1 and errno. */
int by_map_make(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, uint32_t flags);
/* Its memory, or NULL and errno. */
void *by_map_memory(int fd, size_t bytes, int protection, size_t offset);

#endif
