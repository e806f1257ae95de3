/* Tables with pairs of trees: the check refuses a tree down that does not fit its tree up, at the
 * common root and at a leaf. And limits of tables that need many records. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/table/layout.h"
#include "tests/unit/offload/table/sample.h"

static struct table_sample sample;
static uint8_t image[SAMPLE_BYTES_MAX];

/* Host 7 is the root of trees 0 (up) and 1 (down) of job 1, and a leaf of both. */
static void fill_pair(void)
{
    sample_fill(&sample);
    sample.entry[0].nleaf = 4;
    sample.entry[1] = sample.entry[0];
    sample.entry[1].tree = 1;
    sample.entry[1].joined = 1;
    sample.entry[1].first_child = 2;
    sample.leaf[0].half = BY_HALF_UP;
    sample.leaf[1] = sample.leaf[0];
    sample.leaf[1].tree = 1;
    sample.leaf[1].half = BY_HALF_DOWN;
    sample.leaf[1].parent_port = 1;
    sample.leaf[1].parent_node = 2;
    sample.leaf[1].parent_ip = 0xc6120003;
    sample.leaf[1].parent_udp_port = 46247;
}

static int check(struct by_image_fault *fault)
{
    size_t bytes = sample_write(&sample, image);

    *fault = (struct by_image_fault){.what = "", .section = ""};
    return by_image_check(image, bytes, NULL, fault);
}

static void a_pair_of_trees_is_a_sound_table(void **state)
{
    struct by_image_fault fault;

    (void)state;
    fill_pair();
    if (check(&fault) != 0)
        fail_msg("%s %u: %s %llu", fault.section, fault.index, fault.what, (unsigned long long)fault.value);
}

#define ROW(noun, i, field, v, text)                                                                         \
    {                                                                                                        \
#noun, text, offsetof(struct table_sample, noun[i].field), sizeof(sample.noun[0].field), v           \
    }

static void halves_that_differ_are_refused(void **state)
{
    static const struct {
        const char *section, *what;
        size_t at, size;
        uint64_t value;
    } rows[] = {
        ROW(entry, 1, joined, 2, "root of the tree before"),
        ROW(entry, 1, tree, 2, "root of the tree before"),
        ROW(entry, 0, parent_node, 2, "root of the tree before"),
        ROW(entry, 1, parent_node, 2, "root of the tree before"),
        ROW(entry, 1, window, 4, "differ from the entry before"),
        ROW(entry, 1, payload_max, 1400, "differ from the entry before"),
        ROW(entry, 1, slot_base, 8, "differ from the entry before"),
        ROW(entry, 0, nleaf, 3, "do not join all ranks"),
        ROW(entry, 1, nleaf, 3, "do not join all ranks"),
        ROW(entry, 1, sets, 1, "sets"),
        ROW(leaf, 1, half, 3, "none of 0, 1 and 2"),
        ROW(leaf, 0, half, BY_HALF_NONE, "without the other"),
        ROW(leaf, 1, half, BY_HALF_NONE, "without the other"),
        ROW(leaf, 1, half, BY_HALF_UP, "without the other"),
        ROW(leaf, 1, tree, 2, "do not follow each other, or differ"),
        ROW(leaf, 1, share, 7, "do not follow each other, or differ"),
        ROW(leaf, 1, owner, 1, "do not follow each other, or differ"),
        ROW(leaf, 1, collectives, 0x7c, "do not follow each other, or differ"),
        ROW(leaf, 1, window, 4, "do not follow each other, or differ"),
        ROW(leaf, 1, payload_max, 1400, "do not follow each other, or differ"),
        ROW(leaf, 1, modes, 2, "do not follow each other, or differ"),
        ROW(leaf, 1, ops, 0xfc, "do not follow each other, or differ"),
        ROW(leaf, 1, dtypes, 0x7fc, "do not follow each other, or differ"),
    };
    struct by_image_fault fault;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        fill_pair();
        if (rows[i].at == offsetof(struct table_sample, entry[0].parent_node) ||
            rows[i].at == offsetof(struct table_sample, entry[1].parent_node)) {
            unsigned e = rows[i].at == offsetof(struct table_sample, entry[1].parent_node);

            sample.entry[e].parent_port = 1;
            sample.entry[e].parent_ip = 0xc6120003;
            sample.entry[e].parent_udp_port = 46247;
        }
        memcpy((uint8_t *)&sample + rows[i].at, &rows[i].value, rows[i].size); /* little-endian */
        if (check(&fault) != BY_EFORMAT || strcmp(fault.section, rows[i].section) != 0 ||
            strstr(fault.what, rows[i].what) == NULL)
            fail_msg("row %zu (%s): %s %u: %s %llu", i, rows[i].what, fault.section, fault.index, fault.what,
                     (unsigned long long)fault.value);
    }
}

