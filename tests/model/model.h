/*
 * The model checker: it explores every state that by_engine_step and by_endpoint_step can reach in
 * a small fabric under an adversary that owns the network, the clocks and the crashes
 * (docs/model.md). The words of this folder:
 *
 *   component     an engine or an endpoint, with all that belongs to it, in one block of memory (an
 *                 arena)
 *   local state   the bytes of an arena, made canonical (canon.c) and interned: a number
 *   message       a packet on its way between two components, interned: a number
 *   state         the local states of all components and the set of messages that exist
 *   action        something that the adversary lets one component do
 *
 * Engines and endpoints are pure functions, so what an action does to a local state is found once,
 * by running the real code, and remembered (component.c). Single-threaded; one configuration at a
 * time.
 */
#ifndef TESTS_MODEL_MODEL_H
#define TESTS_MODEL_MODEL_H

#include <stddef.h>
#include <stdint.h>

#include "offload/endpoint/levelling.h"
#include "offload/engine/state.h"
#include "tests/sim/fabric.h"

#define MODEL_COMPONENTS_MAX 8
#define MODEL_HOSTS_MAX      4
#define MODEL_CHUNKS_MAX     24
#define MODEL_CALLS_MAX      2
#define MODEL_LIVES_MAX      3 /* incarnations of a host, generations of a table */
#define MODEL_PAYLOAD_MAX    64
#define MODEL_BUFFER         (MODEL_CHUNKS_MAX * MODEL_PAYLOAD_MAX)
#define MODEL_MESSAGES_MAX   2048
#define MODEL_JOB            1
#define MODEL_BURST          16 /* packets of one endpoint step */
/* Where every clock stands between two steps; repairs are spaced by the second. */
#define MODEL_NOW_NS      UINT64_C(1000000000)
#define MODEL_INTERVAL_NS UINT64_C(1000000)
/* What a receive buffer and dead payload hold before anybody writes. */
#define MODEL_UNTOUCHED 0xee
#define MODEL_STALE     0xdb

/* ---- configurations (config.c) ---- */

struct model_call {
    uint8_t collective, op, dtype;
    uint8_t det; /* mode DET, else FAST */
    uint16_t root;
    uint32_t chunks; /* of each shard */
};

/* What else may happen than loss, duplication and reordering. */
enum model_fault {
    MODEL_RESTART = 0x01,    /* a host's process ends and another begins on the same tables */
    MODEL_CRASH = 0x02,      /* a node loses its memory; the controller installs the next generation */
    MODEL_CRASH_SAME = 0x04, /* a node loses its memory and gets the same generation again */
    MODEL_HOLD = 0x08,       /* a shell may keep references to payloads for as long as it likes */
    MODEL_DAMAGE = 0x10,     /* the network may flip a bit of a payload; without a clock */
    MODEL_RESUME = 0x40,     /* with MODEL_CRASH: calls go on in the next generation */
    MODEL_FLIP = 0x20        /* a bit of a bank flips at a node, fault_count times in all at each */
};

/* MODEL_END_ANY: by an error that fits, be it that its patience is over. MODEL_END_MEMORY: all
 * well, or some rank by the error that names a node whose memory has changed, and then the others
 * may lose their patience, once nothing else is left. */
enum model_end { MODEL_END_DONE = 1, MODEL_END_MISMATCH, MODEL_END_ANY, MODEL_END_MEMORY };

