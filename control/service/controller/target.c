/* Parses NAME=ADDR. See target.h. */
#include "control/service/controller/target.h"

#include <string.h>
#include <sys/un.h>

#include "firmware/secure/hostport.h"
#include "offload/base/errors.h"

size_t by_target_split(const char *text, const char **address)
{
    size_t length = strcspn(text, "=");

    if (text[length] == 0)
        return 0;
    *address = text + length + 1;
    return length;
}

/* Whether a text is HOST:PORT with a port other than 0. */
static bool is_hostport(const char *text)
{
    struct by_hostport to;

    return by_hostport_read(text, strlen(text), &to) == 0 && to.host[0] != 0 &&
           strspn(to.port, "0") < strlen(to.port);
}

int by_target_check(const char *address, struct by_problem *problem)
{
    bool psk = strncmp(address, "psk+", 4) == 0;
    const char *rest = address + (psk ? 4 : 0);

    if (strncmp(rest, "unix:", 5) == 0) {
        size_t most = sizeof(((struct sockaddr_un *)NULL)->sun_path) - 1;

        if (rest[5] != 0 && strlen(rest + 5) <= most)
            return 0;
        return by_problem_say(problem, BY_EINVAL, "%.200s: the path of a socket has 1 to %zu characters",
                              address, most);
    }
    if ((strncmp(rest, "tcp:", 4) == 0 || (!psk && strncmp(rest, "tls:", 4) == 0)) && is_hostport(rest + 4))
        return 0;
    return by_problem_say(
        problem, BY_EINVAL,
        "%.200s: not an address: write unix:PATH, tcp:HOST:PORT or tls:HOST:PORT, with a port from "
        "1 to 65535, or psk+ and one of the first two",
        address);
}
