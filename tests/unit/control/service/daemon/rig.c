/* Implements rig.h. */
#include "tests/unit/control/service/daemon/rig.h"
#include "tests/unit/control/service/daemon/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <setjmp.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "offload/table/image.h"
#include "tests/unit/control/tables/bench.h"

#define IMAGE_MAX     65536u
#define ARGUMENTS_MAX 32
/* Timeout of every wait (milliseconds); a loaded machine is slow. */
#define PATIENCE_MS 10000

static void describe(struct daemon_rig *rig, const char *nodes, const char *links)
{
    FILE *stream = fopen(rig->file, "w");

    assert_non_null(stream);
    rig->topology = bench_topology(nodes, links);
    by_topology_write(rig->topology, stream);
    fclose(stream);
}

void rig_double(struct daemon_rig *rig)
{
    by_topology_free(rig->topology);
    describe(rig, "h0 h1 x0* x1*", "h0-x0 h1-x0 h0-x1 h1-x1");
}

void rig_triple(struct daemon_rig *rig)
{
    by_topology_free(rig->topology);
    describe(rig, "h0 h1 h2 x0* x1*", "h0-x0 h1-x0 h2-x0 h0-x1 h1-x1 h2-x1");
}

void rig_open(struct daemon_rig *rig)
{
    *rig = (struct daemon_rig){.folder = "/tmp/by-test-daemon-XXXXXX"};
    assert_non_null(mkdtemp(rig->folder));
    snprintf(rig->file, sizeof(rig->file), "%s/fabric.json", rig->folder);
    snprintf(rig->state, sizeof(rig->state), "%s/state", rig->folder);
    describe(rig, "h0 h1 x0* x1*", "h0-x0 x0-x1 x1-h1");
    rig->fake[0] = fake_start("x0", 4096, IMAGE_MAX);
    rig->fake[1] = fake_start("x1", 4096, IMAGE_MAX);
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

int rig_remove(const char *folder)
{
    return nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void rig_close(struct daemon_rig *rig)
{
    fake_stop(rig->fake[0]);
    fake_stop(rig->fake[1]);
    by_topology_free(rig->topology);
    rig_remove(rig->folder);
}

struct rig_daemon rig_start(struct daemon_rig *rig, const char *const *more)
{
    struct rig_daemon daemon;
    char to[2][160], *argv[ARGUMENTS_MAX];
    int count = 0, fd;

    /* A test whose main() does not run banyand under this name would start itself, again and
     * again. */
    if (strcmp(program_invocation_name, "banyand") == 0)
        _exit(127);
    snprintf(daemon.log, sizeof(daemon.log), "%s/log%u", rig->folder, rig->daemons++);
    for (unsigned i = 0; i < 2; i++)
        snprintf(to[i], sizeof(to[i]), "x%u=%s", i, rig->fake[i]->address);
    argv[count++] = "banyand";
    argv[count++] = rig->file;
    argv[count++] = "--to";
    argv[count++] = to[0];
    argv[count++] = "--to";
    argv[count++] = to[1];
    argv[count++] = "--heartbeat";
    argv[count++] = "60";
    argv[count++] = "--http";
    argv[count++] = "off";
    argv[count++] = "--socket";
    argv[count++] = "off";
    for (; *more != NULL; more++)
        argv[count++] = (char *)(uintptr_t)*more;
    argv[count] = NULL;
    fflush(NULL);
    daemon.process = fork();
    assert_true(daemon.process >= 0);
    if (daemon.process > 0)
        return daemon;
    fd = open(daemon.log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dup2(fd, STDOUT_FILENO);
    dup2(fd, STDERR_FILENO);
    /* The threads of the switches run, so only async-signal-safe functions are allowed up to
     * exec. */
    execv("/proc/self/exe", argv);
    _exit(127);
}

uint64_t rig_active(const struct controller_fake *fake)
{
    return fake->active_bytes > 0 ? by_image_hash(fake->active, fake->active_bytes) : 0;
}

void rig_agrees(const struct daemon_rig *rig, struct by_state *store, const uint64_t active[2])
{
    struct by_problem problem = {0};
    struct by_job **jobs;
    uint32_t count;

    assert_int_equal(by_state_jobs(store, &jobs, &count, &problem), 0);
    for (unsigned i = 0; i < 2; i++) {
        struct by_change_image image;
        uint64_t nonce;

        assert_int_equal(by_state_image(store, (uint32_t)by_topology_find(rig->topology, i ? "x1" : "x0"),
                                        &image, &nonce, &problem),
                         0);
        assert_true(image.hash == active[i]);
        if (image.bytes != NULL) {
            struct by_image_header header;

            by_image_header(image.bytes, &header);
            assert_int_equal(header.count[BY_SECTION_JOB], count);
        } else {
            assert_int_equal(count, 0);
        }
        free(image.bytes);
    }
    for (uint32_t i = 0; i < count; i++) {
        assert_int_equal(jobs[i]->spec.job, i + 1); /* the second never without the first */
        assert_int_equal(jobs[i]->state, BY_JOB_RUNNING);
        by_job_tables_free(jobs[i]->tables);
        by_job_spec_free(&jobs[i]->spec);
        free(jobs[i]);
    }
    free(jobs);
}

static char *read_log(const struct rig_daemon *daemon)
{
    char *text = calloc(1, 65536);
    FILE *stream = fopen(daemon->log, "r");

    assert_non_null(text);
    if (stream != NULL) {
        text[fread(text, 1, 65535, stream)] = 0;
        fclose(stream);
    }
    return text;
}

bool rig_has_said(const struct rig_daemon *daemon, const char *text)
{
    char *log = read_log(daemon);
    bool found = strstr(log, text) != NULL;

    free(log);
    return found;
}

void rig_await(const struct rig_daemon *daemon, const char *text)
{
    char *log;

    for (unsigned waited = 0; waited < PATIENCE_MS; waited += 5) {
        if (rig_has_said(daemon, text))
            return;
        usleep(5000);
    }
    log = read_log(daemon);
    print_message("%s\n", log);
    free(log);
    kill(daemon->process, SIGKILL);
    fail_msg("banyand has not said '%s'", text);
}

unsigned long rig_number(const struct rig_daemon *daemon, const char *text)
{
    char *log = read_log(daemon), *at = strstr(log, text);
    unsigned long number = at != NULL ? strtoul(at + strlen(text), NULL, 10) : 0;

    free(log);
    return number;
}

int rig_wait(const struct rig_daemon *daemon)
{
    int status = 0;

    for (unsigned waited = 0; waitpid(daemon->process, &status, WNOHANG) == 0; waited += 5) {
        if (waited >= PATIENCE_MS) {
            kill(daemon->process, SIGKILL);
            fail_msg("banyand does not end");
        }
        usleep(5000);
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int rig_stop(const struct rig_daemon *daemon)
{
    int status;

    kill(daemon->process, SIGTERM);
    status = rig_wait(daemon);
    if (status != 0) {
        char *log = read_log(daemon);

        print_message("banyand ended with status %d, and this log:\n%s\n", status, log);
        free(log);
    }
    return status;
}

char *rig_ask(const struct daemon_rig *rig, const char *method, const char *path, const char *body,
              int wanted)
{
    char address[128];

    snprintf(address, sizeof(address), "unix:%s/http", rig->folder);
    return ask_http(address, method, path, body, wanted);
}

void rig_resize(struct daemon_rig *rig, uint32_t slots)
{
    for (unsigned i = 0; i < 2; i++) {
        fake_stop(rig->fake[i]);
        rig->fake[i] = fake_start(i ? "x1" : "x0", slots, 1u << 20);
    }
}
