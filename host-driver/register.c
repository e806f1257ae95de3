/*
 * Registered buffers: the pages of the user's memory are made resident and locked, so that
 * operations cause no page faults. Registration is optional. A communicator owns its registrations;
 * its thread.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"

struct by_registered {
    struct by_registered *next;
    void *buffer;
    size_t bytes;
};

static int check(const char *function, const struct banyan_comm *comm, const void *buffer)
{
    if (comm == NULL || comm->magic != BY_COMM_MAGIC)
        return by_fail(BY_EINVAL, "%s: %s", function,
                       comm == NULL ? "comm is NULL" : "comm is not a communicator");
    return buffer != NULL ? 0 : by_fail(BY_EINVAL, "%s: buffer is NULL", function);
}

/* Returns the link that points to the registration of `buffer`, or to the end. */
static struct by_registered **find(struct banyan_comm *comm, const void *buffer)
{
    struct by_registered **link = &comm->registered;

    while (*link != NULL && (*link)->buffer != buffer)
        link = &(*link)->next;
    return link;
}

static int lock_failed(size_t bytes, int reason)
{
    struct rlimit limit = {0};

    if (reason == EINVAL || (reason == ENOMEM && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
                             (limit.rlim_cur == RLIM_INFINITY || bytes <= limit.rlim_cur)))
        return by_fail(BY_EINVAL,
                       "banyan_register: not all of the %zu bytes are mapped memory of this process", bytes);
    return by_fail(reason == ENOMEM ? BY_ENOMEM : BY_EPERM,
                   "banyan_register: cannot lock %zu bytes in memory: %s; the limit is %llu bytes (ulimit "
                   "-l, RLIMIT_MEMLOCK)",
                   bytes, strerror(reason), (unsigned long long)limit.rlim_cur);
}

banyan_status_t banyan_register(struct banyan_comm *comm, void *buffer, size_t bytes)
{
    struct by_registered *registered;
    int error = check("banyan_register", comm, buffer);

    if (error != 0)
        return (banyan_status_t)error;
    if (bytes == 0)
        return by_fail(BY_EINVAL, "banyan_register: the buffer has 0 bytes");
    if (*find(comm, buffer) != NULL)
        return by_fail(BY_EEXIST, "banyan_register: the buffer is registered already, with %zu bytes",
                       (*find(comm, buffer))->bytes);
    registered = calloc(1, sizeof(*registered));
    if (registered == NULL)
        return by_fail(BY_ENOMEM, "banyan_register: no memory for the registration");
    if (mlock(buffer, bytes) != 0) {
        free(registered);
        return (banyan_status_t)lock_failed(bytes, errno);
    }
    *registered = (struct by_registered){.next = comm->registered, .buffer = buffer, .bytes = bytes};
    comm->registered = registered;
    return BANYAN_OK;
}

static void let_go(struct by_registered **link)
{
    struct by_registered *registered = *link;

    *link = registered->next;
    munlock(registered->buffer, registered->bytes);
    free(registered);
}

banyan_status_t banyan_deregister(struct banyan_comm *comm, void *buffer)
{
    struct by_registered **link;
    int error = check("banyan_deregister", comm, buffer);

    if (error != 0)
        return (banyan_status_t)error;
    link = find(comm, buffer);
    if (*link == NULL)
        return by_fail(BY_ENOENT, "banyan_deregister: no registered buffer begins at this address");
    let_go(link);
    return BANYAN_OK;
}

void by_registered_free(struct banyan_comm *comm)
{
    while (comm->registered != NULL)
        let_go(&comm->registered);
}
