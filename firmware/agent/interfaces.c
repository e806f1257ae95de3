/*
 * The request that describes ports and their neighbours, and makes the ports announce the switch.
 * See agent.c. Agent's thread.
 */
#include "firmware/agent/inside.h"

#include <string.h>

#include "offload/base/assert.h"
#include "offload/base/errors.h"

/* Least time between two announcements (ns). The requests of all clients could otherwise fill the
 * links with frames. */
#define ANNOUNCE_NS UINT64_C(100000000)

BY_STATIC_ASSERT(sizeof(((by_Interface *)0)->features) == sizeof(((struct by_agent_interface *)0)->features),
                 "the limit of a text is the message's");
BY_STATIC_ASSERT(sizeof(((by_Interface *)0)->addresses) ==
                     sizeof(((struct by_agent_interface *)0)->addresses),
                 "the limit of a text is the message's");

static void announce(struct by_agent *agent)
{
    uint64_t now_ns = by_agent_now(agent);

    if (agent->config.ops->announce == NULL ||
        (agent->announced_ns != 0 && now_ns - agent->announced_ns < ANNOUNCE_NS))
        return;
    agent->announced_ns = now_ns;
    agent->config.ops->announce(agent->config.node);
}

static void put_text(char *to, size_t room, const char *from)
{
    struct by_text text;

    by_text_start(&text, to, room);
    by_text_add(&text, from);
}

static void fill(by_Interface *row, const struct by_agent_interface *from)
{
    put_text(row->name, sizeof row->name, from->name);
    row->kernel = from->is_kernel != 0;
    row->down = from->down != 0;
    memcpy(row->mac, from->mac, sizeof row->mac);
    row->mtu = from->mtu;
    row->speed = from->speed_mbps;
    row->queues = from->queues;
    row->numa = from->numa;
    put_text(row->driver, sizeof row->driver, from->driver);
    put_text(row->bus, sizeof row->bus, from->bus);
    put_text(row->features, sizeof row->features, from->features);
    put_text(row->addresses, sizeof row->addresses, from->addresses);
    row->has_neighbour = from->neighbour != NULL;
    if (from->neighbour == NULL)
        return;
    memcpy(row->neighbour.mac, from->neighbour->source, sizeof row->neighbour.mac);
    put_text(row->neighbour.node, sizeof row->neighbour.node, from->neighbour->node);
    put_text(row->neighbour.port, sizeof row->neighbour.port, from->neighbour->port);
    put_text(row->neighbour.description, sizeof row->neighbour.description, from->neighbour->description);
    row->neighbour.forwards = from->neighbour->forwards;
}

void by_agent_answer_interfaces(struct by_agent *agent)
{
    by_InterfacesReply *reply = &agent->response.body.interfaces;
    const struct by_agent_config *config = &agent->config;
    struct by_agent_interface interface;
    struct by_text text;

    if (config->ops->interface == NULL) {
        text = by_agent_fail(agent, BY_EUNSUPPORTED);
        by_text_add(&text, "interfaces: this switch does not describe its ports (");
        by_text_add(&text, config->board ? config->board : config->software);
        by_text_add(&text, "): write its links by hand");
        return;
    }
    if (agent->request.body.interfaces.announce)
        announce(agent);
    agent->response.which_body = by_Response_interfaces_tag;
    reply->total = config->port_count;
    for (uint32_t i = 0; i < sizeof reply->interfaces / sizeof reply->interfaces[0]; i++) {
        memset(&interface, 0, sizeof interface);
        if (config->ops->interface(config->node, agent->request.body.interfaces.from + i, &interface) != 0)
            break;
        fill(&reply->interfaces[i], &interface);
        reply->interfaces_count = (pb_size_t)(i + 1);
    }
}
