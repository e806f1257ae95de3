/*
 * Readable sentences: why an operation failed (which switch does not respond, which rank is
 * missing, which ranks disagree), and the transport and trees of a communicator. Names come from
 * the table image. Thread: the communicator's.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/comm.h"
#include "host-driver/fallback/exchange.h"
#include "host-driver/image_file.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/types.h"

#define NAMED_MAX 3u  /* nodes of one kind that a text names; further ones are counted */
#define DEPTH_MAX 64u /* maximum hops up a tree, in case a table contains a loop */

struct text {
    char *at;
    size_t room;
};

static void add(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void add(struct text *text, const char *format, ...)
{
    va_list arguments;
    int wrote;

    va_start(arguments, format);
    wrote = vsnprintf(text->at, text->room, format, arguments);
    va_end(arguments);
    if (wrote < 0)
        return;
    if ((size_t)wrote >= text->room)
        wrote = text->room > 0 ? (int)text->room - 1 : 0;
    text->at += wrote;
    text->room -= (size_t)wrote;
}

/* Adds a host and its ranks: "host2 (ranks 4, 5)". */
static void add_host(struct text *text, const struct banyan_comm *comm, const struct by_image_name *host)
{
    const struct by_seats *seats = by_local_seats(comm->local);
    uint32_t first = seats->first[host->rank], count = seats->first[host->rank + 1] - first;

    add(text, "%s (rank%s ", host->name, count > 1 ? "s" : "");
    for (uint32_t i = 0; i < count && i < NAMED_MAX; i++)
        add(text, "%s%u", i > 0 ? ", " : "", seats->order[first + i]);
    if (count > NAMED_MAX)
        add(text, " and %u more", count - NAMED_MAX);
    add(text, ")");
}

static void add_node(struct text *text, const struct banyan_comm *comm, uint16_t node)
{
    char name[BY_NAME_MAX + 32];

    for (uint32_t i = 0; comm->local != NULL && i < comm->header.count[BY_SECTION_NAME]; i++) {
        struct by_image_name host;

        by_image_name(comm->image, i, &host);
        if (host.node != node || host.rank >= by_local_seats(comm->local)->host_count)
            continue;
        add_host(text, comm, &host);
        return;
    }
    by_image_node_name(comm->image, node, name, sizeof(name));
    add(text, "%s", name);
}

/* The NAME section gives a rank only to hosts: "switch leaf0" or "host3 (rank 3)". */
static int is_switch(const struct banyan_comm *comm, uint16_t node)
{
    struct by_image_name name;

    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_NAME]; i++) {
        by_image_name(comm->image, i, &name);
        if (name.node == node)
            return name.rank == BY_RANK_NONE;
    }
    return 0;
}

const char *by_node_name(const struct banyan_comm *comm, uint16_t node, struct by_image_name *name)
{
    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_NAME]; i++) {
        by_image_name(comm->image, i, name);
        if (name->node == node)
            return name->name;
    }
    snprintf(name->name, sizeof(name->name), "node %u", node);
    return name->name;
}

/* Returns this host's parent in `tree`, or BY_NODE_NONE. */
static uint16_t parent_in(const struct banyan_comm *comm, uint16_t tree)
{
    struct by_image_leaf leaf;

    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_LEAF]; i++) {
        by_image_leaf(comm->image, i, &leaf);
        if (leaf.job == comm->job.job && leaf.tree == tree)
            return leaf.parent_node;
    }
    return BY_NODE_NONE;
}

/* Names the children of `node` in `tree`, 64 of them from number 64 * set on, whose bits are set;
 * returns their number. */
static unsigned add_children(struct text *text, const struct banyan_comm *comm, uint16_t tree, uint16_t node,
                             unsigned set, uint64_t mask)
{
    struct by_hop_count numbers = {0};
    unsigned count = 0;

    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_HOP]; i++) {
        struct by_image_hop hop;
        uint32_t number;

        by_image_hop(comm->image, i, &hop);
        if (hop.job != comm->job.job || hop.tree != tree || hop.parent != node || hop.child >= 64)
            continue;
        number = by_hop_number(&numbers, &hop);
        if (number / BY_CHILDREN_MAX != set || !(mask >> number % BY_CHILDREN_MAX & 1))
            continue;
        if (count < NAMED_MAX) {
            add(text, "%s", count > 0 ? ", " : "");
            add_node(text, comm, hop.node);
        }
        count++;
    }
    if (count > NAMED_MAX)
        add(text, " and %u more", count - NAMED_MAX);
    return count;
}

