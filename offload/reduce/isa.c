/*
 * Detects which instruction sets both this build and the running processor support. On x86 this
 * uses CPUID, which a virtual machine may intercept (microseconds), so it is for start-up and not
 * for each packet. Pure; any thread.
 */
#include "offload/reduce/isa.h"
#include "offload/reduce/reduce.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Register state that the operating system saves: XCR0 (Intel SDM volume 1, section 13.3). */
#define XCR0_YMM 0x06u
#define XCR0_ZMM 0xe6u

int by_isa_x86_has(const struct by_isa_x86 *processor, unsigned isa)
{
    const uint32_t avx = bit_OSXSAVE | bit_AVX | bit_F16C;
    const uint32_t avx512 = bit_AVX2 | bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    const uint32_t wanted = isa == BY_ISA_AVX512 ? avx512 : bit_AVX2;
    const uint32_t saved = isa == BY_ISA_AVX512 ? XCR0_ZMM : XCR0_YMM;

    if (isa == BY_ISA_SCALAR)
        return 1;
    if (isa != BY_ISA_AVX2 && isa != BY_ISA_AVX512)
        return 0;
    return (processor->leaf1_ecx & avx) == avx && (processor->leaf7_ebx & wanted) == wanted &&
           (processor->xcr0 & saved) == saved;
}

static int isa_has(unsigned isa)
{
    struct by_isa_x86 processor = {0};
    uint32_t a, b, c, d;

    if (__get_cpuid(1, &a, &b, &c, &d))
        processor.leaf1_ecx = c;
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d))
        processor.leaf7_ebx = b;
    if (processor.leaf1_ecx & bit_OSXSAVE) /* else the instruction is undefined */
        __asm__ volatile("xgetbv" : "=a"(processor.xcr0), "=d"(d) : "c"(0));
    return by_isa_x86_has(&processor, isa);
}
#elif defined(__aarch64__)
static int isa_has(unsigned isa)
{
    return isa == BY_ISA_SCALAR || isa == BY_ISA_NEON;
}
#else
static int isa_has(unsigned isa)
{
    return isa == BY_ISA_SCALAR;
}
#endif

int by_isa_usable(unsigned isa)
{
    return isa_has(isa);
}

unsigned by_isa_best(void)
{
    unsigned best = BY_ISA_SCALAR;

    for (unsigned isa = BY_ISA_SCALAR; isa < BY_ISA_COUNT; isa++)
        if (isa_has(isa))
            best = isa;
    return best;
}

const char *by_isa_name(unsigned isa)
{
    static const char *const names[BY_ISA_COUNT] = {
        [BY_ISA_SCALAR] = "scalar",
        [BY_ISA_AVX2] = "avx2",
        [BY_ISA_AVX512] = "avx512",
        [BY_ISA_NEON] = "neon",
    };

    return isa < BY_ISA_COUNT && names[isa] ? names[isa] : "?";
}
