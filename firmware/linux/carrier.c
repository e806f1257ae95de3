/* Netlink and polling; see carrier.h. Shell's thread. */
#include "firmware/linux/carrier.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "dataplane/say.h"

/* Interval at which ports without messages are polled (ns). A driver reads a register or queries
 * the kernel, which takes up to 50 us. */
#define ASK_NS 10000000u
/* Messages of one call (count), so that packets are not delayed; the rest waits for the next. */
#define MESSAGES_MAX  64u
#define MESSAGE_BYTES 16384u

struct by_carrier {
    struct by_carrier_config config;
    int fd;
    uint64_t asked_ns;
    bool polls; /* some port has no messages */
    bool down[];
};

static int open_netlink(void)
{
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_LINK};
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);

    if (fd >= 0 && bind(fd, (struct sockaddr *)&address, sizeof address) == 0)
        return fd;
    by_say("no messages about lost carriers: netlink: %s; ports are polled instead", strerror(errno));
    if (fd >= 0)
        close(fd);
    return -1;
}

static bool has_messages(const struct by_carrier *carrier, unsigned port)
{
    return carrier->fd >= 0 && carrier->config.is_kernel(carrier->config.context, port);
}

struct by_carrier *by_carrier_open(const struct by_carrier_config *config)
{
    struct by_carrier *carrier = calloc(1, sizeof *carrier + config->port_count * sizeof carrier->down[0]);
    bool some = false;

    if (!carrier)
        return NULL;
    carrier->config = *config;
    carrier->fd = -1;
    for (unsigned i = 0; i < config->port_count; i++)
        some |= config->is_kernel(config->context, i);
    if (some)
        carrier->fd = open_netlink();
    for (unsigned i = 0; i < config->port_count; i++) {
        carrier->down[i] = config->is_down(config->context, i);
        carrier->polls |= !has_messages(carrier, i);
    }
    return carrier;
}

int by_carrier_fd(const struct by_carrier *carrier)
{
    return carrier->fd;
}

/* Whether messages about interfaces have arrived. Which interfaces they are about does not matter:
 * if the kernel has dropped some (ENOBUFS), the ports are read as well. */
static bool drain(const struct by_carrier *carrier)
{
    char message[MESSAGE_BYTES];
    bool some = false;

    for (unsigned i = 0; carrier->fd >= 0 && i < MESSAGES_MAX; i++) {
        if (recv(carrier->fd, message, sizeof message, MSG_DONTWAIT) < 0 && errno != ENOBUFS)
            break;
        some = true;
    }
    return some;
}

bool by_carrier_changed(struct by_carrier *carrier, uint64_t now_ns)
{
    bool told = drain(carrier), due = carrier->polls && now_ns - carrier->asked_ns >= ASK_NS, changed = false;

    if (!told && !due)
        return false;
    if (due)
        carrier->asked_ns = now_ns;
    for (unsigned i = 0; i < carrier->config.port_count; i++) {
        bool down;

        if (!(has_messages(carrier, i) ? told : due))
            continue;
        down = carrier->config.is_down(carrier->config.context, i);
        changed |= down != carrier->down[i];
        carrier->down[i] = down;
    }
    return changed;
}

void by_carrier_close(struct by_carrier *carrier)
{
    if (!carrier)
        return;
    if (carrier->fd >= 0)
        close(carrier->fd);
    free(carrier);
}
