/* Short texts without a C library; see text.h. Pure; any thread. */
#include "firmware/agent/text.h"

static void add_char(struct by_text *text, char c)
{
    if (text->used + 1 >= text->bytes)
        return;
    text->start[text->used++] = c;
    text->start[text->used] = 0;
}

void by_text_start(struct by_text *text, char *buffer, size_t bytes)
{
    *text = (struct by_text){.start = buffer, .bytes = bytes};
    buffer[0] = 0;
}

void by_text_add(struct by_text *text, const char *string)
{
    for (; *string; string++)
        add_char(text, *string);
}

void by_text_number(struct by_text *text, uint64_t value)
{
    char digits[20];
    unsigned count = 0;

    do {
        digits[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    while (count)
        add_char(text, digits[--count]);
}

void by_text_hash(struct by_text *text, uint64_t value)
{
    by_text_add(text, "0x");
    for (int shift = 60; shift >= 0; shift -= 4)
        add_char(text, "0123456789abcdef"[value >> shift & 15]);
}
