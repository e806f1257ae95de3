/* What MPI's ranks agree on: the same facts give the same verdict, and the text names the ranks at
 * fault. */
#include <stdio.h>
#include <string.h>

#include "tests/unit/host-driver/rig.h"

#include "host-driver/plugin/mpi/core.h"

#define RANKS 4

static struct by_mpi_facts facts[RANKS];
static char text[BY_MPI_TEXT_MAX];

static int all_can(void **state)
{
    (void)state;
    memset(facts, 0, sizeof(facts));
    for (uint32_t r = 0; r < RANKS; r++) {
        facts[r] = (struct by_mpi_facts){.version = BANYAN_VERSION,
                                         .rank = r,
                                         .size = RANKS,
                                         .serves = 1u << BANYAN_ALLREDUCE | 1u << BANYAN_BARRIER,
                                         .mode = BANYAN_FAST,
                                         .least = 100};
        for (unsigned op = BANYAN_SUM; op <= BANYAN_BXOR; op++)
            facts[r].reduces[op] = 0x7fe;
        snprintf(facts[r].host, sizeof(facts[r].host), "h%u", r);
    }
    return 0;
}

static void refused(const char *words)
{
    assert_int_equal(by_mpi_agree(facts, RANKS, text), 0);
    if (strncmp(text, "not offloaded: ", 15) != 0 || strstr(text, words) == NULL)
        fail_msg("'%s' does not say '%s'", text, words);
}

static void ranks_that_all_can_agree(void **state)
{
    (void)state;
    assert_int_equal(by_mpi_agree(facts, RANKS, text), 1);
    assert_string_equal(text,
                        "offloaded: allreduce, barrier; 4 ranks, from 100 bytes; sums of floats in order of "
                        "arrival (BANYAN_MODE=det: the same in each run)");
}

static void exchanges_are_listed_where_ranks_are_connected(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++) {
        facts[r].connects = 1;
        facts[r].serves |= 1u << BANYAN_ALLTOALL | 1u << BANYAN_SCATTER | 1u << BANYAN_GATHER;
    }
    assert_int_equal(by_mpi_agree(facts, RANKS, text), 1);
    assert_non_null(strstr(text, "offloaded: allreduce, barrier, all-to-all, scatter, gather; 4 ranks"));
}

static void what_the_trees_cannot_compute_is_left_to_mpi_and_said(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++) {
        facts[r].mode = BANYAN_DET;
        facts[r].reduces[BANYAN_SUM] = 0x7fe & ~(1u << BANYAN_F32 | 1u << BANYAN_F64);
    }
    assert_int_equal(by_mpi_agree(facts, RANKS, text), 1);
    assert_string_equal(
        text, "offloaded: allreduce, barrier; 4 ranks, from 100 bytes; sums of floats are the same in "
              "each run; left to MPI, as nodes of the trees cannot compute it: sum of f32, sum of f64");
    facts[3].reduces[BANYAN_SUM] = 0x7fe;
    refused("rank 3 on h3 compute other operators or types");
}

static void one_rank_that_cannot_is_named_with_its_reason(void **state)
{
    (void)state;
    facts[2].status = BANYAN_ENOENT;
    snprintf(facts[2].text, sizeof(facts[2].text), "no table");
    refused("rank 2 on h2: no table");
}

static void ranks_in_another_order_are_told_how_to_start(void **state)
{
    (void)state;
    facts[1].rank = 3;
    facts[3].rank = 1;
    refused("MPI's rank 1 runs on h1, which is rank 3 of the tables");
}

static void more_or_fewer_ranks_than_the_tables_have_are_refused(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        facts[r].size = RANKS + 1;
    refused("the tables are for 5 ranks, but MPI runs 4");
}

static void ranks_that_share_a_host_are_seated_if_each_host_has_one(void **state)
{
    (void)state;
    assert_int_equal(by_mpi_seat(facts, RANKS, text), 1);
    for (uint32_t r = 0; r < RANKS; r++) { /* two ranks on each of two hosts, by node */
        facts[r].size = RANKS / 2;
        facts[r].rank = r % 2;
        snprintf(facts[r].host, sizeof(facts[r].host), "h%u", r % 2);
    }
    assert_int_equal(by_mpi_seat(facts, RANKS, text), 1);
    for (uint32_t r = 0; r < RANKS; r++) /* as the ranks are after they have joined */
        facts[r].size = RANKS, facts[r].rank = r;
    assert_int_equal(by_mpi_agree(facts, RANKS, text), 1);
    assert_non_null(strstr(text, "4 ranks on 2 hosts"));
    for (uint32_t r = 0; r < RANKS; r++)
        facts[r].size = 3, facts[r].rank = r % 2;
    assert_int_equal(by_mpi_seat(facts, RANKS, text), 0);
    assert_non_null(strstr(text, "not offloaded: none of the 4 ranks runs on host 2 of the 3 hosts"));
}

static void ranks_of_which_the_place_is_not_known_yet_are_seated(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        facts[r].size = facts[r].rank = 0;
    assert_int_equal(by_mpi_seat(facts, RANKS, text), 1);
    facts[3].status = BANYAN_ENOENT;
    snprintf(facts[3].text, sizeof(facts[3].text), "no table");
    assert_int_equal(by_mpi_seat(facts, RANKS, text), 0);
    assert_non_null(strstr(text, "rank 3 on h3: no table"));
}

