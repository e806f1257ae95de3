/* Parses lines of the PMI-1 protocol from an untrusted launcher; see bootstrap.h. No I/O. */
#include <string.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "offload/base/errors.h"

static bool is_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

int by_pmi_parse(char *line, size_t bytes, struct by_pmi_line *out)
{
    size_t at = 0;

    out->count = 0;
    while (at < bytes && line[at] == ' ')
        at++;
    while (at < bytes) {
        size_t key = at, value;

        if (out->count == BY_PMI_FIELDS)
            return BY_EFORMAT;
        while (at < bytes && is_name(line[at]))
            at++;
        if (at == key || at == bytes || line[at] != '=')
            return BY_EFORMAT;
        line[at++] = 0;
        value = at;
        while (at < bytes && line[at] != ' ') {
            if (line[at] < '!' || line[at] > '~')
                return BY_EFORMAT;
            at++;
        }
        out->key[out->count] = line + key;
        out->value[out->count++] = line + value;
        while (at < bytes && line[at] == ' ')
            line[at++] = 0;
    }
    line[bytes] = 0;
    return out->count > 0 && strcmp(out->key[0], "cmd") == 0 ? 0 : BY_EFORMAT;
}

const char *by_pmi_value(const struct by_pmi_line *line, const char *key)
{
    for (uint32_t i = 0; i < line->count; i++)
        if (strcmp(line->key[i], key) == 0)
            return line->value[i];
    return NULL;
}

bool by_pmi_is(const struct by_pmi_line *line, const char *command)
{
    const char *rc = by_pmi_value(line, "rc");

    return strcmp(line->value[0], command) == 0 && (rc == NULL || strcmp(rc, "0") == 0);
}
