/*
 * A fabric under construction from foreign files. Nodes are identified by keys that are not meant
 * for users, links may be listed at one end or both, and names may not be valid yet. Private to the
 * importers. Each draft belongs to one thread.
 */
#ifndef BY_FABRIC_IMPORT_DRAFT_H
#define BY_FABRIC_IMPORT_DRAFT_H

#include "control/fabric/import/import.h"

enum by_draft_kind { BY_DRAFT_UNKNOWN, BY_DRAFT_COMPUTE, BY_DRAFT_SWITCH };

struct by_draft_node {
    char *key;
    char *label; /* becomes the name, once it is made valid */
    enum by_draft_kind kind;
    bool multicast, aggregate;
    bool left_out;
    int64_t order; /* compute nodes are ordered by this, then by name or by appearance */
    uint32_t file;
    struct by_place place;
};

/* Links of a draft (count). */
#define BY_DRAFT_LINKS_MAX (1u << 22)

struct by_draft_link {
    uint32_t a, b;
    bool both_ways;
    struct by_fraction rate;
    uint32_t file;
    struct by_place place;
};

struct by_draft {
    const struct by_import_options *options;
    struct by_problem *problem;
    uint32_t file;      /* number of the current file */
    bool sort;          /* sort compute nodes by name, with digits by value */
    bool prune;         /* leave out switches that lead nowhere */
    const char *name;   /* name of the topology if the options give none */
    char own_name[128]; /* buffer for a name from the file */
    uint32_t left_out;  /* nodes left out by the importer itself */
    char left_out_name[64];
    uint32_t node_count, node_room;
    struct by_draft_node *nodes;
    uint32_t link_count, link_room;
    struct by_draft_link *links;
    uint32_t slot_count;
    uint32_t *slots; /* hash table of keys: node + 1 */
};

void by_draft_make(struct by_draft *draft, const struct by_import_options *options,
                   struct by_problem *problem);
void by_draft_free(struct by_draft *draft);
/* Returns the node with this key, and adds it with `label` when it is new. UINT32_MAX with
 * `problem` filled when there are too many nodes. */
uint32_t by_draft_node(struct by_draft *draft, const char *key, const char *label, struct by_place place);
/* Returns the node with this key, or UINT32_MAX. */
uint32_t by_draft_find(const struct by_draft *draft, const char *key);
/* Adds a link. Returns 0, BY_EINVAL when it links a node to itself or when neither the file nor the
 * options give its rate, or BY_ELIMIT. */
int by_draft_link(struct by_draft *draft, uint32_t a, uint32_t b, bool both_ways, struct by_fraction rate,
                  struct by_place place);
/* Records that a node was left out. */
void by_draft_leave_out(struct by_draft *draft, const char *name);
/* Sets names, kinds and order, and makes the topology. */
int by_draft_finish(struct by_draft *draft, struct by_topology **topology, struct by_import_report *report);
/* Converts offsets to lines and columns. Offsets should be (nearly) ascending: counting continues
 * from the previous one. All zero except `text` before the first call. */
struct by_draft_cursor {
    const char *text;
    size_t seen;
    struct by_place place;
};

struct by_place by_cursor_place(struct by_draft_cursor *cursor, size_t at);

/* Reports an error at a position of the current file; returns `error`. */
#define BY_DRAFT_REFUSE(draft, place, ...) by_problem_set((draft)->problem, BY_EINVAL, (place), __VA_ARGS__)

/* Importers: each reads one or several files into the draft. */
typedef int by_import_fn(struct by_draft *draft, const char *const *paths, size_t count);
by_import_fn by_import_nccl, by_import_ibnetdiscover, by_import_lldp, by_import_dot;

#endif
