/* Missing ranks below a node's own children: questions to a child that has not contributed, its
 * answers, and how the node reports them to its parent and to the children that ask. repair.c tests
 * duplicates and probes themselves. */
#include "tests/unit/offload/engine/rig.h"

#define DEEP 321u /* a node further down */

static struct engine_rig rig;
static const struct rig_entry root = {.job = 1, .gen = 7, .root = 1, .children = 3, .window = 4};
static const struct rig_entry below = {.job = 1, .gen = 7, .root = 0, .children = 2, .window = 4};
static const float one[2] = {1, 2}, two[2] = {2, 4}, nine[2] = {9, 9};

static int start_root(void **state)
{
    (void)state;
    rig_start(&rig, &root, 1);
    return 0;
}

static int start_below(void **state)
{
    (void)state;
    rig_start(&rig, &below, 1);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    rig_close(&rig);
    return 0;
}

static void contribute(const struct rig_entry *entry, unsigned child, uint32_t seq)
{
    struct rig_packet packet = rig_contrib(entry, child, seq, one, 2);

    rig_send(&rig, &packet);
}

/* The parent sends a PROBE. */
static void ask(uint32_t seq)
{
    struct rig_packet packet = rig_result(&below, seq, NULL, 0);

    packet.header.type = BY_TYPE_PROBE;
    packet.header.flags = 0;
    rig_send(&rig, &packet);
}

/* `child` reports that DEEP, a node below it, waits for its children `missing`. */
static void say(const struct rig_entry *entry, unsigned child, uint32_t seq, unsigned wait_state,
                uint64_t missing)
{
    const struct by_wait wait = {.node = 300, .at = DEEP, .state = (uint8_t)wait_state, .missing = missing};
    uint8_t bytes[BY_WAIT_BYTES];
    struct rig_packet packet = rig_contrib(entry, child, seq, one, 2);

    by_wait_encode(&wait, bytes);
    packet.header.type = BY_TYPE_WAIT;
    packet.payload = bytes;
    packet.bytes = BY_WAIT_BYTES;
    rig_send(&rig, &packet);
}

/* Action `index` is a WAIT for children of `at`, to `child` or (if negative) to the parent. */
static void expect_wait(const struct rig_entry *entry, uint32_t index, int child, uint16_t at,
                        uint64_t missing)
{
    const uint8_t *payload;
    struct by_header header = rig_action(&rig, entry, index, &payload);
    struct by_wait wait;

    assert_int_equal(header.type, BY_TYPE_WAIT);
    assert_int_equal(header.child, child < 0 ? RIG_PARENT_CHILD : child);
    assert_int_equal(rig.tx[index].port, child < 0 ? RIG_PARENT_PORT : child);
    assert_int_equal(by_wait_decode(payload, rig.tx[index].payload_bytes, &wait), 0);
    assert_int_equal(wait.node, RIG_NODE);
    assert_int_equal(wait.state, BY_WAIT_CHILDREN);
    assert_int_equal(wait.at, at);
    assert_true(wait.missing == missing);
}

static void expect_question(const struct rig_entry *entry, uint32_t index, unsigned child, uint32_t seq)
{
    struct by_header header = rig_action(&rig, entry, index, NULL);

    assert_int_equal(header.type, BY_TYPE_PROBE);
    assert_int_equal(header.child, child);
    assert_int_equal(header.seq, seq);
    assert_int_equal(rig.tx[index].port, child);
    assert_int_equal(rig.tx[index].payload_bytes, 0);
}

static void who_asks_in_vain_makes_the_node_ask_the_first_missing_child_once_an_interval(void **state)
{
    (void)state;
    contribute(&root, 1, 0);
    contribute(&root, 1, 0);
    assert_int_equal(rig.tx_count, 2);
    expect_wait(&root, 0, 1, RIG_NODE, 5);
    expect_question(&root, 1, 0, 0);
    contribute(&root, 0, 0);
    contribute(&root, 0, 0); /* another child, the same interval */
    assert_int_equal(rig.tx_count, 1);
    rig.now_ns += RIG_INTERVAL_NS;
    contribute(&root, 0, 0);
    assert_int_equal(rig.tx_count, 2);
    expect_question(&root, 1, 2, 0);
    assert_int_equal(by_engine_counters(rig.engine)->probe, 2);
}

static void without_a_clock_the_lowest_child_that_has_contributed_makes_it_ask(void **state)
{
    (void)state;
    rig.now_ns = 0;
    contribute(&root, 2, 0);
    contribute(&root, 1, 0);
    contribute(&root, 2, 0);
    assert_int_equal(rig.tx_count, 1);
    contribute(&root, 1, 0);
    assert_int_equal(rig.tx_count, 2);
    expect_question(&root, 1, 0, 0);
}

