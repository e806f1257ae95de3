/* Writes schedules of rounds as JSON. See rounds.h and docs/exchange.md. */
#include <jansson.h>

#include "control/base/fraction.h"
#include "control/study/baseline/rounds.h"
#include "offload/base/assert.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

#define FORMAT "banyan-rounds-1"

static void write_string(FILE *stream, const char *text)
{
    json_t *string = json_string(text);

    BY_ASSERT(string);
    json_dumpf(string, stream, JSON_ENCODE_ANY);
    json_decref(string);
}

static void write_fraction(FILE *stream, const char *key, struct by_fraction value)
{
    char text[BY_FRACTION_JSON_BYTES];

    fprintf(stream, "\"%s\": %s", key, by_fraction_json(value, text));
}

static void write_transfer(FILE *stream, const struct by_rounds *rounds, const struct by_topology *topology,
                           const struct by_baseline_transfer *transfer)
{
    fprintf(stream, "{\"shard\": %u, \"count\": %u, \"reduce\": %s, \"path\": [", transfer->shard,
            transfer->count, transfer->reduce ? "true" : "false");
    for (uint32_t i = 0; i < transfer->path_count; i++)
        fprintf(stream, "%s\"%s\"", i ? ", " : "",
                topology->nodes[rounds->nodes[transfer->path_first + i]].name);
    fputs("]}", stream);
}

int by_rounds_write(const struct by_rounds *rounds, const struct by_topology *topology, const char *algorithm,
                    struct by_fraction optimum, void *stream)
{
    FILE *file = stream;
    uint32_t next = 0;

    fputs("{\"format\": \"" FORMAT "\", \"topology\": ", file);
    write_string(file, topology->name);
    fputs(", \"unit\": ", file);
    write_string(file, topology->unit);
    fprintf(file, ",\n \"algorithm\": \"%s\", \"collective\": \"%s\", \"root\": ", algorithm,
            by_collective_name(rounds->collective));
    if (rounds->root >= 0) {
        uint32_t node = 0;

        for (int64_t rank = -1; node < topology->node_count; node++)
            if (topology->nodes[node].compute && ++rank == rounds->root)
                break;
        fprintf(file, "\"%s\"", topology->nodes[node].name);
    } else {
        fputs("null", file);
    }
    fprintf(file, ", \"shards\": %u,\n ", rounds->shard_count);
    write_fraction(file, "optimum", optimum);
    fputs(", ", file);
    write_fraction(file, "achieved", rounds->achieved);
    fputs(", ", file);
    write_fraction(file, "time", rounds->time);
    fputs(",\n \"rounds\": [", file);
    for (uint32_t round = 0; round < rounds->round_count; round++) {
        fputs(round ? ",\n  {" : "\n  {", file);
        write_fraction(file, "time", rounds->seconds[round]);
        fputs(", \"transfers\": [", file);
        for (bool first = true; next < rounds->transfer_count && rounds->transfers[next].round == round;
             next++) {
            fputs(first ? "\n    " : ",\n    ", file);
            write_transfer(file, rounds, topology, &rounds->transfers[next]);
            first = false;
        }
        fputs("]}", file);
    }
    fputs("]}\n", file);
    return fflush(file) != 0 || ferror(file) ? BY_EIO : 0;
}
