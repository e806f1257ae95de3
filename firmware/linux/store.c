/* Two copies of the last committed table. See store.h. firmware/agent/saved.h defines the file
 * format. `lock` guards the data that both threads share: the waiting copy and the end flag. */
#include "firmware/linux/store.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dataplane/say.h"
#include "firmware/agent/saved.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

#define HEADER_BYTES BY_SAVED_HEADER_BYTES
#define PATH_BYTES   1200u

struct by_switchd_store {
    char path[2][PATH_BYTES];
    int folder;        /* kept open to sync renames */
    uint64_t sequence; /* of the newest copy; used by the writing thread after the start */
    uint8_t *saved;
    size_t saved_bytes;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t more;
    bool end;
    uint8_t *waiting; /* next copy to write, with room for the header in front, or NULL */
    size_t waiting_bytes;
};

/* Reads a file into memory that the caller frees; returns NULL when it does not exist or cannot be
 * read; the latter is reported. */
static uint8_t *read_file(const char *path, size_t *bytes)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    uint8_t *file = fd >= 0 ? malloc(HEADER_BYTES + BY_IMAGE_BYTES_MAX) : NULL;
    ssize_t count = 1;

    *bytes = 0;
    while (file && count > 0 && *bytes < HEADER_BYTES + BY_IMAGE_BYTES_MAX) {
        count = read(fd, file + *bytes, HEADER_BYTES + BY_IMAGE_BYTES_MAX - *bytes);
        *bytes += count > 0 ? (size_t)count : 0;
    }
    if ((fd < 0 && errno != ENOENT) || (fd >= 0 && (!file || count < 0))) {
        by_say("--state: %s: %s", path, strerror(errno));
        free(file);
        file = NULL;
    }
    if (fd >= 0)
        close(fd);
    return file;
}

/* Keeps the newest intact copy. */
static void read_copies(struct by_switchd_store *store)
{
    for (int i = 0; i < 2; i++) {
        uint64_t sequence = 0;
        size_t bytes;
        uint8_t *file = read_file(store->path[i], &bytes);
        const char *fault = file ? by_saved_check(file, bytes, &sequence) : NULL;

        if (fault)
            by_say("--state: %s: %s; ignoring it", store->path[i], fault);
        if (file && !fault && (!store->saved || sequence > store->sequence)) {
            free(store->saved);
            store->saved = file;
            store->saved_bytes = bytes;
            store->sequence = sequence;
        } else {
            free(file);
        }
    }
}

/* Writes one copy in place of the older file. The file is complete before it gets that name. */
static void write_copy(struct by_switchd_store *store, uint8_t *file, size_t bytes)
{
    const char *path = store->path[++store->sequence % 2];
    char made[PATH_BYTES + 8];
    int fd;
    bool done;

    by_saved_seal(file, bytes, store->sequence);
    snprintf(made, sizeof made, "%s.new", path);
    fd = open(made, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    done = fd >= 0;
    for (size_t at = 0; done && at < bytes;) {
        ssize_t count = write(fd, file + at, bytes - at);

        done = count > 0;
        at += done ? (size_t)count : 0;
    }
    done = done && fsync(fd) == 0;
    if (fd >= 0)
        done = close(fd) == 0 && done;
    if (!done || rename(made, path) != 0 || fsync(store->folder) != 0)
        by_say(
            "--state: %s: %s: the table is active, but would not be offered after a restart: make room, then "
            "push again",
            path, strerror(errno));
}

static void *write_all(void *argument)
{
    struct by_switchd_store *store = argument;

    pthread_mutex_lock(&store->lock);
    while (!store->end || store->waiting) {
        uint8_t *file = store->waiting;
        size_t bytes = store->waiting_bytes;

        if (!file) {
            pthread_cond_wait(&store->more, &store->lock);
            continue;
        }
        store->waiting = NULL;
        pthread_mutex_unlock(&store->lock);
        write_copy(store, file, bytes);
        free(file);
        pthread_mutex_lock(&store->lock);
    }
    pthread_mutex_unlock(&store->lock);
    return NULL;
}

int by_switchd_store_open(struct by_switchd_store **out, const char *folder, const char *name)
{
    struct by_switchd_store *store = calloc(1, sizeof *store);
    struct stat status;

    if (!store)
        return BY_ENOMEM;
    errno = 0;
    if (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode) || strlen(folder) > PATH_BYTES - 64) {
        by_say("--state %s: %s: make the folder first", folder, errno ? strerror(errno) : "not a folder");
        free(store);
        return BY_ENOENT;
    }
    store->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (store->folder < 0) {
        by_say("--state %s: %s", folder, strerror(errno));
        free(store);
        return BY_EIO;
    }
    for (int i = 0; i < 2; i++)
        snprintf(store->path[i], sizeof store->path[i], "%s/%s.%d", folder, name, i);
    read_copies(store);
    pthread_mutex_init(&store->lock, NULL);
    pthread_cond_init(&store->more, NULL);
    if (pthread_create(&store->thread, NULL, write_all, store) != 0) {
        by_say("--state %s: cannot start a thread to write it", folder);
        close(store->folder);
        free(store->saved);
        free(store);
        return BY_EIO;
    }
    *out = store;
    return 0;
}

const uint8_t *by_switchd_store_saved(const struct by_switchd_store *store, size_t *bytes)
{
    *bytes = store->saved ? store->saved_bytes - HEADER_BYTES : 0;
    return store->saved ? store->saved + HEADER_BYTES : NULL;
}

void by_switchd_store_put(struct by_switchd_store *store, const uint8_t *image, size_t bytes)
{
    uint8_t *file = malloc(HEADER_BYTES + bytes), *older;

    if (!file) {
        by_say(
            "--state: no memory for a copy of the table, %zu bytes: it would not be offered after a restart",
            bytes);
        return;
    }
    memcpy(file + HEADER_BYTES, image, bytes);
    pthread_mutex_lock(&store->lock);
    older = store->waiting;
    store->waiting = file;
    store->waiting_bytes = HEADER_BYTES + bytes;
    pthread_cond_signal(&store->more);
    pthread_mutex_unlock(&store->lock);
    free(older);
}

void by_switchd_store_close(struct by_switchd_store *store)
{
    if (!store)
        return;
    pthread_mutex_lock(&store->lock);
    store->end = true;
    pthread_cond_signal(&store->more);
    pthread_mutex_unlock(&store->lock);
    pthread_join(store->thread, NULL);
    pthread_cond_destroy(&store->more);
    pthread_mutex_destroy(&store->lock);
    close(store->folder);
    free(store->saved);
    free(store);
}
