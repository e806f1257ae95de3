/* Plans of a job for failures. See ahead_plans.h. */
#include "control/service/daemon/ahead_plans.h"

#include <stdlib.h>

#include "control/base/alloc.h"

void by_ahead_free_texts(struct by_fabric_text *texts, uint32_t count)
{
    for (uint32_t i = 0; texts != NULL && i < count; i++)
        free(texts[i].text);
    free(texts);
}

void by_ahead_free(struct by_ahead_plans *plans)
{
    if (plans == NULL)
        return;
    for (uint32_t i = 0; i < plans->count; i++)
        by_ahead_free_texts(plans->entries[i].texts, plans->want_count);
    free(plans->entries);
    free(plans);
}

const struct by_ahead_entry *by_ahead_part(const struct by_ahead_plans *plans, uint32_t part)
{
    for (uint32_t i = 0; plans != NULL && i < plans->count; i++)
        if (plans->entries[i].part == part)
            return &plans->entries[i];
    return NULL;
}

void by_ahead_add(struct by_ahead_plans **plans, uint32_t part, struct by_fabric_text *texts,
                  uint32_t want_count)
{
    struct by_ahead_plans *all = *plans;

    if (all == NULL)
        all = *plans = by_alloc(1, sizeof(*all));
    all->want_count = want_count;
    BY_GROW(all->entries, all->count, all->room);
    all->entries[all->count++] = (struct by_ahead_entry){part, texts};
    for (uint32_t i = 0; texts != NULL && i < want_count; i++)
        all->bytes += texts[i].bytes;
}

const struct by_fabric_text *by_ahead_find(const struct by_ahead_plans *plans,
                                           const struct by_topology *topology,
                                           const struct by_fabric_loss *loss)
{
    uint32_t node = UINT32_MAX, link = UINT32_MAX;
    const struct by_ahead_entry *entry;

    for (uint32_t n = 0; n < topology->node_count; n++) {
        if (loss->nodes[n] && node != UINT32_MAX)
            return NULL;
        node = loss->nodes[n] ? n : node;
    }
    for (uint32_t l = 0; l < topology->link_count; l++) {
        if (!loss->links[l] ||
            (node != UINT32_MAX && (topology->links[l].a == node || topology->links[l].b == node)))
            continue;
        if (link != UINT32_MAX || node != UINT32_MAX)
            return NULL;
        link = l;
    }
    if (node == UINT32_MAX && link == UINT32_MAX)
        return NULL;
    entry = by_ahead_part(plans, node != UINT32_MAX ? node : topology->node_count + link);
    return entry != NULL ? entry->texts : NULL;
}
