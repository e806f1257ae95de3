/*
 * The model checker. It explores every state that by_engine_step and by_endpoint_step can reach in
 * a small fabric under an adversary that controls the network, the clocks and the crashes
 * (docs/model.md). Terms of this folder:
 *
 *   component     an engine or an endpoint, with all its data, in one block of memory (an arena)
 *   local state   the bytes of an arena, made canonical (canon.c) and interned: a number
 *   message       a packet in flight between two components, interned: a number
 *   state         the local states of all components and the set of messages that exist
 *   action        a step of one component that the adversary permits
 *
 * Engines and endpoints are pure functions, so the effect of an action on a local state is found
 * once, by running the real code, and cached (component.c). Single-threaded; one configuration at a
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
#define MODEL_MESSAGES_MAX   16384
#define MODEL_JOB            1
#define MODEL_BURST          16 /* packets of one endpoint step */
/* The time of every clock between two steps; repairs are spaced by the second value. */
#define MODEL_NOW_NS      UINT64_C(1000000000)
#define MODEL_INTERVAL_NS UINT64_C(1000000)
/* Size of a struct by_resume for the largest configuration (bytes). */
#define MODEL_RESUME_BYTES 1024u
/* The initial contents of receive buffers, and of payload that is not needed any more. */
#define MODEL_UNTOUCHED 0xee
#define MODEL_STALE     0xdb

/* ---- configurations (config.c) ---- */

struct model_call {
    uint8_t collective, op, dtype;
    uint8_t det; /* 1: mode DET, 0: FAST */
    uint16_t root;
    uint32_t chunks; /* of each shard */
};

/* Possible faults besides loss, duplication and reordering. */
enum model_fault {
    MODEL_RESTART = 0x01,    /* a host's process ends and another starts on the same tables */
    MODEL_CRASH = 0x02,      /* a node loses its memory; the controller installs the next generation */
    MODEL_CRASH_SAME = 0x04, /* a node loses its memory and gets the same generation again */
    MODEL_HOLD = 0x08,       /* a shell may keep references to payloads for any time */
    MODEL_DAMAGE = 0x10,     /* the network may flip a bit of a payload; without a clock */
    MODEL_RESUME = 0x40,     /* with MODEL_CRASH: calls continue in the next generation */
    MODEL_FLIP = 0x20        /* a bit of a bank flips at a node, fault_count times in all at each node */
};

/* MODEL_END_ANY: by a matching error, which may be the timeout. MODEL_END_MEMORY: all ranks
 * successfully; or some rank by the error that names a node whose memory has changed, after which
 * the others may time out, once nothing else is left. */
enum model_end { MODEL_END_DONE = 1, MODEL_END_MISMATCH, MODEL_END_ANY, MODEL_END_MEMORY };

/* MODEL_MUTE_ALL: the network loses every WAIT, PROBE and ERR(WINDOW). MODEL_MUTE_MOST: only every
 * WAIT, and others without START: those with START lead ranks to the same session. */
enum model_mute { MODEL_MUTE_ALL = 1, MODEL_MUTE_MOST };

struct model_config {
    const char *name;
    const char *tree;   /* "R(S(ab)c)": capitals are switches, other letters hosts */
    const char *tree_b; /* a second tree over the same cables, or NULL */
    const char *after;  /* the only tree of the generations after a crash; NULL: the same */
    uint16_t window;
    struct model_call calls[MODEL_CALLS_MAX];
    struct model_call other; /* rank 1's last call, if it differs; collective 0: the same call */
    uint8_t in_place;
    uint16_t payload; /* bytes of a chunk; 0: what the roll call requires */
    uint8_t clock;    /* nodes have a clock, which the adversary controls */
    uint8_t spares;   /* spare buffers of each node */
    uint8_t exact;    /* hints for clocks (RETX, order of transmissions, ...) are part of the state */
    uint8_t cover; /* enum by_cover: the job is keyed; only with `exact`, since otherwise flags change under
                      the tags */
    uint8_t plain; /* no reduction: losses are actions, and each set of messages is a separate state */
    uint8_t mute;  /* enum model_mute: what the network loses */
    uint8_t gaps;  /* 0: the network loses every GAP */
    uint8_t probes;
    uint8_t faults;      /* enum model_fault */
    uint8_t fault_count; /* restarts of each host, crashes in total, or flips at each node */
    /* With MODEL_RESUME: the first generations after gen that are standbys. Tables have them from
     * the beginning, and hosts move to them at any time, in rounds. Those of the controller
     * follow, one for each crash. */
    uint8_t standbys;
    uint8_t end; /* enum model_end: what every rank must be able to reach */
    uint32_t first_seq;
    uint16_t gen;
    uint32_t set; /* bits: whether `make model`, the tests and the mutations use it */
};