/* Finds the connection of `node` to its parent in `tree`. */
static int find_hop(const struct banyan_comm *comm, uint16_t tree, uint16_t node, struct by_image_hop *hop)
{
    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_HOP]; i++) {
        by_image_hop(comm->image, i, hop);
        if (hop->job == comm->job.job && hop->tree == tree && hop->node == node && hop->parent != node &&
            by_image_hop_is_own(hop))
            return 1;
    }
    return 0;
}

/* Returns the relay at position 2 or above between `node` and its parent, or BY_NODE_NONE. */
static uint16_t relay_at(const struct banyan_comm *comm, uint16_t tree, uint16_t node, unsigned place)
{
    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_HOP]; i++) {
        struct by_image_hop hop;

        by_image_hop(comm->image, i, &hop);
        if (hop.job == comm->job.job && hop.tree == tree && hop.node == node && !by_image_hop_is_own(&hop) &&
            hop.relays == place)
            return hop.via;
    }
    return BY_NODE_NONE;
}

/* Names the relays between `node` and its parent in order; any of them may be the one that does not
 * respond. Returns their number. */
static unsigned add_relays(struct text *text, const struct banyan_comm *comm, uint16_t tree, uint16_t node)
{
    struct by_image_hop hop;
    unsigned named = 1;

    if (node == BY_NODE_NONE || !find_hop(comm, tree, node, &hop) || hop.relays == 0)
        return 0;
    add(text, ", by way of ");
    add_node(text, comm, hop.via);
    for (; named < hop.relays && named < NAMED_MAX; named++) {
        uint16_t relay = relay_at(comm, tree, node, named + 1);

        if (relay == BY_NODE_NONE)
            break; /* the table names fewer relays */
        add(text, ", ");
        add_node(text, comm, relay);
    }
    if (hop.relays > named)
        add(text, " and %u more", hop.relays - named);
    return hop.relays;
}

static void add_seconds(struct text *text, const struct banyan_comm *comm)
{
    add(text, " for %g s", (double)comm->context->stall_ns / 1e9);
}

/* Adds a remedy for a node that does not respond and is behind `relays` relays. */
static void add_remedy(struct text *text, const struct banyan_comm *comm, uint16_t node, unsigned relays)
{
    const char *between = relays > 1 ? "those before it" : "the one before it";
    struct by_image_name name;

    if (node == BY_NODE_NONE)
        return;
    add(text, "; ");
    if (!is_switch(comm, node))
        add(text, "does its process still run?%s", relays > 0 ? " " : "");
    if (!is_switch(comm, node) && relays == 0)
        return;
    add(text, "is banyan-switchd on %s%s%s running, with this job's tables? (banyan doctor)",
        is_switch(comm, node) ? by_node_name(comm, node, &name) : between,
        is_switch(comm, node) && relays > 0 ? " and on " : "",
        is_switch(comm, node) && relays > 0 ? between : "");
}

static void describe_timeout(struct text *text, const struct banyan_comm *comm,
                             const struct by_call_status *status)
{
    unsigned relays = 0;
    uint16_t silent = status->node != BY_NODE_NONE ? status->node : parent_in(comm, status->tree);

    if (status->wait_state == BY_WAIT_CHILDREN && status->node != BY_NODE_NONE) {
        struct text before = *text;

        if (status->missing != 0 &&
            add_children(text, comm, status->tree, status->node, status->missing_set, status->missing) > 0) {
            add(text, " %s contributed to ", "has not");
        } else if (status->missing_node != BY_NODE_NONE) {
            *text = before;
            add_node(text, comm, status->missing_node);
            add(text, " has not contributed to ");
        } else {
            *text = before;
            add(text, "a child with bitmap %#llx has not contributed to ",
                (unsigned long long)status->missing);
        }
        add_node(text, comm, status->node);
        relays = add_relays(text, comm, status->tree, status->missing_node);
        add(text, " (tree %u, chunk %u)", status->tree, status->seq);
        add_seconds(text, comm);
        add_remedy(text, comm, status->missing_node, relays);
        return;
    }
    if (status->wait_state == BY_WAIT_PARENT && status->node != BY_NODE_NONE) {
        add_node(text, comm, status->node);
        add(text, " has had no answer from ");
        if (status->missing_node != BY_NODE_NONE)
            add_node(text, comm, status->missing_node);
        else
            add(text, "its parent");
        relays = add_relays(text, comm, status->tree, status->node);
        add(text, " (tree %u, chunk %u)", status->tree, status->seq);
        add_seconds(text, comm);
        add_remedy(text, comm, status->missing_node, relays);
        return;
    }
    add(text, "no answer from ");
    if (silent == BY_NODE_NONE) {
        add(text, "the network");
    } else {
        add(text, "%s", is_switch(comm, silent) ? "switch " : "");
        add_node(text, comm, silent);
    }
    if (status->node == BY_NODE_NONE)
        relays = add_relays(text, comm, status->tree, comm->header.node);
    add(text, " (tree %u, chunk %u)", status->tree, status->seq);
    add_seconds(text, comm);
    add_remedy(text, comm, silent, relays);
    if (comm->transport->last_errno != 0)
        add(text, "; sending failed: %s", strerror(comm->transport->last_errno));
}

