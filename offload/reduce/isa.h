/*
 * The registers of CPUID of an x86 processor, and the instruction sets that follow from them. isa.c
 * reads those of the running processor; tests describe others. Pure; any thread.
 */
#ifndef BY_REDUCE_ISA_H
#define BY_REDUCE_ISA_H

#include <stdint.h>

#if defined(__x86_64__)

/* Registers by Intel SDM volume 2, CPUID; 0 where the processor lacks the leaf. */
struct by_isa_x86 {
    uint32_t leaf1_ecx;
    uint32_t leaf7_ebx; /* subleaf 0 */
    uint32_t xcr0;      /* the low half; 0 without OSXSAVE */
};

/* Returns 1 when a processor has each instruction of `isa` (enum by_isa), and its operating system
 * saves the registers; else 0. */
int by_isa_x86_has(const struct by_isa_x86 *processor, unsigned isa);

#endif

#endif
