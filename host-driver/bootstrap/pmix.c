/*
 * A client of PMIx, which Open MPI's mpirun, prterun and Slurm provide to their processes. The
 * library is loaded on demand, so there is no link dependency. The declarations here describe its
 * binary interface, which is equal in versions 2 to 5. The state belongs to the process and ends
 * with it. See bootstrap.h.
 */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "host-driver/clock.h"
#include "host-driver/error.h"

#define NAME_BYTES   256u
#define RANK_ALL     (UINT32_MAX - 1u)
#define TYPE_STRING  3u
#define TYPE_UINT32  14u
#define SCOPE_GLOBAL 3u
#define NOT_FOUND    (-46) /* PMIX_ERR_NOT_FOUND */
#define WAIT_MS      2

struct pmix_process {
    char space[NAME_BYTES];
    uint32_t rank;
};

struct pmix_value {
    uint16_t type;
    union {
        char *string;
        uint32_t number;
        uint64_t room[3];
    } data;
};

typedef void got_fn(int status, struct pmix_value *value, void *context);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    void *library;
    int (*init)(struct pmix_process *self, void *info, size_t count);
    int (*finalize)(const void *info, size_t count);
    int (*get)(const struct pmix_process *of, const char *key, const void *info, size_t count,
               struct pmix_value **value);
    int (*get_nb)(const struct pmix_process *of, const char *key, const void *info, size_t count, got_fn *got,
                  void *context);
    int (*put)(uint8_t scope, const char *key, struct pmix_value *value);
    int (*commit)(void);
    const char *(*text)(int status);
    struct pmix_process self;
    uint32_t rank_count;
    pid_t owner;
    bool joined;
} pmix;

static int fail(int status, const char *what)
{
    return by_fail(BY_EIO, "PMIx: %s failed: %s (%d)", what, pmix.text != NULL ? pmix.text(status) : "status",
                   status);
}

static int load(void)
{
    static const char *const names[] = {"libpmix.so.2", "libpmix.so"};
    struct {
        const char *name;
        void **at;
    } symbols[] = {
        {"PMIx_Init", (void **)&pmix.init},         {"PMIx_Finalize", (void **)&pmix.finalize},
        {"PMIx_Get", (void **)&pmix.get},           {"PMIx_Get_nb", (void **)&pmix.get_nb},
        {"PMIx_Put", (void **)&pmix.put},           {"PMIx_Commit", (void **)&pmix.commit},
        {"PMIx_Error_string", (void **)&pmix.text},
    };

    for (size_t i = 0; pmix.library == NULL && i < sizeof(names) / sizeof(names[0]); i++)
        pmix.library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (pmix.library == NULL)
        return by_fail(BY_ENOENT,
                       "PMIx started this process, but its client library cannot be loaded: %s; install "
                       "libpmix2, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
                       dlerror());
    for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        *symbols[i].at = dlsym(pmix.library, symbols[i].name);
        if (*symbols[i].at == NULL)
            return by_fail(BY_EVERSION,
                           "PMIx: the library libpmix.so.2 has no function %s; install another version",
                           symbols[i].name);
    }
    return 0;
}

static void leave(void)
{
    if (pmix.joined && pmix.owner == getpid())
        pmix.finalize(NULL, 0);
}

static int join(void)
{
    struct pmix_process all;
    struct pmix_value *value = NULL;
    int error = load();
    int status;

    if (error != 0)
        return error;
    status = pmix.init(&pmix.self, NULL, 0);
    if (status != 0)
        return fail(status, "PMIx_Init");
    pmix.joined = true;
    pmix.owner = getpid();
    atexit(leave);
    all = pmix.self;
    all.rank = RANK_ALL;
    status = pmix.get(&all, "pmix.job.size", NULL, 0, &value);
    if (status != 0 || value == NULL || value->type != TYPE_UINT32)
        return fail(status, "reading the job's size");
    pmix.rank_count = value->data.number;
    free(value);
    return 0;
}

int by_pmix_join(uint32_t *rank, uint32_t *rank_count)
{
    int error = 0;

    pthread_mutex_lock(&lock);
    if (!pmix.joined)
        error = join();
    *rank = pmix.self.rank;
    *rank_count = pmix.rank_count;
    pthread_mutex_unlock(&lock);
    return error;
}

/* Filled by a callback that may run after the caller has given up; the last owner frees it. */
struct pmix_answer {
    atomic_int owners;
    atomic_int done;
    int status;
    char text[BY_PLACE_TEXT];
};

static void let_go(struct pmix_answer *answer)
{
    if (atomic_fetch_sub(&answer->owners, 1) == 1)
        free(answer);
}

/* Runs in a thread of the library. */
static void take(int status, struct pmix_value *value, void *context)
{
    struct pmix_answer *answer = context;

    answer->status = status;
    if (status == 0 && value != NULL && value->type == TYPE_STRING && value->data.string != NULL)
        snprintf(answer->text, sizeof(answer->text), "%s", value->data.string);
    atomic_store(&answer->done, 1);
    let_go(answer);
}

static int publish(const char *key, char *text)
{
    struct pmix_value value = {.type = TYPE_STRING, .data.string = text};
    int status = pmix.put(SCOPE_GLOBAL, key, &value);

    if (status == 0)
        status = pmix.commit();
    return status == 0 ? 0 : fail(status, "publishing the listening address of rank 0");
}

/* Asks for one key until the deadline. 0 with *found set to the library's status, or an error. */
static int ask(const char *key, char *text, size_t bytes, uint64_t deadline_ns, int *found)
{
    struct pmix_process root = pmix.self;
    struct pmix_answer *answer = calloc(1, sizeof(*answer));

    if (answer == NULL)
        return by_fail(BY_ENOMEM, "no memory for a PMIx answer");
    atomic_init(&answer->owners, 2);
    atomic_init(&answer->done, 0);
    root.rank = 0;
    *found = pmix.get_nb(&root, key, NULL, 0, take, answer);
    if (*found != 0) { /* without a callback */
        free(answer);
        return 0;
    }
    while (!atomic_load(&answer->done) && by_clock_ns() < deadline_ns)
        poll(NULL, 0, WAIT_MS);
    *found = NOT_FOUND;
    if (atomic_load(&answer->done)) {
        *found = answer->status;
        snprintf(text, bytes, "%s", answer->text);
    }
    let_go(answer);
    return 0;
}

/* A server that rank 0 has joined, but where it has not yet published, may report that the key does
 * not exist instead of waiting for it (PMIx 4.2.2 does). So only the deadline ends the search. */
static int look_up(const char *key, char *text, size_t bytes, uint64_t deadline_ns)
{
    int found = NOT_FOUND, error;

    while ((error = ask(key, text, bytes, deadline_ns, &found)) == 0 && found == NOT_FOUND) {
        if (by_clock_ns() >= deadline_ns)
            return by_fail(BY_ETIMEDOUT,
                           "PMIx: rank 0 of %u has not published its listening address within "
                           "BANYAN_TIMEOUT; does it use banyan, and has it reached the same call?",
                           pmix.rank_count);
        poll(NULL, 0, WAIT_MS);
    }
    if (error == 0 && found != 0)
        error = fail(found, "looking up the listening address of rank 0");
    return error;
}

int by_pmix_share(const char *key, char *text, size_t bytes, uint64_t deadline_ns)
{
    return pmix.self.rank == 0 ? publish(key, text) : look_up(key, text, bytes, deadline_ns);
}
