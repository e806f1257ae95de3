/*
 * Output of `banyan plan` for allreduce: the class of schedules for which the bound holds, and
 * whether reduce-scatter followed by allgather is as fast. See plan_allreduce.h.
 */
#include "control/cli/plan_allreduce.h"

#include <string.h>

#include "control/base/fraction.h"
#include "control/cli/cli.h"
#include "control/planner/planner.h"
#include "offload/wire/types.h"

const char *by_plan_bound_words(const struct by_plan *plan)
{
    return !plan->proof       ? "no schedule can be faster"
           : plan->hosts_only ? "no trees carry more while switches only forward"
                              : "no trees carry more";
}

/* What an allreduce below its bound lacks. Weights that need more than 63 bits are rounded down by
 * less than 1 / 65536 of the rate (control/study/bound/columns.c). */
enum gap { GAP_ROUNDING = 0, GAP_TREES, GAP_UNKNOWN };

static enum gap gap_of(const struct by_plan *plan)
{
    struct by_fraction nearly;

    if (by_fraction_multiply(plan->optimum, (struct by_fraction){65535, 65536}, &nearly) == 0 &&
        by_fraction_compare(plan->achieved, nearly) > 0)
        return GAP_ROUNDING;
    return plan->bound_is_firm ? GAP_TREES : GAP_UNKNOWN;
}

void by_plan_allreduce_people(FILE *stream, const struct by_plan *plan)
{
    static const char *const gaps[] = {
        "of the weights, which are rounded: exact ones are unknown, or too long for 63 bits",
        "most likely of the trees: a linear program over all trees allows the bound",
        "of the trees or of the bound: the program that tells them apart is too large"};
    bool same = by_fraction_compare(plan->two_phases, plan->optimum) == 0;
    char text[BY_FRACTION_TEXT_BYTES];

    if (plan->proof)
        fprintf(stream, "  proof       %s; the cut alone would allow %.6g %s\n",
                plan->proof->kind == BY_CERTIFICATE_PARTS
                    ? "disjoint sets, each entered and left by every tree"
                : plan->proof->kind == BY_CERTIFICATE_PRICES
                    ? "prices of links that every pair of trees pays"
                    : "prices of links, and weighted cuts that every pair of trees crosses",
                by_fraction_value(plan->cut_exiting), plan->unit);
    if (!plan->hurried && by_collective_way(plan->collective) == BY_DATA_BOTH && !plan->ordered &&
        by_fraction_compare(plan->achieved, plan->optimum) < 0)
        fprintf(stream, "  gap         %s\n", gaps[gap_of(plan)]);
    if (plan->two_phases.num == 0)
        return;
    fprintf(stream, "  two phases  reduce-scatter, then allgather: %.6g %s (%s), ",
            by_fraction_value(plan->two_phases), plan->unit, by_fraction_text(plan->two_phases, text));
    if (same)
        fprintf(stream, "provably optimal%s\n", plan->proof ? " among trees" : "");
    else if (by_fraction_compare(plan->achieved, plan->two_phases) > 0)
        fprintf(stream, "not optimal: these trees are %.4g times as fast\n",
                by_fraction_value(plan->achieved) / by_fraction_value(plan->two_phases));
    else
        fprintf(stream, "not proved optimal: the bound allows %.4g times as much\n",
                by_fraction_value(plan->optimum) / by_fraction_value(plan->two_phases));
}

void by_plan_allreduce_json(FILE *stream, const struct by_plan *plan)
{
    static const char *const kinds[] = {"?", "parts", "prices", "cuts"};
    static const char *const gaps[] = {"rounding", "trees", "unknown"};
    char text[BY_FRACTION_JSON_BYTES];

    if (plan->two_phases.num == 0)
        return;
    fprintf(stream, " \"bound_of\": \"%s\", \"proof\": \"%s\",\n", plan->proof ? "trees" : "schedules",
            plan->proof ? kinds[plan->proof->kind] : "cut");
    if (by_fraction_compare(plan->achieved, plan->optimum) < 0)
        fprintf(stream, " \"gap_of\": \"%s\",\n", gaps[gap_of(plan)]);
    fprintf(stream, " \"rs_ag\": %s, \"rs_ag_float\": %.12g, \"rs_ag_proved_optimal\": %s,\n",
            by_fraction_json(plan->two_phases, text), by_fraction_value(plan->two_phases),
            by_fraction_compare(plan->two_phases, plan->optimum) == 0 ? "true" : "false");
}

void by_plan_trades_people(FILE *stream, const struct by_plan *plan)
{
    struct by_fraction best = plan->trade_count ? plan->trades[plan->trade_count - 1].rate : plan->achieved;
    char text[BY_FRACTION_TEXT_BYTES];

    for (uint32_t i = 0; i < plan->trade_count; i++) {
        const struct by_trade *trade = &plan->trades[i];
        bool taken = by_fraction_compare(trade->rate, plan->achieved) == 0 &&
                     (i + 1 == plan->trade_count || i + 2 == plan->trade_count);

        fprintf(stream, "  %-11s height %-4u %10.6g %s (%s), %.4g %% less%s\n", i ? "" : "trade",
                trade->height, by_fraction_value(trade->rate), plan->unit,
                by_fraction_text(trade->rate, text),
                by_fraction_compare(trade->rate, best) == 0
                    ? 0
                    : 100 - 100 * by_fraction_value(trade->rate) / by_fraction_value(best),
                taken ? ": selected" : "");
    }
}

void by_plan_trades_json(FILE *stream, const struct by_plan *plan)
{
    char text[BY_FRACTION_JSON_BYTES];

    if (plan->trade_count == 0)
        return;
    fputs(" \"trades\": [", stream);
    for (uint32_t i = 0; i < plan->trade_count; i++)
        fprintf(stream, "%s{\"height\": %u, \"rate\": %s, \"rate_float\": %.12g}", i ? ", " : "",
                plan->trades[i].height, by_fraction_json(plan->trades[i].rate, text),
                by_fraction_value(plan->trades[i].rate));
    fputs("],\n", stream);
}
