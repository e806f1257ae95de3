/*
 * Measures the value of a switch capability: plans on two copies of the topology, in which the
 * selected switches have the capability and do not have it. Everything else is unchanged. See
 * plan_whatif.h.
 */
#include "control/cli/plan_whatif.h"

#include <stdio.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/planner/planner.h"
#include "offload/wire/types.h"

/* Most switches for which "all" prints a row each (count). */
#define ROWS_MAX 64u

struct plan_whatif_question {
    const struct by_topology *topology;
    const char *file;
    const struct by_plan_options *options;
    bool multicast, aggregate;
    bool json;
    bool first;   /* no row has been printed */
    bool unknown; /* a rate is not known to be optimal */
};

/* Result of one plan. */
struct plan_whatif_answer {
    struct by_fraction rate, bound;
};

/*
 * Returns the length of a name without its trailing digits, or of the whole name if it is only
 * digits.
 */
static size_t class_length(const char *name)
{
    size_t length = strlen(name);

    while (length > 0 && name[length - 1] >= '0' && name[length - 1] <= '9')
        length--;
    return length ? length : strlen(name);
}

static bool is_of(const struct by_node *node, const char *name, bool class)
{
    if (node->compute)
        return false;
    if (!class)
        return strcmp(node->name, name) == 0;
    return strlen(name) == class_length(node->name) && strncmp(node->name, name, strlen(name)) == 0;
}

/* Plans with the capability of the selected switches set. Returns -1, or the exit status. */
static int ask(const struct plan_whatif_question *question, const char *name, bool class, bool able,
               struct plan_whatif_answer *answer)
{
    struct by_topology copy = *question->topology;
    struct by_problem problem = {0};
    struct by_plan *plan;
    int error;

    copy.nodes = by_alloc(copy.node_count, sizeof(*copy.nodes));
    memcpy(copy.nodes, question->topology->nodes, copy.node_count * sizeof(*copy.nodes));
    for (uint32_t i = 0; i < copy.node_count; i++) {
        if (!is_of(&copy.nodes[i], name, class))
            continue;
        if (question->multicast)
            copy.nodes[i].multicast = able;
        if (question->aggregate)
            copy.nodes[i].aggregate = able;
    }
    error = by_plan_make(&copy, question->options, &plan, &problem);
    free(copy.nodes);
    if (error)
        return by_cli_refuse_work(question->file, error, &problem);
    *answer = (struct plan_whatif_answer){plan->achieved, plan->optimum};
    by_plan_free(plan);
    return -1;
}

static uint32_t count_of(const struct by_topology *topology, const char *name, bool class)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < topology->node_count; i++)
        count += is_of(&topology->nodes[i], name, class);
    return count;
}

static const char *capability_name(const struct plan_whatif_question *question)
{
    return question->multicast && question->aggregate ? "multicast,aggregate"
           : question->multicast                      ? "multicast"
                                                      : "aggregate";
}

static void print_rate(struct by_fraction rate, bool optimal)
{
    char text[BY_FRACTION_TEXT_BYTES], cell[96];

    if (rate.den == 1)
        snprintf(cell, sizeof(cell), "%s", by_fraction_text(rate, text));
    else
        snprintf(cell, sizeof(cell), "%.6g (%s)", by_fraction_value(rate), by_fraction_text(rate, text));
    printf(" %22s%s", cell, optimal ? " " : "+");
}

static void print_member(const char *key, struct by_fraction value)
{
    char text[BY_FRACTION_JSON_BYTES];

    printf(", \"%s\": %s, \"%s_float\": %.12g", key, by_fraction_json(value, text), key,
           by_fraction_value(value));
}

static bool is_optimal(const struct plan_whatif_answer *answer)
{
    return by_fraction_compare(answer->rate, answer->bound) == 0;
}

static void print_row(const struct plan_whatif_question *question, const char *name, bool class,
                      const struct plan_whatif_answer *without, const struct plan_whatif_answer *with)
{
    uint32_t count = count_of(question->topology, name, class);
    struct by_fraction gain = {0, 1};
    char text[BY_FRACTION_TEXT_BYTES], label[64];
    bool known = by_fraction_divide(with->rate, without->rate, &gain) == 0;

    if (question->json) {
        printf("%s{\"name\": \"%s\", \"class\": %s, \"switches\": %u", question->first ? "\n  " : ",\n  ",
               name, class ? "true" : "false", count);
        print_member("without", without->rate);
        print_member("with", with->rate);
        if (known)
            print_member("gain", gain);
        printf(", \"without_optimal\": %s, \"with_optimal\": %s}", is_optimal(without) ? "true" : "false",
               is_optimal(with) ? "true" : "false");
        return;
    }
    snprintf(label, sizeof(label), class ? "%s* (%u)" : "%s", name, count);
    printf("  %-20s", label);
    print_rate(without->rate, is_optimal(without));
    print_rate(with->rate, is_optimal(with));
    printf(" %9.4g", by_fraction_value(with->rate) / by_fraction_value(without->rate));
    if (known && gain.den != 1 && gain.den < 100000)
        printf(" (%s)", by_fraction_text(gain, text));
    printf("\n");
}

