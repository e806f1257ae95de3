/* The record of a job of Slurm, the option and the settings of the plugin. See record.h. */
#include "host-driver/plugin/slurm/record.h"

#include <stdlib.h>
#include <string.h>

#include "offload/base/limits.h"

#define MARK       "banyan: "
#define MARK_BYTES 8u
/* The longest share that makes sense: 19 digits each above and below the line. */
#define SHARE_BYTES_MAX 40u

void by_slurm_record_read(const char *comment, struct by_slurm_record *record)
{
    const char *found = NULL, *at;
    char *end = NULL;
    unsigned long number;

    *record = (struct by_slurm_record){.kind = BY_SLURM_ABSENT};
    if (comment == NULL)
        return;
    for (at = strstr(comment, MARK); at != NULL; at = strstr(at + 1, MARK)) {
        if (at == comment || (at >= comment + 2 && at[-2] == ';' && at[-1] == ' '))
            found = at + MARK_BYTES;
    }
    if (found == NULL)
        return;
    record->kind = BY_SLURM_REFUSED;
    record->reason = found;
    if (strncmp(found, "job ", 4) != 0 || found[4] < '0' || found[4] > '9')
        return;
    number = strtoul(found + 4, &end, 10);
    if (*end != 0 || number == 0 || number >= BY_JOBS_MAX)
        return;
    *record = (struct by_slurm_record){.kind = BY_SLURM_JOB, .number = (uint32_t)number};
}

bool by_slurm_share_is_valid(const char *text)
{
    size_t bytes = strlen(text);

    if (strcmp(text, "no") == 0 || strcmp(text, "yes") == 0)
        return true;
    return bytes > 0 && bytes <= SHARE_BYTES_MAX && strspn(text, "0123456789./%") == bytes &&
           strpbrk(text, "0123456789") != NULL;
}

/* The value of word "name=value", or NULL. */
static const char *value_of(const char *word, const char *name)
{
    size_t bytes = strlen(name);

    return strncmp(word, name, bytes) == 0 && word[bytes] == '=' && word[bytes + 1] != 0 ? word + bytes + 1
                                                                                         : NULL;
}

const char *by_slurm_settings_read(int count, char **words, struct by_slurm_settings *settings)
{
    const char *value;

    *settings = (struct by_slurm_settings){.share = "no"};
    for (int i = 0; i < count; i++) {
        if ((value = value_of(words[i], "controller")) != NULL)
            settings->controller = value;
        else if ((value = value_of(words[i], "keys")) != NULL)
            settings->keys = value;
        else if ((value = value_of(words[i], "default")) != NULL && by_slurm_share_is_valid(value))
            settings->share = value;
        else if ((value = value_of(words[i], "refused")) != NULL &&
                 (strcmp(value, "run") == 0 || strcmp(value, "fail") == 0))
            settings->fails = strcmp(value, "fail") == 0;
        else
            return words[i];
    }
    return settings->controller != NULL ? NULL : "";
}

/*
 * Is this the daemon of an MPI's launcher? In a batch script, mpirun starts it by srun on the nodes
 * other than its own, and its ranks are on all nodes.
 */
static bool is_launcher(const char *program)
{
    static const char *const daemons[] = {"orted", "prted", "hydra_pmi_proxy", "hydra_bstrap_proxy"};
    const char *name = program != NULL ? strrchr(program, '/') : NULL;

    if (program == NULL)
        return false;
    name = name != NULL ? name + 1 : program;
    for (unsigned i = 0; i < sizeof(daemons) / sizeof(daemons[0]); i++) {
        if (strcmp(name, daemons[i]) == 0)
            return true;
    }
    return false;
}

enum by_slurm_use by_slurm_decide(const struct by_slurm_step *step, const struct by_slurm_record *record)
{
    const char *share = step->option != NULL ? step->option : step->otherwise;

    if (step->option != NULL && strcmp(step->option, "no") == 0)
        return BY_SLURM_PLAIN;
    switch (record->kind) {
    case BY_SLURM_JOB:
        return step->nodes == step->job_nodes || is_launcher(step->program) ? BY_SLURM_USE : BY_SLURM_PART;
    case BY_SLURM_REFUSED:
        return BY_SLURM_DENIED;
    case BY_SLURM_ABSENT:
        break;
    }
    return strcmp(share, "no") == 0 ? BY_SLURM_PLAIN : BY_SLURM_MISSING;
}
