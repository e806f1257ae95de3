/* Functions that the compiler may call implicitly, and those that the agent and nanopb require of a
 * C library. nanopb as built by Debian can allocate fields; no message of banyan has such a field,
 * so allocation always fails, and a request that required it would be refused. */
#include <stdint.h>
#include <string.h>

#include "firmware/baremetal/fault.h"
#include "offload/base/bytes.h"

void *realloc(void *memory, size_t bytes);
void free(void *memory);
_Noreturn void __stack_chk_fail(void);
extern uintptr_t __stack_chk_guard;

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    by_copy(to, from, bytes);
    return to;
}

void *memmove(void *to, const void *from, size_t bytes)
{
    uint8_t *d = to;
    const uint8_t *s = from;

    if ((uintptr_t)d - (uintptr_t)s >= bytes) {
        for (size_t i = 0; i < bytes; i++)
            d[i] = s[i];
    } else {
        for (size_t i = bytes; i > 0; i--)
            d[i - 1] = s[i - 1];
    }
    return to;
}

void *memset(void *to, int value, size_t bytes)
{
    uint8_t *d = to;

    if (value == 0)
        by_zero(to, bytes);
    else
        for (size_t i = 0; i < bytes; i++)
            d[i] = (uint8_t)value;
    return to;
}

int memcmp(const void *a, const void *b, size_t bytes)
{
    const uint8_t *x = a;
    const uint8_t *y = b;

    for (size_t i = 0; i < bytes; i++)
        if (x[i] != y[i])
            return x[i] < y[i] ? -1 : 1;
    return 0;
}

void *realloc(void *memory, size_t bytes)
{
    (void)memory;
    (void)bytes;
    return NULL;
}

void free(void *memory)
{
    (void)memory;
}

/* Debian's nanopb has guards in its stack frames. */
uintptr_t __stack_chk_guard = (uintptr_t)0x62616e79616e2121;

void __stack_chk_fail(void)
{
    by_fault_say("a stack frame was overwritten");
}
