/* Facts in memory; see facts.h. Single-threaded. */
#include "control/discover/facts.h"

#include <string.h>

#include "control/base/alloc.h"

struct by_facts *by_facts_add(struct by_facts_list *list, const char *node, const char *source)
{
    struct by_facts *facts;

    BY_GROW(list->nodes, list->count, list->room);
    facts = &list->nodes[list->count++];
    *facts = (struct by_facts){.interfaces = NULL};
    snprintf(facts->node, sizeof(facts->node), "%s", node);
    snprintf(facts->source, sizeof(facts->source), "%s", source);
    return facts;
}

void by_facts_list_free(struct by_facts_list *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->nodes[i].interfaces);
    free(list->nodes);
    *list = (struct by_facts_list){0};
}

struct by_facts_interface *by_facts_interface(struct by_facts *facts, const char *name)
{
    struct by_facts_interface *interface;

    BY_GROW(facts->interfaces, facts->interface_count, facts->room);
    interface = &facts->interfaces[facts->interface_count++];
    *interface = (struct by_facts_interface){.is_kernel = true};
    snprintf(interface->name, sizeof(interface->name), "%s", name);
    return interface;
}

uint32_t by_facts_find(const struct by_facts *facts, const char *name)
{
    for (uint32_t i = 0; i < facts->interface_count; i++)
        if (strcmp(facts->interfaces[i].name, name) == 0)
            return i;
    return UINT32_MAX;
}

void by_facts_hear(struct by_facts_interface *interface, const struct by_facts_neighbour *neighbour)
{
    for (uint32_t i = 0; i < interface->neighbour_count; i++) {
        struct by_facts_neighbour *known = &interface->neighbours[i];

        if (strcmp(known->node, neighbour->node) == 0 && strcmp(known->port, neighbour->port) == 0) {
            *known = *neighbour;
            return;
        }
    }
    if (interface->neighbour_count < BY_FACTS_NEIGHBOURS_MAX)
        interface->neighbours[interface->neighbour_count++] = *neighbour;
}

void by_facts_copy_name(char to[BY_NAME_MAX + 1], const char *from)
{
    size_t i = 0;

    for (; from != NULL && from[i] && i < BY_NAME_MAX; i++)
        to[i] = from[i] > ' ' && from[i] <= '~' && from[i] != '"' && from[i] != '\\' ? from[i] : '?';
    to[i] = 0;
}

bool by_mac_read(const char *text, uint8_t mac[6])
{
    unsigned byte[6];
    int end = 0;

    if (strlen(text) != BY_MAC_TEXT_BYTES - 1 ||
        sscanf(text, "%2x:%2x:%2x:%2x:%2x:%2x%n", &byte[0], &byte[1], &byte[2], &byte[3], &byte[4], &byte[5],
               &end) != 6 ||
        end != (int)BY_MAC_TEXT_BYTES - 1)
        return false;
    for (unsigned i = 0; i < 6; i++)
        mac[i] = (uint8_t)byte[i];
    return true;
}

const char *by_mac_write(const uint8_t mac[6], char text[BY_MAC_TEXT_BYTES])
{
    snprintf(text, BY_MAC_TEXT_BYTES, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4],
             mac[5]);
    return text;
}
