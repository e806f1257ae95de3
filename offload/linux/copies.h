/*
 * Copies of one packet to several interfaces, made by the kernel. A program at the interface's
 * egress (tcx, since Linux 6.6) runs before a GSO batch is cut, and gives each other interface a
 * clone of it, which shares the payload's memory and has its own headers. So a result for many
 * children crosses into the kernel once. Headers and interfaces of the copies are written into
 * memory shared with the program before each send. Neighbour: dataplane/group.c. Linux only; one
 * thread, the one that sends.
 */
#ifndef BY_LINUX_COPIES_H
#define BY_LINUX_COPIES_H

#include <stdint.h>
#include <sys/socket.h>

#include "offload/xdp/copies.h"

struct by_copies;

/* Loads the program. Returns 0, or -errno with the failed call in `*step`. Requires root. */
int by_copies_open(struct by_copies **copies, const char **step);
/* Enables copies of packets that are sent by this interface. Returns 0 or -errno; -EOPNOTSUPP or
 * -EINVAL: the kernel has no tcx. */
int by_copies_add(struct by_copies *copies, unsigned interface_index);
/* Detaches the program from all interfaces and frees the object. NULL is allowed. */
void by_copies_close(struct by_copies *copies);

/* Returns the list for the copies of the next send, BY_COPIES_MAX entries. */
struct by_copy *by_copies_list(struct by_copies *copies);
/*
 * Sends the message by a packet socket of an added interface, as the first `count` copies of the
 * list; the last of these has interface 0. The message has no control data and 42 bytes of headers
 * of its own. Returns 0 when it was sent, and the list shows which interfaces accepted their copy;
 * -errno when nothing was sent; -ENOEXEC when it was sent without copies because the program is
 * gone.
 */
int by_copies_send(struct by_copies *copies, unsigned count, int fd, struct msghdr *message);

#endif