static void settings_versions_and_tables_that_differ_are_refused(void **state)
{
    (void)state;
    facts[3].least = 7;
    refused("BANYAN_MPI_LEAST is 7 at rank 3 and 100 at rank 0");
    facts[3].least = 100;
    facts[1].mode = BANYAN_EXACT;
    refused("BANYAN_MODE is exact at rank 1 and fast at rank 0");
    facts[1].mode = BANYAN_FAST;
    facts[2].connects = 1;
    refused("BANYAN_FALLBACK is set at rank 2 and not set at rank 0");
    facts[2].connects = 0;
    facts[2].ordered = 1;
    refused("BANYAN_MPI_PERSISTENT is ordered at rank 2 and off at rank 0");
    facts[2].ordered = 0;
    facts[3].version++;
    refused("rank 3 on h3 has version");
    facts[3].version--;
    facts[3].serves |= 1u << BANYAN_REDUCE;
    refused("rank 3 on h3 serve other collectives");
}

static void a_single_rank_has_no_network_to_use(void **state)
{
    (void)state;
    facts[0].size = 1;
    assert_int_equal(by_mpi_agree(facts, 1, text), 0);
    assert_non_null(strstr(text, "one rank"));
}

static void tables_without_trees_serve_nothing(void **state)
{
    (void)state;
    for (uint32_t r = 0; r < RANKS; r++)
        facts[r].serves = 0;
    refused("the tables have no trees");
}

static void a_long_reason_is_cut_not_overrun(void **state)
{
    (void)state;
    facts[0].status = BANYAN_EIO;
    memset(facts[0].text, 'x', sizeof(facts[0].text) - 1);
    assert_int_equal(by_mpi_agree(facts, RANKS, text), 0);
    assert_int_equal(strlen(text), BY_MPI_TEXT_MAX - 1);
}

static int gather_nothing(void *context, const void *mine, void *all, size_t bytes)
{
    (void)context;
    (void)mine;
    (void)all;
    (void)bytes;
    return -1;
}

static void a_process_without_a_table_says_so_and_counts(void **state)
{
    const struct banyan_bootstrap places = {
        .size = sizeof(places), .rank_count = 2, .allgather = gather_nothing};
    struct by_mpi_facts mine;

    (void)state;
    rig_set("BANYAN_TABLE", NULL);
    rig_set("BANYAN_LOG", "0");
    by_mpi_prepare(&mine, &places);
    assert_int_equal(mine.status, BANYAN_EINVAL);
    assert_non_null(strstr(mine.text, "set BANYAN_TABLE"));
    rig_set("BANYAN_MPI_LEAST", "many");
    by_mpi_prepare(&mine, &places);
    assert_int_equal(mine.status, BANYAN_EINVAL);
    assert_non_null(strstr(mine.text, "BANYAN_MPI_LEAST"));
    rig_set("BANYAN_MPI_LEAST", NULL);
    rig_set("BANYAN_MPI_PERSISTENT", "always");
    by_mpi_prepare(&mine, &places);
    assert_int_equal(mine.status, BANYAN_EINVAL);
    assert_non_null(strstr(mine.text, "BANYAN_MPI_PERSISTENT is 'always'; use off or ordered"));
    rig_set("BANYAN_MPI_PERSISTENT", NULL);
    by_mpi_part();

    by_mpi_leave_to_mpi(BY_MPI_TYPE);
    by_mpi_leave_to_mpi(BY_MPI_TYPE);
    by_mpi_leave_to_mpi(BY_MPI_SMALL);
    by_mpi_leave_to_mpi(BY_MPI_EMPTY);
    by_mpi_tally(text, sizeof(text));
    assert_string_equal(text,
                        "0 calls offloaded, 4 (type 2, no data 1, below BANYAN_MPI_LEAST 1) left to MPI");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(ranks_that_all_can_agree, all_can),
        cmocka_unit_test_setup(exchanges_are_listed_where_ranks_are_connected, all_can),
        cmocka_unit_test_setup(what_the_trees_cannot_compute_is_left_to_mpi_and_said, all_can),
        cmocka_unit_test_setup(one_rank_that_cannot_is_named_with_its_reason, all_can),
        cmocka_unit_test_setup(ranks_in_another_order_are_told_how_to_start, all_can),
        cmocka_unit_test_setup(more_or_fewer_ranks_than_the_tables_have_are_refused, all_can),
        cmocka_unit_test_setup(ranks_that_share_a_host_are_seated_if_each_host_has_one, all_can),
        cmocka_unit_test_setup(ranks_of_which_the_place_is_not_known_yet_are_seated, all_can),
        cmocka_unit_test_setup(settings_versions_and_tables_that_differ_are_refused, all_can),
        cmocka_unit_test_setup(a_single_rank_has_no_network_to_use, all_can),
        cmocka_unit_test_setup(tables_without_trees_serve_nothing, all_can),
        cmocka_unit_test_setup(a_long_reason_is_cut_not_overrun, all_can),
        cmocka_unit_test(a_process_without_a_table_says_so_and_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
