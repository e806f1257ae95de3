/* The results of the worker: plans on the remaining fabric, allocation of slots, refusals with
 * their texts; and what the store refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/admit.h"
#include "control/service/daemon/fabric.h"
#include "control/service/daemon/state.h"
#include "offload/base/errors.h"
#include "tests/unit/control/tables/bench.h"

/* Two leaves, two spines, two cables between l0 and s0. */
static struct by_topology *make_fabric(void)
{
    return bench_topology("h0 h1 h2 h3 l0* l1* s0* s1*",
                          "h0-l0 h1-l0 h2-l1 h3-l1 l0-s0 l0-s0 l0-s1 l1-s0 l1-s1");
}

static uint32_t node_of(const struct by_topology *topology, const char *name)
{
    return (uint32_t)by_topology_find(topology, name);
}

static struct by_job_tables *make_tables(const struct by_topology *topology, const char *text,
                                         uint32_t window, const struct by_fabric_loss *loss,
                                         struct by_job_spec *spec, struct by_problem *problem)
{
    struct by_job_tables *tables = calloc(1, sizeof(*tables));
    struct by_lower_options options = {0};
    int error;

    assert_int_equal(by_job_parse(text, topology, spec, problem), 0);
    tables->gen = 1;
    tables->window = window;
    tables->lost_links = calloc(topology->link_count, sizeof(bool));
    memcpy(tables->lost_links, loss->links, topology->link_count * sizeof(bool));
    error = by_fabric_plan(topology, spec, loss, NULL, NULL,
                           &(struct by_apart){.limit_ms = 60000, .stop_fd = -1}, tables, problem);
    if (error == 0)
        error = by_fabric_lower(topology, spec->job, &options, tables, problem);
    if (error == 0)
        return tables;
    by_job_tables_free(tables);
    return NULL;
}

static void free_job(struct by_job_spec *spec, struct by_job_tables *tables)
{
    by_job_spec_free(spec);
    by_job_tables_free(tables);
}

static void trees_avoid_what_is_lost_and_ranks_and_addresses_stay(void **state)
{
    struct by_topology *topology = make_fabric();
    struct by_fabric_loss loss, whole;
    struct by_job_spec spec;
    struct by_problem problem = {0};
    struct by_job_tables *tables;

    (void)state;
    by_fabric_loss_init(&loss, topology);
    loss.links[4] = true; /* the first of two cables */
    loss.nodes[node_of(topology, "s1")] = true;
    by_fabric_loss_copy(&whole, &loss, topology);
    assert_true(whole.links[6] && whole.links[8] && !whole.links[5]);
    tables = make_tables(topology, "1=allreduce,broadcast@h3", 0, &whole, &spec, &problem);
    assert_non_null(tables);
    assert_false(by_fabric_is_hit(topology, tables, &whole));
    assert_true(tables->uses_link[5]);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(by_lowering_rank(tables->lowering, 1, i), i);
    assert_int_equal(tables->lowering->node_count, topology->node_count);
    assert_int_equal(tables->need[node_of(topology, "s1")].entries, 0);
    assert_true(tables->need[node_of(topology, "l0")].entries > 0);
    /* This link is used by the trees. */
    loss.links[5] = true;
    assert_true(by_fabric_is_hit(topology, tables, &loss));
    free_job(&spec, tables);
    by_fabric_loss_free(&whole);
    by_fabric_loss_free(&loss);
    by_topology_free(topology);
}

static void a_fabric_that_falls_apart_is_named_with_the_cut(void **state)
{
    struct by_topology *topology = make_fabric();
    struct by_fabric_loss loss;
    struct by_job_spec spec;
    struct by_problem problem = {0};
    struct by_job_tables *tables;

    (void)state;
    by_fabric_loss_init(&loss, topology);
    loss.nodes[node_of(topology, "l1")] = true;
    assert_null(make_tables(topology, "1=allreduce", 0, &loss, &spec, &problem));
    assert_non_null(
        strstr(problem.text, "job 1: no path is left between h0 and h2 and others: switch l1 is lost"));
    by_job_spec_free(&spec);
    /* A job on the other side continues without effect. */
    tables = make_tables(topology, "2=all:h0,h1", 0, &loss, &spec, &problem);
    assert_non_null(tables);
    assert_int_equal(by_lowering_rank_count(tables->lowering, 2), 2);
    free_job(&spec, tables);
    loss.nodes[node_of(topology, "l1")] = false;
    loss.links[2] = true;
    assert_null(make_tables(topology, "1=allreduce", 0, &loss, &spec, &problem));
    assert_non_null(strstr(problem.text, "between h0 and h2: link h2 - l1 is lost"));
    by_job_spec_free(&spec);
    by_fabric_loss_free(&loss);
    by_topology_free(topology);
}

