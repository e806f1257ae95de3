/* Open descriptors, to find those that are left open. Any thread. */
#ifndef BY_TEST_SERVICE_DAEMON_DESCRIPTORS_H
#define BY_TEST_SERVICE_DAEMON_DESCRIPTORS_H

#include <fcntl.h>

/* Returns the number of open descriptors among the first 256. */
static inline unsigned count_descriptors(void)
{
    unsigned count = 0;

    for (int fd = 0; fd < 256; fd++)
        count += fcntl(fd, F_GETFD) != -1;
    return count;
}

#endif
