/* Memory of libraries, and texts in memory, which end the program as by_alloc does. See alloc.h. */
#include "control/base/alloc.h"

#include <gmp.h>
#include <jansson.h>

struct alloc_text {
    char **text;
    size_t *bytes, room;
};

static void *take(size_t bytes)
{
    return by_alloc(1, bytes);
}

static void *grow(void *memory, size_t before, size_t bytes)
{
    (void)before;
    return by_realloc(memory, 1, bytes);
}

static void give(void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
}

void by_alloc_libraries(void)
{
    json_set_alloc_funcs(take, free);
    mp_set_memory_functions(take, grow, give);
}

static ssize_t text_write(void *cookie, const char *data, size_t bytes)
{
    struct alloc_text *text = cookie;

    if (text->room - *text->bytes <= bytes) { /* with a NUL behind it */
        text->room = 2 * (text->room + bytes);
        *text->text = by_realloc(*text->text, text->room, 1);
    }
    memcpy(*text->text + *text->bytes, data, bytes);
    *text->bytes += bytes;
    (*text->text)[*text->bytes] = 0;
    return (ssize_t)bytes;
}

static int text_close(void *cookie)
{
    free(cookie);
    return 0;
}

FILE *by_text_open(char **text, size_t *bytes)
{
    struct alloc_text *cookie = by_alloc(1, sizeof(*cookie));
    FILE *stream;

    *cookie = (struct alloc_text){.text = text, .bytes = bytes, .room = 256};
    *text = by_alloc(cookie->room, 1);
    *bytes = 0;
    stream = fopencookie(cookie, "w", (cookie_io_functions_t){.write = text_write, .close = text_close});
    if (!stream) {
        fprintf(stderr, "banyan: out of memory (a text)\n");
        exit(3);
    }
    return stream;
}
