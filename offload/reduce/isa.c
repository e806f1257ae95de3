/*
 * Detects which instruction sets both this build and the running processor support. On x86 this
 * uses CPUID, which a virtual machine may intercept (microseconds), so it is for start-up and not
 * for each packet. Pure; any thread.
 */
#include "offload/reduce/reduce.h"

#if defined(__x86_64__)
#include <cpuid.h>

/* Register state that the operating system saves: XCR0 (Intel SDM volume 1, section 13.3). */
#define XCR0_YMM 0x06u
#define XCR0_ZMM 0xe6u

static int isa_has(unsigned isa)
{
    const uint32_t avx512 = bit_AVX512F | bit_AVX512BW | bit_AVX512DQ | bit_AVX512VL;
    uint32_t a, b, c, d, xcr0;

    if (isa == BY_ISA_SCALAR)
        return 1;
    if (isa != BY_ISA_AVX2 && isa != BY_ISA_AVX512)
        return 0;
    if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & bit_OSXSAVE) || !(c & bit_AVX) || !(c & bit_F16C))
        return 0;
    __asm__ volatile("xgetbv" : "=a"(xcr0), "=d"(d) : "c"(0));
    if ((xcr0 & XCR0_YMM) != XCR0_YMM || !__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & bit_AVX2))
        return 0;
    return isa == BY_ISA_AVX2 || ((xcr0 & XCR0_ZMM) == XCR0_ZMM && (b & avx512) == avx512);
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