static void describe_session(struct text *text, const struct banyan_comm *comm,
                             const struct by_call_status *status)
{
    add(text, "job %u: ", comm->job.job);
    if (status->node == BY_NODE_NONE) {
        add(text, "the network ");
    } else {
        add(text, "%s", is_switch(comm, status->node) ? "switch " : "");
        add_node(text, comm, status->node);
        add(text, " ");
    }
    if (!status->session) {
        add(text, "has gone on with another run of generation %u of these tables; ", comm->job.gen);
        add(text, "run one program of a job at a time");
        return;
    }
    add(text, "does not accept a new run of generation %u of these tables; ", comm->job.gen);
    add(text, "end other programs of this job, or load the tables again: ");
    add(text, "banyan push --renew DIR --sockets DIR (banyan-push(1))");
}

/* Returns the parent of `node` in `tree`, or BY_NODE_NONE. */
static uint16_t upper_of(const struct banyan_comm *comm, uint16_t tree, uint16_t node)
{
    struct by_image_hop hop;

    return find_hop(comm, tree, node, &hop) ? hop.parent : BY_NODE_NONE;
}

static int is_below(const struct banyan_comm *comm, uint16_t tree, uint16_t node, uint16_t upper)
{
    for (unsigned depth = 0; depth < DEPTH_MAX && node != upper && node != BY_NODE_NONE; depth++)
        node = upper_of(comm, tree, node);
    return node == upper;
}

/* Names `node` if it is a host without other ranks below it; else the ranks below it and the
 * node. */
static void add_ranks(struct text *text, const struct banyan_comm *comm, uint16_t tree, uint16_t node)
{
    struct by_image_name name;
    unsigned count = 0;

    for (uint32_t i = 0; i < comm->header.count[BY_SECTION_NAME]; i++) {
        by_image_name(comm->image, i, &name);
        if (name.rank == BY_RANK_NONE || !is_below(comm, tree, name.node, node))
            continue;
        if (count < NAMED_MAX) {
            add(text, "%s", count > 0 ? ", " : "");
            add_node(text, comm, name.node);
        }
        count++;
    }
    if (count > NAMED_MAX)
        add(text, " and %u more", count - NAMED_MAX);
    if (count == 0 || is_switch(comm, node)) {
        add(text, "%s", count == 0 ? "" : " below ");
        add_node(text, comm, node);
    }
}

/* Names the ranks that the bits of `mask` represent at the node that reported the error. */
static void add_side_ranks(struct text *text, const struct banyan_comm *comm,
                           const struct by_call_status *status, uint64_t mask)
{
    unsigned count = 0;

    for (unsigned bit = 0; bit < 64; bit++) {
        uint16_t node = BY_NODE_NONE;

        if (!(mask >> bit & 1))
            continue;
        for (uint32_t i = 0; i < comm->header.count[BY_SECTION_HOP] && node == BY_NODE_NONE; i++) {
            struct by_image_hop hop;

            by_image_hop(comm->image, i, &hop);
            if (hop.job == comm->job.job && hop.tree == status->tree && hop.parent == status->err.node &&
                hop.node != hop.parent && hop.child == bit)
                node = hop.node;
        }
        if (count++ >= NAMED_MAX)
            continue;
        add(text, "%s", count > 1 ? ", " : "");
        if (node != BY_NODE_NONE)
            add_ranks(text, comm, status->tree, node);
        /* the bit is not another node but that host's own rank */
        else
            add_node(text, comm, status->err.node);
    }
    if (count > NAMED_MAX)
        add(text, " and %u more", count - NAMED_MAX);
}

