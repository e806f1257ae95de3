/* The node of banyan-switchd's agent: the shell and its engine, as by_agent_ops. One thread: the
 * shell's. */
#ifndef BY_FIRMWARE_LINUX_NODE_H
#define BY_FIRMWARE_LINUX_NODE_H

#include "dataplane/shell.h"
#include "firmware/agent/agent.h"
#include "firmware/linux/carrier.h"
#include "firmware/linux/store.h"

struct by_switchd_node {
    const char *name; /* of the switch */
    struct by_shell *shell;
    struct by_switchd_store *store; /* NULL: committed tables are not saved */
};

/* The functions; `node` is a struct by_switchd_node. */
extern const struct by_agent_ops by_node_ops;

/* Returns the carriers of the shell's ports, for by_carrier_close before the shell closes. NULL:
 * there is no memory. */
struct by_carrier *by_node_carrier(struct by_shell *shell);

/* Loads the image in `path` and commits it. Returns 0, or BY_ENOENT or the engine's error after
 * reporting it. */
int by_node_load(struct by_shell *shell, const char *path);

#endif
