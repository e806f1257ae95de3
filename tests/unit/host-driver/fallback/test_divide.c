/*
 * How calls are divided between trees and hosts: by the collectives that the table serves, by the
 * operations that the nodes of its trees support, by size, and by measured times. Each rank is a
 * process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "host-driver/comm.h"
#include "offload/table/image.h"
#include "offload/wire/types.h"
#include "tests/unit/host-driver/fallback/team.h"
#include "tests/unit/host-driver/rig.h"

/* Changes a host's leaf in each of its trees. */
typedef void change_fn(struct by_image_leaf *leaf);

/* Changes the tables of both hosts in the folder. */
static void change_tables(const char *folder, change_fn *change)
{
    for (int h = 0; h < 2; h++) {
        uint8_t image[1 << 16];
        struct by_image_header header;
        char path[128];
        FILE *file;
        size_t bytes;

        snprintf(path, sizeof(path), "%s/h%d.table", folder, h);
        file = fopen(path, "r+b");
        assert_non_null(file);
        bytes = fread(image, 1, sizeof(image), file);
        by_image_header(image, &header);
        for (uint32_t i = 0; i < header.count[BY_SECTION_LEAF]; i++) {
            struct by_image_leaf leaf;

            by_image_leaf(image, i, &leaf);
            change(&leaf);
            by_image_put_leaf(image, i, &leaf);
        }
        by_image_seal(image);
        rewind(file);
        assert_int_equal(fwrite(image, 1, bytes, file), bytes);
        fclose(file);
    }
}

static void keep_barriers(struct by_image_leaf *leaf)
{
    leaf->collectives = 1u << BY_COLLECTIVE_BARRIER;
}

/* Nodes without slots for mode det, without products and without f64. */
static void keep_little(struct by_image_leaf *leaf)
{
    leaf->modes = 1u << BY_MODE_FAST | 1u << BY_MODE_EXACT;
    leaf->ops = (uint16_t)(((1u << BY_OP_COUNT) - 2) & ~(1u << BY_OP_PROD));
    leaf->dtypes = (uint16_t)(((1u << BY_DTYPE_COUNT) - 2) & ~(1u << BY_DTYPE_F64));
}

/* Nodes that support everything except sums of floats in mode det. */
static void keep_no_order(struct by_image_leaf *leaf)
{
    leaf->modes = 1u << BY_MODE_FAST | 1u << BY_MODE_EXACT;
    leaf->ops = (1u << BY_OP_COUNT) - 2;
    leaf->dtypes = (1u << BY_DTYPE_COUNT) - 2;
}

static void set_table(const struct team_member *member)
{
    char path[128];

    snprintf(path, sizeof(path), "%s/h%u.table", (const char *)member->argument, member->rank);
    setenv("BANYAN_TABLE", path, 1);
    setenv("BANYAN_TRANSPORT", "udp", 1);
}

static int use_both(struct team_member *member)
{
    uint32_t big[5000], one = 1, sum = 0;
    int wrong;

    set_table(member);
    wrong = member_open(member);
    for (int i = 0; i < 20 && !wrong; i++) {
        uint64_t before = member_counter(member, "hosts/calls");

        if (banyan_barrier(member->comm) != BANYAN_OK)
            wrong = member_wrong(member, "barrier: %s", banyan_last_error());
        else if (member_counter(member, "hosts/calls") != before)
            wrong = member_wrong(member, "the barrier has trees, and runs between hosts");
        else if (banyan_allreduce(member->comm, &one, &sum, 1, BANYAN_U32, BANYAN_SUM) != BANYAN_OK ||
                 sum != member->count)
            wrong = member_wrong(member, "allreduce: %u: %s", sum, banyan_last_error());
        else if (member_counter(member, "hosts/calls") != before + 1)
            wrong = member_wrong(member, "the allreduce has no trees, and does not run between hosts");
        for (uint32_t k = 0; k < 5000; k++)
            big[k] = member->rank == 1 ? k : 0;
        if (!wrong &&
            (banyan_broadcast(member->comm, big, 5000, BANYAN_U32, 1) != BANYAN_OK || big[4999] != 4999))
            wrong = member_wrong(member, "broadcast: %s", banyan_last_error());
    }
    if (!wrong && (banyan_comm_serves(member->comm, BANYAN_ALLREDUCE, 0) ||
                   !banyan_comm_serves(member->comm, BANYAN_BARRIER, 0)))
        wrong = member_wrong(member, "says that it serves what it does not");
    member_close(member);
    return wrong;
}

