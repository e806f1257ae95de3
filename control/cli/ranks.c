/* The option --ranks. See ranks.h. */
#include "control/cli/ranks.h"

#include <string.h>

#include "control/cli/cli.h"
#include "control/fabric/members.h"

int by_cli_ranks(const char *text, const struct by_topology *topology, bool **member)
{
    struct by_problem problem = {0};

    *member = NULL;
    if (!text)
        return -1;
    if (text[0] == '@')
        return by_members_read(text + 1, topology, member, &problem) == 0 ? -1
                                                                          : by_cli_refuse(text + 1, &problem);
    if (by_members_parse(text, strlen(text), topology, member, &problem) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "--ranks: %s", problem.text);
    return -1;
}
