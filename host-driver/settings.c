/*
 * Reads settings from their sources and converts numbers. settings.inc.h has the list.
 */
#include "host-driver/settings.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include <banyan/banyan.h>

#include "host-driver/error.h"
#include "offload/base/limits.h"

#define PREFIX        "BANYAN_"
#define PREFIX_BYTES  (sizeof(PREFIX) - 1)
#define NAME_MAX_SEEN 48u /* longer names are not compared for the nearest match */

struct setting_info {
    const char *name; /* "BANYAN_TABLE" */
    const char *fallback;
    const char *help;
};

#define X(setting, fallback, help) {PREFIX #setting, fallback, help},
static const struct setting_info infos[BY_SETTING_COUNT] = {BY_SETTING_LIST(X)};
#undef X

/* Edit distance (Wagner and Fischer, JACM 1974), for names only: both at most NAME_MAX_SEEN. */
static unsigned distance(const char *a, const char *b)
{
    unsigned row[NAME_MAX_SEEN + 1];
    size_t columns = strlen(b);

    for (unsigned j = 0; j <= columns; j++)
        row[j] = j;
    for (unsigned i = 1; a[i - 1] != 0; i++) {
        unsigned diagonal = row[0];

        row[0] = i;
        for (unsigned j = 1; j <= columns; j++) {
            unsigned best = diagonal + (a[i - 1] != b[j - 1]);

            diagonal = row[j];
            if (row[j] + 1 < best)
                best = row[j] + 1;
            if (row[j - 1] + 1 < best)
                best = row[j - 1] + 1;
            row[j] = best;
        }
    }
    return row[columns];
}

static int find(const char *name, size_t bytes)
{
    for (int i = 0; i < BY_SETTING_COUNT; i++)
        if (strlen(infos[i].name) == bytes && memcmp(infos[i].name, name, bytes) == 0)
            return i;
    return -1;
}

static void warn_unknown(const char *name, size_t bytes, const char *origin)
{
    char copy[NAME_MAX_SEEN + 1];
    unsigned best = 0;

    if (bytes > NAME_MAX_SEEN) {
        fprintf(stderr, "banyan: %s sets an unknown %.*s; ignored\n", origin, (int)NAME_MAX_SEEN, name);
        return;
    }
    memcpy(copy, name, bytes);
    copy[bytes] = 0;
    for (unsigned i = 1; i < BY_SETTING_COUNT; i++)
        if (distance(infos[i].name, copy) < distance(infos[best].name, copy))
            best = i;
    fprintf(stderr, "banyan: %s sets %s, which is unknown and ignored; did you mean %s?\n", origin, copy,
            infos[best].name);
}

static int set(struct by_settings *settings, const char *name, size_t name_bytes, const char *value,
               size_t value_bytes, const char *origin)
{
    int which = find(name, name_bytes);

    if (which < 0) {
        warn_unknown(name, name_bytes, origin);
        return 0;
    }
    if (value_bytes >= BY_SETTING_BYTES_MAX)
        return by_fail(BY_EINVAL, "%s from %s has %zu bytes; the limit is %u", infos[which].name, origin,
                       value_bytes, BY_SETTING_BYTES_MAX - 1);
    memcpy(settings->value[which], value, value_bytes);
    settings->value[which][value_bytes] = 0;
    snprintf(settings->origin[which], sizeof(settings->origin[which]), "%s", origin);
    return 0;
}

/* Parses one line KEY=VALUE; skips blanks around both, and lines that start with #. */
static int read_line(struct by_settings *settings, const char *path, unsigned number, char *line)
{
    char *key = line;
    char *equals, *end, *value;

    while (isspace((unsigned char)*key))
        key++;
    if (*key == 0 || *key == '#')
        return 0;
    equals = strchr(key, '=');
    if (equals == NULL)
        return by_fail(BY_EINVAL, "%s:%u: expected KEY=VALUE", path, number);
    for (end = equals; end > key && isspace((unsigned char)end[-1]); end--)
        ;
    for (value = equals + 1; isspace((unsigned char)*value); value++)
        ;
    equals = value + strlen(value);
    while (equals > value && isspace((unsigned char)equals[-1]))
        equals--;
    return set(settings, key, (size_t)(end - key), value, (size_t)(equals - value), path);
}

static int read_file(struct by_settings *settings, const char *path)
{
    FILE *file = fopen(path, "re");
    char line[BY_SETTING_BYTES_MAX + 128];
    int error = 0;

    if (file == NULL)
        return 0; /* both files are optional, and may be unreadable for this user */
    for (unsigned number = 1; error == 0 && fgets(line, sizeof(line), file) != NULL; number++)
        error = read_line(settings, path, number, line);
    fclose(file);
    return error;
}