enum model_set { MODEL_SET_ALL = 1, MODEL_SET_QUICK = 2 };

extern const struct model_config model_configs[];
extern const unsigned model_config_count;

/* ---- chunks (plan.c) ---- */

#define MODEL_ALL      (-1)
#define MODEL_NOBODY   (-2)
#define MODEL_ROLL     (-1)
#define MODEL_NO_CHUNK (-2)
#define MODEL_OPENING  (-3)
/* Chunk k of the job's calls. */
struct model_chunk {
    uint8_t call;
    uint8_t tree;
    uint32_t offset; /* seq - the session's first chunk */
    uint16_t bytes;
    int16_t source;     /* the only rank with data, or MODEL_ALL, MODEL_NOBODY */
    uint32_t receivers; /* bits */
    uint32_t send_at[MODEL_HOSTS_MAX], recv_at[MODEL_HOSTS_MAX];
    uint8_t void_; /* the ranks disagree about it: it must never be delivered */
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

/* The messages that hosts exchange to resume calls bypass the network. */
#define MODEL_PORT_BESIDE 0xfffe

/* A payload that a shell still references. */
struct model_held {
    uint8_t used, bytes;
    uint32_t ref;
    uint32_t at; /* offset in the arena */
    uint8_t copy[MODEL_PAYLOAD_MAX];
};
#define MODEL_HELD_MAX 2

struct model_engine {
    uint8_t crashes;
    uint8_t life;      /* last installed generation: gen + life */
    uint8_t forgotten; /* and lost in a crash */
    uint8_t flips;
    uint32_t resent; /* with config.exact: bits of banks whose value contains something retransmitted */
    struct model_held held[MODEL_HELD_MAX];
};

/* A message with a region: the mark, rank, attempt (2), round, size of a region (4), the region. */
#define MODEL_REGION_MARK 0xf0
#define MODEL_REGION_HEAD 9u
/* A rank's part of a round, without the zeros at its end. */
#define MODEL_REGION_MAX 90
struct model_region {
    uint32_t size; /* with these */
    uint8_t used;
    uint8_t bytes[MODEL_REGION_MAX];
};

/* The move to a standby (rounds.c). */
struct model_rounds {
    uint8_t round;                 /* number of the round under way, from 1 on */
    uint8_t rounds_count;          /* rounds in all, when they are over */
    uint8_t got;                   /* bits of ranks whose regions of this round are here */
    struct model_region last, own; /* this host's regions of the round before, and of this one */
    struct model_region others[MODEL_HOSTS_MAX];
};

struct model_host {
    uint8_t life;     /* number of the process; with MODEL_CRASH also its generation */
    uint8_t attempt;  /* MODEL_RESUME: the generation in which it must resume; life stays 0 */
    uint8_t block;    /* the generation of its endpoint, which determines its block */
    uint8_t rolled;   /* the session began in an earlier generation */
    uint8_t spoiled;  /* bits of calls: the user has their buffers again and has written into them */
    uint32_t resumed; /* bits of chunks that were complete when its endpoint began */
    struct model_rounds rounds;
    uint8_t send[MODEL_CALLS_MAX][MODEL_BUFFER], recv[MODEL_CALLS_MAX][MODEL_BUFFER];
};

struct model_component {
    uint8_t kind; /* enum model_kind */
    int node, rank;
    char name[8];
    uint8_t *arena; /* struct model_engine or model_host, then the block of the engine or endpoint */
    size_t bytes, block_at,
        block_bytes; /* MODEL_RESUME: a block for each generation, then a struct by_resume, then with
                        standbys a struct by_level_rounds; its regions are behind `bytes` */
    uint8_t *base;   /* the arena from which local states are stored as differences */
};

/* The fields of a bank of which a flip may hit a bit (node.c). */
#define MODEL_FLIP_PLACES 14
#define MODEL_FLIP_BANKS  2

/* Actions: fixed ones, then two for each message to the component: before and after the repair
 * interval, or (MODEL_DAMAGE) unchanged and damaged. */
enum model_action {
    MODEL_ACT_TIMER,    /* host: the timer of the first tree */
    MODEL_ACT_TIMER_B,  /* host: that of the second tree */
    MODEL_ACT_PROBE,    /* host: the timer of an old chunk */
    MODEL_ACT_PATIENCE, /* host: its patience ends; with standbys: it moves to the one after the next */
    MODEL_ACT_RESTART,  /* host; with MODEL_RESUME it learns the next generation */
    MODEL_ACT_REPEAT,   /* host: sends its messages to the resuming ranks again */
    MODEL_ACT_CRASH,    /* engine */
    MODEL_ACT_INSTALL,  /* engine: generation gen + 0, */
    MODEL_ACT_INSTALL_LAST = MODEL_ACT_INSTALL + MODEL_LIVES_MAX - 1,
    MODEL_ACT_RELEASE, /* engine: the first held reference */
    MODEL_ACT_RELEASE_B,
    MODEL_ACT_FLIP, /* engine: a bit of a bank, for each bank and field */
    MODEL_ACT_MESSAGE = MODEL_ACT_FLIP + MODEL_FLIP_BANKS * MODEL_FLIP_PLACES
};

/* The effect of an action on a local state. */
struct model_step {
    uint32_t next;    /* local state */
    uint32_t outs_at; /* index into model_outs */
    uint16_t out_count;
    uint8_t reclaimed; /* a bank moved to its next chunk: reclaimed_seq of generation gen */
    uint8_t enabled;   /* 0: the action is not possible here */
    uint16_t tree, gen;
    uint32_t reclaimed_seq;
    const char *violation; /* the property broken by the step, or NULL */
};

/* Facts about a local state for the explorer, found when it is interned. */
struct model_facts {
    uint8_t life, crashes, forgotten, holds;
    uint8_t ended;      /* host: all calls have ended, */
    uint8_t ended_well; /* as the configuration requires */
    uint8_t dead;
    uint8_t failed, named; /* host: a call ended with an error; with that of memory, which named a node */
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
    struct fabric_job later; /* the job in the generations after a crash */
    int component_count, host_count, engine_count;
    struct model_component components[MODEL_COMPONENTS_MAX];
    int endpoint_of[FABRIC_NODES_MAX], engine_of[FABRIC_NODES_MAX]; /* components; -1: none */
    uint8_t *images[FABRIC_NODES_MAX][MODEL_LIVES_MAX];
    size_t image_bytes[FABRIC_NODES_MAX][MODEL_LIVES_MAX];
    uint16_t payload;
    uint32_t roll_chunks, chunk_count;
    struct model_chunk chunks[MODEL_CHUNKS_MAX];
    uint32_t initial[MODEL_COMPONENTS_MAX];
    uint16_t outs[MODEL_MESSAGES_MAX]; /* messages sent by the current step, */
    uint32_t out_count;
    const char *violation; /* and the property broken by it */
    uint32_t message_count;
    struct model_message messages[MODEL_MESSAGES_MAX];
    uint32_t local_count[MODEL_COMPONENTS_MAX];
    uint64_t steps;                     /* of the real code */
    uint16_t first[MODEL_MESSAGES_MAX]; /* initial messages */
    uint32_t first_count;
};

extern struct model model;

/* Returns the number of generations after the first. */
static inline unsigned model_later(void)
{
    return (unsigned)model.config->fault_count + model.config->standbys;
}

/* world.c: builds everything for a configuration. The initial state is in model.initial and
 * model.outs. */
void model_begin(const struct model_config *config);
void model_end(void);
uint32_t model_nonce(int rank, unsigned life);

/* plan.c */
void model_plan(void);
/* Finds the contribution of `rank` in its process `life` to chunk k. Returns 1 and
 * MODEL_PAYLOAD_MAX bytes, or 0: NODATA. */
int model_value(int rank, unsigned life, uint32_t k, uint8_t *bytes);
/* Finds the sum of all contributions with data; `lives` for each rank. Returns 0 if there are
 * none. */
int model_sum(const uint8_t *lives, uint32_t ranks, uint32_t k, uint8_t *bytes);
const struct model_call *model_call_of(int rank, unsigned call);
/* Finds the chunk with this number on a tree. Returns k, MODEL_ROLL, MODEL_OPENING or
 * MODEL_NO_CHUNK. */
int model_chunk_at(unsigned tree, uint32_t seq);
/* Return the number of a chunk's session, and of the chunk in its session. */
uint32_t model_session(uint32_t seq);
uint32_t model_offset(uint32_t seq);
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
/* Returns the job as in tables of this generation. */
static inline const struct fabric_job *model_job(uint16_t gen)
{
    return gen == model.config->gen ? &model.fabric.jobs[0] : &model.later;
}
void model_components_reset(void);
/* Interns the current arena of component c. */
uint32_t model_intern(int c);
void model_load(int c, uint32_t local);
uint32_t model_local_count(int c);
const struct model_facts *model_facts(int c, uint32_t local);
const struct model_step *model_step(int c, uint32_t local, uint32_t action);
const uint16_t *model_outs(const struct model_step *step);
/* Notes that the current step breaks a property. */
void model_violate(const char *property);

/* host.c and node.c: run the real code for one action on the arena. Return 0 if the action is not
 * possible. Messages go into model.outs. */
int model_host_act(int c, uint32_t action, const struct model_message *message);
int model_node_act(int c, uint32_t action, const struct model_message *message, int late,
                   struct model_step *step);
void model_host_begin(int c, unsigned life);
void model_engine_install(int c, unsigned life);
struct by_endpoint_config model_endpoint_config(const struct model_component *c, unsigned life);

/* resume.c: resumes calls outside the network; like model_host_act. */
int model_resume_act(int c, uint32_t action, const struct model_message *message);
/* rounds.c: the levelling of a move to a standby. The bytes of a struct by_level_rounds that are
 * part of the state, and those that are not; begins the rounds of the attempt; sends again what
 * others may lack; takes a region, and returns whether the rounds are over. */
size_t model_rounds_bytes(const struct by_endpoint *endpoint, size_t *scratch);
void model_rounds_begin(int c);
void model_rounds_repeat(int c);
int model_rounds_take(int c, const struct model_message *message);
/* Returns whether a host's chunk k is complete. */
int model_is_done(const struct model_component *c, uint32_t k);
/* The user overwrites the buffers of calls that have ended. */
void model_spoil(int c);

/* Returns the number of actions of a message after the first: 0 or 1. */
static inline uint32_t model_more_actions(void)
{
    return model.config->clock || model.config->faults & MODEL_DAMAGE;
}

/* message.c */
/* Returns the message with a flipped bit of its payload; NULL if it has no payload. The next call
 * overwrites it. */
const struct model_message *model_damaged(const struct model_message *message);
void model_send(int c, const struct by_tx *tx, const uint8_t *payload);
/* Sends to rank `to` outside the network. */
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
