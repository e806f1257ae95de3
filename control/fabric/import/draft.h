/*
 * A fabric while it is pieced together from files of others: nodes known by keys that nobody would
 * type, links seen from one end or both, names not yet fit. Private to the importers. One thread
 * for each draft.
 */
#ifndef BY_FABRIC_IMPORT_DRAFT_H
#define BY_FABRIC_IMPORT_DRAFT_H

#include "control/fabric/import/import.h"

enum by_draft_kind { BY_DRAFT_UNKNOWN, BY_DRAFT_COMPUTE, BY_DRAFT_SWITCH };

struct by_draft_node {
    char *key;
    char *label; /* becomes the name, once it is fit */
    enum by_draft_kind kind;
    bool multicast, aggregate;
    bool left_out;
    int64_t order; /* compute nodes come in this order, then in that of their names or of their appearance */
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
    uint32_t file;      /* the one that is being read */
    bool sort;          /* compute nodes in the order of their names, numbers by value */
    bool prune;         /* switches that lead nowhere are left out */
    const char *name;   /* of the topology when the options have none */
    char own_name[128]; /* room for one that the file gives */
    uint32_t left_out;  /* by the importer itself */
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
/* The node with this key; made with `label` when it is new. UINT32_MAX with `problem` filled when
 * there are too many nodes. */
uint32_t by_draft_node(struct by_draft *draft, const char *key, const char *label, struct by_place place);
/* The node with this key, or UINT32_MAX. */
uint32_t by_draft_find(const struct by_draft *draft, const char *key);
/* Adds a link; 0, BY_EINVAL when it joins a node to itself or has no rate and the options have
 * none, BY_ELIMIT. */
int by_draft_link(struct by_draft *draft, uint32_t a, uint32_t b, bool both_ways, struct by_fraction rate,
                  struct by_place place);
/* Notes that something was left out. */
void by_draft_leave_out(struct by_draft *draft, const char *name);
/* Names, kinds, order: makes the topology. */
int by_draft_finish(struct by_draft *draft, struct by_topology **topology, struct by_import_report *report);
/* Lines and columns of offsets that come in order, or nearly so: counted from the one before. Zero
 * but for `text` before the first call. */
struct by_draft_cursor {
    const char *text;
    size_t seen;
    struct by_place place;
};

struct by_place by_cursor_place(struct by_draft_cursor *cursor, size_t at);

/* An error at a place of the file that is being read; returns `error`. */
#define BY_DRAFT_REFUSE(draft, place, ...) by_problem_set((draft)->problem, BY_EINVAL, (place), __VA_ARGS__)

/* Importers: each reads one file into the draft, or several. */
typedef int by_import_fn(struct by_draft *draft, const char *const *paths, size_t count);
by_import_fn by_import_nccl, by_import_ibnetdiscover, by_import_lldp, by_import_dot;

#endif