struct model_config {
    const char *name;
    const char *tree;   /* "R(S(ab)c)": capitals are switches, the others hosts */
    const char *tree_b; /* a second tree, or NULL; over the same cables */
    const char *after;  /* the only tree of the generations that follow a crash; NULL: the same */
    uint16_t window;
    struct model_call calls[MODEL_CALLS_MAX];
    struct model_call other; /* what rank 1 calls instead of the last call; collective 0: the same */
    uint8_t in_place;
    uint16_t payload; /* bytes of a chunk; 0: what the roll call needs */
    uint8_t clock;    /* nodes have a clock, of which the adversary disposes */
    uint8_t exact;    /* hints for clocks (RETX, order of transmissions, ...) are part of the state */
    uint8_t
        cover; /* enum by_cover: the job is keyed; with `exact` alone, as else flags are changed under tags */
    uint8_t plain; /* no reduction: losses are actions, each set of messages is a state of its own */
    uint8_t mute;  /* the network loses every WAIT, PROBE and ERR(WINDOW) */
    uint8_t probes;
    uint8_t faults;      /* enum model_fault */
    uint8_t fault_count; /* restarts of each host, crashes in all, or flips at each node */
    uint8_t end;         /* enum model_end: what every rank must be able to reach */
    uint32_t first_seq;
    uint16_t gen;
    uint32_t set; /* bits: which of `make model`, the tests and the mutations use it */
};

enum model_set { MODEL_SET_ALL = 1, MODEL_SET_QUICK = 2 };

extern const struct model_config model_configs[];
extern const unsigned model_config_count;

/* ---- what a chunk is (plan.c) ---- */

#define MODEL_ALL      (-1)
#define MODEL_NOBODY   (-2)
#define MODEL_ROLL     (-1)
#define MODEL_NO_CHUNK (-2)
/* Chunk k of the job's calls. */
struct model_chunk {
    uint8_t call;
    uint8_t tree;
    uint32_t offset; /* seq - first_seq */
    uint16_t bytes;
    int16_t source;     /* the only rank with data, MODEL_ALL, MODEL_NOBODY */
    uint32_t receivers; /* bits */
    uint32_t send_at[MODEL_HOSTS_MAX], recv_at[MODEL_HOSTS_MAX];
    uint8_t void_; /* the ranks disagree about it: nobody may ever get it */
};

/* ---- messages (message.c) ---- */

struct model_message {
    uint8_t to, from; /* components */
    uint16_t port;
    uint16_t bytes;
    uint16_t local; /* number among the messages to the same component */
    uint32_t src_ip, dst_ip;
    uint8_t data[BY_WIRE_HEADER_BYTES + MODEL_PAYLOAD_MAX];
};

/* ---- components (component.c, world.c) ---- */

enum model_kind { MODEL_ENGINE = 1, MODEL_HOST };

/* What hosts tell each other when calls are resumed goes beside the network. */
#define MODEL_PORT_BESIDE 0xfffe

/* Payload that a shell still points to. */
struct model_held {
    uint8_t used, bytes;
    uint32_t ref;
    uint32_t at; /* into the arena */
    uint8_t copy[MODEL_PAYLOAD_MAX];
};
#define MODEL_HELD_MAX 2

struct model_engine {
    uint8_t crashes;
    uint8_t life;      /* generation installed last: gen + life */
    uint8_t forgotten; /* and lost in a crash */
    uint8_t flips;
    uint32_t resent; /* with config.exact: bits of banks whose value is made of something sent again */
    struct model_held held[MODEL_HELD_MAX];
};

struct model_host {
    uint8_t life;     /* incarnation; under MODEL_CRASH also the generation that it knows */
    uint8_t attempt;  /* MODEL_RESUME: the generation that it was told to go on in; life stays 0 */
    uint8_t block;    /* where its endpoint is: the generation that this is of */
    uint8_t rolled;   /* the session began in an earlier generation */
    uint8_t spoiled;  /* bits of calls: their buffers went back to the user, who wrote into them */
    uint32_t resumed; /* bits of chunks that were done when its endpoint began */
    uint8_t send[MODEL_CALLS_MAX][MODEL_BUFFER], recv[MODEL_CALLS_MAX][MODEL_BUFFER];
};

struct model_component {
    uint8_t kind; /* enum model_kind */
    int node, rank;
    char name[8];
    uint8_t *arena; /* struct model_engine or model_host, then the engine's or endpoint's block */
    size_t bytes, block_at,
        block_bytes; /* MODEL_RESUME: a block for each generation, then a struct by_resume */
    uint8_t *base;   /* the arena to which local states are kept as differences */
};

