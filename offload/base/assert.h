/*
 * Assertions for bugs in banyan, never for input: no packet and no image may trigger one. They are
 * enabled in release builds; only checks per element are left out. A failing assertion traps, and
 * the shell's signal handler, the debugger or the board's fault vector takes over.
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