/* The range of each number, whether or not this program uses it. */
static int check_numbers(const struct by_settings *settings)
{
    static const struct {
        enum by_setting which;
        uint64_t max;
    } whole[] = {
        {BY_SETTING_JOB, BY_JOBS_MAX - 1},
        {BY_SETTING_ARENA, BY_SETTING_ARENA_MAX},
        {BY_SETTING_LINGER, BY_SETTING_LINGER_MAX},
        {BY_SETTING_INFLIGHT, UINT32_MAX},
        {BY_SETTING_SPIN, BY_SETTING_SPIN_MAX},
        {BY_SETTING_LOG, 2},
        {BY_SETTING_GPU_CHUNK, UINT64_C(1) << 40},
        {BY_SETTING_MPI_LEAST, INT64_MAX},
        {BY_SETTING_MPI_AFTER, UINT32_MAX},
        {BY_SETTING_SEED, UINT64_MAX},
        {BY_SETTING_SMALL, UINT32_MAX},
    };
    static const struct {
        enum by_setting which;
        double max;
    } decimal[] = {{BY_SETTING_TIMEOUT, BY_SETTING_TIMEOUT_MAX},
                   {BY_SETTING_WAIT, BY_SETTING_WAIT_MAX},
                   {BY_SETTING_LOSS, 1},
                   {BY_SETTING_DUP, 1},
                   {BY_SETTING_REORDER, 1}};
    uint64_t number;
    double value;
    int error = 0;

    for (size_t i = 0; error == 0 && i < sizeof(whole) / sizeof(whole[0]); i++)
        if (whole[i].which != BY_SETTING_SMALL || strcmp(settings->value[BY_SETTING_SMALL], "auto") != 0)
            error = by_settings_number(settings, whole[i].which, whole[i].max, &number);
    for (size_t i = 0; error == 0 && i < sizeof(decimal) / sizeof(decimal[0]); i++)
        error = by_settings_decimal(settings, decimal[i].which, decimal[i].max, &value);
    return error;
}

int by_settings_load(struct by_settings *settings)
{
    /* If the program has more privileges than its caller, the caller's environment must not name
     * files to read or libraries to load. */
    bool trusted = getauxval(AT_SECURE) == 0;
    const char *home = trusted ? getenv("HOME") : NULL;
    int error;

    for (unsigned i = 0; i < BY_SETTING_COUNT; i++) {
        snprintf(settings->value[i], BY_SETTING_BYTES_MAX, "%s", infos[i].fallback);
        snprintf(settings->origin[i], sizeof(settings->origin[i]), "default");
    }
    error = read_file(settings, "/etc/banyan.conf");
    if (error == 0 && home != NULL && strlen(home) < 4000) {
        char path[4096];

        snprintf(path, sizeof(path), "%s/.banyan.conf", home);
        error = read_file(settings, path);
    }
    for (char **entry = trusted ? environ : NULL; error == 0 && entry != NULL && *entry != NULL; entry++) {
        const char *equals = strchr(*entry, '=');

        if (equals != NULL && strncmp(*entry, PREFIX, PREFIX_BYTES) == 0)
            error = set(settings, *entry, (size_t)(equals - *entry), equals + 1, strlen(equals + 1),
                        "environment");
    }
    return error == 0 ? check_numbers(settings) : error;
}

int by_settings_number(const struct by_settings *settings, enum by_setting which, uint64_t max,
                       uint64_t *value)
{
    const char *text = settings->value[which];
    char *end;
    unsigned long long number;

    errno = 0;
    number = strtoull(text, &end, 0);
    if (!isdigit((unsigned char)text[0]) || *end != 0 || errno != 0 || number > max)
        return by_fail(BY_EINVAL, "%s is '%s' (%s); use a whole number from 0 to %llu", infos[which].name,
                       text, settings->origin[which], (unsigned long long)max);
    *value = number;
    return 0;
}

int by_settings_decimal(const struct by_settings *settings, enum by_setting which, double max, double *value)
{
    const char *text = settings->value[which];
    char *end;
    double number = strtod(text, &end);

    if (!isdigit((unsigned char)text[0]) || text[1] == 'x' || *end != 0 || !isfinite(number) || number < 0 ||
        number > max)
        return by_fail(BY_EINVAL, "%s is '%s' (%s); use a number from 0 to %g", infos[which].name, text,
                       settings->origin[which], max);
    *value = number;
    return 0;
}

banyan_status_t banyan_setting(uint32_t index, const char **name, const char **fallback, const char **help,
                               const char **value, const char **origin)
{
    static _Thread_local struct by_settings seen;
    static _Thread_local int error = BY_ESTATE; /* until they are read */

    if (index == 0 || error == BY_ESTATE)
        error = by_settings_load(&seen);
    if (error != 0)
        return (banyan_status_t)error;
    if (index >= BY_SETTING_COUNT)
        return BANYAN_ENOENT;
    if (name != NULL)
        *name = infos[index].name;
    if (fallback != NULL)
        *fallback = infos[index].fallback;
    if (help != NULL)
        *help = infos[index].help;
    if (value != NULL)
        *value = seen.value[index];
    if (origin != NULL)
        *origin = seen.origin[index];
    return BANYAN_OK;
}
