/*
 * The findings of `banyan doctor` and `banyan discover`. Each belongs to one check and one subject
 * (an interface, a switch), and has a remedy. Neighbours: the checks add findings, the command
 * prints them. Single-threaded.
 */
#ifndef BY_BASE_REPORT_H
#define BY_BASE_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum by_grade {
    BY_GRADE_OK = 1,
    BY_GRADE_ADVICE,  /* works, but could work better */
    BY_GRADE_TROUBLE, /* does not work, or will soon stop working */
    BY_GRADE_UNSEEN,  /* requested, but could not be checked */
};

struct by_finding {
    enum by_grade grade;
    const char *check; /* name of the check */
    char subject[96];  /* "eth0", "leaf0 at unix:/run/...", or "" for the machine */
    char text[320];
    char remedy[256]; /* "" if there is no problem */
};

struct by_report {
    struct by_finding *findings;
    uint32_t count, room;
    const char *check; /* the running check */
};

/*
 * Adds a finding of the running check; the text has printf's format. `subject` and `remedy` are
 * copied; `remedy` may be NULL if there is no problem.
 */
void by_report_add(struct by_report *report, enum by_grade grade, const char *subject, const char *remedy,
                   const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Returns the number of findings of a grade. */
uint32_t by_report_count(const struct by_report *report, enum by_grade grade);
/*
 * Prints problems in aligned columns, each with its remedy below. Other findings are only counted,
 * or printed too if `verbose`. Uses colours if `colours`.
 */
void by_report_print(const struct by_report *report, bool verbose, bool colours, FILE *stream);
/* Writes all findings as one JSON object. */
void by_report_print_json(const struct by_report *report, FILE *stream);
void by_report_free(struct by_report *report);

#endif
