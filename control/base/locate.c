/* Positions of values in valid JSON text. See locate.h. */
#include "control/base/locate.h"

#include "control/base/alloc.h"
#include "offload/base/assert.h"

static bool is_space(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* Whether a character can be part of a number, true, false or null. */
static bool is_scalar(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-' || c == '+' || c == '.' || c == 'E';
}

/* Returns the offset after the string that starts at `at`. */
static size_t skip_string(const char *json, size_t bytes, size_t at)
{
    for (at++; at < bytes && json[at] != '"'; at++)
        at += json[at] == '\\';
    return at + 1;
}

bool by_locations_find(const char *json, size_t bytes, size_t count_max, struct by_locations *locations)
{
    size_t room = 0, at = 0;

    *locations = (struct by_locations){.json = json, .bytes = bytes};
    while (at < bytes) {
        size_t start = at;
        bool value = json[at] == '{' || json[at] == '[';

        if (json[at] == '"') {
            size_t next = at = skip_string(json, bytes, at);

            while (next < bytes && is_space(json[next]))
                next++;
            value = next >= bytes || json[next] != ':';
        } else if (is_scalar(json[at])) {
            value = true;
            while (at < bytes && is_scalar(json[at]))
                at++;
        } else {
            at++;
        }
        if (value) {
            if (locations->count == count_max)
                return false;
            BY_GROW(locations->offsets, locations->count, room);
            locations->offsets[locations->count++] = start;
        }
    }
    return true;
}

void by_locations_free(struct by_locations *locations)
{
    free(locations->offsets);
    locations->offsets = NULL;
}

struct by_place by_locations_place(struct by_locations *locations, size_t index)
{
    struct by_place place = {1, 1};
    size_t at = 0;

    if (index >= locations->count)
        return (struct by_place){0, 0};
    if (locations->seen <= locations->offsets[index] && locations->place.line) {
        place = locations->place;
        at = locations->seen;
    }
    for (; at < locations->offsets[index]; at++) {
        place.column = locations->json[at] == '\n' ? 1 : place.column + 1;
        place.line += locations->json[at] == '\n';
    }
    locations->place = place;
    locations->seen = at;
    return place;
}

const char *by_locations_number(const struct by_locations *locations, size_t index, size_t *bytes)
{
    size_t start, end;

    BY_ASSERT(index < locations->count);
    start = end = locations->offsets[index];
    while (end < locations->bytes && is_scalar(locations->json[end]))
        end++;
    *bytes = end - start;
    return locations->json + start;
}
