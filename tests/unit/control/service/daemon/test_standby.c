/* Standbys of a complete banyand: hosts that accept them get their tables, ranks move to one, and
 * banyand goes on with it, also after a restart. Switches are agents without packets (rig.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "offload/wire/member.h"
#include "tests/unit/control/service/daemon/rig.h"

#define BUFFER_BYTES 65536u

static struct daemon_rig rig;
static char members[100];

/* A host's connection. */
struct standby_host {
    int fd;
    uint16_t job, rank;
    uint8_t bytes[BUFFER_BYTES];
    size_t used, taken;
};

static void give(struct standby_host *host, struct by_member_frame frame)
{
    uint8_t fixed[BY_MEMBER_FIXED_MAX];
    size_t size;

    frame.job = host->job;
    if (frame.type != BY_MEMBER_HELLO)
        frame.rank = host->rank;
    size = by_member_put(&frame, fixed);
    assert_int_equal(write(host->fd, fixed, size), size);
    if (frame.bytes > 0)
        assert_int_equal(write(host->fd, frame.data, frame.bytes), frame.bytes);
}

/* Returns the next frame. */
static struct by_member_frame next(struct standby_host *host)
{
    struct by_member_frame frame;
    size_t size;
    ssize_t got;

    memmove(host->bytes, host->bytes + host->taken, host->used -= host->taken);
    host->taken = 0;
    while (by_member_get(host->bytes, host->used, BY_MEMBER_CONTROLLER, &frame, &size) == BY_EAGAIN) {
        got = read(host->fd, host->bytes + host->used, sizeof(host->bytes) - host->used);
        assert_true(got > 0);
        host->used += (size_t)got;
    }
    host->taken = size;
    assert_true(frame.job == host->job && frame.rank == host->rank);
    return frame;
}

/* Connects the host of a rank, whose tables are of this generation. */
static struct standby_host *enter(uint16_t rank, uint16_t gen, bool stands)
{
    static const char *const names[] = {"h0", "h1", "h2"};
    struct standby_host *host = calloc(1, sizeof(*host));
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct timeval patience = {.tv_sec = 10};

    assert_non_null(host);
    host->job = 1;
    host->rank = rank;
    host->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    snprintf(to.sun_path, sizeof(to.sun_path), "%s", members + strlen("unix:"));
    assert_int_equal(connect(host->fd, (struct sockaddr *)&to, sizeof(to)), 0);
    setsockopt(host->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
    give(host, (struct by_member_frame){.type = BY_MEMBER_HELLO,
                                        .rank = stands ? BY_MEMBER_RANK_STANDBY : 0xffff,
                                        .gen = gen,
                                        .number = 70u + rank,
                                        .data = (const uint8_t *)names[rank],
                                        .bytes = 2});
    return host;
}

static void leave(struct standby_host *host)
{
    close(host->fd);
    free(host);
}

/* Requires that no frame comes for a while. */
static void gets_nothing(struct standby_host *host)
{
    struct timeval now = {.tv_usec = 200000};
    uint8_t byte;

    assert_int_equal(host->used, host->taken);
    setsockopt(host->fd, SOL_SOCKET, SO_RCVTIMEO, &now, sizeof(now));
    assert_int_equal(read(host->fd, &byte, 1), -1);
}

/* Requires that the next frame is a standby of `base`, whose table is right. Returns its
 * generation. */
static uint16_t gets_standby(struct standby_host *host, uint16_t base)
{
    struct by_member_frame frame = next(host);
    struct by_image_fault fault = {0};
    struct by_image_header header;
    struct by_image_job job;
    struct by_image_leaf leaf;
    uint8_t image[BUFFER_BYTES];

    assert_int_equal(frame.type, BY_MEMBER_STANDBY);
    assert_true(frame.base == base && frame.gen > base && frame.mask_bytes == 1);
    assert_int_not_equal(frame.data[0], 0);
    memcpy(image, frame.data + 1, frame.bytes - 1);
    if (by_image_check(image, frame.bytes - 1, NULL, &fault) != 0)
        fail_msg("%s %u: %s", fault.section, fault.index, fault.what);
    by_image_header(image, &header);
    assert_true(header.kind == BY_NODE_HOST && header.node == host->rank);
    assert_int_equal(header.count[BY_SECTION_JOB], 1);
    by_image_job(image, 0, &job);
    assert_true(job.job == 1 && job.gen == frame.gen && job.rank == host->rank);
    by_image_leaf(image, 0, &leaf);
    assert_true(leaf.tree > 0 && leaf.window == 16);
    return frame.gen;
}

/* Requires that both switches have job 1 in these generations. */
static void switches_have(const uint16_t *gens, uint32_t count)
{
    for (unsigned i = 0; i < 2; i++) {
        struct controller_fake *fake = rig.fake[i];
        struct by_image_header header;
        struct by_image_job job;

        pthread_mutex_lock(&fake->lock);
        by_image_header(fake->active, &header);
        assert_int_equal(header.count[BY_SECTION_JOB], count);
        for (uint32_t k = 0; k < count; k++) {
            by_image_job(fake->active, k, &job);
            assert_int_equal(job.gen, gens[k]);
        }
        pthread_mutex_unlock(&fake->lock);
    }
}

static struct rig_daemon start(const char *standby, const char *more)
{
    struct rig_daemon daemon = rig_start(
        &rig, (const char *const[]){"--standby", standby, "--state", rig.state, "--members", members, "--job",
                                    "1=allreduce", "--trust", "3600000", more, NULL});

