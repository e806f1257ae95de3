/*
 * The requests that read: the identity of the switch, its active table, counters, and the missing
 * children. See agent.c. Agent's thread.
 */
#include "firmware/agent/inside.h"

#include <string.h>

#include "firmware/agent/limit.h"
#include "offload/base/errors.h"

static void copy_name(char *to, size_t bytes, const char *from)
{
    size_t i = 0;

    for (; from[i] && i + 1 < bytes; i++)
        to[i] = from[i];
    to[i] = 0;
}

uint64_t by_agent_active_hash(struct by_agent *agent)
{
    size_t bytes = 0;
    const uint8_t *image = agent->config.ops->image(agent->config.node, &bytes);

    if (image && agent->active_hash == 0) {
        agent->active_hash = by_image_hash(image, bytes);
        agent->active_slots = by_use_slots(image);
    }
    return image ? agent->active_hash : 0;
}

/* Describes the switch and its capacity, independent of the active table. */
static void describe_switch(struct by_agent *agent, by_HelloReply *reply)
{
    const struct by_agent_config *config = &agent->config;
    uint64_t now_ns = 0, unix_ns = 0;

    copy_name(reply->name, sizeof reply->name, config->name);
    copy_name(reply->software, sizeof reply->software, config->software);
    copy_name(reply->board, sizeof reply->board, config->board ? config->board : "");
    reply->boot_nonce = config->boot_nonce;
    reply->port_count = config->port_count;
    reply->slot_count = config->slot_count;
    reply->payload_max = config->payload_max;
    reply->entry_max = config->entry_max;
    reply->relay_max = config->relay_max;
    reply->share_max = config->share_max;
    reply->image_bytes_max = config->image_bytes_max;
    reply->able = config->able;
    if (config->ops->clock)
        config->ops->clock(config->node, &now_ns, &unix_ns);
    reply->uptime_ns = now_ns - agent->start_ns;
    reply->unix_ns = unix_ns;
}

void by_agent_answer_hello(struct by_agent *agent)
{
    const struct by_agent_config *config = &agent->config;
    by_HelloReply *reply = &agent->response.body.hello;
    struct by_image_header header;
    size_t bytes = 0;
    const uint8_t *image = config->ops->image(config->node, &bytes);

    agent->response.which_body = by_Response_hello_tag;
    describe_switch(agent, reply);
    reply->election_id = agent->election_id;
    reply->election_count = agent->election_count;
    reply->validated_hash = agent->validated;
    reply->validated_push = agent->validated_push;
    if (config->saved) {
        by_image_header(config->saved, &header);
        reply->saved_hash = agent->saved_hash;
        reply->saved_cookie = header.cookie;
    }
    if (!image)
        return;
    by_image_header(image, &header);
    reply->table_hash = by_agent_active_hash(agent);
    reply->table_cookie = header.cookie;
    reply->table_bytes = (uint32_t)bytes;
    reply->table_push = agent->active_push;
    reply->slots_used = agent->active_slots;
    reply->entry_count = header.count[BY_SECTION_ENTRY];
    reply->relay_count = header.count[BY_SECTION_RELAY];
    reply->job_count = header.count[BY_SECTION_JOB];
}

void by_agent_answer_read(struct by_agent *agent)
{
    const by_Read *read = &agent->request.body.read;
    by_ReadReply *reply = &agent->response.body.read;
    size_t bytes = 0;
    const uint8_t *image = agent->config.ops->image(agent->config.node, &bytes);
    uint32_t count = read->bytes < BY_CHUNK_BYTES_MAX ? read->bytes : BY_CHUNK_BYTES_MAX;
    uint32_t offset = read->offset;
    struct by_text text;

    if (!image || offset > bytes) {
        text = by_agent_fail(agent, image ? BY_ERANGE : BY_ENOENT);
        by_text_add(&text, "read: ");
        if (image) {
            by_text_add(&text, "offset ");
            by_text_number(&text, offset);
            by_text_add(&text, " is beyond the active image of ");
            by_text_number(&text, bytes);
            by_text_add(&text, " bytes");
        } else {
            by_text_add(&text, "no table is active: push one first");
        }
        return;
    }
    if (count > bytes - offset)
        count = (uint32_t)(bytes - offset);
    agent->response.which_body = by_Response_read_tag;
    reply->total = (uint32_t)bytes;
    reply->hash = by_agent_active_hash(agent);
    reply->offset = offset;
    reply->data.size = (pb_size_t)count;
    memcpy(reply->data.bytes, image + offset, count);
}

