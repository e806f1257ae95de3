/* Output of banyan-perf; see report.h. Columns and trailer are those of nccl-tests, plus %opt:
 * algbw relative to the proven optimum. */
#include "host-driver/tools/perf/report.h"
#include "offload/wire/types.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void print_optimum(const struct perf_result *result)
{
    if (result->optimum > 0)
        printf(" %6.1f", 100 * result->out_of_place.algbw / result->optimum);
    else
        printf(" %6s", "-");
}

static const char *root_text(const struct perf_call *call, char text[16])
{
    int rooted = by_collective_is_rooted(call->collective);

    snprintf(text, 16, "%d", rooted ? (int)call->root : -1);
    return text;
}

void perf_print_heading(const struct perf_world *world, const struct perf_options *options)
{
    printf("# banyan-perf %s: %u ranks, transport %s, mode %s, %u operations timed after %u\n", BY_VERSION,
           world->size, banyan_comm_transport(world->ranks[0].comm),
           banyan_mode_name(banyan_comm_mode(world->ranks[0].comm)), options->iterations, options->warmup);
    printf("#\n");
    printf("#%-15s %12s %12s %6s %6s %5s  %33s  %33s\n", "", "", "", "", "", "", "out-of-place          ",
           "in-place            ");
    printf("#%-15s %12s %12s %6s %6s %5s  %10s %7s %7s %6s  %10s %7s %7s %6s %6s\n", " collective", "size",
           "count", "type", "redop", "root", "time", "algbw", "busbw", "#wrong", "time", "algbw", "busbw",
           "#wrong", "%opt");
    printf("#%-15s %12s %12s %6s %6s %5s  %10s %7s %7s %6s  %10s %7s %7s %6s %6s\n", "", "(B)", "(elements)",
           "", "", "", "(us)", "(GB/s)", "(GB/s)", "", "(us)", "(GB/s)", "(GB/s)", "", "");
    fflush(stdout);
}

static void print_half(const struct perf_half *half, bool unchecked)
{
    printf("  %10.1f %7.3f %7.3f", half->time_us, half->algbw, half->busbw);
    if (unchecked)
        printf(" %6s", "N/A");
    else
        printf(" %6" PRIu64, half->wrong);
}

/* Returns the elements as nccl-tests count them: of one rank, or with unequal shares of all
 * ranks. */
static uint64_t elements(const struct perf_result *result)
{
    return result->call.offsets != NULL ? result->bytes / banyan_dtype_size(result->call.dtype)
                                        : result->call.count;
}

void perf_print_result(const struct perf_result *result)
{
    const struct perf_call *call = &result->call;
    char root[16], name[24];

    snprintf(name, sizeof(name), "%s%s", by_collective_name(call->collective),
             call->offsets != NULL ? "v" : "");
    printf(" %-15s %12" PRIu64 " %12" PRIu64 " %6s %6s %5s", name, result->bytes, elements(result),
           banyan_dtype_name(call->dtype),
           by_collective_reduces(call->collective) ? banyan_op_name(call->op) : "none",
           root_text(call, root));
    print_half(&result->out_of_place, result->unchecked);
    print_half(&result->in_place, result->unchecked);
    print_optimum(result);
    printf("\n");
    fflush(stdout);
}

uint64_t perf_wrong(const struct perf_results *results)
{
    uint64_t wrong = 0;

    for (uint32_t i = 0; i < results->count; i++)
        wrong += results->result[i].out_of_place.wrong + results->result[i].in_place.wrong;
    return wrong;
}

static double average_busbw(const struct perf_results *results)
{
    double sum = 0;
    uint32_t count = 0;

    for (uint32_t i = 0; i < results->count; i++) {
        if (results->result[i].bytes == 0)
            continue; /* a barrier moves no data */
        sum += results->result[i].out_of_place.busbw + results->result[i].in_place.busbw;
        count += 2;
    }
    return count > 0 ? sum / count : 0;
}

/* Returns one digest of all results, in their order. */
static uint64_t whole_digest(const struct perf_results *results)
{
    uint64_t hash = 0;

    for (uint32_t i = 0; i < results->count; i++) {
        hash = (hash ^ results->result[i].out_of_place.digest) * 0x100000001b3u;
        hash = (hash ^ results->result[i].in_place.digest) * 0x100000001b3u;
    }
    return hash;
}