static void a_tree_down_of_another_job_is_refused(void **state)
{
    struct by_image_fault fault;

    (void)state;
    fill_pair();
    sample.job[1].rank_count = 4;
    sample.job[1].rank = 0;
    sample.leaf[1].job = 5;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_string_equal(fault.section, "leaf");
    assert_non_null(strstr(fault.what, "do not follow each other"));
    fill_pair();
    sample.entry[1].job = 5;
    sample.entry[1].tree = 1;
    sample.job[1].rank_count = 4;
    sample.child[2].rank = sample.child[3].rank = BY_RANK_NONE;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_string_equal(fault.section, "entry");
    assert_non_null(strstr(fault.what, "root of the tree before"));
}

static void a_pair_joins_at_most_32767_ranks(void **state)
{
    struct by_image_fault fault;

    (void)state;
    fill_pair();
    sample.job[0].rank_count = sample.entry[0].nleaf = sample.entry[1].nleaf = 32767;
    assert_int_equal(check(&fault), 0);
    sample.job[0].rank_count = sample.entry[0].nleaf = sample.entry[1].nleaf = 32768;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_string_equal(fault.section, "entry");
    /* The leaves alone: the root is elsewhere. */
    sample.entry[0].nleaf = 4;
    sample.entry[1] = sample.entry[0];
    sample.entry[1].tree = 2;
    sample.entry[1].first_child = 2;
    sample.entry[1].slot_base = 8;
    assert_int_equal(check(&fault), BY_ELIMIT);
    assert_string_equal(fault.section, "leaf");
    assert_non_null(strstr(fault.what, "32767"));
}

static void fields_that_belong_together_are_checked_together(void **state)
{
    struct by_image_fault fault;

    (void)state;
    sample_fill(&sample); /* mode DET for more children than a set holds: no such depth */
    sample.entry[0].depth = 2;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_non_null(strstr(fault.what, "depth"));
    sample_fill(&sample); /* two leaves of this host in one entry */
    sample.child[0] = sample.child[1];
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_non_null(strstr(fault.what, "a second one"));
    sample_fill(&sample);
    sample.child[0].node = BY_NODE_NONE;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_non_null(strstr(fault.what, "child's node is missing"));
    sample_fill(&sample); /* a leaf of a job of which this host is no rank */
    sample.leaf[1].job = 5;
    sample.leaf[1].tree = 0;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_non_null(strstr(fault.what, "not a rank"));
    sample_fill(&sample);
    memset(sample.key[1].key, 0, sizeof(sample.key[1].key));
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_string_equal(fault.section, "key");
    assert_non_null(strstr(fault.what, "zero"));
    sample_fill(&sample); /* children of no entry */
    sample.entry[1].child_count = 1;
    sample.entry[1].nleaf = 1;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_string_equal(fault.section, "child");
    assert_non_null(strstr(fault.what, "belong to no entry"));
    sample_fill(&sample); /* a local parent without any entry before it */
    sample.leaf[0].tree = 0;
    sample.entry[0].tree = 1;
    sample.entry[0].job = 1;
    assert_int_equal(check(&fault), BY_EFORMAT);
    assert_non_null(strstr(fault.what, "no entry of tree"));
}

static void relays_between_a_node_and_its_parent_are_checked(void **state)
{
    static const struct {
        struct by_image_hop hop;
        const char *what;
    } rows[] = {
        {{1, 0, 3, 7, BY_HOP_RELAY, 2, 9}, NULL},
        {{1, 0, 3, 7, BY_HOP_RELAY, 1, 9}, "the first one"},
        {{1, 0, 3, BY_NODE_NONE, BY_HOP_RELAY, 2, 9}, "above the root"},
        {{1, 0, 3, 7, BY_HOP_RELAY, 2, BY_NODE_NONE}, "a further relay is missing"},
        {{1, 0, 3, 7, BY_HOP_RELAY, 2, 3}, "one of its neighbours"},
        {{1, 0, 3, 7, BY_HOP_RELAY, 2, 7}, "one of its neighbours"},
        {{1, 0, 3, 7, 0, 1, 9}, NULL},
        {{1, 0, 3, 7, 0, 0, 9}, "not counted"},
        {{1, 0, 3, 7, 0, 1, BY_NODE_NONE}, "relay to the parent is missing"},
        {{1, 0, 3, 7, 0, 1, 3}, "relay to the parent is missing"},
    };
    struct by_image_fault fault;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        sample_fill(&sample);
        sample.hop[2] = rows[i].hop;
        assert_int_equal(check(&fault), rows[i].what ? BY_EFORMAT : 0);
        if (rows[i].what)
            assert_non_null(strstr(fault.what, rows[i].what));
    }
}

/* Returns the check of a switch's table with this many records of a section; the records are those
 * of `put`. */
static int check_many(unsigned section, uint32_t count, void (*put)(uint8_t *bytes, uint32_t index),
                      struct by_image_fault *fault)
{
    struct by_image_header header = {.node = 1, .kind = BY_NODE_SWITCH, .name = "s"};
    uint8_t *bytes;
    int error;