void by_agent_answer_counters(struct by_agent *agent)
{
    by_CountersReply *reply = &agent->response.body.counters;
    struct by_agent_counter counter;
    struct by_engine_share share;
    struct by_agent_port port;

    agent->response.which_body = by_Response_counters_tag;
    for (uint32_t i = 0; i < sizeof reply->engine / sizeof reply->engine[0]; i++) {
        if (agent->config.ops->counter(agent->config.node, i, &counter) != 0)
            break;
        copy_name(reply->engine[i].name, sizeof reply->engine[i].name, counter.name);
        reply->engine[i].value = counter.value;
        reply->engine_count = (pb_size_t)(i + 1);
    }
    for (uint32_t i = 0; i < sizeof reply->ports / sizeof reply->ports[0]; i++) {
        by_PortCounters *row = &reply->ports[i];

        if (agent->config.ops->port(agent->config.node, i, &port) != 0)
            break;
        copy_name(row->name, sizeof row->name, port.name);
        row->rx_packets = port.rx_packets;
        row->rx_bytes = port.rx_bytes;
        row->tx_packets = port.tx_packets;
        row->tx_bytes = port.tx_bytes;
        row->rx_dropped = port.rx_dropped;
        row->tx_dropped = port.tx_dropped;
        row->down = port.down != 0;
        row->silent = port.silent;
        reply->ports_count = (pb_size_t)(i + 1);
    }
    for (uint32_t i = 0; agent->config.ops->share && i < sizeof reply->shares / sizeof reply->shares[0];
         i++) {
        by_ShareCounters *row = &reply->shares[i];

        if (agent->config.ops->share(agent->config.node, i, &share) != 0)
            break;
        row->job = share.job;
        row->share = share.share;
        row->rx_bytes = share.rx_bytes;
        row->tx_bytes = share.tx_bytes;
        row->held = share.held;
        row->dropped = share.dropped;
        reply->shares_count = (pb_size_t)(i + 1);
    }
}

/* Describes the ports from an index on, as many as fit one response. */
void by_agent_answer_ports(struct by_agent *agent)
{
    const struct by_agent_config *config = &agent->config;
    by_PortsReply *reply = &agent->response.body.ports;
    uint32_t from = agent->request.body.ports.from;
    struct by_agent_way way;
    struct by_text text;

    if (!config->ops->way) {
        text = by_agent_fail(agent, BY_EUNSUPPORTED);
        by_text_add(&text, "ports: this switch does not describe its ports");
        return;
    }
    agent->response.which_body = by_Response_ports_tag;
    reply->total = config->port_count;
    for (uint32_t i = 0; i < sizeof reply->ports / sizeof reply->ports[0] && from < config->port_count;
         i++, from++) {
        by_Port *row = &reply->ports[i];

        if (config->ops->way(config->node, from, &way) != 0)
            break;
        copy_name(row->name, sizeof row->name, way.name);
        copy_name(row->driver, sizeof row->driver, way.driver);
        copy_name(row->why, sizeof row->why, way.why);
        copy_name(row->offloads, sizeof row->offloads, way.offloads);
        copy_name(row->steer, sizeof row->steer, way.steer);
        row->by_reference = way.by_reference != 0;
        row->late = way.late != 0;
        row->promiscuous = way.promiscuous != 0;
        row->down = way.down != 0;
        row->mtu = way.mtu;
        row->rx_queues = way.rx_queues;
        row->tx_queues = way.tx_queues;
        row->rx_descriptors = way.rx_descriptors;
        row->tx_descriptors = way.tx_descriptors;
        row->mbps = way.mbps;
        reply->ports_count = (pb_size_t)(i + 1);
    }
}

/* Writes the waiting entries, as many as fit one response. */
void by_agent_answer_waiting(struct by_agent *agent)
{
    by_WaitingReply *reply = &agent->response.body.waiting;
    size_t bytes = 0;
    const uint8_t *image = agent->config.ops->image(agent->config.node, &bytes);
    struct by_image_header header;

    agent->response.which_body = by_Response_waiting_tag;
    if (!image)
        return;
    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        by_WaitingEntry *row = &reply->entries[reply->entries_count];
        struct by_image_entry entry;
        struct by_bank_view view;

        if (reply->entries_count == sizeof reply->entries / sizeof reply->entries[0])
            break;
        if (agent->config.ops->waiting(agent->config.node, i, &view) != 0)
            continue;
        by_image_entry(image, i, &entry);
        row->job = entry.job;
        row->tree = entry.tree;
        row->seq = view.seq;
        row->state = view.state;
        row->missing = view.missing;
        reply->entries_count++;
    }
}

/* Writes events from a number on, as many as fit one response. */
void by_agent_answer_log(struct by_agent *agent)
{
    by_LogReply *reply = &agent->response.body.log;
    const struct by_journal *journal = &agent->journal;
    uint64_t number = agent->request.body.log.from;
    struct by_text text;

    agent->response.which_body = by_Response_log_tag;
    reply->now_ns = by_agent_now(agent);
    reply->next = journal->next;
    if (number < by_journal_first(journal))
        number = by_journal_first(journal);
    for (; number < journal->next; number++) {
        const struct by_journal_event *event = by_journal_at(journal, number);
        by_LogEvent *row = &reply->events[reply->events_count];

        if (reply->events_count == sizeof reply->events / sizeof reply->events[0])
            break;
        row->number = number;
        row->time_ns = event->time_ns;
        row->times = event->times;
        by_text_start(&text, row->text, sizeof row->text);
        by_text_add(&text, event->text);
        reply->events_count++;
    }
}
