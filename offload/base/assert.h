/*
 * Assertions: for bugs, never for input. On in release, except per element. A failing assertion
 * traps: the shell's signal handler, the debugger or the board's fault vector takes over. No packet
 * and no image may reach one.
 */
#ifndef BY_BASE_ASSERT_H
#define BY_BASE_ASSERT_H

#define BY_ASSERT(condition)                                                                                 \
    do {                                                                                                     \
        if (__builtin_expect(!(condition), 0))                                                               \
            __builtin_trap();                                                                                \
    } while (0)

#define BY_STATIC_ASSERT(condition, text) _Static_assert(condition, text)

#endif
