/*
 * Builds the world of a configuration: fabric, table images of each generation, and the components
 * in their initial states. Runs the real code: by_engine_init, by_engine_stage, by_engine_commit,
 * by_endpoint_init, by_endpoint_post. Single-threaded.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/model/model.h"

struct model model;

static int node_named(char letter)
{
    char name[2] = {letter, 0};

    for (int n = 0; n < model.fabric.node_count; n++)
        if (model.fabric.nodes[n].name[0] == letter)
            return n;
    return letter >= 'A' && letter <= 'Z' ? fabric_switch(&model.fabric, name, 0)
                                          : fabric_host(&model.fabric, name);
}

/* Reads "R(S(ab)c)" and notes each node's parent. */
static void read_tree(const char *text, int parent[FABRIC_NODES_MAX])
{
    int path[FABRIC_NODES_MAX] = {0};
    int depth = 0, last = FABRIC_ROOT;

    for (int n = 0; n < FABRIC_NODES_MAX; n++)
        parent[n] = FABRIC_ABSENT;
    for (; *text != 0; text++) {
        if (*text == '(') {
            path[depth++] = last;
        } else if (*text == ')') {
            depth--;
        } else {
            last = node_named(*text);
            parent[last] = depth == 0 ? FABRIC_ROOT : path[depth - 1];
            if (depth > 0 && fabric_port_to(&model.fabric, last, parent[last]) < 0)
                fabric_cable(&model.fabric, last, parent[last], 10000, 500);
        }
    }
}

static void build_fabric(void)
{
    const char *text[2] = {model.config->tree, model.config->tree_b};
    int parent[2][FABRIC_NODES_MAX], after[FABRIC_NODES_MAX];
    struct fabric_job *job;

    memset(&model.fabric, 0, sizeof(model.fabric));
    for (int t = 0; t < 2 && text[t] != NULL; t++)
        read_tree(text[t], parent[t]);
    if (model.config->after != NULL)
        read_tree(model.config->after, after);
    fabric_job_add(&model.fabric, MODEL_JOB, model.config->gen);
    job = &model.fabric.jobs[0];
    model.host_count = job->rank_count;
    BY_ASSERT(model.host_count <= MODEL_HOSTS_MAX);
    model.payload = model.config->payload;
    if (model.payload == 0)
        model.payload = (uint16_t)((4 * model.host_count + 7) / 8 * 8);
    model.roll_chunks = (4u * (uint32_t)model.host_count + model.payload - 1) / model.payload;
    for (int t = 0; t < 2 && text[t] != NULL; t++) {
        struct fabric_tree *tree = &job->trees[job->tree_count++];

        tree->collectives = (1u << BY_COLLECTIVE_COUNT) - 2;
        tree->owner = BY_RANK_NONE;
        tree->share = 1;
        tree->window = model.config->window;
        tree->payload_max = model.payload;
        memcpy(tree->parent, parent[t], sizeof(tree->parent));
        memcpy(tree->cable_parent, parent[t], sizeof(tree->parent));
    }
    model.later = *job;
    if (model.config->after == NULL)
        return;
    model.later.tree_count = 1;
    memcpy(model.later.trees[0].parent, after, sizeof(after));
    memcpy(model.later.trees[0].cable_parent, after, sizeof(after));
}

static void build_images(void)
{
    struct fabric fabric = model.fabric;

    fabric.cover = model.config->cover;
    for (int n = 0; n < model.fabric.node_count; n++)
        for (unsigned life = 0; life < MODEL_LIVES_MAX; life++) {
            fabric.jobs[0] = life == 0 ? model.fabric.jobs[0] : model.later;
            fabric.jobs[0].gen = (uint16_t)(model.config->gen + life);
            model.images[n][life] = fabric_image(&fabric, n, &model.image_bytes[n][life]);
        }
}

/* Returns the slots that a node needs under every generation; 0: it does not sum. */
static uint32_t slots_of(int node)
{
    struct fabric fabric = model.fabric;
    uint32_t now = fabric_slots(&fabric, node), later;

    fabric.jobs[0] = model.later;
    later = fabric_slots(&fabric, node);
    return now > later ? now : later;
}

static struct by_engine_config engine_config(int node)
{
    uint32_t slots = slots_of(node);
    size_t now = model.image_bytes[node][0], later = model.image_bytes[node][1];

    return (struct by_engine_config){.slot_count_max = slots,
                                     .payload_max = model.payload,
                                     .image_bytes_max = (uint32_t)(now > later ? now : later),
                                     .entry_count_max = 2,
                                     .repair_interval_ns = MODEL_INTERVAL_NS,
                                     .spare_count = model.config->spares,
                                     .isa = BY_ISA_SCALAR};
}

