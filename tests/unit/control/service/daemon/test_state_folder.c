/* The folder of the store: who may have it, how long it is waited for, and which modes its files
 * get. The database is replaced, and calls of the kernel may fail. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/say.h"
#include "control/service/daemon/state.h"
#include "control/service/daemon/state_inside.h"
#include "offload/base/errors.h"
#include "tests/unit/control/service/daemon/descriptors.h"
#include "tests/unit/control/service/daemon/record.h"

static struct {
    char root[64], folder[96]; /* a new folder, and the store's in it */
    struct by_state state;
    struct by_problem problem;
    int chmod_error, fchmod_error, stat_error, database_error, run_error;
    unsigned busy, waits; /* attempts at the lock that fail; pauses */
    uid_t user;           /* of the process, 0: the real one */
    unsigned descriptors;
} rig;

/* ---- the kernel and the database ---- */

int __wrap_chmod(const char *path, mode_t mode);
int __real_chmod(const char *path, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __real_fchmod(int fd, mode_t mode);
int __wrap_stat(const char *path, struct stat *status);
int __real_stat(const char *path, struct stat *status);
int __wrap_flock(int fd, int operation);
int __wrap_nanosleep(const struct timespec *time, struct timespec *rest);
uid_t __wrap_geteuid(void);
uid_t __real_geteuid(void);

int __wrap_chmod(const char *path, mode_t mode)
{
    if (rig.chmod_error == 0)
        return __real_chmod(path, mode);
    errno = rig.chmod_error;
    return -1;
}

int __wrap_fchmod(int fd, mode_t mode)
{
    if (rig.fchmod_error == 0)
        return __real_fchmod(fd, mode);
    errno = rig.fchmod_error;
    return -1;
}

int __wrap_stat(const char *path, struct stat *status)
{
    if (rig.stat_error == 0)
        return __real_stat(path, status);
    errno = rig.stat_error;
    return -1;
}

int __wrap_flock(int fd, int operation)
{
    assert_int_equal(fd, rig.state.lock);
    assert_int_equal(operation, LOCK_EX | LOCK_NB);
    if (rig.busy == 0)
        return 0;
    rig.busy--;
    errno = EWOULDBLOCK;
    return -1;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *rest)
{
    assert_true(time->tv_sec == 0 && time->tv_nsec == 10000000 && rest == NULL);
    rig.waits++;
    return 0;
}

uid_t __wrap_geteuid(void)
{
    return rig.user != 0 ? rig.user : __real_geteuid();
}

int sqlite3_open(const char *path, sqlite3 **db)
{
    record("open %s\n", strrchr(path, '/'));
    *db = (sqlite3 *)&rig;
    return rig.database_error;
}

int sqlite3_busy_timeout(sqlite3 *db, int ms)
{
    assert_ptr_equal(db, &rig);
    record("busy for %d ms\n", ms);
    return SQLITE_OK;
}

int by_state_fail(struct by_state *state, struct by_problem *problem)
{
    assert_ptr_equal(state, &rig.state);
    return by_problem_say(problem, BY_EIO, "the database fails");
}

int by_state_run(struct by_state *state, struct by_problem *problem, const char *sql)
{
    record("%s\n", sql);
    return rig.run_error != 0 ? by_state_fail(state, problem) : 0;
}

int by_state_start(const struct by_state_place *place, const char *where, struct by_lead *lead,
                   const struct by_topology *topology, const struct by_lower_options *options,
                   struct by_state **state, struct by_problem *problem)
{
    (void)topology;
    (void)options;
    assert_null(lead);
    assert_string_equal(place->option, "--state");
    rig.state = (struct by_state){.place = place, .lock = -1};
    snprintf(rig.state.where, sizeof(rig.state.where), "%s", where);
    *state = &rig.state;
    return place->open(&rig.state, problem);
}

/* ---- the folder ---- */

static int set_up(void **state)
{
    (void)state;
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.descriptors = count_descriptors();
    snprintf(rig.root, sizeof(rig.root), "/tmp/by-test-folder-XXXXXX");
    assert_non_null(mkdtemp(rig.root));
    snprintf(rig.folder, sizeof(rig.folder), "%s/state", rig.root);
    return 0;
}

static const char *path_of(const char *name)
{
    static char path[160];

    snprintf(path, sizeof(path), "%s/%s", rig.folder, name);
    return path;
}

static int tear_down(void **state)
{
    static const char *const names[] = {"banyand.db", "banyand.db-wal", "banyand.db-shm", "lock"};

    (void)state;
    for (unsigned i = 0; i < 4; i++)
        unlink(path_of(names[i]));
    rmdir(rig.folder);
    unlink(rig.folder);
    return rmdir(rig.root);
}

/* Opens the store and closes it. Returns the text of the problem without the name of the folder. */
static const char *opens(int expected)
{
    struct by_state *state = NULL;
    char *name;

    rig.problem.text[0] = 0;
    assert_int_equal(by_state_open(rig.folder, NULL, NULL, &state, &rig.problem), expected);
    if (expected == 0)
        assert_int_equal(state->place->keep(state, &rig.problem), 0);
    rig.state.place->close(&rig.state);
    assert_int_equal(count_descriptors(), rig.descriptors);
    name = strstr(rig.problem.text, rig.folder);
    if (name != NULL)
        memmove(name, name + strlen(rig.folder), strlen(name + strlen(rig.folder)) + 1);
    return rig.problem.text;
}

static unsigned mode_of(const char *path)
{
    struct stat status;

    assert_int_equal(lstat(path, &status), 0);
    return status.st_mode & 07777;
}

static void make_file(const char *name, mode_t mode)
{
    int fd = open(path_of(name), O_CREAT | O_WRONLY, 0600);

    assert_true(fd >= 0 && __real_fchmod(fd, mode) == 0);
    close(fd);
}

#define OPENED "open /banyand.db\nbusy for 2000 ms\nPRAGMA journal_mode = WAL\n"

/* ---- tests ---- */

static void a_new_folder_is_this_users_alone(void **state)
{
    mode_t mask = umask(0);

    (void)state;
    for (unsigned i = 0; i < 2; i++) { /* also when it exists */
        assert_string_equal(opens(0), "");
        record_expect(OPENED);
        assert_int_equal(mode_of(rig.folder), 0700);
        assert_int_equal(mode_of(path_of("banyand.db")), 0600);
        assert_int_equal(mode_of(path_of("lock")), 0600);
    }
    umask(mask);
    assert_int_equal(rig.waits, 0);
}

static void a_folder_that_others_may_write_to_is_refused(void **state)
{
    static const struct {
        mode_t mode;
        bool refused;
    } rows[] = {{0720, true},  {0702, true},  {0777, true}, {0755, false},
                {0710, false}, {0701, false}, {0700, false}};

    (void)state;
    assert_int_equal(mkdir(rig.folder, 0700), 0);
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[200];

        assert_int_equal(__real_chmod(rig.folder, rows[i].mode), 0);
        if (rows[i].refused) {
            snprintf(text, sizeof(text),
                     "--state  has mode %04o: other users may write there; chmod 700 it, or give a separate "
                     "folder",
                     rows[i].mode);
            assert_string_equal(opens(BY_EPERM), text);
            assert_int_equal(mode_of(rig.folder), rows[i].mode);
            record_expect("");
            continue;
        }
        assert_string_equal(opens(0), "");
        assert_int_equal(mode_of(rig.folder), 0700);
        snprintf(text, sizeof(text), " had mode %04o: now 0700\n", rows[i].mode);
        assert_int_equal(strstr(recorded, text) != NULL, rows[i].mode != 0700);
        record_clear();
    }
    assert_int_equal(__real_chmod(rig.folder, 0755), 0);
    rig.chmod_error = EPERM;
    assert_string_equal(opens(BY_EPERM),
                        "--state : cannot remove the access of other users: Operation not permitted");
}

