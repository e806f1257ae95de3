/*
 * What `banyan doctor` finds, and how it is shown: a list of findings, each of one check about one
 * subject (an interface, a switch), with a remedy. Neighbours: the checks add, the command prints.
 * Single-threaded.
 */
#ifndef BY_VIEW_DOCTOR_REPORT_H
#define BY_VIEW_DOCTOR_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum by_grade {
    BY_GRADE_OK = 1,
    BY_GRADE_ADVICE,  /* works, but not as well as it could */
    BY_GRADE_TROUBLE, /* does not work, or not for long */
    BY_GRADE_UNSEEN,  /* asked for, and could not be looked at */
};

struct by_finding {
    enum by_grade grade;
    const char *check; /* the check's name */
    char subject[96];  /* "eth0", "leaf0 at unix:/run/...", "" for the machine */
    char text[320];
    char remedy[256]; /* "" when all is well */
};

struct by_report {
    struct by_finding *findings;
    uint32_t count, room;
    const char *check; /* the one that runs */
};

/* Adds a finding of the check that runs; the text is printf's. `subject` and `remedy` are copied;
 * `remedy` may be NULL when all is well. */
void by_report_add(struct by_report *report, enum by_grade grade, const char *subject, const char *remedy,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Findings of a grade (count). */
uint32_t by_report_count(const struct by_report *report, enum by_grade grade);
/* What is not well, aligned, with its remedy below; what is well as a count, or in lines of its own
 * when `verbose`. Colours where `colours`. */
void by_report_print(const struct by_report *report, bool verbose, bool colours, FILE *stream);
/* All of it as one JSON object. */
void by_report_print_json(const struct by_report *report, FILE *stream);
void by_report_free(struct by_report *report);

#endif
