/* Prints, verifies and writes what remains after each single failure. See plan_protect.h. */
#include "control/cli/plan_protect.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "control/base/fraction.h"
#include "control/cli/check.h"
#include "control/cli/cli.h"
#include "control/cli/runs.h"

/* Failures without a set that text output names (count). */
#define NAMES_MAX 2u

int by_cli_protect_read(struct by_cli_protect *protect, const char *text, struct by_option_why *why)
{
    struct by_protect_request *request = &protect->request;
    bool both = strcmp(text, "link,switch") == 0 || strcmp(text, "switch,link") == 0;

    request->links = both || strcmp(text, "link") == 0;
    request->switches = both || strcmp(text, "switch") == 0;
    if (request->part.num == 0)
        request->part = (struct by_fraction){1, 1};
    return request->links || request->switches
               ? 0
               : by_option_refuse(why, "it must be link, switch or link,switch");
}

int by_cli_protect_read_part(struct by_cli_protect *protect, const char *text, struct by_option_why *why)
{
    struct by_fraction *part = &protect->request.part;

    if (by_fraction_parse_part(text, part) == 0 && part->num > 0 && part->num <= part->den)
        return 0;
    return by_option_refuse(why, "it must be a part of the optimum above 0 and up to 1, such as 3/4, 0.75 or "
                                 "75%%");
}

/* Writes "link leaf0 - spine0" or "switch spine0". */
static void print_name(FILE *stream, const struct by_topology *topology,
                       const struct by_protect_failure *failure)
{
    const struct by_link *link = &topology->links[failure->what];

    if (failure->is_switch)
        fprintf(stream, "switch %s", topology->nodes[failure->what].name);
    else
        fprintf(stream, "link %s - %s", topology->nodes[link->a].name, topology->nodes[link->b].name);
}

/* ---- check and write ---- */

/* Whether the verifier finds exactly this part. */
static bool is_part(const struct by_verify_report *report, struct by_fraction part)
{
    char num[24], den[24];

    snprintf(num, sizeof(num), "%lld", (long long)part.num);
    snprintf(den, sizeof(den), "%lld", (long long)part.den);
    return strcmp(report->ratio.num, num) == 0 && strcmp(report->ratio.den, den) == 0;
}

/* Writes the name of a failure's files, without their endings: "switch-spine0" or
 * "link7-leaf0-spine0", since cables may be parallel. */
static char *file_name(const struct by_topology *topology, const struct by_protect_failure *failure,
                       char name[400])
{
    const struct by_link *link = &topology->links[failure->what];

    if (failure->is_switch)
        snprintf(name, 400, "switch-%s", topology->nodes[failure->what].name);
    else
        snprintf(name, 400, "link%u-%s-%s", failure->what, topology->nodes[link->a].name,
                 topology->nodes[link->b].name);
    return name;
}

static int write_set(const struct by_cli_protect *protect, const struct by_protect_failure *failure,
                     const struct by_topology *left, const struct by_plan *plan)
{
    char path[4096], name[400];
    struct by_output output;
    int status;

    file_name(protect->result->topology, failure, name);
    for (unsigned i = 0; i < 2; i++) {
        if (snprintf(path, sizeof(path), "%s/%s.%s", protect->folder, name, i ? "plan" : "json") >=
            (int)sizeof(path))
            return by_cli_fail(BY_EXIT_USAGE, "--backups %.60s...: the path is too long", protect->folder);
        if (!by_cli_create(&output, path))
            return BY_EXIT_ENVIRONMENT;
        status = by_cli_finish(&output, (i ? by_plan_write(plan, left, output.stream)
                                           : by_topology_write(left, output.stream)) == 0);
        if (status != BY_EXIT_DONE)
            return status;
    }
    return -1;
}

