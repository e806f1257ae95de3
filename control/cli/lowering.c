/* Options that commands share which compile plans into tables. See lowering.h. */
#include "control/cli/lowering.h"

#include "control/cli/cli.h"
#include "control/tables/keyed.h"
#include "offload/base/errors.h"

int by_cli_share(const char *text, struct by_fraction *share, struct by_option_why *why)
{
    if (by_fraction_parse_part(text, share) == 0 && share->num > 0 && share->num <= share->den)
        return 0;
    return by_option_refuse(why,
                            "it must be a part of the job's links above 0 and up to 1, such as 1/4, 0.25 "
                            "or 25%%");
}

int by_cli_keyed(const struct by_cli_keys *keys, struct by_lower_options *options)
{
    struct by_problem problem = {0};
    int error;

    if (!keys->keyed && keys->seed == NULL)
        return 0;
    if (!keys->keyed)
        return by_cli_fail(BY_EXIT_USAGE, "--key-seed requires --keyed");
    error = by_lower_keyed(options, keys->cover, keys->seed, &problem);
    if (error == 0)
        return 0;
    return by_cli_fail(error == BY_EIO ? BY_EXIT_ENVIRONMENT : BY_EXIT_USAGE, "%s%s: %s",
                       keys->seed != NULL ? "--key-seed " : "--keyed", keys->seed != NULL ? keys->seed : "",
                       problem.text);
}