static void what_the_table_lacks_runs_between_hosts(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    change_tables(folder, keep_barriers);
    team_must(2, use_both, folder);
    rig_remove(folder);
}

static int use_small(struct team_member *member)
{
    uint32_t send[2000] = {0}, recv[2000];
    int wrong;

    set_table(member);
    setenv("BANYAN_SMALL", "1000", 1);
    wrong = member_open(member);
    for (uint32_t count = 200; count <= 300 && !wrong; count += 10) {
        uint64_t before = member_counter(member, "hosts/calls");

        send[0] = count;
        if (banyan_allreduce(member->comm, send, recv, count, BANYAN_U32, BANYAN_SUM) != BANYAN_OK ||
            recv[0] != member->count * count)
            wrong = member_wrong(member, "allreduce of %u: %s", count, banyan_last_error());
        else if (member_counter(member, "hosts/calls") - before != (count <= 250))
            wrong = member_wrong(member, "an allreduce of %u bytes took the other way", 4 * count);
    }
    member_close(member);
    return wrong;
}

/* With measured times, operations of all sizes take the path with the shorter predicted time, and
 * all ranks predict the same. */
static int use_sooner(struct team_member *member)
{
    uint32_t send[40000] = {0}, recv[40000];
    int wrong;

    set_table(member);
    setenv("BANYAN_SMALL", "auto", 1);
    wrong = member_open(member);
    for (uint32_t count = 1; count <= 40000 && !wrong; count = count * 3 + 1) {
        uint64_t before = member_counter(member, "hosts/calls"), expected, mine, all[2];
        struct banyan_query query;

        banyan_query_init(&query);
        query.dtype = BANYAN_U32;
        query.count = count;
        if (banyan_comm_query(member->comm, &query) != BANYAN_OK || query.predicted_ns == 0)
            return member_wrong(member, "of %u nothing is foretold: %s", count, banyan_last_error());
        mine = query.predicted_ns * 4 + query.path;
        expected = before + (query.path == BANYAN_HOSTS);
        if (banyan_allreduce(member->comm, send, recv, count, BANYAN_U32, BANYAN_SUM) != BANYAN_OK)
            wrong = member_wrong(member, "allreduce of %u: %s", count, banyan_last_error());
        else if (member_counter(member, "hosts/calls") != expected)
            wrong = member_wrong(member, "an allreduce of %u went another way than foretold: %s", count,
                                 query.reason);
        else if (banyan_allgather(member->comm, &mine, all, 1, BANYAN_U64) != BANYAN_OK || all[0] != all[1])
            wrong = member_wrong(member, "of %u the ranks foretell other times or ways", count);
    }
    member_close(member);
    return wrong;
}

static void operations_run_where_they_are_sooner_done_alike_on_all_ranks(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    team_must(2, use_sooner, folder);
    rig_remove(folder);
}

/* A table that serves all collectives needs no meeting, and variables of other programs are
 * ignored. */
static int ignore_others(struct team_member *member)
{
    int wrong;

    unsetenv("MASTER_ADDR");
    set_table(member);
    wrong = member_open(member);
    if (!wrong && banyan_barrier(member->comm) != BANYAN_OK)
        wrong = member_wrong(member, "barrier: %s", banyan_last_error());
    member_close(member);
    return wrong;
}

static void a_rank_with_a_table_does_without_a_meeting(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    team_must(2, ignore_others, folder);
    rig_remove(folder);
}

static void small_operations_run_between_hosts_when_asked(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    team_must(2, use_small, folder);
    rig_remove(folder);
}