void perf_print_trailer(const struct perf_results *results)
{
    uint64_t wrong = perf_wrong(results);

    if (results->result[0].unchecked)
        printf("# Out of bounds values : not checked (--check 0)\n");
    else
        printf("# Out of bounds values : %" PRIu64 " %s\n", wrong, wrong == 0 ? "OK" : "FAILED");
    printf("# Avg bus bandwidth    : %g\n", average_busbw(results));
    if (!results->result[0].unchecked)
        printf("# Digest of the results: %016" PRIx64 "\n", whole_digest(results));
    printf("#\n");
    fflush(stdout);
}

/* ---- JSON ---- */

void perf_print_text(FILE *stream, const char *text)
{
    putc('"', stream);
    for (; *text != 0; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(stream, "\\%c", c);
        else if (c < 0x20)
            fprintf(stream, "\\u%04x", c);
        else
            putc(c, stream);
    }
    putc('"', stream);
}

static void json_ports(FILE *stream, const struct perf_ports *ports)
{
    fprintf(stream, "[");
    for (uint32_t i = 0; i < ports->count; i++) {
        fprintf(stream, "%s{\"name\": ", i > 0 ? ", " : "");
        perf_print_text(stream, ports->port[i].name);
        fprintf(stream,
                ", \"rx_packets\": %" PRIu64 ", \"rx_bytes\": %" PRIu64 ", \"tx_packets\": %" PRIu64
                ", \"tx_bytes\": %" PRIu64 "}",
                ports->port[i].rx_packets, ports->port[i].rx_bytes, ports->port[i].tx_packets,
                ports->port[i].tx_bytes);
    }
    fprintf(stream, "]");
}

/* Prints the result of a check, or null without one. */
static void json_checked(FILE *stream, bool unchecked, uint64_t wrong, uint64_t digest)
{
    if (unchecked)
        fprintf(stream, ", \"wrong\": null, \"digest\": null");
    else
        fprintf(stream, ", \"wrong\": %" PRIu64 ", \"digest\": \"%016" PRIx64 "\"", wrong, digest);
}

static void json_half(FILE *stream, const struct perf_half *half, bool unchecked)
{
    fprintf(stream, "\"time_us\": %.3f, \"cpu_us\": %.3f, \"algbw\": %.6f, \"busbw\": %.6f", half->time_us,
            half->cpu_us, half->algbw, half->busbw);
    json_checked(stream, unchecked, half->wrong, half->digest);
    fprintf(stream, ", \"ports\": ");
    json_ports(stream, &half->ports);
}

/* Prints the shares of the ranks. */
static void json_parts(FILE *stream, const struct perf_call *call, uint32_t ranks)
{
    fprintf(stream, "\"parts\": ");
    for (uint32_t rank = 0; call->offsets != NULL && rank < ranks; rank++)
        fprintf(stream, "%s%" PRIu64, rank > 0 ? ", " : "[", call->offsets[rank + 1] - call->offsets[rank]);
    fprintf(stream, "%s, ", call->offsets != NULL ? "]" : "null");
}

static void json_result(FILE *stream, uint32_t ranks, const struct perf_result *result)
{
    const struct perf_call *call = &result->call;
    char root[16];

    fprintf(stream,
            "{\"collective\": \"%s\", \"bytes\": %" PRIu64 ", \"count\": %" PRIu64
            ", \"dtype\": \"%s\", \"op\": \"%s\", \"root\": %s, \"operations\": %u, \"optimum\": ",
            by_collective_name(call->collective), result->bytes, elements(result),
            banyan_dtype_name(call->dtype),
            by_collective_reduces(call->collective) ? banyan_op_name(call->op) : "none",
            root_text(call, root), result->operations);
    if (result->optimum > 0)
        fprintf(stream, "%.6f, \"opt_percent\": %.3f, ", result->optimum,
                100 * result->out_of_place.algbw / result->optimum);
    else
        fprintf(stream, "null, \"opt_percent\": null, ");
    json_parts(stream, call, ranks);
    json_half(stream, &result->out_of_place, result->unchecked);
    fprintf(stream, ", \"inplace\": {");
    json_half(stream, &result->in_place, result->unchecked);
    fprintf(stream, "}}");
}