struct by_endpoint_config model_endpoint_config(const struct model_component *c, unsigned life)
{
    unsigned gen = model.config->faults & MODEL_CRASH ? life : 0;

    return (struct by_endpoint_config){.image = model.images[c->node][gen],
                                       .image_bytes = model.image_bytes[c->node][gen],
                                       .job = MODEL_JOB,
                                       .isa = BY_ISA_SCALAR,
                                       .nonce = model_nonce(c->rank, life),
                                       .resume = (model.config->faults & MODEL_RESUME) != 0};
}

uint32_t model_nonce(int rank, unsigned life)
{
    return 0x10101010u * ((uint32_t)rank + 1) + life + 1;
}

/* `more` bytes follow the block, and `scratch` bytes that are not part of the state. */
static struct model_component *add_component(enum model_kind kind, int node, size_t block, size_t more,
                                             size_t scratch)
{
    struct model_component *c = &model.components[model.component_count++];
    size_t head = kind == MODEL_ENGINE ? sizeof(struct model_engine) : sizeof(struct model_host);

    BY_ASSERT(model.component_count <= MODEL_COMPONENTS_MAX);
    c->kind = (uint8_t)kind;
    c->node = node;
    c->rank = -1;
    c->block_at = (head + 63) & ~(size_t)63;
    c->block_bytes = block;
    c->bytes = (c->block_at + block + more + 63) & ~(size_t)63;
    c->arena = aligned_alloc(64, (c->bytes + scratch + 63) & ~(size_t)63);
    c->base = malloc(c->bytes);
    if (c->arena == NULL || c->base == NULL)
        abort();
    memset(c->arena, 0, c->bytes);
    return c;
}

void model_engine_install(int index, unsigned life)
{
    struct model_component *c = &model.components[index];
    struct by_engine *engine = model_engine_of(c);
    struct by_image_fault fault;
    int error =
        by_engine_stage(engine, model.images[c->node][life], model.image_bytes[c->node][life], &fault);

    if (error != 0 || by_engine_commit(engine) != 0) {
        model_violate("a node refuses the table of a generation");
        return;
    }
    ((struct model_engine *)c->arena)->life = (uint8_t)life;
    ((struct model_engine *)c->arena)->forgotten = 0;
    for (uint32_t b = 0; b < 2 * engine->config.slot_count_max; b++) {
        engine->bank[b].seq += model.config->first_seq;
        by_bank_seal(&engine->bank[b]);
    }
}

static void add_engine(int node)
{
    struct by_engine_config config = engine_config(node);
    size_t bytes = by_engine_size(&config);
    struct model_component *c;
    struct by_engine *engine;

    if (slots_of(node) == 0)
        return;
    c = add_component(MODEL_ENGINE, node, bytes, 0, 0);
    model.engine_of[node] = model.component_count - 1;
    model.engine_count++;
    snprintf(c->name, sizeof(c->name), "%s%s", model.fabric.nodes[node].name,
             model.fabric.nodes[node].kind == BY_NODE_HOST ? "'" : "");
    if (bytes == 0 || by_engine_init(&engine, model_engine_of(c), bytes, &config) != 0)
        abort();
    model_engine_install(model.component_count - 1, 0);
}

static void fill_input(struct model_host *host, int rank, unsigned life)
{
    memset(host->send, 0, sizeof(host->send));
    memset(host->recv, MODEL_UNTOUCHED, sizeof(host->recv));
    for (uint32_t k = 0; k < model.chunk_count; k++) {
        const struct model_chunk *chunk = &model.chunks[k];
        uint8_t *at = &host->send[chunk->call][chunk->send_at[rank]];

        (void)model_value(rank, life, k, at);
        if (model.config->in_place)
            (void)model_value(rank, life, k, &host->recv[chunk->call][chunk->send_at[rank]]);
    }
}