static void add_call(struct text *text, const struct by_call_said *said, const struct by_err_side *side)
{
    int reducing = by_collective_reduces(said->collective);

    if (!said->known) {
        add(text, "a call unknown to this rank, with %s of %u %s in this chunk", by_op_name(side->op),
            side->count, by_dtype_name(side->dtype));
        return;
    }
    add(text, "%s", by_collective_name(said->collective));
    if (by_collective_is_rooted(said->collective))
        add(text, " %s rank %u", said->collective == BY_COLLECTIVE_REDUCE ? "to" : "from", said->root);
    if (reducing)
        add(text, ", %s of %llu %s, mode %s", by_op_name(side->op), (unsigned long long)said->count,
            by_dtype_name(side->dtype), by_mode_name(side->mode));
    else if (said->collective != BY_COLLECTIVE_BARRIER)
        add(text, " of %llu elements%s", (unsigned long long)said->count,
            said->unequal ? " in unequal shares" : "");
    add(text, ", as call number %u", said->number);
}

static void add_side(struct text *text, const struct banyan_comm *comm, const struct by_call_status *status,
                     const struct by_err_side *side, const struct by_call_said *said, uint64_t mask)
{
    if (side->child < 64)
        mask |= UINT64_C(1) << side->child;
    add_side_ranks(text, comm, status, mask);
    add(text, ": ");
    add_call(text, said, side);
}

static void describe_mismatch(struct text *text, const struct banyan_comm *comm,
                              const struct by_call_status *status)
{
    if (status->err.reason == BY_ERR_WINDOW) {
        add_node(text, comm, status->err.node);
        add(text,
            " expects chunk %u of tree %u where this rank sent %u: the tables changed, or another process "
            "uses this job",
            status->err.expected_seq, status->tree, status->err.seq);
        return;
    }
    if (status->err.reason == BY_ERR_NO_ENTRY) {
        add_node(text, comm, status->err.node);
        add(text, " has no table entry for tree %u of job %u; push the tables again", status->tree,
            comm->job.job);
        return;
    }
    add(text, "the ranks disagree: ");
    add_side(text, comm, status, &status->err.first, &status->first, status->err.agree);
    add(text, "; but ");
    add_side(text, comm, status, &status->err.other, &status->other, 0);
    add(text, " (seen by ");
    add_node(text, comm, status->err.node);
    add(text, ", tree %u, chunk %u)", status->tree, status->err.seq);
}

/* Describes a node that cannot compute the call. */
static void describe_unsupported(struct text *text, const struct banyan_comm *comm,
                                 const struct by_call *call, const struct by_call_status *status)
{
    if (status->node == BY_NODE_NONE) {
        add(text, "%s", by_error_text(status->error));
        return;
    }
    add(text, "%s", is_switch(comm, status->node) ? "switch " : "");
    add_node(text, comm, status->node);
    add(text, " cannot compute %s of %s in mode %s (tree %u, chunk %u): ", by_op_name(call->op),
        by_dtype_name(call->dtype), by_mode_name(call->mode), status->tree, status->err.seq);
    if (call->mode == BY_MODE_DET && by_reduction_is_ordered(call->op, call->dtype))
        add(text, "its table has no slots for that; make the tables with banyan tables --det, and push them");
    else
        add(text, "it runs another version of the program; update it");
}

/* Describes data that changed in memory, and the ranks that they belong to. */
static void describe_damage(struct text *text, const struct banyan_comm *comm,
                            const struct by_call_status *status)
{
    int own = status->node == comm->header.node && status->err.reason != BY_ERR_MEMORY;

    if (own) {
        add(text,
            "the send buffer changed while the operation ran (tree %u, chunk %u): it must stay as it is "
            "until the operation ends",
            status->tree, status->seq);
        return;
    }
    if (status->err.reason == BY_ERR_MEMORY) {
        add(text, "%s", is_switch(comm, status->node) ? "switch " : "");
        add_node(text, comm, status->node);
        add(text, ": memory of a slot changed while it held");
    } else {
        add(text, "leaves are missing, or added twice, in the result from %s",
            is_switch(comm, status->node) ? "switch " : "");
        add_node(text, comm, status->node);
        add(text, " of");
    }
    add(text, " tree %u, chunk %u; its data were not delivered. Test the memory of that node%s", status->tree,
        status->seq, status->err.reason == BY_ERR_MEMORY ? "" : " and of the nodes below it");
}

