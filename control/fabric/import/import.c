/* Importers by name. See import.h. */
#include "control/fabric/import/import.h"

#include <string.h>

#include "control/fabric/import/draft.h"
#include "offload/base/errors.h"

static const struct {
    const char *name;
    by_import_fn *read;
} formats[] = {{"nccl", by_import_nccl},
               {"ibnetdiscover", by_import_ibnetdiscover},
               {"lldp", by_import_lldp},
               {"dot", by_import_dot}};

const char *by_import_formats(void)
{
    return "nccl, ibnetdiscover, lldp or dot";
}

int by_import(const char *format, const char *const *paths, size_t count,
              const struct by_import_options *options, struct by_topology **topology,
              struct by_import_report *report, struct by_problem *problem, size_t *file)
{
    struct by_draft draft;
    by_import_fn *read = NULL;
    int error;

    *topology = NULL;
    *report = (struct by_import_report){0};
    *file = 0;
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strcmp(format, formats[i].name) == 0)
            read = formats[i].read;
    if (!read)
        return by_problem_set(problem, BY_EINVAL, (struct by_place){0, 0},
                              "no format named '%.40s'; it must be %s", format, by_import_formats());
    by_draft_make(&draft, options, problem);
    error = read(&draft, paths, count);
    if (!error)
        error = by_draft_finish(&draft, topology, report);
    *file = draft.file < count ? draft.file : 0;
    by_draft_free(&draft);
    return error;
}