static void a_folder_of_another_user_or_none_is_refused(void **state)
{
    char text[200];
    int fd;

    (void)state;
    rig.user = 4242;
    snprintf(
        text, sizeof(text),
        "--state  belongs to user %u and not to this process's user 4242: start banyand as that user, or "
        "give another folder",
        (unsigned)getuid());
    assert_string_equal(opens(BY_EPERM), text);
    rig.user = 0;
    rig.stat_error = EIO;
    assert_string_equal(opens(BY_EIO), "--state : Input/output error");
    rig.stat_error = 0;
    assert_int_equal(rmdir(rig.folder), 0);
    fd = open(rig.folder, O_CREAT | O_WRONLY, 0600); /* a file */
    close(fd);
    assert_string_equal(opens(BY_EIO), "/lock: Not a directory");
    assert_int_equal(unlink(rig.folder), 0);
    snprintf(rig.folder, sizeof(rig.folder), "%s/no/state", rig.root);
    assert_string_equal(opens(BY_EIO), "--state : cannot make the folder: No such file or directory");
    record_expect("");
}

/* A killed daemon may need half a second to end. */
static void the_lock_is_waited_for(void **state)
{
    (void)state;
    rig.busy = 49;
    assert_string_equal(opens(0), "");
    assert_int_equal(rig.waits, 49);
    rig.busy = 51;
    rig.waits = 0;
    record_clear();
    assert_string_equal(opens(BY_EBUSY), "--state  is in use by another banyand: end it, or give this one a "
                                         "separate folder");
    assert_int_equal(rig.waits, 50);
    assert_int_equal(rig.busy, 1);
    record_expect("");
}