    rig_await(&daemon, "banyand: ready");
    return daemon;
}

static int set_up(void **state)
{
    (void)state;
    fake_able = by_Able_ABLE_STANDBY;
    rig_open(&rig);
    rig_triple(&rig);
    snprintf(members, sizeof(members), "unix:%s/members", rig.folder);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

/* Enters all ranks; returns the generation in which they begin. */
static uint16_t enter_all(struct standby_host *host[3], bool stands)
{
    uint16_t gen = 0;

    for (uint16_t i = 0; i < 3; i++)
        host[i] = enter(i, 0, stands);
    for (uint16_t i = 0; i < 3; i++) {
        struct by_member_frame frame = next(host[i]);

        assert_int_equal(frame.type, BY_MEMBER_WELCOME);
        assert_true(i == 0 || frame.gen == gen);
        gen = frame.gen;
    }
    return gen;
}

static void leave_all(struct standby_host *host[3])
{
    for (uint16_t i = 0; i < 3; i++)
        leave(host[i]);
}

static void hosts_that_accept_standbys_get_their_tables(void **state)
{
    struct rig_daemon daemon = start("4", NULL);
    struct standby_host *host[3], *again;
    uint16_t gens[3];

    (void)state;
    rig_await(&daemon, "job 1 runs");
    gens[0] = enter_all(host, true);
    rig_await(&daemon, "avoid 8 of the 8 switches and links");
    for (uint16_t i = 0; i < 3; i++) {
        gens[1] = gets_standby(host[i], gens[0]);
        gens[2] = gets_standby(host[i], gens[0]);
        assert_true(gens[2] == gens[1] + 1);
        gets_nothing(host[i]);
    }
    switches_have(gens, 3);
    again = enter(2, gens[0], true); /* it reconnects */
    leave(host[2]);
    host[2] = again;
    again->job = 1;
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

static void other_hosts_get_none(void **state)
{
    struct rig_daemon daemon = start("1", NULL);
    struct standby_host *host[3];

    (void)state;
    rig_await(&daemon, "job 1 runs");
    enter_all(host, false);
    rig_await(&daemon, "avoids 4 of the 8 switches and links");
    for (uint16_t i = 0; i < 3; i++)
        gets_nothing(host[i]);
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

static void without_the_option_there_are_none(void **state)
{
    struct rig_daemon daemon = start("0", NULL);
    struct standby_host *host[3];
    uint16_t gen;

    (void)state;
    rig_await(&daemon, "job 1 runs");
    gen = enter_all(host, true);
    rig_await(&daemon, "job 1: plans for");
    usleep(1500000);
    for (uint16_t i = 0; i < 3; i++)
        gets_nothing(host[i]);
    switches_have(&gen, 1);
    assert_false(rig_has_said(&daemon, "standby"));
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

static void ranks_that_have_moved_go_on_with_their_standby_and_get_others(void **state)
{
    struct rig_daemon daemon = start("2", "--keyed");
    struct standby_host *host[3];
    uint16_t base, moved = 0, later = 0;

    (void)state;
    rig_await(&daemon, "job 1 runs");
    base = enter_all(host, true);
    for (uint16_t i = 0; i < 3; i++) {
        moved = gets_standby(host[i], base);
        later = gets_standby(host[i], base);
    }
    for (uint16_t i = 0; i < 3; i++)
        give(host[i], (struct by_member_frame){.type = BY_MEMBER_CARRIED, .gen = moved});
    rig_await(&daemon, "job 1: its ranks have moved from generation");
    for (uint16_t i = 0; i < 3; i++) {
        struct by_member_frame frame = next(host[i]);
        uint16_t gens[2];

        if (frame.gen == moved) /* the other standby of before has ended */
            assert_true(frame.base == moved && frame.bytes == 0);
        frame = frame.gen == moved ? next(host[i]) : frame;
        assert_true(frame.type == BY_MEMBER_STANDBY && frame.base == moved && frame.gen > later);
        gens[0] = moved;
        gens[1] = frame.gen;
        if (i == 0)
            switches_have(gens, 2);
    }
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

/* All ranks move to the first standby, which banyand adopts. */
static void move_all(struct rig_daemon *daemon, struct standby_host *host[3], uint8_t type)
{
    uint16_t base, moved = 0;

    rig_await(daemon, "job 1 runs");
    base = enter_all(host, true);
    for (uint16_t i = 0; i < 3; i++) {
        moved = gets_standby(host[i], base);
        gets_standby(host[i], base);
    }
    for (uint16_t i = 0; i < 3; i++)
        give(host[i], (struct by_member_frame){.type = type, .gen = moved});
    rig_await(daemon, "job 1: its ranks have moved from generation");
}

/* Windows of a standby are small: a job leaves it soon when the cause of its move is known,
 * although parts that fail silently are distrusted for an hour. */
static void a_job_leaves_its_standby_when_the_failure_is_known(void **state)
{
    struct rig_daemon daemon = start("2", NULL);
    struct standby_host *host[3];
    struct by_member_frame frame;

    (void)state;
    move_all(&daemon, host, BY_MEMBER_CARRIED);
    atomic_store(&rig.fake[0]->down[0], true); /* the trees of before used it, those in use do not */
    fake_notify(rig.fake[0]);
    rig_await(&daemon, "job 1: it has used standby generation");
    do
        frame = next(host[0]);
    while (frame.type == BY_MEMBER_STANDBY);
    assert_int_equal(frame.type, BY_MEMBER_FREEZE);
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

/* CARRIED may be lost, or come while tables change: ALIVE has the generation too. */
static void a_move_is_learnt_from_reports_as_well(void **state)
{
    struct rig_daemon daemon = start("2", NULL);
    struct standby_host *host[3];

    (void)state;
    move_all(&daemon, host, BY_MEMBER_ALIVE);
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

/* A rank that has stopped its calls, and that no standby serves, gets tables. */
static void a_rank_that_no_standby_serves_makes_banyand_plan(void **state)
{
    struct rig_daemon daemon = start("1", NULL);
    struct by_member_frame frame;
    struct standby_host *host[3];
    uint16_t base, standby = 0;

    (void)state;
    rig_await(&daemon, "job 1 runs");
    base = enter_all(host, true);
    for (uint16_t i = 0; i < 3; i++)
        standby = gets_standby(host[i], base);
    for (unsigned i = 0; i < 3; i++) /* it repeats the report */
        give(host[1], (struct by_member_frame){
                          .type = BY_MEMBER_SUSPECT, .gen = base, .peer = BY_NODE_NONE, .code = BY_ESTATE});
    rig_await(&daemon, "job 1: rank 1 (h1) has left its trees, and no standby serves: planning again");
    for (uint16_t i = 0; i < 3; i++) {
        do
            frame = next(host[i]);
        while (frame.type == BY_MEMBER_STANDBY || frame.type == BY_MEMBER_WELCOME);
        assert_int_equal(frame.type, BY_MEMBER_FREEZE);
        assert_true(frame.gen > standby);
    }
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

static void a_move_while_banyand_was_away_is_learnt_from_hosts(void **state)
{
    struct rig_daemon daemon = start("2", NULL);
    uint16_t base, moved = 0;
    struct standby_host *host[3];

    (void)state;
    rig_await(&daemon, "job 1 runs");
    base = enter_all(host, true);
    for (uint16_t i = 0; i < 3; i++) {
        moved = gets_standby(host[i], base);
        gets_standby(host[i], base);
    }
    assert_int_equal(rig_stop(&daemon), 0);
    leave_all(host);
    for (unsigned life = 0; life < 2; life++) {
        daemon = start("2", NULL);
        host[0] = enter(0, moved, true);
        assert_int_equal(next(host[0]).gen, moved);
        if (life == 0)
            rig_await(&daemon, "job 1: its ranks have moved from generation");
        rig_await(&daemon, life == 0 ? "avoids 4 of the 4" : "ready");
        assert_true(life == 0 || !rig_has_said(&daemon, "have moved"));
        assert_false(rig_has_said(&daemon, "not from this controller"));
        leave(host[0]);
        assert_int_equal(rig_stop(&daemon), 0);
    }
}

static void a_rank_that_does_not_follow_makes_banyand_plan(void **state)
{
    struct rig_daemon daemon = start("1", NULL);
    struct by_member_frame frame;
    struct standby_host *host[3];
    uint16_t base, moved = 0;

    (void)state;
    rig_await(&daemon, "job 1 runs");
    base = enter_all(host, true);
    for (uint16_t i = 0; i < 3; i++)
        moved = gets_standby(host[i], base);
    for (uint16_t i = 0; i < 2; i++)
        give(host[i], (struct by_member_frame){.type = BY_MEMBER_CARRIED, .gen = moved});
    rig_await(&daemon, "job 1: rank 2 (h2) has not followed to generation");
    do
        frame = next(host[2]);
    while (frame.type == BY_MEMBER_STANDBY);
    assert_int_equal(frame.type, BY_MEMBER_FREEZE);
    assert_true(frame.gen > moved);
    leave_all(host);
    assert_int_equal(rig_stop(&daemon), 0);
}

static void switches_of_older_software_have_none(void **state)
{
    struct rig_daemon daemon;

    (void)state;
    fake_able = by_Able_ABLE_SUM;
    rig_resize(&rig, 4096);
    daemon = start("2", NULL);
    rig_await(&daemon, "job 1: no standby generations: the software of switch x0 is too old for them");
    assert_int_equal(rig_stop(&daemon), 0);
}

static void a_job_with_one_path_has_none(void **state)
{
    struct rig_daemon daemon;

    (void)state;
    rig_close(&rig);
    rig_open(&rig);
    snprintf(members, sizeof(members), "unix:%s/members", rig.folder);
    daemon = start("2", NULL);
    rig_await(&daemon, "job 1: no standby generations: it can do without none of its switches and links");
    assert_int_equal(rig_stop(&daemon), 0);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(hosts_that_accept_standbys_get_their_tables, set_up, tear_down),
        cmocka_unit_test_setup_teardown(other_hosts_get_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(without_the_option_there_are_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(ranks_that_have_moved_go_on_with_their_standby_and_get_others, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_leaves_its_standby_when_the_failure_is_known, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_move_is_learnt_from_reports_as_well, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_rank_that_no_standby_serves_makes_banyand_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_move_while_banyand_was_away_is_learnt_from_hosts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_rank_that_does_not_follow_makes_banyand_plan, set_up, tear_down),
        cmocka_unit_test_setup_teardown(switches_of_older_software_have_none, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_job_with_one_path_has_none, set_up, tear_down),
    };

    if (strcmp(argv[0], "banyand") == 0)
        return by_daemon_main(argc, argv);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