    header.count[section] = count;
    bytes = calloc(1, by_image_bytes(header.count));
    assert_non_null(bytes);
    by_image_put_header(bytes, &header);
    for (uint32_t i = 0; i < count; i++)
        put(bytes, i);
    by_image_seal(bytes);
    *fault = (struct by_image_fault){.what = "", .section = ""};
    error = by_image_check(bytes, by_image_bytes(header.count), NULL, fault);
    free(bytes);
    return error;
}

static uint32_t shared; /* jobs with a share, from the first one on */

static void put_job(uint8_t *bytes, uint32_t index)
{
    struct by_image_job job = {.job = (uint16_t)index,
                               .rank_count = 2,
                               .rank = BY_RANK_NONE,
                               .tree_count = 1,
                               .udp_port = 1,
                               .share = index < shared};

    by_image_put_job(bytes, index, &job);
}

static void more_than_64_jobs_with_a_share_or_1024_jobs_are_refused(void **state)
{
    struct by_image_fault fault;

    (void)state;
    shared = BY_SHARES_MAX;
    assert_int_equal(check_many(BY_SECTION_JOB, BY_JOBS_MAX, put_job, &fault), 0);
    shared++;
    assert_int_equal(check_many(BY_SECTION_JOB, BY_JOBS_MAX, put_job, &fault), BY_ELIMIT);
    assert_non_null(strstr(fault.what, "64 jobs with a share"));
    assert_int_equal(check_many(BY_SECTION_JOB, BY_JOBS_MAX + 1, put_job, &fault), BY_ELIMIT);
    assert_non_null(strstr(fault.what, "more than 1024 jobs"));
}

/* Generations of job 7, which a test changes. */
static struct by_image_job generations[BY_STANDBYS_MAX + 2];

static void put_generation(uint8_t *bytes, uint32_t index)
{
    by_image_put_job(bytes, index, &generations[index]);
}

static int check_generations(uint32_t count, const char *words)
{
    struct by_image_fault fault;
    int error = check_many(BY_SECTION_JOB, count, put_generation, &fault);

    if (words != NULL && strstr(fault.what, words) == NULL)
        fail_msg("'%s' lacks '%s'", fault.what, words);
    return error;
}

static void generations_of_a_job_ascend_by_trees_and_are_alike_otherwise(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < BY_STANDBYS_MAX + 2; i++)
        generations[i] = (struct by_image_job){.job = 7,
                                               .gen = (uint16_t)(40 + i),
                                               .rank_count = 2,
                                               .rank = BY_RANK_NONE,
                                               .tree_count = (uint16_t)(3 * i + 1),
                                               .udp_port = 1,
                                               .share = i == 0};
    assert_int_equal(check_generations(BY_STANDBYS_MAX + 1, NULL), 0);
    assert_int_equal(check_generations(BY_STANDBYS_MAX + 2, "more than 4 standby generations"), BY_ELIMIT);
#define REFUSED(field, value, words)                                                                         \
    do {                                                                                                     \
        struct by_image_job sound = generations[2];                                                          \
        generations[2].field = (value);                                                                      \
        assert_int_equal(check_generations(3, words), BY_EFORMAT);                                           \
        generations[2] = sound;                                                                              \
    } while (0)
    REFUSED(gen, 40, "generation twice");
    REFUSED(gen, 41, "generation twice");
    REFUSED(tree_count, 4, "do not ascend");
    REFUSED(rank_count, 3, "ranks or UDP port");
    REFUSED(udp_port, 2, "ranks or UDP port");
    REFUSED(share, 1, "has a share");
    REFUSED(job, 6, "jobs do not ascend");
#undef REFUSED
}

static void a_longer_image_than_any_node_accepts_is_refused(void **state)
{
    static uint8_t head[BY_IMAGE_HEADER_BYTES];
    struct by_image_fault fault = {.what = ""};

    (void)state;
    sample_fill(&sample);
    sample_write(&sample, image);
    memcpy(head, image, sizeof(head));
    by_put32(head + 8, BY_IMAGE_BYTES_MAX + 8);
    assert_int_equal(by_image_check(head, BY_IMAGE_BYTES_MAX + 8, NULL, &fault), BY_ELIMIT);
    assert_non_null(strstr(fault.what, "longer than 67108864"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_of_trees_is_a_sound_table),
        cmocka_unit_test(halves_that_differ_are_refused),
        cmocka_unit_test(a_tree_down_of_another_job_is_refused),
        cmocka_unit_test(a_pair_joins_at_most_32767_ranks),
        cmocka_unit_test(fields_that_belong_together_are_checked_together),
        cmocka_unit_test(relays_between_a_node_and_its_parent_are_checked),
        cmocka_unit_test(more_than_64_jobs_with_a_share_or_1024_jobs_are_refused),
        cmocka_unit_test(generations_of_a_job_ascend_by_trees_and_are_alike_otherwise),
        cmocka_unit_test(a_longer_image_than_any_node_accepts_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