/* Describes a rank that its host misses. */
static void describe_lost(struct text *text, const struct banyan_comm *comm,
                          const struct by_call_status *status)
{
    struct by_image_name name;

    add(text, "rank %u on %s has ", status->err.expected_seq, by_node_name(comm, status->node, &name));
    if (status->err.first.count == BY_FATE_SILENT) {
        add(text, "not contributed");
        add_seconds(text, comm);
        add(text, "; does its process still run?");
    } else {
        add(text, "%s", status->err.first.count == BY_FATE_LEFT ? "left the job" : "ended");
    }
}

void by_describe_reason(const struct banyan_comm *comm, const struct by_call *call,
                        const struct by_call_status *status, char *out, size_t bytes)
{
    struct text text = {out, bytes};

    if (bytes == 0)
        return;
    out[0] = 0;
    switch (status->error) {
    case BY_ETIMEDOUT:
        describe_timeout(&text, comm, status);
        break;
    case BY_ESTATE:
        describe_session(&text, comm, status);
        break;
    case BY_ECHECKSUM:
        describe_damage(&text, comm, status);
        break;
    case BY_EMISMATCH:
        describe_mismatch(&text, comm, status);
        break;
    case BY_EUNSUPPORTED:
        describe_unsupported(&text, comm, call, status);
        break;
    case BY_EIO:
        if (status->err.reason == BY_ERR_RANK)
            describe_lost(&text, comm, status);
        else
            add(&text, "%s", by_error_text(status->error));
        break;
    default:
        add(&text, "%s", by_error_text(status->error));
        break;
    }
}

const char *by_call_name(const struct by_call *call)
{
    return by_exchange_is(call->collective) ? by_exchange_name(call->collective)
                                            : by_collective_name(call->collective);
}

void by_describe_call(const struct by_call *call, char *out, size_t bytes)
{
    struct text text = {out, bytes};

    if (bytes == 0)
        return;
    out[0] = 0;
    add(&text, "%s", by_call_name(call));
    if (call->collective != BY_COLLECTIVE_BARRIER)
        add(&text, " of %llu %s", (unsigned long long)call->count, by_dtype_name(call->dtype));
}

void by_describe(const struct banyan_comm *comm, const struct by_call *call,
                 const struct by_call_status *status, char *out, size_t bytes)
{
    size_t used;

    by_describe_call(call, out, bytes);
    used = strlen(out);
    if (used + 2 >= bytes)
        return;
    memcpy(out + used, ": ", 3);
    by_describe_reason(comm, call, status, out + used + 2, bytes - used - 2);
}

/* ---- the transport and trees of a communicator ---- */

void by_announce(const struct banyan_comm *comm)
{
    const struct by_image_header *header = &comm->header;
    int level = atoi(comm->context->settings.value[BY_SETTING_LOG]);
    unsigned trees = 0;
    unsigned switched = 0;
    char ranks[96] = "";

    if (level < 1 || (level < 2 && (comm->rank != 0 || comm->is_group)))
        return;
    if (comm->hosts.fallback != NULL)
        by_hosts_announce(comm);
    if (comm->image == NULL)
        return;
    if (comm->local != NULL && !by_local_leads(comm->local)) {
        fprintf(stderr, "banyan: job %u rank %u of %u (%s): by shared memory to rank %u, which leads %s\n",
                comm->job.job, comm->rank, comm->rank_count, header->name,
                by_seats_mate(by_local_seats(comm->local), 0), header->name);
        return;
    }
    if (comm->local != NULL)
        snprintf(ranks, sizeof(ranks), "; %u ranks on %u hosts, joined by shared memory in each",
                 comm->rank_count, comm->job.rank_count);
    for (uint32_t i = 0; i < header->count[BY_SECTION_LEAF]; i++) {
        struct by_image_leaf leaf;

        by_image_leaf(comm->image, i, &leaf);
        if (leaf.job != comm->job.job)
            continue;
        trees++;
        switched += is_switch(comm, leaf.parent_node) ? 1 : 0;
    }
    fprintf(stderr,
            "banyan: job %u rank %u of %u (%s): %s: %u trees, %u of them through switches at this rank%s; "
            "mode %s; transport %s%s%s%s\n",
            comm->job.job, comm->rank, comm->rank_count, header->name,
            switched > 0 ? "offloaded" : "host trees only", trees, switched,
            comm->progress.engine != NULL ? ", inner node of other trees" : "",
            by_mode_name(comm->context->mode), comm->transport->ops->name,
            comm->transport->note[0] != 0 ? ": " : "", comm->transport->note, ranks);
}
