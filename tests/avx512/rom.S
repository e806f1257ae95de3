/*
 * The system ROM of an emulated PC that runs one static Linux program on its only processor, with
 * all of AVX-512 enabled: from reset to 64 bits; then it loads the program's file from the first
 * disk, copies its segments and jumps to its entry. There are no privileges, and the only other
 * device is the first serial line, which gets the program's output. The ROM implements the few
 * system calls that a C library makes before and after main, and answers all others with ENOSYS.
 * The program's exit turns the machine off. Neighbours: avx512.sh builds and starts it; cmocka.c is
 * linked with the tests.
 */
#define FILE_AT   0x2000000
#define STACK_TOP 0x1f00000
#define MMAP_FROM 0x4000000

#define PML4  0x1000
#define PDPT  0x2000
#define IDT   0x3000
#define BREAK 0x4000 /* end of the heap, and the next free address for mmap */
#define MMAP  0x4008
#define TSS   0x5000
#define LOCAL 0x7000 /* the stack until the program's exists */

#define DEBUG_STACK 0x90000 /* of the debug exception: the program may use memory below its own stack */

#define CODE32 0x08
#define DATA   0x10
#define CODE64 0x18
#define TASK   0x28

#define SERIAL 0x3f8
#define ATA    0x1f0

    .section .rom, "ax"
    .code16
start16:
    cli
    lgdtl %cs:(gdt_pointer - 0xf0000)
    movl %cr0, %eax
    orl $1, %eax
    movl %eax, %cr0
    ljmpl $CODE32, $start32

    .code32
start32:
    movw $DATA, %ax
    movw %ax, %ds
    movw %ax, %es
    movw %ax, %ss
    movl $LOCAL, %esp
    cld
    inb $0x92, %al /* address line 20 */
    orb $2, %al
    andb $0xfe, %al
    outb %al, $0x92
    movl $PML4, %edi
    xorl %eax, %eax
    movl $(0x5000 / 4), %ecx
    rep stosl
    movl $(PDPT + 3), PML4
    movl $0x00000083, PDPT /* four identity-mapped pages of 1 GiB */
    movl $0x40000083, PDPT + 8
    movl $0x80000083, PDPT + 16
    movl $0xc0000083, PDPT + 24
    movl $0x40620, %eax /* PAE, OSFXSR, OSXMMEXCPT, OSXSAVE */
    movl %eax, %cr4
    movl $PML4, %eax
    movl %eax, %cr3
    movl $0xc0000080, %ecx
    rdmsr
    orl $0x101, %eax /* long mode, SYSCALL */
    wrmsr
    movl $0x80000023, %eax /* paging, numeric errors, monitoring */
    movl %eax, %cr0
    ljmpl $CODE64, $start64

    .code64
start64:
    xorl %ecx, %ecx
    xorl %edx, %edx
    movl $0xe7, %eax /* x87, SSE, AVX, masks and both halves of the 512-bit registers */
    xsetbv
    fninit
    movl $0xc0000081, %ecx /* STAR: what SYSCALL loads */
    xorl %eax, %eax
    movl $CODE64, %edx
    wrmsr
    movl $0xc0000082, %ecx /* LSTAR */
    movl $on_syscall, %eax
    xorl %edx, %edx
    wrmsr
    movl $IDT, %edi
    movl $32, %ecx
1:  movl $on_trap, %eax
    movw %ax, (%rdi)
    movw $CODE64, 2(%rdi)
    movw $0x8e00, 4(%rdi)
    shrl $16, %eax
    movw %ax, 6(%rdi)
    movq $0, 8(%rdi)
    addl $16, %edi
    decl %ecx
    jnz 1b
    lidt idt_pointer
    movb $1, IDT + 16 + 4 /* debug exceptions have their own stack, for a program that steps itself */
    movq $DEBUG_STACK, TSS + 0x24
    movw $TASK, %ax
    ltr %ax
    movw $(SERIAL + 3), %dx /* 115200 bits a second, 8N1 */
    movb $0x80, %al
    outb %al, %dx
    movw $SERIAL, %dx
    movb $1, %al
    outb %al, %dx
    incw %dx
    xorb %al, %al
    outb %al, %dx
    movw $(SERIAL + 3), %dx
    movb $3, %al
    outb %al, %dx

    /* The file: its first sector gives the place of the section headers, which come last. */
    movq $FILE_AT, %rbx
    movq %rbx, %rdi
    xorl %r8d, %r8d
    call read_sector
    movzwl 0x3a(%rbx), %eax
    movzwl 0x3c(%rbx), %ecx
    imull %ecx, %eax
    addl 0x28(%rbx), %eax
    leal 511(%rax), %r9d
    shrl $9, %r9d