/* Verifies the set of a failure on the fabric that remains, and writes it. */
static int check_set(const struct by_cli_protect *protect, uint32_t number)
{
    const struct by_protect_failure *failure = &protect->result->failures[number];
    struct by_verify_report report = {0};
    struct by_topology *left;
    struct by_plan *plan;
    int status = -1;

    if (failure->state != BY_PROTECT_COVERED)
        return -1;
    if (by_protect_plan(protect->result, number, &left, &plan) != 0)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "the set of a failure cannot be made, please report it");
    by_cli_check(plan, left, &report);
    if (report.verdict == BY_VERDICT_INVALID)
        status = by_cli_fail(BY_EXIT_ENVIRONMENT,
                             "the planner made a wrong set of trees, please report it: %s", report.reason);
    else if (!is_part(&report, failure->part))
        status = by_cli_fail(
            BY_EXIT_ENVIRONMENT,
            "the verifier finds %s/%s of the optimum, and the planner %lld/%lld, please report "
            "it",
            report.ratio.num, report.ratio.den, (long long)failure->part.num, (long long)failure->part.den);
    else if (protect->folder)
        status = write_set(protect, failure, left, plan);
    by_plan_free(plan);
    by_topology_free(left);
    return status;
}

int by_cli_protect(struct by_cli_protect *protect, const char *file, const struct by_topology *topology,
                   const struct by_plan_options *options, const struct by_plan *plan)
{
    struct by_problem problem = {0};
    struct by_plan *all = NULL;
    int error, status = -1;

    if (!protect->request.links && !protect->request.switches)
        return -1;
    if (protect->folder && mkdir(protect->folder, 0777) != 0 && errno != EEXIST)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "--backups %s: %s", protect->folder, strerror(errno));
    error = by_protect_make(topology, options, plan, &protect->request, &protect->result, &problem);
    if (error)
        return by_cli_refuse_work(file, error, &problem);
    by_stage_begin(options->stage, "verifying for failures", protect->result->failure_count);
    for (uint32_t i = 0; i < protect->result->failure_count && status < 0; i++) {
        status = check_set(protect, i);
        by_stage_add(options->stage, 1);
    }
    if (status < 0 && by_protect_all(protect->result, &all) != 0)
        status =
            by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: the weights of all trees together exceed 63 bits", file);
    if (status < 0)
        by_runs_find(topology, all, &protect->runs);
    by_plan_free(all);
    return status;
}

void by_cli_protect_end(struct by_cli_protect *protect)
{
    by_protect_free(protect->result);
    protect->result = NULL;
}

/* ---- print ---- */

/* Prints ": link host0 - leaf0, switch leaf1, ... 8" for failures in a state. */
static void print_names(FILE *stream, const struct by_protect *result, enum by_protect_state state)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < result->failure_count; i++) {
        if (result->failures[i].state != state || count++ >= NAMES_MAX)
            continue;
        fputs(count == 1 ? ": " : ", ", stream);
        print_name(stream, result->topology, &result->failures[i]);
    }
    if (count > NAMES_MAX)
        fprintf(stream, " and %u more", count - NAMES_MAX);
}

