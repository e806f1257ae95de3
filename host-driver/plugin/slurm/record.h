/*
 * What the plugin for Slurm reads: its words in plugstack.conf, the option --banyan, and the record
 * that banyan-slurm leaves in the administrator's comment of a job. Pure functions; plugin.c
 * connects them to Slurm. Single-threaded.
 */
#ifndef BY_SLURM_RECORD_H
#define BY_SLURM_RECORD_H

#include <stdbool.h>
#include <stdint.h>

enum by_slurm_kind {
    BY_SLURM_ABSENT = 1, /* banyan-slurm has written no record */
    BY_SLURM_JOB,        /* banyand has created job `number` */
    BY_SLURM_REFUSED     /* `reason` */
};

struct by_slurm_record {
    enum by_slurm_kind kind;
    uint32_t number;
    const char *reason; /* within the comment that was read */
};

/*
 * The words of plugstack.conf behind the plugin's path. Texts point into the words; `share` is
 * "no", "yes" or a share.
 */
struct by_slurm_settings {
    const char *controller, *keys, *share;
    bool fails; /* refused=fail: a job without banyan's job does not run */
};

/* What decides whether a step uses banyan. */
struct by_slurm_step {
    const char *option;    /* of the step: NULL (not given), "no", "yes" or a share */
    const char *otherwise; /* the default of plugstack.conf, in the same form */
    const char *program;   /* that it starts; may be NULL */
    uint32_t nodes, job_nodes;
};

enum by_slurm_use {
    BY_SLURM_PLAIN = 1, /* without banyan, as requested */
    BY_SLURM_USE,       /* with job record.number */
    BY_SLURM_PART,      /* without banyan: the step has only some of the job's nodes */
    BY_SLURM_MISSING,   /* requested, but there is no record */
    BY_SLURM_DENIED     /* requested, and refused */
};

/*
 * Reads the record: the last "banyan: job N" or "banyan: REASON" of the comment, at its start or
 * behind "; ". The comment may be NULL.
 */
void by_slurm_record_read(const char *comment, struct by_slurm_record *record);

/* Is this a value of --banyan: no, yes, or what a share can consist of (1/4, 0.25, 25%)? */
bool by_slurm_share_is_valid(const char *text);

/* Reads the words. Returns NULL, or the first word that is not valid. */
const char *by_slurm_settings_read(int count, char **words, struct by_slurm_settings *settings);

/* Decides for a step of a job with this record. */
enum by_slurm_use by_slurm_decide(const struct by_slurm_step *step, const struct by_slurm_record *record);

#endif
