/* Links that an option names; see links.h. */
#include "control/cli/links.h"

#include <stdio.h>
#include <string.h>

#include "control/cli/cli.h"

int by_cli_mark_links(const struct by_topology *topology, const char *path, const char *option,
                      const char *text, bool *marked)
{
    const char *comma = strchr(text, ',');
    char name[2][128];
    int64_t ends[2];
    bool any = false;

    if (!comma || strchr(comma + 1, ',') || (size_t)(comma - text) >= sizeof(name[0]))
        return by_cli_fail(BY_EXIT_USAGE, "%s is '%.100s': it must be two node names, A,B", option, text);
    snprintf(name[0], sizeof(name[0]), "%.*s", (int)(comma - text), text);
    snprintf(name[1], sizeof(name[1]), "%s", comma + 1);
    for (unsigned i = 0; i < 2; i++) {
        ends[i] = by_topology_find(topology, name[i]);
        if (ends[i] < 0)
            return by_cli_fail(BY_EXIT_USAGE, "%s %.100s: %s has no node '%.60s'", option, text, path,
                               name[i]);
    }
    for (uint32_t i = 0; i < topology->link_count; i++) {
        const struct by_link *link = &topology->links[i];
        bool here = (link->a == ends[0] && link->b == ends[1]) || (link->a == ends[1] && link->b == ends[0]);

        marked[i] |= here;
        any |= here;
    }
    return any ? -1
               : by_cli_fail(BY_EXIT_USAGE, "%s %.100s: %s has no link between the two", option, text, path);
}