void by_cli_protect_people(FILE *stream, const struct by_cli_protect *protect, const struct by_runs *runs)
{
    const struct by_protect *result = protect->result;
    const struct by_protect_failure *worst = result ? by_protect_worst(result) : NULL;
    uint32_t cut = result ? by_protect_count(result, BY_PROTECT_CUT) : 0,
             refused = result ? by_protect_count(result, BY_PROTECT_REFUSED) : 0;
    char text[BY_FRACTION_TEXT_BYTES];

    if (!result)
        return;
    fprintf(stream, "  protected   against %u of %u failures of one %s\n",
            result->failure_count - cut - refused, result->failure_count,
            !result->request.links     ? "switch"
            : result->request.switches ? "switch or link"
                                       : "link");
    if (cut > 0) {
        fprintf(stream, "  unprotected %u that cut a rank off", cut);
        print_names(stream, result, BY_PROTECT_CUT);
        fputc('\n', stream);
    }
    if (refused > 0) {
        uint32_t i = 0;

        while (result->failures[i].state != BY_PROTECT_REFUSED)
            i++;
        fprintf(stream, "  unplanned   %u", refused);
        print_names(stream, result, BY_PROTECT_REFUSED);
        fprintf(stream, ": %s\n", result->failures[i].reason);
    }
    if (!worst)
        return;
    fprintf(stream, "  worst part  %s of the optimum of the fabric that remains, without ",
            by_fraction_text(worst->part, text));
    print_name(stream, result->topology, worst);
    fprintf(stream, "\n  backups     %u tree%s beside the plan's %u", by_protect_backups(result),
            by_plural(by_protect_backups(result)), result->plan->tree_count);
    if (!protect->runs.runs)
        fprintf(stream, "; all together do not run on tables: %s\n", protect->runs.problem.text);
    else if (!protect->runs.fullest)
        fputs("; no switch has slots\n", stream);
    else {
        fprintf(stream, "\n  with them   at most %u trees and %u slots at a switch (%s), %u and %u without",
                protect->runs.fullest_trees, protect->runs.fullest_slots, protect->runs.fullest,
                runs->fullest_trees, runs->fullest_slots);
        if (runs->runs && protect->runs.window < runs->window)
            fprintf(stream, "; windows of %u slots, %u without", protect->runs.window, runs->window);
        fputc('\n', stream);
    }
}

static void json_name(FILE *stream, const struct by_topology *topology,
                      const struct by_protect_failure *failure)
{
    const struct by_link *link = &topology->links[failure->what];

    if (failure->is_switch)
        fprintf(stream, "\"switch\": \"%s\"", topology->nodes[failure->what].name);
    else
        fprintf(stream, "\"link\": [\"%s\", \"%s\"]", topology->nodes[link->a].name,
                topology->nodes[link->b].name);
}

static void json_failure(FILE *stream, const struct by_cli_protect *protect,
                         const struct by_protect_failure *failure)
{
    const struct by_topology *topology = protect->result->topology;
    char text[BY_FRACTION_JSON_BYTES], name[400];

    fputs("   {", stream);
    json_name(stream, topology, failure);
    if (failure->state == BY_PROTECT_CUT)
        fprintf(stream, ", \"cuts_off\": \"%s\"}", topology->nodes[failure->alone].name);
    else if (failure->state == BY_PROTECT_REFUSED)
        fputs(", \"refused\": true}", stream);
    else {
        fprintf(stream, ", \"part\": %s", by_fraction_json(failure->part, text));
        fprintf(stream, ", \"rate\": %s", by_fraction_json(failure->set.rate, text));
        fprintf(stream, ", \"trees_made\": %u", failure->added);
        if (protect->folder)
            fprintf(stream, ", \"file\": \"%s\"", file_name(topology, failure, name));
        fputc('}', stream);
    }
}

void by_cli_protect_json(FILE *stream, const struct by_cli_protect *protect)
{
    const struct by_protect *result = protect->result;
    const struct by_protect_failure *worst = result ? by_protect_worst(result) : NULL;
    char text[BY_FRACTION_JSON_BYTES];

    if (!result)
        return;
    fprintf(stream, " \"protect\": {\"failures\": %u, \"covered\": %u, \"backup_trees\": %u,\n  ",
            result->failure_count, by_protect_count(result, BY_PROTECT_COVERED), by_protect_backups(result));
    if (worst) {
        fputs("\"worst\": {", stream);
        json_name(stream, result->topology, worst);
        fprintf(stream, ", \"part\": %s},\n  ", by_fraction_json(worst->part, text));
    }
    by_cli_runs_json(stream, &protect->runs);
    fputs(",\n  \"each\": [\n", stream);
    for (uint32_t i = 0; i < result->failure_count; i++) {
        json_failure(stream, protect, &result->failures[i]);
        fputs(i + 1 < result->failure_count ? ",\n" : "]},\n", stream);
    }
}