static void files_that_others_may_read_are_closed_to_them(void **state)
{
    static const char *const names[] = {"banyand.db", "banyand.db-wal", "banyand.db-shm"};
    static const mode_t modes[] = {0604, 0640, 0666};

    (void)state;
    assert_int_equal(mkdir(rig.folder, 0700), 0);
    for (unsigned i = 0; i < 3; i++)
        make_file(names[i], modes[i]);
    assert_string_equal(opens(0), "");
    for (unsigned i = 0; i < 3; i++) {
        char text[80];

        assert_int_equal(mode_of(path_of(names[i])), 0600);
        snprintf(text, sizeof(text), "/%s had mode %04o: now 0600; if others have read it,", names[i],
                 modes[i]);
        assert_non_null(strstr(recorded, text));
    }
    record_clear();
    assert_string_equal(opens(0), "");
    record_expect(OPENED);
    make_file("banyand.db-wal", 0640);
    rig.fchmod_error = EPERM;
    assert_string_equal(opens(BY_EIO),
                        "/banyand.db-wal: Operation not permitted: it must be a file of this user with mode "
                        "0600");
    record_expect("");
    rig.fchmod_error = 0;
    assert_int_equal(unlink(path_of("banyand.db-wal")), 0);
    assert_int_equal(symlink("/dev/null", path_of("banyand.db-wal")), 0);
    assert_string_equal(opens(BY_EIO),
                        "/banyand.db-wal: Too many levels of symbolic links: it must be a file of this user "
                        "with mode 0600");
}

static void a_database_that_cannot_be_opened_is_an_error(void **state)
{
    (void)state;
    rig.database_error = SQLITE_CANTOPEN;
    assert_string_equal(opens(BY_EIO), "the database fails");
    record_expect("open /banyand.db\n");
    rig.database_error = SQLITE_OK;
    rig.run_error = BY_EIO;
    assert_string_equal(opens(BY_EIO), "the database fails");
    record_expect(OPENED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_new_folder_is_this_users_alone, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_that_others_may_write_to_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_folder_of_another_user_or_none_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_lock_is_waited_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(files_that_others_may_read_are_closed_to_them, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_database_that_cannot_be_opened_is_an_error, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
