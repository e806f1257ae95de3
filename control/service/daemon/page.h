/*
 * The files of the live page, which the build embeds in the program from
 * control/service/daemon/page (embed.sh). They have no secrets and load nothing from other servers.
 * Neighbour: http.c serves them. Constant; any thread.
 */
#ifndef BY_SERVICE_DAEMON_PAGE_H
#define BY_SERVICE_DAEMON_PAGE_H

#include <stddef.h>

struct by_page_file {
    const char *path; /* of the request: "/page.css" */
    const char *type; /* Content-Type */
    const unsigned char *bytes;
    size_t size;
};

/* All files; the last one has no path. */
extern const struct by_page_file by_page_files[];

/* Returns the file of a path ("/" is the page itself), or NULL. */
const struct by_page_file *by_page_find(const char *path);

#endif
