/*
 * Asks the nodes of a site for their facts: switches over their control channels, hosts by commands
 * that print them (`ssh HOST banyan discover --local`). All announce themselves by LLDP during the
 * same time, so each end of a cable can hear the other. Single-threaded.
 */
#ifndef BY_DISCOVER_COLLECT_H
#define BY_DISCOVER_COLLECT_H

#include "control/base/report.h"
#include "control/discover/facts.h"
#include "control/service/controller/session.h"

/* A switch by its control address, or a host by a command. */
struct by_collect_target {
    char *name, *address, *command; /* address or command is NULL; owned */
};

struct by_collect {
    uint32_t target_count, target_room;
    struct by_collect_target *targets;
    struct by_session_options access; /* timeout_ms: of each answer of a switch */
    uint32_t listen_ms;               /* while switches announce themselves */
    uint32_t command_ms;              /* a command may take; then it is ended */
};

void by_collect_switch(struct by_collect *collect, const char *name, size_t length, const char *address);
void by_collect_host(struct by_collect *collect, const char *name, size_t length, const char *command);
void by_collect_free(struct by_collect *collect);

/* Asks all targets and adds their facts. Adds a finding (unseen) for each that gives none, with the
 * reason. */
void by_collect_run(struct by_collect *collect, struct by_facts_list *list, struct by_report *report);

/* Adds the ports of an answer to the facts of a switch. For tests, too. */
void by_collect_take(struct by_facts *facts, const by_InterfacesReply *reply);

#endif
