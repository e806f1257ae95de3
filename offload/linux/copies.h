/*
 * Copies that the kernel makes of what one send gives to an interface: a program at the interface's
 * exit (tcx, since Linux 6.6), before a train of frames is cut, gives each other interface a clone
 * of it, which shares the payload's memory, with headers of its own. So a result for many crosses
 * into the kernel once. Headers and interfaces of the copies are written into memory that the
 * program reads, for each send anew. Neighbour: dataplane/group.c. Linux alone; one thread, the one
 * that sends.
 */
#ifndef BY_LINUX_COPIES_H
#define BY_LINUX_COPIES_H

#include <stdint.h>
#include <sys/socket.h>

#include "offload/xdp/copies.h"

struct by_copies;

/* 0; or -errno and `*step`, the call that failed. Takes root. */
int by_copies_open(struct by_copies **copies, const char **step);
/* What is sent by this interface may have copies from now on. 0 or -errno; -EOPNOTSUPP or -EINVAL:
 * the kernel has no tcx. */
int by_copies_add(struct by_copies *copies, unsigned interface_index);
/* The interfaces are as before. NULL is allowed. */
void by_copies_close(struct by_copies *copies);

/* Where the copies of the next send are written, BY_COPIES_MAX of them. */
struct by_copy *by_copies_list(struct by_copies *copies);
/*
 * Sends the message, which has no control data and 42 bytes of headers of its own, by a packet
 * socket of an interface that was added, as the first `count` copies of the list, the last of which
 * has interface 0. 0 when it left, and the list says which copies an interface took; -errno when
 * nothing did; -ENOEXEC when it left without its copies, since the program is gone.
 */
int by_copies_send(struct by_copies *copies, unsigned count, int fd, struct msghdr *message);

#endif