static void the_parents_question_is_answered_by_what_the_chunk_waits_for(void **state)
{
    (void)state;
    ask(0); /* no child has contributed */
    assert_int_equal(rig.tx_count, 2);
    expect_wait(&below, 0, -1, RIG_NODE, 3);
    expect_question(&below, 1, 0, 0);
    contribute(&below, 0, 0);
    ask(0);
    assert_int_equal(rig.tx_count, 2);
    expect_wait(&below, 0, -1, RIG_NODE, 2);
    expect_question(&below, 1, 1, 0);
    contribute(&below, 1, 0);
    rig_release(&rig);
    ask(0); /* the sum was sent just now */
    rig_expect_drop_of(&rig, drop_state);
    rig.now_ns += RIG_INTERVAL_NS;
    ask(0);
    rig_expect_up(&rig, &below, 0, BY_FLAG_RETX, two, 2);
    rig_release(&rig);
}

static void a_question_that_is_too_late_or_too_early_is_dropped(void **state)
{
    struct rig_packet result = rig_result(&below, 0, nine, 2);

    (void)state;
    contribute(&below, 0, 0);
    contribute(&below, 1, 0);
    rig_release(&rig);
    rig_send(&rig, &result);
    rig_release(&rig);
    ask(0);
    rig_expect_drop_of(&rig, drop_state);
    ask((uint32_t)-4);
    rig_expect_drop_of(&rig, drop_state);
    ask(16);
    rig_expect_drop_of(&rig, drop_state);
    assert_int_equal(rig.tx_count, 0);
}

static void what_a_missing_child_says_goes_up_and_to_those_who_ask(void **state)
{
    (void)state;
    say(&below, 1, 0, BY_WAIT_CHILDREN, 8); /* before any contribution here */
    assert_int_equal(rig.tx_count, 1);
    expect_wait(&below, 0, -1, DEEP, 8);
    contribute(&below, 0, 0);
    ask(0);
    expect_wait(&below, 0, -1, RIG_NODE, 2);
    say(&below, 1, 0, BY_WAIT_CHILDREN, 8);
    assert_int_equal(rig.tx_count, 1);
    expect_wait(&below, 0, -1, DEEP, 8);
    contribute(&below, 0, 0);
    expect_wait(&below, 0, 0, DEEP, 8);
    ask(0);
    expect_wait(&below, 0, -1, DEEP, 8);
    say(&below, 1, 0, BY_WAIT_CHILDREN, 4); /* h3 has contributed, h2 is missing */
    ask(0);
    expect_wait(&below, 0, -1, DEEP, 4);
    rig.now_ns += UINT64_C(1000000001); /* the report has expired: the node may have failed since */
    contribute(&below, 0, 0);
    expect_wait(&below, 0, 0, RIG_NODE, 2);
}

static void what_a_child_said_counts_while_that_child_is_missing(void **state)
{
    (void)state;
    contribute(&root, 0, 0);
    say(&root, 1, 0, BY_WAIT_CHILDREN, 2);
    assert_int_equal(rig.tx_count, 0); /* a root reports nothing until a child asks */
    contribute(&root, 0, 0);
    expect_wait(&root, 0, 0, DEEP, 2);
    contribute(&root, 1, 0);
    contribute(&root, 1, 0);
    expect_wait(&root, 0, 1, RIG_NODE, 4);
    contribute(&root, 2, 0); /* complete; the report does not apply to the bank's next chunk */
    rig_release(&rig);
    for (uint32_t seq = 4; seq <= 8; seq += 4)
        for (unsigned c = 0; c < (seq == 4 ? 3u : 1u); c++) {
            contribute(&root, c, seq);
            rig_release(&rig);
        }
    contribute(&root, 0, 8);
    expect_wait(&root, 0, 0, RIG_NODE, 6);
}

static void what_nobody_here_waits_for_is_dropped(void **state)
{
    (void)state;
    contribute(&root, 0, 0);
    say(&root, 0, 0, BY_WAIT_CHILDREN, 2); /* it has contributed */
    rig_expect_drop_of(&rig, drop_state);
    say(&root, 1, 0, BY_WAIT_PARENT, 0);
    rig_expect_drop_of(&rig, drop_state);
    say(&root, 1, (uint32_t)-4, BY_WAIT_CHILDREN, 2);
    rig_expect_drop_of(&rig, drop_state);
    say(&root, 1, 8, BY_WAIT_CHILDREN, 2); /* the bank is still in use for another chunk */
    rig_expect_drop_of(&rig, drop_state);
    contribute(&root, 0, 0);
    expect_wait(&root, 0, 0, RIG_NODE, 6);
}

#define ROOT(f)  cmocka_unit_test_setup_teardown(f, start_root, stop)
#define BELOW(f) cmocka_unit_test_setup_teardown(f, start_below, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ROOT(who_asks_in_vain_makes_the_node_ask_the_first_missing_child_once_an_interval),
        ROOT(without_a_clock_the_lowest_child_that_has_contributed_makes_it_ask),
        BELOW(the_parents_question_is_answered_by_what_the_chunk_waits_for),
        BELOW(a_question_that_is_too_late_or_too_early_is_dropped),
        BELOW(what_a_missing_child_says_goes_up_and_to_those_who_ask),
        ROOT(what_a_child_said_counts_while_that_child_is_missing),
        ROOT(what_nobody_here_waits_for_is_dropped),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
