/* Findings in memory, as text and as JSON; see report.h. Single-threaded. */
#include "control/base/report.h"

#include <jansson.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"

static const char *const words[] = {[BY_GRADE_OK] = "ok",
                                    [BY_GRADE_ADVICE] = "advice",
                                    [BY_GRADE_TROUBLE] = "trouble",
                                    [BY_GRADE_UNSEEN] = "unseen"};
static const char *const colours_of[] = {[BY_GRADE_OK] = "\033[32m",
                                         [BY_GRADE_ADVICE] = "\033[33m",
                                         [BY_GRADE_TROUBLE] = "\033[1;31m",
                                         [BY_GRADE_UNSEEN] = "\033[35m"};

void by_report_add(struct by_report *report, enum by_grade grade, const char *subject, const char *remedy,
                   const char *format, ...)
{
    struct by_finding *finding;
    va_list arguments;

    BY_GROW(report->findings, report->count, report->room);
    finding = &report->findings[report->count++];
    *finding = (struct by_finding){.grade = grade, .check = report->check};
    snprintf(finding->subject, sizeof(finding->subject), "%s", subject);
    snprintf(finding->remedy, sizeof(finding->remedy), "%s", remedy ? remedy : "");
    va_start(arguments, format);
    vsnprintf(finding->text, sizeof(finding->text), format, arguments);
    va_end(arguments);
}

uint32_t by_report_count(const struct by_report *report, enum by_grade grade)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < report->count; i++)
        count += report->findings[i].grade == grade;
    return count;
}

static void print_finding(const struct by_finding *finding, int width, bool colours, FILE *stream)
{
    fprintf(stream, "%s%-7s%s  %-*s  %s%s%s\n", colours ? colours_of[finding->grade] : "",
            words[finding->grade], colours ? "\033[0m" : "", width, finding->check, finding->subject,
            finding->subject[0] ? ": " : "", finding->text);
    if (finding->remedy[0])
        fprintf(stream, "%-7s  %-*s  -> %s\n", "", width, "", finding->remedy);
}

void by_report_print(const struct by_report *report, bool verbose, bool colours, FILE *stream)
{
    static const enum by_grade order[] = {BY_GRADE_OK, BY_GRADE_ADVICE, BY_GRADE_UNSEEN, BY_GRADE_TROUBLE};
    int width = 0;

    for (uint32_t i = 0; i < report->count; i++) {
        const struct by_finding *finding = &report->findings[i];

        if ((verbose || finding->grade != BY_GRADE_OK) && (int)strlen(finding->check) > width)
            width = (int)strlen(finding->check);
    }
    /* Prints the worst findings last, where the reader looks first. */
    for (size_t grade = verbose ? 0 : 1; grade < sizeof(order) / sizeof(order[0]); grade++)
        for (uint32_t i = 0; i < report->count; i++)
            if (report->findings[i].grade == order[grade])
                print_finding(&report->findings[i], width, colours, stream);
    fprintf(stream, "%u ok", by_report_count(report, BY_GRADE_OK));
    for (size_t grade = 1; grade < sizeof(order) / sizeof(order[0]); grade++)
        if (by_report_count(report, order[grade]) > 0)
            fprintf(stream, ", %u %s", by_report_count(report, order[grade]), words[order[grade]]);
    fputc('\n', stream);
}

void by_report_print_json(const struct by_report *report, FILE *stream)
{
    json_t *findings = json_array(), *root;

    for (uint32_t i = 0; i < report->count; i++) {
        const struct by_finding *finding = &report->findings[i];

        json_array_append_new(findings, json_pack("{s:s, s:s, s:s, s:s, s:s}", "grade", words[finding->grade],
                                                  "check", finding->check, "subject", finding->subject,
                                                  "text", finding->text, "remedy", finding->remedy));
    }
    root = json_pack("{s:i, s:i, s:i, s:i, s:o}", "ok", (int)by_report_count(report, BY_GRADE_OK), "advice",
                     (int)by_report_count(report, BY_GRADE_ADVICE), "trouble",
                     (int)by_report_count(report, BY_GRADE_TROUBLE), "unseen",
                     (int)by_report_count(report, BY_GRADE_UNSEEN), "findings", findings);
    json_dumpf(root, stream, JSON_INDENT(2));
    fputc('\n', stream);
    json_decref(root);
}

void by_report_free(struct by_report *report)
{
    free(report->findings);
    *report = (struct by_report){0};
}