static void a_refusal_says_which_limit_who_holds_it_and_what_would_fit(void **state)
{
    struct by_topology *topology = make_fabric();
    struct by_fabric_loss none;
    struct by_job_spec spec[2];
    struct by_problem problem = {0};
    struct by_job_tables *tables[2];
    struct by_admit_limits *limits = calloc(topology->node_count, sizeof(*limits));
    static struct by_job_spec sharers[BY_SHARES_MAX];
    static struct by_admit_job many[BY_SHARES_MAX];
    uint32_t fits, l0 = node_of(topology, "l0");

    (void)state;
    by_fabric_loss_init(&none, topology);
    tables[0] = make_tables(topology, "1=allreduce", 64, &none, &spec[0], &problem);
    tables[1] = make_tables(topology, "2=allreduce", 256, &none, &spec[1], &problem);
    assert_true(tables[0] != NULL && tables[1] != NULL);
    spec[0].share = (struct by_fraction){3, 4};
    spec[1].share = (struct by_fraction){1, 2};

    struct by_admit_job first = {&spec[0], tables[0]}, second = {&spec[1], tables[1]};
    uint32_t held = tables[0]->need[l0].slots, wanted = tables[1]->need[l0].slots;

    assert_int_equal(by_admit_slots(topology, &first, NULL, 0, limits, &fits, &problem), 0);
    assert_int_equal(by_admit_slots(topology, &second, &first, 1, limits, &fits, &problem), 0);
    assert_int_equal(tables[1]->slot_base[l0], held); /* behind those of the other job */
    limits[l0].slots = held + wanted / 2;
    assert_int_equal(by_admit_slots(topology, &second, &first, 1, limits, &fits, &problem), BY_ELIMIT);
    assert_int_equal(fits, 128);
    assert_non_null(strstr(problem.text, "job 2: not enough slots on l0: it needs "));
    assert_non_null(strstr(problem.text, "(job 1 holds "));
    assert_non_null(strstr(problem.text, "a window of 128 would fit"));
    limits[l0].slots = held;
    assert_int_equal(by_admit_slots(topology, &second, &first, 1, limits, &fits, &problem), BY_ELIMIT);
    assert_int_equal(fits, 0);
    assert_non_null(strstr(problem.text, "end a job, or start the switch with more --slots"));
    /* all holders, the largest first */
    struct by_job_spec specs[3] = {{.job = 5}, {.job = 6}, {.job = 7}};
    const struct by_admit_job three[3] = {
        {&specs[0], tables[0]}, {&specs[1], tables[1]}, {&specs[2], tables[0]}};
    char holders[120];

    snprintf(holders, sizeof(holders), "(job 6 holds %u, job 5 holds %u, job 7 holds %u)", wanted, held,
             held);
    limits[l0].slots = 2 * held + wanted;
    assert_int_equal(by_admit_slots(topology, &second, three, 3, limits, &fits, &problem), BY_ELIMIT);
    if (strstr(problem.text, holders) == NULL)
        fail_msg("%s", problem.text);
    /* the window of a communicator: a sixteenth of the free slots, 8 to 256 */
    static const struct {
        uint32_t slots, window;
    } budgets[] = {{0, 256}, {16 * 256, 256}, {16 * 256 - 1, 128}, {16 * 8, 8}, {1, 8}};

    for (size_t i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        limits[l0].slots = budgets[i].slots > 0 ? held + budgets[i].slots : 0;
        assert_int_equal(by_admit_budget(topology, &first, 1, limits), budgets[i].window);
    }
    limits[l0] = (struct by_admit_limits){.entries = tables[0]->need[l0].entries};
    assert_int_equal(by_admit_slots(topology, &second, &first, 1, limits, &fits, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "not enough entries on l0"));

    assert_int_equal(by_admit_share(topology, &second, &first, 1, limits, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "a share of 1/2 is requested, and 1/4 is left (job 1 holds 3/4)"));
    assert_non_null(strstr(problem.text, "a share of 1/4 would fit"));
    spec[1].share = (struct by_fraction){1, 4};
    assert_int_equal(by_admit_share(topology, &second, &first, 1, limits, &problem), 0);

    limits[l0] = (struct by_admit_limits){.shares = 1};
    assert_int_equal(by_admit_share(topology, &second, &first, 1, limits, &problem), BY_ELIMIT);
    assert_string_equal(problem.text,
                        "job 2: no share is left on l0, which supports 1 (held by job 1): end a job, or "
                        "create this one without --share");
    limits[l0].shares = 0; /* not reported, so the table format is the limit */
    for (uint32_t i = 0; i < BY_SHARES_MAX; i++) {
        sharers[i] = (struct by_job_spec){.job = (uint16_t)(3 + 2 * i), .share = {1, 1000}};
        many[i] = (struct by_admit_job){&sharers[i], tables[0]};
    }
    assert_int_equal(by_admit_share(topology, &second, many, BY_SHARES_MAX - 1, limits, &problem), 0);
    assert_int_equal(by_admit_share(topology, &second, many, BY_SHARES_MAX, limits, &problem), BY_ELIMIT);
    assert_non_null(
        strstr(problem.text, "supports 64 (held by job 3, job 5, job 7, job 9 and 60 more): end a job"));
    spec[1].share.num = 0;
    assert_int_equal(by_admit_share(topology, &second, &first, 1, limits, &problem), 0);

    limits[l0] = (struct by_admit_limits){.ports = 4};
    assert_int_equal(by_admit_fabric(topology, tables[0]->lowering, limits, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "switch l0 has 4 ports, and 5 links in the fabric"));
    limits[l0] = (struct by_admit_limits){.payload_max = 1024};
    assert_int_equal(by_admit_fabric(topology, tables[0]->lowering, limits, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "--payload-max"));

    free_job(&spec[0], tables[0]);
    free_job(&spec[1], tables[1]);
    free(limits);
    by_fabric_loss_free(&none);
    by_topology_free(topology);
}