4:  incl %r8d
    cmpl %r9d, %r8d
    jae 5f
    call read_sector
    jmp 4b
5:
    /* The segments. */
    movq 0x20(%rbx), %rsi
    addq %rbx, %rsi /* program headers */
    movzwl 0x38(%rbx), %r8d
    movq %rsi, %r9
    movl %r8d, %r10d
    xorl %r11d, %r11d /* end of the last one */
2:  cmpl $1, (%r9)
    jne 3f
    movq 0x08(%r9), %rsi
    addq %rbx, %rsi
    movq 0x10(%r9), %rdi
    movq 0x20(%r9), %rcx
    rep movsb
    movq 0x28(%r9), %rcx
    subq 0x20(%r9), %rcx
    xorl %eax, %eax
    rep stosb
    cmpq %r11, %rdi
    cmovaq %rdi, %r11
3:  addq $56, %r9
    decl %r10d
    jnz 2b
    addq $0xfff, %r11
    andq $-0x1000, %r11
    movq %r11, BREAK
    movq $MMAP_FROM, MMAP

    /* The initial stack as in Linux: argc, argv, environment, auxiliary vector. */
    movq $STACK_TOP, %rsp
    pushq $0
    pushq $0 /* AT_NULL */
    pushq 0x18(%rbx)
    pushq $9 /* AT_ENTRY */
    pushq $random
    pushq $25 /* AT_RANDOM */
    pushq $4096
    pushq $6 /* AT_PAGESZ */
    pushq %r8
    pushq $5 /* AT_PHNUM */
    pushq $56
    pushq $4 /* AT_PHENT */
    movq 0x20(%rbx), %rax
    addq %rbx, %rax
    pushq %rax
    pushq $3 /* AT_PHDR */
    pushq $0
    pushq $environment
    pushq $0
    pushq $name
    pushq $1
    xorl %edx, %edx /* no function to call at exit */
    jmp *0x18(%rbx)

/* ---- system calls: rcx is the return address ---- */
on_syscall:
    leaq -128(%rsp), %rsp /* the program's red zone */
    pushq %rcx
    pushq %rdx
    cmpl $1, %eax
    je do_write
    cmpl $9, %eax
    je do_mmap
    cmpl $12, %eax
    je do_brk
    cmpl $60, %eax
    je do_exit
    cmpl $231, %eax
    je do_exit
    cmpl $158, %eax
    je do_arch_prctl
    cmpl $318, %eax /* getrandom: leaves the buffer unchanged */
    je do_getrandom
    cmpl $10, %eax /* mprotect, munmap, signals, set_tid_address */
    je do_nothing
    cmpl $11, %eax
    je do_nothing
    cmpl $13, %eax
    je do_nothing
    cmpl $14, %eax
    je do_nothing
    cmpl $218, %eax
    je do_nothing
    movq $-38, %rax /* ENOSYS */
done:
    popq %rdx
    popq %rcx
    leaq 128(%rsp), %rsp
    jmp *%rcx

do_nothing:
    xorl %eax, %eax
    jmp done

do_getrandom:
    movq %rsi, %rax
    jmp done

do_write:
    pushq %rsi
    movq %rdx, %rcx
    pushq %rcx
    call put
    popq %rax
    popq %rsi
    jmp done

do_brk:
    testq %rdi, %rdi
    jz 1f
    movq %rdi, BREAK
1:  movq BREAK, %rax
    jmp done

