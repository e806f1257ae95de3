/* The store in a folder: one SQLite file, whose transactions are durable by themselves. See
 * state_inside.h. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/fabric/build.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/state_inside.h"
#include "offload/base/errors.h"

/* How long to wait for another process that has locked the database (milliseconds), such as a
 * user's sqlite3. */
#define BUSY_MS 2000
/* How long to wait for the folder's lock (milliseconds): enough for a killed daemon to end. */
#define LOCK_MS      500u
#define LOCK_STEP_MS 10u

/* The folder must belong to this user alone: others with write access could replace the files. */
static int guard_folder(struct by_state *state, struct by_problem *problem)
{
    struct stat status;

    if (mkdir(state->where, 0700) != 0 && errno != EEXIST)
        return by_problem_say(problem, BY_EIO, "--state %.200s: cannot make the folder: %s", state->where,
                              strerror(errno));
    if (stat(state->where, &status) != 0)
        return by_problem_say(problem, BY_EIO, "--state %.200s: %s", state->where, strerror(errno));
    if (status.st_uid != geteuid())
        return by_problem_say(problem, BY_EPERM,
                              "--state %.200s belongs to user %u and not to this process's user %u: start "
                              "banyand as that user, or give another folder",
                              state->where, (unsigned)status.st_uid, (unsigned)geteuid());
    if ((status.st_mode & 0022) != 0)
        return by_problem_say(problem, BY_EPERM,
                              "--state %.200s has mode %04o: other users may write there; chmod 700 it, or "
                              "give a separate folder",
                              state->where, (unsigned)status.st_mode & 07777);
    if ((status.st_mode & 0077) == 0)
        return 0;
    if (chmod(state->where, 0700) != 0)
        return by_problem_say(problem, BY_EPERM,
                              "--state %.200s: cannot remove the access of other users: %s", state->where,
                              strerror(errno));
    by_daemon_say("--state %.200s had mode %04o: now 0700", state->where, (unsigned)status.st_mode & 07777);
    return 0;
}

/* Creates the database, if necessary, and restricts it and its journals to this user: it holds
 * keys. */
static int guard_files(struct by_state *state, struct by_problem *problem)
{
    static const char *const files[] = {"banyand.db", "banyand.db-wal", "banyand.db-shm"};

    for (unsigned i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        char path[sizeof(state->where) + 32];
        struct stat status = {0};
        int fd, error;

        snprintf(path, sizeof(path), "%s/%s", state->where, files[i]);
        fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | (i == 0 ? O_CREAT : 0), 0600);
        if (fd < 0 && errno == ENOENT)
            continue;
        error = fd < 0 || fstat(fd, &status) != 0 || ((status.st_mode & 0077) != 0 && fchmod(fd, 0600) != 0);
        if (error != 0)
            by_problem_say(problem, BY_EIO, "%.200s: %s: it must be a file of this user with mode 0600", path,
                           strerror(errno));
        if (fd >= 0)
            close(fd);
        if (error != 0)
            return BY_EIO;
        if ((status.st_mode & 0077) != 0)
            by_daemon_say("%.200s had mode %04o: now 0600; if others have read it, end keyed jobs and create "
                          "them again, to renew their keys",
                          path, (unsigned)status.st_mode & 07777);
    }
    return 0;
}

/* Locks the folder. The lock ends with the process, even after a crash. */
static int lock_folder(struct by_state *state, struct by_problem *problem)
{
    char path[sizeof(state->where) + 32];

    snprintf(path, sizeof(path), "%s/lock", state->where);
    state->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (state->lock < 0)
        return by_problem_say(problem, BY_EIO, "%.200s: %s", path, strerror(errno));
    for (unsigned waited = 0; waited < LOCK_MS; waited += LOCK_STEP_MS) {
        if (flock(state->lock, LOCK_EX | LOCK_NB) == 0)
            return 0;
        nanosleep(&(struct timespec){.tv_nsec = LOCK_STEP_MS * 1000000l}, NULL);
    }
    return by_problem_say(problem, BY_EBUSY,
                          "--state %.200s is in use by another banyand: end it, or give this one a separate "
                          "folder",
                          state->where);
}

static int open_folder(struct by_state *state, struct by_problem *problem)
{
    char path[sizeof(state->where) + 32];
    int error = guard_folder(state, problem);

    if (error == 0)
        error = lock_folder(state, problem);
    if (error == 0)
        error = guard_files(state, problem);
    snprintf(path, sizeof(path), "%s/banyand.db", state->where);
    if (error == 0 && sqlite3_open(path, &state->db) != SQLITE_OK)
        error = by_state_fail(state, problem);
    if (error == 0) {
        sqlite3_busy_timeout(state->db, BUSY_MS);
        error = by_state_run(state, problem, "PRAGMA journal_mode = WAL");
    }
    return error;
}

static int keep_folder(struct by_state *state, struct by_problem *problem)
{
    (void)state;
    (void)problem;
    return 0; /* the commit that follows does it */
}

static void close_folder(struct by_state *state)
{
    if (state->lock >= 0)
        close(state->lock);
}

int by_state_open(const char *folder, const struct by_topology *topology,
                  const struct by_lower_options *options, struct by_state **state, struct by_problem *problem)
{
    static const struct by_state_place place = {.option = "--state",
                                                .file = "/banyand.db",
                                                .remedy = "check the free space and the permissions",
                                                .another = "another folder",
                                                .open = open_folder,
                                                .keep = keep_folder,
                                                .close = close_folder};

    return by_state_start(&place, folder, NULL, topology, options, state, problem);
}
