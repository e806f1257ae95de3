/* The agent's state beyond one table: what it saves for the switch's next start and offers then,
 * which pushes wait, and which controllers may still write. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "offload/base/errors.h"
#include "tests/unit/firmware/agent/rig.h"

static int restore(struct rig_bench *bench, uint64_t hash)
{
    client_request(&bench->request, by_Request_restore_tag);
    bench->request.body.restore.hash = hash;
    return ask(bench);
}

static void a_committed_table_is_kept_and_a_validated_one_is_not(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&wide, &bytes);

    assert_int_equal(stage_all(bench, image, bytes), 0);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), 0);
    assert_int_equal(bench->kept_bytes, 0);
    assert_int_equal(commit(bench, by_image_hash(image, bytes)), 0);
    assert_int_equal(bench->kept_bytes, bytes);
    assert_memory_equal(bench->kept, image, bytes);
    free(image);
}

static void a_table_of_an_earlier_life_is_offered_and_active_only_by_command(void **state)
{
    struct rig_bench *bench = *state;
    const by_HelloReply *hello = &bench->response.body.hello;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    uint64_t hash = by_image_hash(image, bytes);

    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(hello->saved_hash, hash);
    assert_int_equal(hello->saved_cookie, small.cookie);
    assert_int_equal(hello->table_hash, 0);
    assert_int_equal(restore(bench, hash + 1), BY_ENOENT);
    assert_non_null(strstr(bench->response.text, "push the images instead"));
    assert_int_equal(restore(bench, hash), 0);
    assert_int_equal(bench->response.body.stage.received, bytes);
    assert_int_equal(commit(bench, hash), BY_ESTATE); /* must be validated like any other */
    assert_int_equal(validate(bench, hash), 0);
    assert_int_equal(bench->commits, 0);
    assert_int_equal(commit(bench, hash), 0);
    assert_int_equal(active_hash(bench), hash);
    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(hello->saved_hash, 0); /* not offered any more */
    assert_int_equal(restore(bench, hash), BY_ENOENT);
    free(image);
}

static void a_push_from_outside_ends_the_offer_of_an_earlier_life(void **state)
{
    struct rig_bench *bench = *state;

    push(bench, &wide);
    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.hello.saved_hash, 0);
}

static void hello_tells_what_waits_and_which_push_it_is_of(void **state)
{
    struct rig_bench *bench = *state;
    const by_HelloReply *hello = &bench->response.body.hello;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    uint64_t hash = by_image_hash(image, bytes);

    assert_int_equal(stage_all(bench, image, bytes), 0);
    client_request(&bench->request, by_Request_validate_tag);
    bench->request.body.validate.hash = hash;
    bench->request.body.validate.push = 17;
    assert_int_equal(ask(bench), 0);
    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(hello->validated_hash, hash);
    assert_int_equal(hello->validated_push, 17);
    assert_int_equal(hello->table_push, 0);
    assert_int_equal(commit(bench, hash), 0);
    client_request(&bench->request, by_Request_hello_tag);
    assert_int_equal(ask(bench), 0);
    assert_int_equal(hello->validated_hash, 0);
    assert_int_equal(hello->validated_push, 0);
    assert_int_equal(hello->table_push, 17);
    free(image);
}

static void a_hello_of_a_writer_fences_older_ones(void **state)
{
    struct rig_bench *bench = *state;
    const uint64_t ids[] = {0, 6, 0, 5}; /* a reader, a writer, a reader, an older writer */

    for (size_t i = 0; i < 4; i++) {
        client_request(&bench->request, by_Request_hello_tag);
        bench->request.election_id = ids[i];
        assert_int_equal(ask(bench), i == 3 ? BY_EPERM : 0);
    }
    client_request(&bench->request, by_Request_abort_tag);
    bench->request.election_id = 5;
    assert_int_equal(ask(bench), BY_EPERM);
}

/* Starts a Stage of pieces over the active table. */
static by_Stage *pieces_of(struct rig_bench *bench, size_t total, unsigned count)
{
    by_Stage *stage = &bench->request.body.stage;

    client_request(&bench->request, by_Request_stage_tag);
    stage->total = (uint32_t)total;
    stage->base = active_hash(bench);
    stage->pieces_count = (pb_size_t)count;
    return stage;
}

