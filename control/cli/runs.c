/* Prints whether a plan can run on tables. See runs.h. */
#include "control/cli/runs.h"

#include "control/cli/cli.h"

void by_cli_runs_people(FILE *stream, const struct by_runs *runs)
{
    char text[BY_FRACTION_TEXT_BYTES];

    if (!runs->runs) {
        fprintf(stream, "no: %s", runs->problem.text);
        return;
    }
    fprintf(stream, "yes; at most %u tree%s and %u slots at a node", runs->trees, by_plural(runs->trees),
            runs->slots);
    if (runs->fullest)
        fprintf(stream, "; at switches %u and %u (%s)", runs->fullest_trees, runs->fullest_slots,
                runs->fullest);
    if (runs->part.num < runs->part.den)
        fprintf(stream, "; at %s (%.4f) of the rate, because of parallel cables",
                by_fraction_text(runs->part, text), by_fraction_value(runs->part));
}

void by_cli_runs_json(FILE *stream, const struct by_runs *runs)
{
    char part[BY_FRACTION_JSON_BYTES];

    if (runs->runs) {
        fprintf(stream, "\"runs\": {\"tables\": true, \"trees\": %u, \"slots\": %u, \"window\": %u",
                runs->trees, runs->slots, runs->window);
        if (runs->fullest)
            fprintf(stream, ", \"switch\": \"%s\", \"switch_trees\": %u, \"switch_slots\": %u", runs->fullest,
                    runs->fullest_trees, runs->fullest_slots);
        if (runs->part.num < runs->part.den)
            fprintf(stream, ", \"part\": %s", by_fraction_json(runs->part, part));
        fputc('}', stream);
        return;
    }
    fputs("\"runs\": {\"tables\": false, \"reason\": \"", stream);
    for (const char *c = runs->problem.text; *c; c++)
        fprintf(stream, *c == '"' || *c == '\\' ? "\\%c" : (unsigned char)*c < ' ' ? "\\u%04x" : "%c", *c);
    fputs("\"}", stream);
}
