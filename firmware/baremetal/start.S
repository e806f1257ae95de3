/*
 * The entry point of the image, to which the board jumps at EL1 or EL2 with the MMU off. It leaves
 * EL2, allows floating point, sets stack and vectors, clears .bss, turns on MMU and caches (mmu.c),
 * and calls by_main. Any exception is a fault: the registers are saved on a separate stack, because
 * the current one may have overflowed, and reported (fault.c). The only interrupt that is ever
 * taken is the watchdog's check of the loop (watchdog.c), which returns. Other interrupts only end
 * a WFI, and the loop reads their cause from the interrupt controller.
 */
    .section .text.start, "ax"
    .global by_start
by_start:
    msr     daifset, #0xf
    mrs     x0, mpidr_el1
    and     x0, x0, #0xff
    cbnz    x0, park                /* one processor runs the switch */
    mov     x19, #0                 /* argument of by_main: started at EL2 */
    mrs     x0, CurrentEL
    cmp     x0, #(2 << 2)
    b.ne    at_el1
    mov     x19, #1
    mov     x0, #(1 << 31)          /* HCR_EL2.RW: EL1 is AArch64 */
    msr     hcr_el2, x0
    mrs     x0, cnthctl_el2
    orr     x0, x0, #3              /* EL1 has the counters and the physical timer */
    msr     cnthctl_el2, x0
    msr     cntvoff_el2, xzr
    mov     x0, #0x33ff             /* CPTR_EL2: no traps of floating point */
    msr     cptr_el2, x0
    msr     hstr_el2, xzr
    ldr     x0, =0x30d00800         /* SCTLR_EL1: its fixed bits, all else off */
    msr     sctlr_el1, x0
    mov     x0, #0x3c5              /* EL1h, all masked */
    msr     spsr_el2, x0
    adr     x0, at_el1
    msr     elr_el2, x0
    eret
at_el1:
    msr     spsel, #1
    mov     x0, #(3 << 20)          /* CPACR_EL1.FPEN */
    msr     cpacr_el1, x0
    ldr     x0, =vectors
    msr     vbar_el1, x0
    isb
    ldr     x0, =by_stack_end
    mov     sp, x0
    ldr     x0, =by_zero_start
    ldr     x1, =by_zero_end
1:  cmp     x0, x1
    b.hs    2f
    stp     xzr, xzr, [x0], #16
    b       1b
2:  bl      by_mmu_start
    mov     x29, xzr
    mov     x30, xzr
    mov     x0, x19
    bl      by_main
park:
    wfi
    b       park

    .macro vector kind
    .balign 0x80
    msr     tpidr_el1, x0
    mov     x0, #\kind
    b       save
    .endm

    .text
    .balign 0x800
vectors:
    vector 0
    vector 1
    vector 2
    vector 3
    vector 4
    .balign 0x80
    b       look
    vector 6
    vector 7
    vector 8
    vector 9
    vector 10
    vector 11
    vector 12
    vector 13
    vector 14
    vector 15

    /* Saves all registers that a function may change, on the interrupted code's stack. Nothing
     * interrupts this, so ELR and SPSR remain unchanged. */
look:
    sub     sp, sp, #176
    stp     x0, x1, [sp]
    stp     x2, x3, [sp, #16]
    stp     x4, x5, [sp, #32]
    stp     x6, x7, [sp, #48]
    stp     x8, x9, [sp, #64]
    stp     x10, x11, [sp, #80]
    stp     x12, x13, [sp, #96]
    stp     x14, x15, [sp, #112]
    stp     x16, x17, [sp, #128]
    stp     x18, x29, [sp, #144]
    str     x30, [sp, #160]
    mrs     x0, elr_el1
    mov     x1, x30
    bl      by_watchdog_look
    ldp     x0, x1, [sp]
    ldp     x2, x3, [sp, #16]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldp     x18, x29, [sp, #144]
    ldr     x30, [sp, #160]
    add     sp, sp, #176
    eret

    /* Saves x0 to x30 and sp as struct by_fault_frame at the top of the fault stack. */
save:
    msr     tpidr_el0, x1
    mov     x1, sp
    msr     tpidrro_el0, x1
    ldr     x1, =(by_fault_stack_end - 256)
    stp     x2, x3, [x1, #16]
    stp     x4, x5, [x1, #32]
    stp     x6, x7, [x1, #48]
    stp     x8, x9, [x1, #64]
    stp     x10, x11, [x1, #80]
    stp     x12, x13, [x1, #96]
    stp     x14, x15, [x1, #112]
    stp     x16, x17, [x1, #128]
    stp     x18, x19, [x1, #144]
    stp     x20, x21, [x1, #160]
    stp     x22, x23, [x1, #176]
    stp     x24, x25, [x1, #192]
    stp     x26, x27, [x1, #208]
    stp     x28, x29, [x1, #224]
    mrs     x2, tpidrro_el0
    stp     x30, x2, [x1, #240]
    mrs     x2, tpidr_el1
    mrs     x3, tpidr_el0
    stp     x2, x3, [x1]
    mov     sp, x1
    mov     x1, x0
    mov     x0, sp
    bl      by_fault