static void a_table_is_made_of_pieces_of_the_active_one(void **state)
{
    struct rig_bench *bench = *state;
    struct star other = small;
    size_t bytes;
    uint8_t *image;
    by_Stage *stage;

    push(bench, &small);
    other.cookie = 99;
    image = star_image(&other, &bytes);
    /* The header is new, with another cookie and checksum; the rest is copied. */
    stage = pieces_of(bench, bytes, 2);
    stage->data.size = BY_IMAGE_HEADER_BYTES;
    memcpy(stage->data.bytes, image, BY_IMAGE_HEADER_BYTES);
    stage->pieces[0] = (by_Piece){.literal = 100};
    stage->pieces[1] = (by_Piece){.literal = BY_IMAGE_HEADER_BYTES - 100,
                                  .from = BY_IMAGE_HEADER_BYTES,
                                  .copy = (uint32_t)bytes - BY_IMAGE_HEADER_BYTES};
    assert_int_equal(ask(bench), 0);
    assert_int_equal(bench->response.body.stage.received, bytes);
    assert_int_equal(validate(bench, by_image_hash(image, bytes)), 0);
    assert_int_equal(commit(bench, by_image_hash(image, bytes)), 0);
    assert_int_equal(active_hash(bench), by_image_hash(image, bytes));
    free(image);
}

static void pieces_beyond_either_image_are_refused(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    const struct {
        by_Piece piece;
        unsigned data;
    } wrong[] = {
        {{.from = (uint32_t)bytes, .copy = 1}, 0},
        {{.from = 1, .copy = (uint32_t)bytes}, 0},
        {{.from = UINT32_MAX, .copy = UINT32_MAX}, 0},
        {{.from = UINT32_MAX, .copy = 2}, 0}, /* the sum in 32 bits is 1 */
        {{.literal = 5}, 4},
        {{.literal = 4}, 5},
        {{.literal = UINT32_MAX, .copy = 2}, 1},
    };
    by_Stage *stage;

    push(bench, &small);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        stage = pieces_of(bench, bytes, 1);
        stage->pieces[0] = wrong[i].piece;
        stage->data.size = (pb_size_t)wrong[i].data;
        assert_int_equal(ask(bench), BY_ERANGE);
    }
    stage = pieces_of(bench, bytes, 2); /* the sum of the literals in 32 bits is 1 */
    stage->pieces[0] = (by_Piece){.literal = UINT32_MAX};
    stage->pieces[1] = (by_Piece){.literal = 2};
    stage->data.size = 1;
    assert_int_equal(ask(bench), BY_ERANGE);
    /* More than the size of the staged image. */
    stage = pieces_of(bench, bytes - 1, 1);
    stage->pieces[0] = (by_Piece){.copy = (uint32_t)bytes};
    assert_int_equal(ask(bench), BY_ERANGE);
    stage = pieces_of(bench, bytes, 1);
    stage->base++;
    stage->pieces[0] = (by_Piece){.copy = (uint32_t)bytes};
    assert_int_equal(ask(bench), BY_ESTATE);
    free(image);
}

static void pieces_without_an_active_table_are_refused(void **state)
{
    struct rig_bench *bench = *state;

    client_request(&bench->request, by_Request_stage_tag);
    bench->request.body.stage.total = 1000;
    bench->request.body.stage.pieces_count = 1;
    bench->request.body.stage.pieces[0] = (by_Piece){.copy = 1000};
    assert_int_equal(ask(bench), BY_ESTATE);
}

int main(void)
{
#define TEST(name, setup) cmocka_unit_test_setup_teardown(name, setup, free_bench)
    const struct CMUnitTest tests[] = {
        TEST(a_committed_table_is_kept_and_a_validated_one_is_not, make_bench),
        TEST(a_table_of_an_earlier_life_is_offered_and_active_only_by_command, make_bench_restarted),
        TEST(a_push_from_outside_ends_the_offer_of_an_earlier_life, make_bench_restarted),
        TEST(hello_tells_what_waits_and_which_push_it_is_of, make_bench),
        TEST(a_hello_of_a_writer_fences_older_ones, make_bench),
        TEST(a_table_is_made_of_pieces_of_the_active_one, make_bench),
        TEST(pieces_beyond_either_image_are_refused, make_bench),
        TEST(pieces_without_an_active_table_are_refused, make_bench),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
