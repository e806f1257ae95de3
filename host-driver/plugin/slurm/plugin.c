/*
 * The SPANK plugin for Slurm: the option --banyan of srun, sbatch and salloc, and the environment
 * of tasks. slurmctld runs banyan-slurm once at the start of a job; it creates the job at banyand,
 * and writes its number, or the reason of a refusal, into the AdminComment of Slurm's job. This
 * plugin reads that record once for each step, in srun; for a batch script, which has no srun, on
 * its first host. Neighbour: record.c decides. Called by one thread of each program.
 */
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/spank.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/plugin/slurm/record.h"

/* What Slurm looks for in a plugin; it loads only those of its own release. */
const char plugin_name[] = "banyan";
const char plugin_type[] = "spank";
const unsigned int plugin_version = SLURM_VERSION_NUMBER;
const unsigned int spank_plugin_version = 1;

static struct by_slurm_settings settings;
static const char *option; /* of this program; NULL: not given */
/* What was found for the batch step, for its only task. */
static enum by_slurm_use batch_use;
static struct by_slurm_record batch_record;

static int on_option(int value, const char *text, int remote)
{
    (void)value;
    /* Slurm passes an option without a value to the steps of a job as this text. */
    if (text == NULL || strcmp(text, "(null)") == 0)
        text = "yes";
    if (!by_slurm_share_is_valid(text)) {
        slurm_error(
            "banyan: --banyan=%.60s: give a share of the links, such as 1/4, 0.25 or 25%%, or yes, or no",
            text);
        return -1;
    }
    (void)remote;
    option = strdup(text);
    return option != NULL ? 0 : -1;
}

static struct spank_option options[] = {
    {(char *)"banyan", (char *)"SHARE",
     (char *)"sum and copy the packets of collectives in the switches, on this share of the links (1/4, "
             "25%); without a share: on what other jobs leave; no: without the switches",
     2, 0, on_option},
    SPANK_OPTIONS_TABLE_END};

/* What this program's user has requested for a new job. */
static const char *requested(void)
{
    return option != NULL ? option : settings.share;
}

int slurm_spank_init(spank_t spank, int count, char **words)
{
    spank_context_t context = spank_context();
    const char *wrong;

    if (context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR && context != S_CTX_REMOTE)
        return 0;
    wrong = by_slurm_settings_read(count, words, &settings);
    if (wrong != NULL) {
        if (wrong[0] != 0)
            slurm_error(
                "banyan: plugstack.conf: '%.80s' is not a setting: give controller=ADDRESS, keys=FOLDER, "
                "default=no|yes|SHARE, refused=run|fail",
                wrong);
        else
            slurm_error(
                "banyan: plugstack.conf: controller=ADDRESS is missing: name the address at which hosts "
                "reach banyand (its --members)");
        /* A failure here on a node would drain the node. */
        return context == S_CTX_REMOTE ? 0 : -1;
    }
    return spank_option_register(spank, &options[0]) == ESPANK_SUCCESS ? 0 : -1;
}

int slurm_spank_init_post_opt(spank_t spank, int count, char **words)
{
    spank_context_t context = spank_context();

    (void)count;
    (void)words;
    if ((context != S_CTX_LOCAL && context != S_CTX_ALLOCATOR) || settings.share == NULL ||
        strcmp(requested(), "no") == 0)
        return 0;
    /* slurmctld keeps it with the job, and gives it to banyan-slurm as SPANK_BANYAN. */
    return spank_job_control_setenv(spank, "BANYAN", requested(), 1) == ESPANK_SUCCESS ? 0 : -1;
}

/*
 * Requests the job from slurmctld, and decides for a step on `nodes` nodes (0: on all) with this
 * program (NULL: the batch script).
 */
static enum by_slurm_use find(uint32_t job, uint32_t nodes, const char *program,
                              struct by_slurm_record *record)
{
    static char text[1024];
    struct by_slurm_step step = {
        .option = option, .otherwise = settings.share, .program = program, .nodes = nodes};
    job_info_msg_t *answer = NULL;

    text[0] = 0;
    if (slurm_load_job(&answer, job, 0) != 0) {
        if (strcmp(requested(), "no") != 0)
            snprintf(text, sizeof(text), "banyan: slurmctld does not describe job %u: %s", job,
                     slurm_strerror(slurm_get_errno()));
    } else {
        for (uint32_t i = 0; i < answer->record_count; i++) {
            const job_info_t *info = &answer->job_array[i];

            if (info->job_id != job)
                continue;
            step.job_nodes = info->num_nodes;
            if (info->admin_comment != NULL) {
                size_t bytes = strlen(info->admin_comment);

                /* The record is at the end. */
                snprintf(text, sizeof(text), "%s",
                         info->admin_comment + (bytes < sizeof(text) ? 0 : bytes - sizeof(text) + 1));
            }
        }
        slurm_free_job_info_msg(answer);
    }
    if (nodes == 0)
        step.nodes = step.job_nodes;
    by_slurm_record_read(text, record);
    return by_slurm_decide(&step, record);
}

/* Writes what the user has to know into `line`; an empty line: nothing. */
static void describe(enum by_slurm_use use, const struct by_slurm_record *record, char *line, size_t bytes)
{
    const char *end = settings.fails ? "; refused, as plugstack.conf requires (refused=fail)"
                                     : "; it runs without the switches";

    line[0] = 0;
    if (use == BY_SLURM_PART)
        snprintf(line, bytes,
                 "banyan: this step has only some of the nodes of its job %u: it runs without the "
                 "switches",
                 record->number);
    else if (use == BY_SLURM_MISSING)
        snprintf(line, bytes,
                 "banyan: this job of Slurm has no job of banyand: give --banyan when it is submitted, "
                 "and check that slurm.conf runs banyan-slurm as PrologSlurmctld%s",
                 end);
    else if (use == BY_SLURM_DENIED)
        snprintf(line, bytes, "banyan: %s%s", record->reason, end);
}

