/*
 * The statistics that dpdk-telemetry.py shows below /banyan: counters, ports, entries, and the
 * slots of one entry. Requests arrive on EAL's telemetry thread. The loop answers each between two
 * steps (handoff.h), so that it never sees a partially changed table or slot.
 */
#include <ctype.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>

#include "dataplane/state.h"
#include "offload/base/errors.h"

/* Slots in one answer (count): an answer of rte_telemetry is bounded. */
#define SLOTS_SHOWN 32u

/* The answering shell, and the lock for requests: each client of rte_telemetry has a thread. */
static struct by_shell *telemetry_shell;
static pthread_mutex_t telemetry_lock = PTHREAD_MUTEX_INITIALIZER;

/* A request to the loop. */
struct telemetry_request {
    struct by_shell *shell;
    const char *parameters;
    struct rte_tel_data *data;
    int result;
};

static void answer_counters(void *context)
{
    struct telemetry_request *request = context;
    const struct by_engine_counters *engine = by_shell_engine_counters(request->shell);
    const struct by_shell_counters *shell = by_shell_counters(request->shell);

    rte_tel_data_start_dict(request->data);
#define X(name, help) rte_tel_data_add_dict_u64(request->data, "engine_" #name, engine->name);
    BY_ENGINE_COUNTER_LIST(X)
#undef X
#define X(name, help) rte_tel_data_add_dict_u64(request->data, "shell_" #name, shell->batch.name);
    BY_BATCH_COUNTER_LIST(X)
#undef X
#define X(name, help) rte_tel_data_add_dict_u64(request->data, "shell_" #name, shell->name);
    BY_SHELL_COUNTER_LIST(X)
#undef X
}

/* Converts a name to a key of rte_telemetry: letters, digits and underscores. */
static void name_text(const char *name, char *text, size_t bytes)
{
    size_t i = 0;

    for (; name[i] && i + 1 < bytes; i++)
        text[i] = isalnum((unsigned char)name[i]) ? name[i] : '_';
    text[i] = 0;
}

static void answer_ports(void *context)
{
    struct telemetry_request *request = context;

    rte_tel_data_start_dict(request->data);
    for (unsigned i = 0; i < request->shell->port_count; i++) {
        struct by_port *port = by_shell_port(request->shell, i);
        struct rte_tel_data *row = rte_tel_data_alloc();
        struct by_dp_port_counters counters;
        char name[BY_NAME_MAX + 1];

        if (!row)
            break;
        by_shell_port_read(request->shell, i, &counters);
        rte_tel_data_start_dict(row);
        rte_tel_data_add_dict_string(row, "device", port->device);
        rte_tel_data_add_dict_int(row, "mtu", port->mtu);
        rte_tel_data_add_dict_int(row, "multi_segs", port->multi_segs);
        rte_tel_data_add_dict_u64(row, "rx_packets", counters.rx_packets);
        rte_tel_data_add_dict_u64(row, "rx_bytes", counters.rx_bytes);
        rte_tel_data_add_dict_u64(row, "rx_dropped", counters.rx_dropped);
        rte_tel_data_add_dict_u64(row, "tx_packets", counters.tx_packets);
        rte_tel_data_add_dict_u64(row, "tx_bytes", counters.tx_bytes);
        rte_tel_data_add_dict_u64(row, "tx_dropped", counters.tx_dropped);
        rte_tel_data_add_dict_u64(row, "marked", counters.marked);
        name_text(port->name, name, sizeof name);
        rte_tel_data_add_dict_container(request->data, name, row, 0);
    }
}

/* Formats "state seq have missing" of a bank on one line. */
static void bank_text(const struct by_bank_view *view, char *text, size_t bytes)
{
    snprintf(text, bytes,
             "%s seq %" PRIu32 " nleaf %u have 0x%" PRIx64 " missing 0x%" PRIx64 " refs %" PRIu32,
             by_bank_state_name(view->state), view->seq, view->nleaf, view->have, view->missing, view->refs);
}

static void answer_entries(void *context)
{
    struct telemetry_request *request = context;
    size_t bytes;
    const uint8_t *image = by_engine_image(request->shell->engine, &bytes);
    struct by_image_header header;

    rte_tel_data_start_dict(request->data);
    if (!image)
        return;
    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY] && i < RTE_TEL_MAX_DICT_ENTRIES; i++) {
        struct by_image_entry entry;
        struct by_bank_view view;
        char name[32], text[RTE_TEL_MAX_STRING_LEN];

        by_image_entry(image, i, &entry);
        snprintf(name, sizeof name, "job%u_tree%u", entry.job, entry.tree);
        if (by_shell_oldest(request->shell, i, &view) == 0)
            bank_text(&view, text, sizeof text);
        else
            snprintf(text, sizeof text, "idle");
        rte_tel_data_add_dict_string(request->data, name, text);
    }
}

static void answer_slots(void *context)
{
    struct telemetry_request *request = context;
    unsigned long entry = 0, first = 0;
    char *end = NULL;

    if (request->parameters && request->parameters[0]) {
        entry = strtoul(request->parameters, &end, 10);
        if (*end == ',')
            first = strtoul(end + 1, NULL, 10);
    }
    rte_tel_data_start_dict(request->data);
    for (uint32_t slot = (uint32_t)first; slot < first + SLOTS_SHOWN; slot++) {
        for (unsigned bank = 0; bank < 2; bank++) {
            struct by_bank_view view;
            char name[32], text[RTE_TEL_MAX_STRING_LEN];

            if (by_shell_bank(request->shell, (uint32_t)entry, slot, bank, &view) != 0)
                return;
            snprintf(name, sizeof name, "slot%u_bank%u", slot, bank);
            bank_text(&view, text, sizeof text);
            rte_tel_data_add_dict_string(request->data, name, text);
        }
    }
}

static int ask(void (*answer)(void *context), const char *parameters, struct rte_tel_data *data)
{
    struct telemetry_request request = {.parameters = parameters, .data = data};
    bool served;

    pthread_mutex_lock(&telemetry_lock);
    request.shell = telemetry_shell;
    served = request.shell && by_handoff_call(&request.shell->handoff, answer, &request);
    pthread_mutex_unlock(&telemetry_lock);
    return served ? 0 : -1;
}

#define COMMAND(name)                                                                                        \
    static int name##_command(const char *command, const char *parameters, struct rte_tel_data *data)        \
    {                                                                                                        \
        (void)command;                                                                                       \
        return ask(answer_##name, parameters, data);                                                         \
    }
COMMAND(counters)
COMMAND(ports)
COMMAND(entries)
COMMAND(slots)

int by_telemetry_register(struct by_shell *shell)
{
    static int registered;
    int result = 0;

    pthread_mutex_lock(&telemetry_lock);
    telemetry_shell = shell;
    pthread_mutex_unlock(&telemetry_lock);
    if (!shell || registered)
        return 0;
    registered = 1;
    result |= rte_telemetry_register_cmd("/banyan/counters", counters_command,
                                         "Counters of engine and shell. No parameters");
    result |= rte_telemetry_register_cmd("/banyan/ports", ports_command,
                                         "Packets and bytes of each port. No parameters");
    result |= rte_telemetry_register_cmd("/banyan/entries", entries_command,
                                         "Each (job, tree): its oldest incomplete chunk. No parameters");
    result |= rte_telemetry_register_cmd("/banyan/slots", slots_command,
                                         "Banks of an entry. Parameters: entry index[,first slot]");
    return result == 0 ? 0 : BY_EIO;
}