/* Starts a process of a host: its endpoint, its calls, its first packets. */
void model_host_begin(int index, unsigned life)
{
    struct model_component *c = &model.components[index];
    struct model_host *host = (struct model_host *)c->arena;
    struct by_endpoint_config config = model_endpoint_config(c, life);
    struct by_endpoint *endpoint;
    struct by_tx tx[MODEL_BURST];
    uint32_t count;

    memset(host, 0, sizeof(*host));
    host->life = (uint8_t)life;
    fill_input(host, c->rank, life);
    if (by_endpoint_init(&endpoint, model_endpoint_of(c), c->block_bytes, &config) != 0)
        abort();
    for (uint32_t l = 0; l < endpoint->lane_count; l++)
        endpoint->lanes[l].base = endpoint->lanes[l].next = model.config->first_seq;
    for (unsigned i = 0; i < MODEL_CALLS_MAX && model.config->calls[i].collective != 0; i++) {
        const struct model_call *like = model_call_of(c->rank, i);
        struct by_call call;
        uint32_t id;

        memset(&call, 0, sizeof(call)); /* also the padding: the endpoint keeps a copy */
        call.collective = like->collective;
        call.op = like->op;
        call.dtype = like->dtype;
        call.mode = like->det ? BY_MODE_DET : BY_MODE_FAST;
        call.root = like->root;
        call.count = model_call_elements(like);
        call.send = model.config->in_place ? host->recv[i] : host->send[i];
        call.recv = host->recv[i];
        if (by_endpoint_post(endpoint, &call, &id, NULL) != 0 || id != i)
            abort();
    }
    by_endpoint_step(endpoint, MODEL_NOW_NS, NULL, 0, tx, MODEL_BURST, &count);
    for (uint32_t i = 0; i < count; i++)
        model_send(index, &tx[i], tx[i].payload != NULL ? tx[i].payload : tx[i].small);
}

/* Returns the bytes of a struct by_level_rounds for any generation of a host. */
static size_t rounds_bytes(int node, size_t *scratch)
{
    size_t most = 0;

    for (unsigned life = 0; life < MODEL_LIVES_MAX; life++) {
        const struct model_component c = {.node = node};
        struct by_endpoint_config config = model_endpoint_config(&c, life);
        size_t bytes = by_endpoint_size(&config);
        void *memory = aligned_alloc(64, bytes);
        struct by_endpoint *endpoint;

        if (memory == NULL || by_endpoint_init(&endpoint, memory, bytes, &config) != 0)
            abort();
        bytes = model_rounds_bytes(endpoint, scratch);
        most = bytes > most ? bytes : most;
        free(memory);
    }
    return most;
}

static void add_host(int node, int rank)
{
    int resume = (model.config->faults & MODEL_RESUME) != 0;
    size_t block = 0, done = resume ? (MODEL_CHUNKS_MAX * sizeof(struct by_done) + 63) & ~(size_t)63 : 0;
    size_t more, scratch = 0;
    struct model_component *c;

    for (unsigned life = 0; life < MODEL_LIVES_MAX; life++) {
        struct by_endpoint_config config = {.image = model.images[node][life],
                                            .image_bytes = model.image_bytes[node][life],
                                            .job = MODEL_JOB,
                                            .resume = (uint8_t)resume};
        size_t bytes = by_endpoint_size(&config) + done;

        block = bytes > block ? bytes : block;
    }
    more = resume ? (MODEL_LIVES_MAX - 1) * block + MODEL_RESUME_BYTES : 0;
    if (model.config->standbys > 0)
        more += rounds_bytes(node, &scratch);
    c = add_component(MODEL_HOST, node, block, more, scratch);
    model.endpoint_of[node] = model.component_count - 1;
    c->rank = rank;
    for (unsigned life = 1; life < MODEL_LIVES_MAX && resume; life++) { /* approximately its later contents */
        struct by_endpoint_config config = model_endpoint_config(c, life);
        struct by_endpoint *endpoint;

        (void)by_endpoint_init(&endpoint, c->arena + c->block_at + life * block, block, &config);
    }
    snprintf(c->name, sizeof(c->name), "%s", model.fabric.nodes[node].name);
}

void model_begin(const struct model_config *config)
{
    memset(&model, 0, sizeof(model));
    model.config = config;
    build_fabric();
    build_images();
    model_plan();
    model_components_reset();
    for (int n = 0; n < model.fabric.node_count; n++) {
        model.endpoint_of[n] = model.engine_of[n] = -1;
        add_engine(n);
    }
    for (int r = 0; r < model.host_count; r++)
        add_host(model.fabric.jobs[0].rank_node[r], r);
    for (int c = 0; c < model.component_count; c++) {
        if (model.components[c].kind == MODEL_HOST) {
            model_host_begin(c, 0);
            model_canon_host(c);
        } else {
            model_canon_engine(c);
        }
        memcpy(model.components[c].base, model.components[c].arena, model.components[c].bytes);
    }
    for (int c = 0; c < model.component_count; c++)
        model.initial[c] = model_intern(c);
    memcpy(model.first, model.outs, sizeof(model.first));
    model.first_count = model.out_count;
}

void model_end(void)
{
    model_components_reset();
    for (int c = 0; c < model.component_count; c++) {
        free(model.components[c].arena);
        free(model.components[c].base);
    }
    for (int n = 0; n < model.fabric.node_count; n++)
        for (unsigned life = 0; life < MODEL_LIVES_MAX; life++)
            free(model.images[n][life]);
    memset(&model, 0, sizeof(model));
}
