/*
 * Steps this program itself with the trap flag of x86 and a handler of the debug exception. For a
 * machine on which the program runs in ring 0 without an operating system, and on which the gate of
 * that exception names a stack (tests/avx512/rom.S). Single-threaded.
 */
#include "tests/unit/offload/reduce/step.h"

#include <stdint.h>
#include <stdlib.h>

#define DEBUG_GATE 1u

static void *shared;
static void (*run_once)(void *);
static void (*volatile change_now)(void *);
static volatile unsigned steps;

__attribute__((used, aligned(64))) static uint8_t step_state[4096]; /* XSAVE; its header stays zero */

/* The handler. It saves everything that C code may change, including all vector registers. */
void step_entry(void);
__asm__("step_entry:\n"
        "    pushq %rax\n    pushq %rcx\n    pushq %rdx\n    pushq %rsi\n    pushq %rdi\n    pushq %rbp\n"
        "    pushq %r8\n    pushq %r9\n    pushq %r10\n    pushq %r11\n"
        "    movq %rsp, %rbp\n"
        "    andq $-16, %rsp\n"
        "    cld\n"
        "    movl $-1, %eax\n"
        "    movl $-1, %edx\n"
        "    xsave64 step_state(%rip)\n"
        "    call step_taken\n"
        "    movl $-1, %eax\n"
        "    movl $-1, %edx\n"
        "    xrstor64 step_state(%rip)\n"
        "    movq %rbp, %rsp\n"
        "    popq %r11\n    popq %r10\n    popq %r9\n    popq %r8\n"
        "    popq %rbp\n    popq %rdi\n    popq %rsi\n    popq %rdx\n    popq %rcx\n    popq %rax\n"
        "    iretq\n");

__attribute__((used)) static void step_taken(void)
{
    if (++steps == STEP_LIMIT)
        exit(1); /* a kernel that does not end cannot be left otherwise */
    change_now(shared);
}

void *step_begin(size_t bytes, void (*run)(void *memory))
{
    struct __attribute__((packed)) {
        uint16_t limit;
        uint64_t base;
    } table;
    uint64_t entry = (uint64_t)(uintptr_t)step_entry;
    uint16_t *gate;

    __asm__("sidt %0" : "=m"(table));
    gate = (uint16_t *)(uintptr_t)(table.base + DEBUG_GATE * (uint64_t)16);
    gate[0] = (uint16_t)entry;
    gate[3] = (uint16_t)(entry >> 16);
    gate[4] = (uint16_t)(entry >> 32);
    gate[5] = (uint16_t)(entry >> 48);
    run_once = run;
    shared = calloc(1, bytes);
    return shared;
}

/* Both preserve the area below the stack pointer, which a function may use. */
static void trap_on(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n    pushfq\n    orq $0x100, (%%rsp)\n    popfq\n"
                     "    leaq 128(%%rsp), %%rsp"
                     :
                     :
                     : "memory", "cc");
}

static void trap_off(void)
{
    __asm__ volatile("leaq -128(%%rsp), %%rsp\n    pushfq\n    andq $~0x100, (%%rsp)\n    popfq\n"
                     "    leaq 128(%%rsp), %%rsp"
                     :
                     :
                     : "memory", "cc");
}

unsigned step_run(void (*change)(void *memory))
{
    steps = 0;
    change_now = change;
    change(shared);
    trap_on();
    run_once(shared);
    trap_off();
    return steps;
}

void step_end(void)
{
    free(shared);
}
