/*
 * Messages: packets in flight, each stored once. A retransmitted packet is the same message as the
 * first one (also if it carries RETX, when hints for clocks are not part of the state). So the
 * network is a set: its messages may be delivered late, in any order, repeatedly, or never.
 * Single-threaded.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

/* Returns whether a packet from a cable is for a host's engine: types that only engines accept, and
 * all packets of a tree in which the host is interior. */
static int is_for_engine(int node, const struct by_header *header)
{
    const struct fabric_job *job = model_job(header->gen);

    if (header->type == BY_TYPE_CONTRIB || header->type == BY_TYPE_PROBE)
        return 1;
    for (int n = 0; n < model.fabric.node_count && header->tree < job->tree_count; n++)
        if (job->trees[header->tree].parent[n] == node)
            return 1;
    return 0;
}

/* Finds the component that receives a packet of c. */
static int receiver(int c, const struct by_tx *tx, const struct by_header *header, struct model_message *m)
{
    int node = model.components[c].node;
    int from_engine = model.components[c].kind == MODEL_ENGINE;
    int peer;

    m->port = BY_PORT_LOCAL;
    if (tx->port == BY_PORT_LOCAL)
        return from_engine ? model.endpoint_of[node] : model.engine_of[node];
    if (tx->port >= model.fabric.nodes[node].port_count)
        return -1;
    peer = fabric_peer(&model.fabric, node, tx->port);
    m->port = (uint16_t)fabric_port_to(&model.fabric, peer, node);
    m->src_ip = fabric_ip(&model.fabric, model.fabric.nodes[node].port_link[tx->port], node);
    m->dst_ip = tx->dst_ip;
    if (tx->dst_ip != fabric_ip(&model.fabric, model.fabric.nodes[node].port_link[tx->port], peer))
        return -1;
    if (model.engine_of[peer] >= 0 && (model.endpoint_of[peer] < 0 || is_for_engine(peer, header)))
        return model.engine_of[peer];
    return model.endpoint_of[peer];
}

static uint32_t intern(const struct model_message *m)
{
    for (uint32_t i = 0; i < model.message_count; i++) {
        const struct model_message *old = &model.messages[i];

        if (old->to == m->to && old->from == m->from && old->port == m->port && old->bytes == m->bytes &&
            old->src_ip == m->src_ip && memcmp(old->data, m->data, m->bytes) == 0)
            return i;
    }
    if (model.message_count == MODEL_MESSAGES_MAX) {
        fprintf(stderr, "more than %d different messages\n", MODEL_MESSAGES_MAX);
        abort();
    }
    model.messages[model.message_count] = *m;
    model.messages[model.message_count].local = (uint16_t)model.local_count[m->to]++;
    return model.message_count++;
}

/* Messages whose arrival nothing depends on, unless ranks begin a session at different chunks. In
 * spaces without reduction each of them doubles the number of states. */
static int is_talk(const struct by_header *header, const uint8_t *payload)
{
    int leads = header->type == BY_TYPE_PROBE || (header->type == BY_TYPE_ERR && payload[2] == BY_ERR_WINDOW);

    if (leads && model.config->mute == MODEL_MUTE_MOST && (header->flags & BY_FLAG_START))
        return 0;
    return leads || header->type == BY_TYPE_WAIT;
}

void model_send(int c, const struct by_tx *tx, const uint8_t *payload)
{
    struct model_message m;
    struct by_header header;
    const uint8_t *nothing;
    int to;

    memset(&m, 0, sizeof(m));
    if (tx->kind != BY_TX_SEND || by_header_decode(tx->header, BY_WIRE_HEADER_BYTES, &header, &nothing) < 0) {
        model_violate("a packet that nobody can read is sent");
        return;
    }
    if (!model.config->exact && header.flags & BY_FLAG_RETX) {
        header.flags &= (uint8_t)~BY_FLAG_RETX;
        by_header_encode(&header, m.data);
    } else {
        memcpy(m.data, tx->header, BY_WIRE_HEADER_BYTES);
    }
    to = receiver(c, tx, &header, &m);
    if (to < 0) {
        model_violate("a packet is sent to nobody");
        return;
    }
    if ((model.config->mute && is_talk(&header, payload)) ||
        (!model.config->gaps && header.type == BY_TYPE_GAP))
        return;
    if (header.type == BY_TYPE_RESULT && header.nleaf != model.host_count)
        model_violate("a result without all leaves is sent");
    m.to = (uint8_t)to;
    m.from = (uint8_t)c;
    m.bytes = (uint16_t)(BY_WIRE_HEADER_BYTES + tx->payload_bytes);
    BY_ASSERT(m.bytes <= sizeof(m.data));
    if (tx->payload_bytes > 0)
        memcpy(m.data + BY_WIRE_HEADER_BYTES, payload, tx->payload_bytes);
    BY_ASSERT(model.out_count < MODEL_MESSAGES_MAX);
    model.outs[model.out_count++] = (uint16_t)intern(&m);
}