/* Prints one row. Returns -1, or the exit status. */
static int answer_row(struct plan_whatif_question *question, const char *name, bool class)
{
    struct plan_whatif_answer without = {{0, 1}, {0, 1}}, with = {{0, 1}, {0, 1}};
    int status = ask(question, name, class, false, &without);

    if (status < 0)
        status = ask(question, name, class, true, &with);
    if (status < 0) {
        print_row(question, name, class, &without, &with);
        question->first = false;
        question->unknown = question->unknown || !is_optimal(&without) || !is_optimal(&with);
        fflush(stdout);
    }
    return status;
}

/* Prints a row for each class, and for each switch unless there are too many. */
static int answer_all(struct plan_whatif_question *question)
{
    const struct by_topology *topology = question->topology;
    uint32_t switches = topology->node_count - by_topology_compute_count(topology);
    int status = -1;

    for (uint32_t i = 0; i < topology->node_count && status < 0; i++) {
        char class[64];
        bool seen = topology->nodes[i].compute;

        snprintf(class, sizeof(class), "%.*s", (int)class_length(topology->nodes[i].name),
                 topology->nodes[i].name);
        for (uint32_t j = 0; j < i && !seen; j++)
            seen = is_of(&topology->nodes[j], class, true);
        if (!seen)
            status = answer_row(question, class, true);
    }
    for (uint32_t i = 0; i < topology->node_count && status < 0 && switches <= ROWS_MAX; i++)
        if (!topology->nodes[i].compute)
            status = answer_row(question, topology->nodes[i].name, false);
    return status;
}

/* Parses NAME[=CAPABILITY]. Returns -1, or the exit status. */
static int read_question(struct plan_whatif_question *question, const char *what, char name[64])
{
    const char *capability = strchr(what, '=');
    size_t length = capability ? (size_t)(capability - what) : strlen(what);

    if (length == 0 || length >= 64)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--what-if is '%.80s'; it must be a switch, a class of switches or all, with "
                           "=multicast,aggregate or one of them",
                           what);
    memcpy(name, what, length);
    name[length] = '\0';
    question->multicast = !capability || strcmp(capability, "=multicast") == 0;
    question->aggregate = !capability || strcmp(capability, "=aggregate") == 0;
    if (capability &&
        (strcmp(capability, "=multicast,aggregate") == 0 || strcmp(capability, "=aggregate,multicast") == 0))
        question->multicast = question->aggregate = true;
    if (!question->multicast && !question->aggregate)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--what-if names the capability '%.40s'; it must be multicast, aggregate, or both "
                           "(multicast,aggregate)",
                           capability + 1);
    return -1;
}

static void print_head(const struct plan_whatif_question *question, const struct plan_whatif_answer *now)
{
    const char *collective = by_collective_name(question->options->collective);
    char text[BY_FRACTION_TEXT_BYTES];

    if (question->json) {
        printf("{\"collective\": \"%s\", \"what_if\": \"%s\"", collective, capability_name(question));
        print_member("now", now->rate);
        printf(", \"rows\": [");
        return;
    }
    printf("%s on %s: what %s at a switch is worth, all else as it is\n", collective,
           question->topology->name, capability_name(question));
    printf("  now %.6g %s (%s)\n\n", by_fraction_value(now->rate), question->topology->unit,
           by_fraction_text(now->rate, text));
    printf("  %-20s %22s  %22s  %9s\n", "switch", "without", "with", "gain");
}

int by_cli_what_if(const struct by_topology *topology, const char *file,
                   const struct by_plan_options *options, const char *what, bool json)
{
    struct plan_whatif_question question = {
        .topology = topology, .file = file, .options = options, .json = json, .first = true};
    struct plan_whatif_answer now = {{0, 1}, {0, 1}};
    char name[64];
    bool single, class, all;
    int status = read_question(&question, what, name);

    if (status >= 0)
        return status;
    single = count_of(topology, name, false) > 0;
    class = !single && count_of(topology, name, true) > 0;
    all = !single && !class && strcmp(name, "all") == 0;
    if (!single && !class && !all)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--what-if names '%s', which is neither a switch nor a class of switches of %s",
                           name, file);
    if (topology->node_count == by_topology_compute_count(topology))
        return by_cli_fail(BY_EXIT_USAGE, "%s has no switches; --what-if requires one", file);
    status = ask(&question, "", false, true, &now);
    if (status >= 0)
        return status;
    print_head(&question, &now);
    status = all ? answer_all(&question) : answer_row(&question, name, class);
    if (json)
        printf("]}\n");
    else if (status < 0 && question.unknown)
        printf("\n  + the rate is not proved optimal\n");
    return status < 0 ? BY_EXIT_DONE : status;
}
