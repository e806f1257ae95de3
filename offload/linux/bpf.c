/* eBPF by system calls; see bpf.h. Sources: bpf(2), bpf-helpers(7), linux/bpf.h. Any thread. */
#include "offload/linux/bpf.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* BPF_LD, BPF_IMM, BPF_ADD and BPF_K are 0. */
#define LOAD_64    BPF_DW
#define ADD_NUMBER BPF_ALU64

void by_code_add(struct by_code *code, struct bpf_insn instruction)
{
    code->at[code->count++] = instruction;
}

void by_code_set(struct by_code *code, uint8_t reg, int32_t value)
{
    by_code_add(code, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = reg, .imm = value});
}

void by_code_copy(struct by_code *code, uint8_t to, uint8_t from)
{
    by_code_add(code, (struct bpf_insn){.code = BPF_ALU64 | BPF_MOV | BPF_X, .dst_reg = to, .src_reg = from});
}

void by_code_increase(struct by_code *code, uint8_t reg, int32_t value)
{
    by_code_add(code, (struct bpf_insn){.code = ADD_NUMBER, .dst_reg = reg, .imm = value});
}

void by_code_load(struct by_code *code, uint8_t reg, uint8_t base, int16_t at)
{
    by_code_add(code, (struct bpf_insn){
                          .code = BPF_LDX | BPF_MEM | BPF_W, .dst_reg = reg, .src_reg = base, .off = at});
}

void by_code_store(struct by_code *code, uint8_t base, int16_t at, int32_t value)
{
    by_code_add(
        code, (struct bpf_insn){.code = BPF_ST | BPF_MEM | BPF_W, .dst_reg = base, .off = at, .imm = value});
}

void by_code_put(struct by_code *code, uint8_t base, int16_t at, uint8_t reg)
{
    by_code_add(code, (struct bpf_insn){
                          .code = BPF_STX | BPF_MEM | BPF_W, .dst_reg = base, .src_reg = reg, .off = at});
}

void by_code_map(struct by_code *code, uint8_t reg, int fd, uint8_t kind)
{
    by_code_add(code, (struct bpf_insn){.code = LOAD_64, .dst_reg = reg, .src_reg = kind, .imm = fd});
    by_code_add(code, (struct bpf_insn){.imm = 0});
}

void by_code_call(struct by_code *code, int32_t function)
{
    by_code_add(code, (struct bpf_insn){.code = BPF_JMP | BPF_CALL, .imm = function});
}

void by_code_leave(struct by_code *code, int32_t result)
{
    by_code_set(code, BPF_REG_0, result);
    by_code_add(code, (struct bpf_insn){.code = BPF_JMP | BPF_EXIT});
}

unsigned by_code_jump(struct by_code *code, uint8_t operation, uint8_t reg, uint32_t value)
{
    by_code_add(code, (struct bpf_insn){
                          .code = BPF_JMP32 | operation | BPF_K, .dst_reg = reg, .imm = (int32_t)value});
    return code->count - 1;
}

unsigned by_code_jump_null(struct by_code *code, uint8_t operation, uint8_t reg)
{
    by_code_add(code, (struct bpf_insn){.code = BPF_JMP | operation | BPF_K, .dst_reg = reg});
    return code->count - 1;
}

void by_code_land(struct by_code *code, unsigned from)
{
    code->at[from].off = (int16_t)(code->count - from - 1);
}

static int bpf(int command, union bpf_attr *attributes)
{
    return (int)syscall(SYS_bpf, command, attributes, sizeof(*attributes));
}

int by_code_program(const struct by_code *code, uint32_t place)
{
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.prog_type = BPF_PROG_TYPE_SCHED_CLS;
    attributes.expected_attach_type = place;
    attributes.insns = (uintptr_t)code->at;
    attributes.insn_cnt = code->count;
    attributes.license = (uintptr_t) "GPL";
    return bpf(BPF_PROG_LOAD, &attributes);
}

int by_code_attach(int program_fd, unsigned interface_index, uint32_t place)
{
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.link_create.prog_fd = (uint32_t)program_fd;
    attributes.link_create.target_ifindex = interface_index;
    attributes.link_create.attach_type = place;
    return bpf(BPF_LINK_CREATE, &attributes);
}

int by_map_make(uint32_t type, uint32_t key_bytes, uint32_t value_bytes, uint32_t entries, uint32_t flags)
{
    union bpf_attr attributes;

    memset(&attributes, 0, sizeof(attributes));
    attributes.map_type = type;
    attributes.key_size = key_bytes;
    attributes.value_size = value_bytes;
    attributes.max_entries = entries;
    attributes.map_flags = flags;
    return bpf(BPF_MAP_CREATE, &attributes);
}

void *by_map_memory(int fd, size_t bytes, int protection, size_t offset)
{
    void *memory = mmap(NULL, bytes, protection, MAP_SHARED | MAP_POPULATE, fd, (off_t)offset);

    return memory == MAP_FAILED ? NULL : memory;
}
