/* Comparing short texts without a C library. Inline. */
#ifndef BY_BAREMETAL_TEXT_EQUAL_H
#define BY_BAREMETAL_TEXT_EQUAL_H

static inline int by_text_equal(const char *a, const char *b)
{
    while (*a && *a == *b) {
        a++;
        b++;
    }
    return *a == *b;
}

#endif