static void jobs_as_users_write_them(void **state)
{
    static const struct {
        const char *text, *problem;
    } wrong[] = {
        {"allreduce", "write NUMBER=COLLECTIVES[:RANKS]"},
        {"0=allreduce", "between 1 and"},
        {"5000=allreduce", "between 1 and"},
        {"1=", "write NUMBER=COLLECTIVES[:RANKS]"},
        {"1=allred", "no collective named 'allred'"},
        {"1=allreduce@h0", "allreduce has no root"},
        {"1=broadcast@l0", "is not a rank of the job"},
        {"1=broadcast@h2:h0,h1", "is not a rank of the job"},
        {"1=allreduce:h0", "ranks"},
        {"1=allreduce:h0,nobody", "nobody"},
        {"1=:h0,h1", "no collective"},
    };
    struct by_topology *topology = make_fabric();
    struct by_job_spec spec;
    struct by_problem problem = {0};

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_true(by_job_parse(wrong[i].text, topology, &spec, &problem) < 0);
        if (strstr(problem.text, wrong[i].problem) == NULL)
            fail_msg("'%s' says: %s", wrong[i].text, problem.text);
    }
    assert_int_equal(by_job_parse("7=all:h1,h3", topology, &spec, &problem), 0);
    assert_int_equal(spec.job, 7);
    assert_int_equal(spec.want_count, 5); /* a barrier uses the trees of allreduce */
    assert_int_equal(spec.wants[0].collective, BY_COLLECTIVE_ALLREDUCE);
    assert_int_equal(spec.wants[3].root, 1);
    assert_int_equal(by_job_rank_count(&spec, topology), 2);
    assert_int_equal(by_job_node(&spec, topology, 1), 3);
    by_job_spec_free(&spec);
    by_topology_free(topology);
}

static void a_text_in_memory_grows_and_is_terminated(void **state)
{
    char *text;
    size_t bytes;
    FILE *stream = by_text_open(&text, &bytes);

    (void)state;
    assert_string_equal(text, "");
    for (unsigned i = 0; i < 20000; i++)
        fprintf(stream, "%05u", i);
    assert_int_equal(fclose(stream), 0);
    assert_int_equal(bytes, 100000);
    assert_int_equal(strlen(text), bytes);
    assert_memory_equal(text + 5 * 19999, "19999", 5);
    free(text);
}

