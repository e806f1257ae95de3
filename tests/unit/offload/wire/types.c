/* The lists of protocol constants: names, sizes, and values outside the lists. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "offload/wire/types.h"

typedef const char *name_fn(unsigned value);

static void check_names(name_fn *name, unsigned (*from_name)(const char *name), unsigned count)
{
    assert_string_equal(name(0), "?");
    assert_string_equal(name(count), "?");
    assert_string_equal(name(UINT32_MAX), "?");
    for (unsigned value = 1; value < count; value++) {
        char longer[32] = {0};

        assert_int_equal(from_name(name(value)), value);
        strncpy(longer, name(value), sizeof(longer) - 2);
        longer[strlen(longer)] = 'x';
        assert_int_equal(from_name(longer), 0);
    }
    assert_int_equal(from_name(""), 0);
    assert_int_equal(from_name("?"), 0);
}

static void a_name_is_that_of_one_value_and_no_prefix_is_one(void **state)
{
    (void)state;
    check_names(by_op_name, by_op_from_name, BY_OP_COUNT);
    check_names(by_dtype_name, by_dtype_from_name, BY_DTYPE_COUNT);
    check_names(by_collective_name, by_collective_from_name, BY_COLLECTIVE_COUNT);
    check_names(by_mode_name, by_mode_from_name, BY_MODE_COUNT);
}

static void a_collective_has_the_properties_of_its_row(void **state)
{
    static const struct {
        unsigned collective, rooted, sharded, reduces, way;
    } rows[] = {{BY_COLLECTIVE_ALLREDUCE, 0, 0, 1, BY_DATA_BOTH},
                {BY_COLLECTIVE_REDUCE_SCATTER, 0, 1, 1, BY_DATA_UP},
                {BY_COLLECTIVE_ALLGATHER, 0, 1, 0, BY_DATA_DOWN},
                {BY_COLLECTIVE_BROADCAST, 1, 0, 0, BY_DATA_DOWN},
                {BY_COLLECTIVE_REDUCE, 1, 0, 1, BY_DATA_UP},
                {BY_COLLECTIVE_BARRIER, 0, 0, 0, BY_DATA_BOTH},
                {0, 0, 0, 0, 0},
                {BY_COLLECTIVE_COUNT, 0, 0, 0, 0},
                {UINT32_MAX, 0, 0, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        unsigned collective = rows[i].collective;

        assert_int_equal(by_collective_is_rooted(collective), rows[i].rooted);
        assert_int_equal(by_collective_is_sharded(collective), rows[i].sharded);
        assert_int_equal(by_collective_reduces(collective), rows[i].reduces);
        assert_int_equal(by_collective_way(collective), rows[i].way);
    }
}

static void an_unknown_element_type_has_no_size(void **state)
{
    (void)state;
    assert_int_equal(by_dtype_bytes(0), 0);
    assert_int_equal(by_dtype_bytes(BY_DTYPE_U8), 1);
    assert_int_equal(by_dtype_bytes(BY_DTYPE_BF16), 2);
    assert_int_equal(by_dtype_bytes(BY_DTYPE_F64), 8);
    assert_int_equal(by_dtype_bytes(BY_DTYPE_COUNT), 0);
    assert_int_equal(by_dtype_bytes(UINT32_MAX), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_is_that_of_one_value_and_no_prefix_is_one),
        cmocka_unit_test(a_collective_has_the_properties_of_its_row),
        cmocka_unit_test(an_unknown_element_type_has_no_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