do_mmap:
    leaq 0xfff(%rsi), %rdx
    andq $-0x1000, %rdx
    movq MMAP, %rax
    addq %rax, %rdx
    movq %rdx, MMAP
    jmp done

do_arch_prctl:
    cmpl $0x1002, %edi /* ARCH_SET_FS */
    movq $-22, %rax
    jne done
    movl $0xc0000100, %ecx
    movl %esi, %eax
    movq %rsi, %rdx
    shrq $32, %rdx
    wrmsr
    xorl %eax, %eax
    jmp done

do_exit:
    movl $said_failed, %esi
    testl %edi, %edi
    jnz 1f
    movl $said_passed, %esi
1:  movl $(said_failed - said_passed), %ecx
    call put
turn_off:
    movw $(SERIAL + 5), %dx /* waits until the last character is sent */
1:  inb %dx, %al
    testb $0x40, %al
    jz 1b
    movl $shutdown, %esi
    movl $8, %ecx
    movw $0x8900, %dx
    rep outsb
2:  hlt
    jmp 2b

/* Reads sector r8d of the disk to rdi and advances rdi. */
read_sector:
    movl %r8d, %eax
    movw $(ATA + 3), %dx
    outb %al, %dx
    shrl $8, %eax
    incw %dx
    outb %al, %dx
    shrl $8, %eax
    incw %dx
    outb %al, %dx
    movw $(ATA + 6), %dx
    movb $0xe0, %al /* master, LBA */
    outb %al, %dx
    movw $(ATA + 2), %dx
    movb $1, %al
    outb %al, %dx
    movw $(ATA + 7), %dx
    movb $0x20, %al
    outb %al, %dx
1:  inb %dx, %al
    andb $0x88, %al /* busy, data */
    cmpb $8, %al
    jne 1b
    movw $ATA, %dx
    movl $256, %ecx
    rep insw
    ret

/* Writes rcx bytes at rsi to the serial line. */
put:
    testq %rcx, %rcx
    jz 2f
1:  movw $(SERIAL + 5), %dx
    inb %dx, %al
    testb $0x20, %al
    jz 1b
    movw $SERIAL, %dx
    movb (%rsi), %al
    outb %al, %dx
    incq %rsi
    decq %rcx
    jnz 1b
2:  ret

/* An exception: prints three words of its frame, one of which is its address. */
on_trap:
    movq %rsp, %rbp
    movl $said_trap, %esi
    movl $(said_trap_end - said_trap), %ecx
    call put
    movl $3, %r8d
1:  movq (%rbp), %r9
    addq $8, %rbp
    movl $16, %r10d
2:  rolq $4, %r9
    movq %r9, %rsi
    andl $15, %esi
    addl $digits, %esi
    movl $1, %ecx
    call put
    decl %r10d
    jnz 2b
    movl $digits + 16, %esi
    movl $1, %ecx
    call put
    decl %r8d
    jnz 1b
    jmp turn_off

/* ---- data ---- */
    .balign 16
gdt:
    .quad 0
    .quad 0x00cf9b000000ffff /* CODE32 */
    .quad 0x00cf93000000ffff /* DATA */
    .quad 0x00af9b000000ffff /* CODE64 */
    .quad 0x00cf93000000ffff /* data: the stack's segment after SYSCALL */
    .quad 0x0000890000000067 | TSS << 16, 0 /* TASK */
gdt_pointer:
    .word . - gdt - 1
    .long gdt
idt_pointer:
    .word 32 * 16 - 1
    .quad IDT
random:
    .quad 0x0123456789abcdef, 0xfedcba9876543210
name:
    .asciz "test"
environment:
    .asciz "BY_TEST_SEED=1"
shutdown:
    .ascii "Shutdown"
said_passed:
    .ascii "exit: passed\n"
said_failed:
    .ascii "exit: failed\n"
said_trap:
    .ascii "exit: trap at one of "
said_trap_end:
digits:
    .ascii "0123456789abcdef "

    .org 0xfff0 /* the reset vector */
    .code16
    ljmp $0xf000, $(start16 - 0xf0000)
    .org 0x10000