static void a_store_is_one_daemons_and_one_fabrics(void **state)
{
    struct by_topology *topology = make_fabric(), *other = bench_topology("h0 h1 x0*", "h0-x0 h1-x0");
    struct by_lower_options options = {0}, again = {0}, jumbo = {.mtu = 9000};
    char folder[] = "/tmp/by-test-store-XXXXXX", path[64];
    struct by_state *store, *second;
    struct by_problem problem = {0};

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(by_state_open(folder, topology, &options, &store, &problem), 0);
    assert_int_equal(by_state_elect(store, 42, &problem), 0);
    assert_int_equal(by_state_open(folder, topology, &again, &second, &problem), BY_EBUSY);
    assert_non_null(strstr(problem.text, "is in use by another banyand"));
    by_state_close(store);
    assert_int_equal(by_state_open(folder, other, &again, &second, &problem), BY_EMISMATCH);
    assert_non_null(strstr(problem.text, "another fabric"));
    assert_int_equal(by_state_open(folder, topology, &jumbo, &second, &problem), BY_EMISMATCH);
    assert_non_null(strstr(problem.text, "another --mtu"));
    assert_int_equal(by_state_open(folder, topology, &again, &store, &problem), 0);
    assert_true(by_state_election(store) == 42);
    by_state_close(store);
    for (unsigned i = 0; i < 4; i++) {
        static const char *const files[] = {"banyand.db", "banyand.db-wal", "banyand.db-shm", "lock"};

        snprintf(path, sizeof(path), "%s/%s", folder, files[i]);
        if (i == 0) { /* a file that is not a database is refused and not overwritten */
            FILE *stream = fopen(path, "w");

            assert_non_null(stream);
            fputs("this is the diary of somebody else, and longer than a page's head is\n", stream);
            fclose(stream);
            assert_int_equal(by_state_open(folder, topology, &again, &store, &problem), BY_EIO);
            assert_non_null(strstr(problem.text, "banyand.db"));
        }
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
    by_topology_free(topology);
    by_topology_free(other);
}

static const char *const store_files[] = {"banyand.db", "banyand.db-wal", "banyand.db-shm", "lock"};
#define STORE_FILES (sizeof(store_files) / sizeof(store_files[0]))

static mode_t mode_of(const char *folder, const char *file)
{
    char path[128];
    struct stat status;

    snprintf(path, sizeof(path), "%s/%s", folder, file);
    assert_int_equal(stat(path, &status), 0);
    return status.st_mode & 07777;
}

/* Returns what another user can read of the store: the number of files, plus 100 for the folder.
 * Root only. */
static int others_read(const char *folder)
{
    pid_t child = fork();
    int status, count = 0;

    assert_true(child >= 0);
    if (child == 0) {
        if (setgid(65534) != 0 || setuid(65534) != 0)
            _exit(99);
        for (unsigned i = 0; i < STORE_FILES; i++) {
            char path[128];

            snprintf(path, sizeof(path), "%s/%s", folder, store_files[i]);
            count += access(path, R_OK) == 0;
        }
        _exit(count + (access(folder, R_OK) == 0 ? 100 : 0));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void no_other_user_reads_the_store_and_what_was_open_is_closed(void **state)
{
    struct by_topology *topology = make_fabric();
    struct by_lower_options options = {0};
    char parent[] = "/tmp/by-test-store-XXXXXX", folder[64], path[128];
    struct by_state *store;
    struct by_problem problem = {0};
    mode_t mask = umask(0);

    (void)state;
    assert_non_null(mkdtemp(parent));
    assert_int_equal(chmod(parent, 0755), 0);
    snprintf(folder, sizeof(folder), "%s/state", parent);
    for (unsigned round = 0; round < 2; round++) { /* a new store, then one that all users may read */
        assert_int_equal(by_state_open(folder, topology, &options, &store, &problem), 0);
        assert_int_equal(mode_of(folder, "."), 0700);
        for (unsigned i = 0; i < STORE_FILES; i++)
            assert_int_equal(mode_of(folder, store_files[i]), 0600);
        if (geteuid() == 0)
            assert_int_equal(others_read(folder), 0);
        by_state_close(store);
        snprintf(path, sizeof(path), "%s/banyand.db", folder);
        assert_int_equal(chmod(path, 0644), 0);
        assert_int_equal(chmod(folder, 0755), 0);
        if (geteuid() == 0)
            assert_int_equal(others_read(folder), 101);
    }
    assert_int_equal(chmod(folder, 0770), 0); /* other users could replace files there */
    assert_int_equal(by_state_open(folder, topology, &options, &store, &problem), BY_EPERM);
    assert_non_null(strstr(problem.text, "mode 0770"));
    assert_non_null(strstr(problem.text, "chmod 700"));
    if (geteuid() == 0) {
        assert_int_equal(chmod(folder, 0700), 0);
        assert_int_equal(chown(folder, 65534, 65534), 0);
        assert_int_equal(by_state_open(folder, topology, &options, &store, &problem), BY_EPERM);
        assert_non_null(strstr(problem.text, "belongs to user 65534"));
    }
    umask(mask);
    for (unsigned i = 0; i < STORE_FILES; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, store_files[i]);
        unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(rmdir(parent), 0);
    by_topology_free(topology);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(trees_avoid_what_is_lost_and_ranks_and_addresses_stay),
        cmocka_unit_test(a_fabric_that_falls_apart_is_named_with_the_cut),
        cmocka_unit_test(a_refusal_says_which_limit_who_holds_it_and_what_would_fit),
        cmocka_unit_test(jobs_as_users_write_them),
        cmocka_unit_test(a_text_in_memory_grows_and_is_terminated),
        cmocka_unit_test(a_store_is_one_daemons_and_one_fabrics),
        cmocka_unit_test(no_other_user_reads_the_store_and_what_was_open_is_closed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