/* What a flip may hit in a bank (node.c): a bit of this. */
#define MODEL_FLIP_PLACES 14
#define MODEL_FLIP_BANKS  2

/* Actions: fixed ones, then two for each message to the component: before and after the repair
 * interval, or (MODEL_DAMAGE) sound and damaged. */
enum model_action {
    MODEL_ACT_TIMER,    /* host: the timer of the first tree */
    MODEL_ACT_TIMER_B,  /* host: of the second */
    MODEL_ACT_PROBE,    /* host: the timer of a chunk that is old */
    MODEL_ACT_PATIENCE, /* host: its patience is over */
    MODEL_ACT_RESTART,  /* host; MODEL_RESUME: is told of the next generation */
    MODEL_ACT_REPEAT,   /* host: says again what the others need to resume */
    MODEL_ACT_CRASH,    /* engine */
    MODEL_ACT_INSTALL,  /* engine: generation gen + 0, */
    MODEL_ACT_INSTALL_LAST = MODEL_ACT_INSTALL + MODEL_LIVES_MAX - 1,
    MODEL_ACT_RELEASE, /* engine: the first held reference; */
    MODEL_ACT_RELEASE_B,
    MODEL_ACT_FLIP, /* engine: a bit of a bank, for each bank and place */
    MODEL_ACT_MESSAGE = MODEL_ACT_FLIP + MODEL_FLIP_BANKS * MODEL_FLIP_PLACES
};

/* What an action does to a local state. */
struct model_step {
    uint32_t next;    /* local state */
    uint32_t outs_at; /* in model_outs */
    uint16_t out_count;
    uint8_t reclaimed; /* a bank went to its next chunk: reclaimed_seq of generation gen */
    uint8_t enabled;   /* 0: the action is not possible here */
    uint16_t tree, gen;
    uint32_t reclaimed_seq;
    const char *violation; /* the property that the step breaks, or NULL */
};

/* What the explorer asks about a local state, found when it is interned. */
struct model_facts {
    uint8_t life, crashes, forgotten, holds;
    uint8_t ended;      /* host: all calls have ended, */
    uint8_t ended_well; /* as the configuration wants */
    uint8_t dead;
    uint8_t failed, named;                /* host: a call ended with an error; that of memory, with a node */
    uint32_t base[2], next[2], flying[2]; /* host: windows of its trees; bits of chunks base + i in flight */
    uint16_t gen;
    uint32_t open_count; /* engine: banks in AGG or UP */
    struct {
        uint16_t tree;
        uint32_t seq;
    } open[8];
};

struct model {
    const struct model_config *config;
    struct fabric fabric;
    struct fabric_job later; /* the job in the generations that follow a crash */
    int component_count, host_count, engine_count;
    struct model_component components[MODEL_COMPONENTS_MAX];
    int endpoint_of[FABRIC_NODES_MAX], engine_of[FABRIC_NODES_MAX]; /* components; -1: none */
    uint8_t *images[FABRIC_NODES_MAX][MODEL_LIVES_MAX];
    size_t image_bytes[FABRIC_NODES_MAX][MODEL_LIVES_MAX];
    uint16_t payload;
    uint32_t roll_chunks, chunk_count;
    struct model_chunk chunks[MODEL_CHUNKS_MAX];
    uint32_t initial[MODEL_COMPONENTS_MAX];
    uint16_t outs[MODEL_MESSAGES_MAX]; /* messages sent by the step in hand, */
    uint32_t out_count;
    const char *violation; /* and the property that it breaks */
    uint32_t message_count;
    struct model_message messages[MODEL_MESSAGES_MAX];
    uint32_t local_count[MODEL_COMPONENTS_MAX];
    uint64_t steps;                     /* of real code */
    uint16_t first[MODEL_MESSAGES_MAX]; /* messages of the beginning */
    uint32_t first_count;
};

extern struct model model;

/* world.c: builds everything for a configuration; the beginning is model.initial and model.outs. */
void model_begin(const struct model_config *config);
void model_end(void);
uint32_t model_nonce(int rank, unsigned life);

