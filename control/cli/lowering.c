/* Parses numbers on the command line. See number.h. */
#include "control/cli/number.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "control/cli/cli.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"

static int refuse(const char *option, const char *text, uint64_t low, uint64_t high)
{
    return by_cli_fail(BY_EXIT_USAGE, "%s %s: give a number between %" PRIu64 " and %" PRIu64, option, text,
                       low, high);
}

static int read_number(const char *text, int suffixes, uint64_t *value)
{
    unsigned shift = 0;
    char *end;

    /* strtoull would accept a sign and leading blanks. */
    if (text[0] < '0' || text[0] > '9')
        return -1;
    errno = 0;
    *value = strtoull(text, &end, 10);
    if (suffixes && *end != 0) {
        const char *letters = "KMG", *found = strchr(letters, *end >= 'a' ? *end - 'a' + 'A' : *end);
        if (found == NULL || *found == 0)
            return -1;
        shift = 10 * (unsigned)(found - letters + 1);
        end++;
    }
    if (errno != 0 || *end != 0 || *value > UINT64_MAX >> shift)
        return -1;
    *value <<= shift;
    return 0;
}

int by_cli_number(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    if (read_number(text, 0, value) != 0 || *value < low || *value > high)
        return refuse(option, text, low, high);
    return 0;
}

int by_cli_bytes(const char *option, const char *text, uint64_t low, uint64_t high, uint64_t *value)
{
    if (read_number(text, 1, value) != 0 || *value < low || *value > high)
        return refuse(option, text, low, high);
    return 0;
}

int by_cli_window(const char *option, const char *text, uint32_t *window)
{
    uint64_t value;

    if (read_number(text, 0, &value) != 0 || value == 0 || value > BY_WINDOW_MAX ||
        (value & (value - 1)) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "%s %s: give a power of two up to %u", option, text, BY_WINDOW_MAX);
    *window = (uint32_t)value;
    return 0;
}

int by_cli_share(const char *option, const char *text, struct by_fraction *share)
{
    if (by_fraction_parse(text, strlen(text), share) != 0 || share->num <= 0 || share->num > share->den)
        return by_cli_fail(BY_EXIT_USAGE,
                           "%s %.40s: a part of the job's links above 0 and up to 1, as 1/4 or 0.25", option,
                           text);
    return 0;
}

int by_cli_repeated(const char *option, const char *text)
{
    return by_cli_fail(BY_EXIT_USAGE,
                       "%s %s: %s is given twice; give it once, and run the command once for each", option,
                       text, option);
}

int by_cli_probability(const char *option, const char *text)
{
    char *end;
    double value = strtod(text, &end);

    if (text[0] < '0' || text[0] > '9' || text[1] == 'x' || *end != 0 || !(value >= 0.0 && value <= 1.0))
        return by_cli_fail(BY_EXIT_USAGE, "%s %s: give a probability between 0 and 1", option, text);
    return 0;
}

int by_cli_keyed(const struct by_cli_keys *keys, struct by_lower_options *options)
{
    struct by_problem problem = {0};
    int error;

    if (!keys->keyed && keys->seed == NULL)
        return 0;
    if (!keys->keyed)
        return by_cli_fail(BY_EXIT_USAGE, "--key-seed makes keys for --keyed: give that too");
    error = by_lower_keyed(options, keys->cover, keys->seed, &problem);
    if (error == 0)
        return 0;
    return by_cli_fail(error == BY_EIO ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE, "%s%s: %s",
                       keys->seed != NULL ? "--key-seed " : "--keyed", keys->seed != NULL ? keys->seed : "",
                       problem.text);
}