void model_tell(int c, int to, const uint8_t *data, size_t bytes)
{
    struct model_message m;

    memset(&m, 0, sizeof(m));
    m.from = (uint8_t)c;
    m.port = MODEL_PORT_BESIDE;
    m.bytes = (uint16_t)bytes;
    for (int i = 0; i < model.component_count; i++)
        if (model.components[i].kind == MODEL_HOST && model.components[i].rank == to)
            m.to = (uint8_t)i;
    BY_ASSERT(bytes <= sizeof(m.data) && model.out_count < MODEL_MESSAGES_MAX);
    memcpy(m.data, data, bytes);
    model.outs[model.out_count++] = (uint16_t)intern(&m);
}

const struct model_message *model_damaged(const struct model_message *message)
{
    static struct model_message damaged;

    if (message->bytes == BY_WIRE_HEADER_BYTES)
        return NULL;
    damaged = *message;
    damaged.data[BY_WIRE_HEADER_BYTES + 2] ^= 1; /* in an objection: its reason */
    return &damaged;
}

/* ---- texts ---- */

static void value_text(const struct by_header *header, const uint8_t *payload, int bytes, char *text,
                       size_t size)
{
    uint64_t value = 0;

    text[0] = 0;
    if (bytes == 0)
        snprintf(text, size, ", no data");
    else if (bytes >= 8 && header->dtype != BY_DTYPE_U8) {
        memcpy(&value, payload, 8);
        snprintf(text, size, ", value %010" PRIx64, value);
    } else {
        size_t at = (size_t)snprintf(text, size, ", bytes ");

        for (int i = 0; i < bytes && i < 16 && at + 3 < size; i++)
            at += (size_t)snprintf(text + at, size - at, "%02x", payload[i]);
    }
}

static void objection_text(const uint8_t *payload, uint32_t bytes, char *text, size_t size)
{
    static const char *const reason[] = {"?",           "mismatch", "window", "no entry",
                                         "unsupported", "used",     "memory"};
    struct by_err err;

    text[0] = 0;
    if (by_err_decode(payload, bytes, &err) == 0 && err.reason < sizeof(reason) / sizeof(reason[0]))
        snprintf(text, size, " %s (there: %u)", reason[err.reason], err.expected_seq);
}

static void beside_text(const struct model_message *m, char *text, size_t size)
{
    static const char *const types[] = {"?", "REPORT", "NEED", "COPY", "LEVEL"};
    const char *from = model.components[m->from].name, *to = model.components[m->to].name;
    unsigned i = m->data[0] == MODEL_REGION_MARK ? MODEL_REGION_HEAD : 8;
    size_t at;

    if (m->data[0] == MODEL_REGION_MARK)
        at = (size_t)snprintf(text, size, "round %u of attempt %u from %s to %s:", m->data[4],
                              by_get16(m->data + 2), from, to);
    else
        at = (size_t)snprintf(text, size,
                              "%s of attempt %u from %s to %s:", types[m->data[1] < 5 ? m->data[1] : 0],
                              by_get16(m->data + 4), from, to);
    for (; i < m->bytes && at + 3 < size; i++)
        at += (size_t)snprintf(text + at, size - at, " %02x", m->data[i]);
}

void model_message_text(uint32_t message, char *text, size_t bytes)
{
    const struct model_message *m = &model.messages[message];
    struct by_header header;
    const uint8_t *payload;
    char more[96];
    int32_t size;

    if (m->port == MODEL_PORT_BESIDE) {
        beside_text(m, text, bytes);
        return;
    }
    size = by_header_decode(m->data, m->bytes, &header, &payload);

    more[0] = 0;
    if (header.type == BY_TYPE_CONTRIB || header.type == BY_TYPE_RESULT)
        value_text(&header, payload, size, more, sizeof(more));
    else if (header.type == BY_TYPE_ERR)
        objection_text(payload, (uint32_t)size, more, sizeof(more));
    snprintf(text, bytes, "%s seq %u gen %u tree %u from %s to %s, leaves %u%s%s%s",
             by_type_name(header.type), header.seq, header.gen, header.tree, model.components[m->from].name,
             model.components[m->to].name, header.nleaf, header.flags & BY_FLAG_RETX ? ", again" : "",
             header.flags & BY_FLAG_ACKONLY ? ", needs no answer" : "", more);
}