/* plan.c */
void model_plan(void);
/* What `rank` in its incarnation contributes to chunk k: 1 and MODEL_PAYLOAD_MAX bytes, or 0:
 * NODATA. */
int model_value(int rank, unsigned life, uint32_t k, uint8_t *bytes);
/* Bytes of the sum of all that have data; `lives` for each rank. 0: nobody has. */
int model_sum(const uint8_t *lives, uint32_t ranks, uint32_t k, uint8_t *bytes);
const struct model_call *model_call_of(int rank, unsigned call);
/* The chunk with this number on a tree: k, MODEL_ROLL or MODEL_NO_CHUNK. */
int model_chunk_at(unsigned tree, uint32_t seq);
uint64_t model_call_elements(const struct model_call *call);

/* component.c */
static inline struct by_engine *model_engine_of(const struct model_component *c)
{
    return (struct by_engine *)(c->arena + c->block_at);
}
static inline struct by_endpoint *model_endpoint_of(const struct model_component *c)
{
    const struct model_host *host = (const struct model_host *)c->arena;

    return (struct by_endpoint *)(c->arena + c->block_at + host->block * c->block_bytes);
}
static inline struct by_resume *model_resume_of(const struct model_component *c)
{
    return (struct by_resume *)(c->arena + c->block_at + MODEL_LIVES_MAX * c->block_bytes);
}
/* The job as tables of this generation have it. */
static inline const struct fabric_job *model_job(uint16_t gen)
{
    return gen == model.config->gen ? &model.fabric.jobs[0] : &model.later;
}
void model_components_reset(void);
/* Interns the arena of component c as it is. */
uint32_t model_intern(int c);
void model_load(int c, uint32_t local);
uint32_t model_local_count(int c);
const struct model_facts *model_facts(int c, uint32_t local);
const struct model_step *model_step(int c, uint32_t local, uint32_t action);
const uint16_t *model_outs(const struct model_step *step);
/* Notes that the step in hand breaks a property. */
void model_violate(const char *property);

/* host.c and node.c: the real code, one action on the arena; 0 when it is not possible. They put
 * messages into model.outs. */
int model_host_act(int c, uint32_t action, const struct model_message *message);
int model_node_act(int c, uint32_t action, const struct model_message *message, int late,
                   struct model_step *step);
void model_host_begin(int c, unsigned life);
void model_engine_install(int c, unsigned life);
struct by_endpoint_config model_endpoint_config(const struct model_component *c, unsigned life);

/* resume.c: resuming calls, beside the network; like model_host_act. */
int model_resume_act(int c, uint32_t action, const struct model_message *message);
/* Whether a host's chunk k is done. */
int model_is_done(const struct model_component *c, uint32_t k);
/* Calls that have ended: the user overwrites their buffers. */
void model_spoil(int c);

/* Actions of a message after the first: 0 or 1. */
static inline uint32_t model_more_actions(void)
{
    return model.config->clock || model.config->faults & MODEL_DAMAGE;
}

/* message.c */
/* The message with a bit of its payload flipped; NULL: it has none. The next call overwrites it. */
const struct model_message *model_damaged(const struct model_message *message);
void model_send(int c, const struct by_tx *tx, const uint8_t *payload);
/* To rank `to`, beside the network. */
void model_tell(int c, int to, const uint8_t *data, size_t bytes);
void model_message_text(uint32_t message, char *text, size_t bytes);

/* canon.c */
void model_canon_host(int c);
void model_canon_engine(int c);

/* oracle.c */
void model_check_host(int c);
void model_check_engine(int c);
void model_gather_facts(int c, struct model_facts *facts);

/* ---- exploring (explore.c, live.c, trace.c) ---- */

struct model_result {
    const char *violation; /* NULL: safe */
    uint64_t states, transitions, vectors, steps;
    uint32_t depth, messages, stuck;
    double seconds;
    uint64_t bytes;
    int live; /* 1: every rank can end from every state */
    int complete;
};

void model_run(const struct model_config *config, uint64_t states_max, struct model_result *result);

#endif
