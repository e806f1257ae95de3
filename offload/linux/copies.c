/* Loads the program that copies packets (offload/xdp/copies.bpf.c) and sends with copies. See
 * copies.h. Sources: packet(7), socket(7). Sender's thread. */
#include "offload/linux/copies.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "offload/linux/object.h"

/* BY_COPIES_OBJECT is the object's path, from offload/xdp/module.mk. */
BY_OBJECT(by_copies_object, BY_COPIES_OBJECT);

struct by_copies {
    struct bpf_object *object;
    int program_fd; /* the object's */
    struct by_copies_shared *shared;
    unsigned link_count;
    int link_fd[BY_COPIES_MAX];
};

int by_copies_open(struct by_copies **out, const char **step)
{
    struct by_copies *copies = calloc(1, sizeof(*copies));
    int error;

    *step = "memory";
    if (copies == NULL)
        return -ENOMEM;
    *step = "program";
    copies->object = by_object_open(by_copies_object, by_copies_object_end);
    error = copies->object == NULL ? -errno : 0;
    if (error == 0) {
        copies->program_fd = by_object_load_tcx(copies->object, BY_TCX_EGRESS);
        error = copies->program_fd < 0 ? copies->program_fd : 0;
    }
    if (error == 0) {
        copies->shared = by_object_variables(copies->object, sizeof(*copies->shared));
        error = copies->shared == NULL ? -ENOENT : 0;
    }
    if (error == 0)
        *out = copies;
    else
        by_copies_close(copies);
    return error;
}

int by_copies_add(struct by_copies *copies, unsigned interface_index)
{
    int link;

    if (copies->link_count == BY_COPIES_MAX)
        return -ENOSPC;
    link = by_object_attach_tcx(copies->program_fd, interface_index, BY_TCX_EGRESS);
    if (link < 0)
        return link;
    copies->link_fd[copies->link_count++] = link;
    return 0;
}

void by_copies_close(struct by_copies *copies)
{
    if (copies == NULL)
        return;
    while (copies->link_count > 0)
        close(copies->link_fd[--copies->link_count]);
    if (copies->shared != NULL)
        munmap(copies->shared, sizeof(*copies->shared));
    bpf_object__close(copies->object);
    free(copies);
}

struct by_copy *by_copies_list(struct by_copies *copies)
{
    return copies->shared->copy;
}

int by_copies_send(struct by_copies *copies, unsigned count, int fd, struct msghdr *message)
{
    uint8_t control[CMSG_SPACE(sizeof(uint32_t))] __attribute__((aligned(8))) = {0};
    volatile uint32_t *armed = &copies->shared->armed; /* the kernel's program clears it */
    const uint32_t mark = BY_COPY_MARK;
    struct cmsghdr *head;
    ssize_t sent;
    bool seen;
    int error;

    message->msg_control = control;
    message->msg_controllen = sizeof(control);
    head = CMSG_FIRSTHDR(message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SO_MARK;
    head->cmsg_len = CMSG_LEN(sizeof(mark));
    memcpy(CMSG_DATA(head), &mark, sizeof(mark));
    for (unsigned i = 0; i < count; i++) /* the program may end before it writes these */
        copies->shared->copy[i].result = -EIO;
    *armed = 1;
    sent = sendmsg(fd, message, MSG_DONTWAIT);
    error = errno;
    seen = *armed == 0;
    *armed = 0;
    message->msg_control = NULL;
    message->msg_controllen = 0;
    /* Even if the socket's own interface refuses its packet, the other copies have left. */
    copies->shared->copy[count - 1].result = sent < 0 ? -error : 0;
    if (seen)
        return 0;
    return sent < 0 ? -error : -ENOEXEC;
}