/* Prints counters whose names start with `group` and a slash, as one object. */
static void json_counters(FILE *stream, const struct banyan_comm *comm, const char *group)
{
    size_t bytes = strlen(group);
    const char *name;
    uint64_t value;
    int first = 1;

    fprintf(stream, "{");
    for (uint32_t i = 0; banyan_comm_counter(comm, i, &name, &value) == BANYAN_OK; i++) {
        if (strncmp(name, group, bytes) != 0 || name[bytes] != '/')
            continue;
        fprintf(stream, "%s\"%s\": %" PRIu64, first ? "" : ", ", name + bytes + 1, value);
        first = 0;
    }
    fprintf(stream, "}");
}

static void json_links(FILE *stream, const struct banyan_fabric *fabric)
{
    struct banyan_link link;

    fprintf(stream, "[");
    for (uint32_t i = 0; banyan_fabric_link(fabric, i, &link) == BANYAN_OK; i++) {
        fprintf(stream, "%s{\"from\": ", i > 0 ? ", " : "");
        perf_print_text(stream, link.from);
        fprintf(stream, ", \"from_port\": ");
        perf_print_text(stream, link.from_port);
        fprintf(stream, ", \"to\": ");
        perf_print_text(stream, link.to);
        fprintf(stream, ", \"to_port\": ");
        perf_print_text(stream, link.to_port);
        fprintf(stream, ", \"packets\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", link.packets, link.bytes);
    }
    fprintf(stream, "]");
}

void perf_print_json(FILE *stream, const struct perf_world *world, const struct perf_rank *rank,
                     const struct perf_results *results, bool counters)
{
    struct perf_ports ports;

    fprintf(stream, "{\"rank\": %u, \"ranks\": %u, \"transport\": \"%s\", \"mode\": \"%s\", \"results\": [",
            rank->rank, world->size, banyan_comm_transport(rank->comm),
            banyan_mode_name(banyan_comm_mode(rank->comm)));
    for (uint32_t i = 0; i < results->count; i++) {
        fprintf(stream, "%s\n  ", i > 0 ? "," : "");
        json_result(stream, world->size, &results->result[i]);
    }
    fprintf(stream, "],\n \"average_busbw\": %.6f", average_busbw(results));
    json_checked(stream, results->count > 0 && results->result[0].unchecked, perf_wrong(results),
                 whole_digest(results));
    fprintf(stream, ", \"error\": ");
    if (results->error != NULL)
        perf_print_text(stream, results->error);
    else
        fprintf(stream, "null");
    if (counters) {
        perf_ports_read(rank->comm, &ports);
        fprintf(stream, ",\n \"ports\": ");
        json_ports(stream, &ports);
        fprintf(stream, ",\n \"endpoint\": ");
        json_counters(stream, rank->comm, "endpoint");
        fprintf(stream, ",\n \"engine\": ");
        json_counters(stream, rank->comm, "engine");
        fprintf(stream, ",\n \"fault\": ");
        json_counters(stream, rank->comm, "fault");
        fprintf(stream, ",\n \"hosts\": ");
        json_counters(stream, rank->comm, "hosts");
        if (world->fabric != NULL) {
            fprintf(stream, ",\n \"links\": ");
            json_links(stream, world->fabric);
        }
    }
    fprintf(stream, "}\n");
    fflush(stream);
}

/* Prints one setting of the list, as text or as an element of JSON. */
static void print_setting(bool json, bool first, const char *const text[5])
{
    static const char *const keys[] = {"name", "value", "origin", "default", "help"};

    if (!json) {
        printf("%-20s %-10s %-12s %s (default: %s)\n", text[0], text[1][0] != 0 ? text[1] : "-", text[2],
               text[4], text[3][0] != 0 ? text[3] : "none");
        return;
    }
    for (unsigned i = 0; i < 5; i++) {
        printf("%s\"%s\": ", i > 0 ? ", " : first ? "\n  {" : ",\n  {", keys[i]);
        perf_print_text(stdout, text[i]);
    }
    printf("}");
}

enum perf_exit perf_print_settings(bool json)
{
    const char *text[5]; /* name, value, origin, default, help */

    for (uint32_t i = 0;; i++) {
        banyan_status_t status = banyan_setting(i, &text[0], &text[3], &text[4], &text[1], &text[2]);

        if (status == BANYAN_ENOENT)
            break;
        if (status != BANYAN_OK) {
            fprintf(stderr, "%s: %s\n", program_invocation_short_name, banyan_last_error());
            return PERF_USAGE;
        }
        if (i == 0 && json)
            printf("{\"settings\": [");
        print_setting(json, i == 0, text);
    }
    if (json)
        printf("]}\n");
    return PERF_RIGHT;
}