static bool is_refused(enum by_slurm_use use)
{
    return settings.fails && (use == BY_SLURM_MISSING || use == BY_SLURM_DENIED);
}

/* The variables with which a task joins its job. */
static const char *const of_job[] = {"BANYAN_CONTROLLER", "BANYAN_JOB", "BANYAN_NODE"};

/* Sets the environment of tasks through `set`, which empties a variable if its value is NULL. */
static int apply(enum by_slurm_use use, const struct by_slurm_record *record,
                 int (*set)(void *object, const char *name, const char *value), void *object)
{
    char number[16];
    int error;

    snprintf(number, sizeof(number), "%u", record->number);
    if (use == BY_SLURM_USE) {
        error = set(object, "BANYAN_CONTROLLER", settings.controller) | set(object, "BANYAN_JOB", number);
        if (settings.keys != NULL)
            error |= set(object, "BANYAN_KEYS", settings.keys);
        return error;
    }
    error = use != BY_SLURM_PLAIN ? set(object, "BANYAN_OFFLOAD", "off") : 0;
    /* The batch script has these for its job, which this step must not join. */
    for (unsigned i = 0; i < sizeof(of_job) / sizeof(of_job[0]) && record->kind == BY_SLURM_JOB; i++)
        error |= set(object, of_job[i], NULL);
    return error;
}

static int set_own(void *object, const char *name, const char *value)
{
    (void)object;
    /* srun passes on what changes here, but not what is removed: see drop_empty(). */
    return setenv(name, value != NULL ? value : "", 1);
}

static int set_task(void *object, const char *name, const char *value)
{
    return spank_setenv(object, name, value != NULL ? value : "", 1) != ESPANK_SUCCESS;
}

/* Removes the variables that srun has emptied. */
static int drop_empty(spank_t spank)
{
    char value[1024];
    int error = 0;

    for (unsigned i = 0; i < sizeof(of_job) / sizeof(of_job[0]); i++) {
        if (spank_getenv(spank, of_job[i], value, sizeof(value)) == ESPANK_SUCCESS && value[0] == 0)
            error |= spank_unsetenv(spank, of_job[i]) != ESPANK_SUCCESS;
    }
    return error;
}

/* In srun, when the step has its nodes. */
int slurm_spank_local_user_init(spank_t spank, int count, char **words)
{
    struct by_slurm_record record;
    uint32_t job = 0, nodes = 0;
    enum by_slurm_use use;
    char line[1200], **program = NULL;

    (void)words;
    if (settings.share == NULL)
        return 0;
    if (spank_get_item(spank, S_JOB_ARGV, &count, &program) != ESPANK_SUCCESS)
        count = 0;
    if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS ||
        spank_get_item(spank, S_JOB_NNODES, &nodes) != ESPANK_SUCCESS) {
        slurm_error("banyan: srun does not provide the job and its nodes; it runs without the switches");
        return 0;
    }
    use = find(job, nodes, count > 0 ? program[0] : NULL, &record);
    describe(use, &record, line, sizeof(line));
    if (line[0] != 0)
        slurm_error("%s", line);
    if (use == BY_SLURM_USE)
        slurm_verbose("banyan: job %u at %s", record.number, settings.controller);
    if (is_refused(use) || apply(use, &record, set_own, NULL) != 0)
        return -1;
    return 0;
}

static bool is_batch(spank_t spank)
{
    uint32_t step = 0;

    return spank_get_item(spank, S_JOB_STEPID, &step) == ESPANK_SUCCESS && step == SLURM_BATCH_SCRIPT;
}

/* On a node, before tasks are started. */
int slurm_spank_user_init(spank_t spank, int count, char **words)
{
    uint32_t job = 0;

    (void)count;
    (void)words;
    if (settings.share == NULL || !spank_remote(spank) || !is_batch(spank))
        return 0;
    if (spank_get_item(spank, S_JOB_ID, &job) == ESPANK_SUCCESS)
        batch_use = find(job, 0, NULL, &batch_record);
    return 0;
}

/* On a node, in the process that becomes a task. */
int slurm_spank_task_init(spank_t spank, int count, char **words)
{
    char line[1200], node[256], job[16];

    (void)count;
    (void)words;
    if (settings.share == NULL || !spank_remote(spank))
        return 0;
    if (batch_use != 0) {
        describe(batch_use, &batch_record, line, sizeof(line));
        /* Slurm's messages go to the node's log; the user reads the output of the job. */
        if (line[0] != 0)
            dprintf(STDERR_FILENO, "%s\n", line);
        if (is_refused(batch_use) || apply(batch_use, &batch_record, set_task, spank) != 0)
            return -1;
    }
    if (drop_empty(spank) != 0)
        return -1;
    /* The topology names hosts as Slurm names nodes. */
    if (spank_getenv(spank, "BANYAN_JOB", job, sizeof(job)) == ESPANK_SUCCESS &&
        spank_getenv(spank, "SLURMD_NODENAME", node, sizeof(node)) == ESPANK_SUCCESS)
        return set_task(spank, "BANYAN_NODE", node) == 0 ? 0 : -1;
    return 0;
}