static int be_another(struct team_member *member)
{
    int wrong = 0;

    setenv("RANK", member->rank == 0 ? "1" : "0", 1);
    set_table(member);
    setenv("BANYAN_SMALL", "1", 1);
    if (banyan_init(NULL, &member->context) != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    if (banyan_comm_create(member->context, 0, &member->comm) != BANYAN_EMISMATCH ||
        strstr(banyan_last_error(), "but the table of") == NULL)
        wrong = member_wrong(member, "%s", banyan_last_error());
    member_close(member);
    return wrong;
}

static void a_rank_that_is_another_in_the_table_is_refused(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    team_must(2, be_another, folder);
    rig_remove(folder);
}

/* Runs a sum and checks whether it runs between hosts, as predicted. */
static int sum_runs(struct team_member *member, banyan_op_t op, banyan_dtype_t dtype, banyan_mode_t mode,
                    bool hosts, const char *says)
{
    uint64_t before = member_counter(member, "hosts/calls"), one[2] = {1, 1}, out[2];
    struct banyan_request *request;
    struct banyan_query query;

    banyan_query_init(&query);
    query.op = op;
    query.dtype = dtype;
    query.mode = mode;
    query.count = 2;
    if (banyan_comm_query(member->comm, &query) != BANYAN_OK || (query.path == BANYAN_HOSTS) != hosts ||
        strstr(query.reason, says) == NULL)
        return member_wrong(member, "%s of %s is foretold as path %d: %s", banyan_op_name(op),
                            banyan_dtype_name(dtype), (int)query.path, query.reason);
    if (banyan_allreduce_init(member->comm, one, out, 2, dtype, op, &request) != BANYAN_OK ||
        (mode != 0 && banyan_request_mode(request, mode) != BANYAN_OK) || banyan_post(request) != BANYAN_OK ||
        banyan_wait(request) != BANYAN_OK || banyan_free(request) != BANYAN_OK)
        return member_wrong(member, "%s of %s: %s", banyan_op_name(op), banyan_dtype_name(dtype),
                            banyan_last_error());
    if ((member_counter(member, "hosts/calls") > before) != hosts)
        return member_wrong(member, "%s of %s went another way than foretold", banyan_op_name(op),
                            banyan_dtype_name(dtype));
    return 0;
}

/* Checks the number of lines that rank 0 has written to stderr, which is redirected to the file,
 * and that they have these words. */
static int must_have_said(struct team_member *member, FILE *caught, unsigned lines, const char *words)
{
    char text[4000] = "";
    unsigned count = 0;

    rewind(caught);
    text[fread(text, 1, sizeof(text) - 1, caught)] = 0;
    for (const char *at = text; (at = strstr(at, "not offloaded")) != NULL; at++)
        count++;
    if (member->rank == 0 ? count == lines && strstr(text, words) != NULL : text[0] == 0)
        return 0;
    fprintf(stdout, "rank %u has said: %s\n", member->rank, text);
    return 1;
}

static int use_able(struct team_member *member)
{
    FILE *caught = tmpfile();
    int wrong;

    set_table(member);
    setenv("BANYAN_MODE", "det", 1);
    setenv("BANYAN_LOG", "1", 1);
    if (caught == NULL)
        return member_wrong(member, "no file");
    dup2(fileno(caught), 2);
    wrong = member_open(member);
    if (!wrong)
        wrong = must_have_said(
            member, caught, 1,
            "reductions that nodes of the trees cannot compute in mode det: sum of f16, bf16, f32, f64, "
            "prod of i8, u8, i32, u32, i64, u64, f16, bf16, f32, f64, min of f64, max of f64 "
            "(banyan tables --det gives them slots) run between hosts");
    for (int i = 0; i < 3 && !wrong; i++) {
        wrong |= sum_runs(member, BANYAN_SUM, BANYAN_F32, 0, true, "cannot compute sum of f32 in mode det");
        wrong |= sum_runs(member, BANYAN_MAX, BANYAN_F32, 0, false, "has trees for it");
        wrong |= sum_runs(member, BANYAN_SUM, BANYAN_I32, 0, false, "has trees for it");
        wrong |= sum_runs(member, BANYAN_SUM, BANYAN_F32, BANYAN_FAST, false, "has trees for it");
        wrong |= sum_runs(member, BANYAN_SUM, BANYAN_F32, BANYAN_EXACT, false, "has trees for it");
        wrong |= sum_runs(member, BANYAN_PROD, BANYAN_U32, 0, true, "cannot compute prod of u32");
        wrong |= sum_runs(member, BANYAN_SUM, BANYAN_F64, BANYAN_FAST, true, "cannot compute sum of f64");
        wrong |= sum_runs(member, BANYAN_SUM, BANYAN_F64, BANYAN_EXACT, false, "has trees for it");
        wrong |= sum_runs(member, BANYAN_PROD, BANYAN_I64, BANYAN_FAST, true, "cannot compute prod of i64");
    }
    /* Mode fast was reported once, at its first use. */
    if (!wrong)
        wrong =
            must_have_said(member, caught, 2,
                           "sum of f64 in mode fast, which nodes of the trees cannot compute, runs between");
    member_close(member);
    fclose(caught);
    return wrong;
}

static void what_nodes_of_the_trees_cannot_compute_runs_between_hosts_and_is_said(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    change_tables(folder, keep_little);
    team_must(2, use_able, folder);
    rig_remove(folder);
}

/* A table that supports everything that the mode requires needs no meeting. */
static void what_the_mode_does_not_ask_for_needs_no_meeting(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    change_tables(folder, keep_no_order);
    team_must(2, ignore_others, folder);
    rig_remove(folder);
}

/* Each collective has its own times over the trees. */
static int use_own_times(struct team_member *member)
{
    static const banyan_collective_t collectives[] = {BANYAN_ALLREDUCE, BANYAN_REDUCE_SCATTER,
                                                      BANYAN_ALLGATHER, BANYAN_BROADCAST,
                                                      BANYAN_REDUCE,    BANYAN_BARRIER};
    int wrong;

    set_table(member);
    setenv("BANYAN_SMALL", "auto", 1);
    wrong = member_open(member);
    for (size_t i = 0; i < 6 && !wrong; i++)
        if (member->comm->hosts.tree[collectives[i]].latency_ns == 0)
            wrong = member_wrong(member, "collective %d was not measured", (int)collectives[i]);
    for (size_t slow = 0; slow < 6 && !wrong; slow++) {
        for (size_t i = 0; i < 6; i++) {
            struct by_tree_time *time = &member->comm->hosts.tree[collectives[i]];
            struct banyan_query query;

            *time = (struct by_tree_time){.latency_ns = i == slow ? UINT64_C(1) << 50 : 1};
            banyan_query_init(&query);
            query.collective = collectives[i];
            query.count = 100;
            if (banyan_comm_query(member->comm, &query) != BANYAN_OK ||
                query.path != (i == slow ? BANYAN_HOSTS : BANYAN_TREES))
                wrong |= member_wrong(member, "collective %d goes path %d: %s", (int)collectives[i],
                                      (int)query.path, query.reason);
        }
    }
    member_close(member);
    return wrong;
}

static void each_collective_goes_by_its_own_times(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    team_must(2, use_own_times, folder);
    rig_remove(folder);
}

/* The path depends only on the size: a gap between small and large sizes divides the sizes of an
 * allgather in two. */
static int use_gap(struct team_member *member)
{
    uint64_t last = BANYAN_TREES, changes = 0;
    int wrong;

    set_table(member);
    setenv("BANYAN_SMALL", "auto", 1);
    wrong = member_open(member);
    if (!wrong)
        member->comm->hosts.tree[BY_COLLECTIVE_ALLGATHER] =
            (struct by_tree_time){.latency_ns = 1, .gap_ps = 100000};
    for (uint64_t count = 1; count <= 1u << 24 && !wrong; count *= 4) {
        struct banyan_query query;

        banyan_query_init(&query);
        query.collective = BANYAN_ALLGATHER;
        query.count = count;
        if (banyan_comm_query(member->comm, &query) != BANYAN_OK)
            return member_wrong(member, "%s", banyan_last_error());
        changes += query.path != last;
        last = query.path;
    }
    if (!wrong && (changes != 1 || last != BANYAN_HOSTS))
        wrong = member_wrong(member, "%llu changes, the last to path %llu", (unsigned long long)changes,
                             (unsigned long long)last);
    member_close(member);
    return wrong;
}

static void bytes_that_cost_more_over_the_trees_send_large_operations_to_the_hosts(void **state)
{
    char folder[64];

    (void)state;
    rig_write_loopback(2, folder);
    team_must(2, use_gap, folder);
    rig_remove(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_run_where_they_are_sooner_done_alike_on_all_ranks),
        cmocka_unit_test(each_collective_goes_by_its_own_times),
        cmocka_unit_test(bytes_that_cost_more_over_the_trees_send_large_operations_to_the_hosts),
        cmocka_unit_test(what_the_table_lacks_runs_between_hosts),
        cmocka_unit_test(what_nodes_of_the_trees_cannot_compute_runs_between_hosts_and_is_said),
        cmocka_unit_test(what_the_mode_does_not_ask_for_needs_no_meeting),
        cmocka_unit_test(a_rank_with_a_table_does_without_a_meeting),
        cmocka_unit_test(small_operations_run_between_hosts_when_asked),
        cmocka_unit_test(a_rank_that_is_another_in_the_table_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
