/*
 * What `banyan plan` says of allreduce: for whom the bound holds, and when reduce-scatter and then allgather
 * is as good. See plan_allreduce.h.
 */
#include "control/cli/plan_allreduce.h"

#include "control/topology/fraction.h"

const char *by_plan_bound_words(const struct by_plan *plan)
{
    return plan->proof ? "no trees carry more" : "no schedule can be faster";
}

void by_plan_allreduce_people(FILE *stream, const struct by_plan *plan)
{
    bool same = by_fraction_compare(plan->two_phases, plan->optimum) == 0;
    char text[BY_FRACTION_TEXT_BYTES];

    if (plan->proof)
        fprintf(stream, "  proof       %s; the cut alone would allow %.6g %s\n",
                plan->proof->kind == BY_CERTIFICATE_PARTS
                    ? "disjoint sets, each entered and left by every tree"
                    : "prices of links that every pair of trees pays",
                by_fraction_value(plan->cut_exiting), plan->unit);
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
    static const char *const kinds[] = {"?", "parts", "prices"};
    char text[BY_FRACTION_JSON_BYTES];

    if (plan->two_phases.num == 0)
        return;
    fprintf(stream, " \"bound_of\": \"%s\", \"proof\": \"%s\",\n", plan->proof ? "trees" : "schedules",
            plan->proof ? kinds[plan->proof->kind] : "cut");
    fprintf(stream, " \"rs_ag\": %s, \"rs_ag_float\": %.12g, \"rs_ag_proved_optimal\": %s,\n",
            by_fraction_json(plan->two_phases, text), by_fraction_value(plan->two_phases),
            by_fraction_compare(plan->two_phases, plan->optimum) == 0 ? "true" : "false");
}
