/* What a switch keeps: the journal of its events and the copies of tables for the next start. And
 * texts of refusals whose numbers an operator acts on. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "firmware/agent/journal.h"
#include "firmware/agent/saved.h"
#include "offload/base/bytes.h"
#include "offload/table/image.h"
#include "tests/unit/firmware/agent/rig.h"

static void a_repeated_event_is_counted_with_the_time_of_the_last(void **state)
{
    static struct by_journal journal;
    const struct by_journal_event *event;

    (void)state;
    by_journal_add(&journal, 10, "port p0 is down");
    by_journal_add(&journal, 20, "port p0 is down");
    by_journal_add(&journal, 30, "port p0 is down");
    by_journal_add(&journal, 40, "port p0 is up");
    assert_int_equal(journal.next, 2);
    event = by_journal_at(&journal, 0);
    assert_int_equal(event->times, 3);
    assert_int_equal(event->time_ns, 30);
    assert_string_equal(event->text, "port p0 is down");
    event = by_journal_at(&journal, 1);
    assert_int_equal(event->times, 1);
    assert_int_equal(event->time_ns, 40);
    assert_null(by_journal_at(&journal, 2));
}

static void the_journal_keeps_the_latest_events(void **state)
{
    static struct by_journal journal;
    char text[40];

    (void)state;
    for (unsigned i = 0; i < BY_JOURNAL_EVENTS + 3; i++) {
        assert_int_equal(by_journal_first(&journal), i > BY_JOURNAL_EVENTS ? i - BY_JOURNAL_EVENTS : 0);
        snprintf(text, sizeof text, "event %u", i);
        by_journal_add(&journal, i, text);
    }
    assert_null(by_journal_at(&journal, 2));
    assert_string_equal(by_journal_at(&journal, 3)->text, "event 3");
    assert_string_equal(by_journal_at(&journal, BY_JOURNAL_EVENTS + 2)->text, text);
}

static void a_long_event_is_cut_and_its_repetition_recognised(void **state)
{
    static struct by_journal journal;
    char text[2 * BY_JOURNAL_TEXT_BYTES];

    (void)state;
    memset(text, 'x', sizeof text);
    text[BY_JOURNAL_TEXT_BYTES + 5] = 0;
    by_journal_add(&journal, 1, text);
    by_journal_add(&journal, 2, text);
    assert_int_equal(journal.next, 1);
    assert_int_equal(strlen(by_journal_at(&journal, 0)->text), BY_JOURNAL_TEXT_BYTES - 1);
    text[BY_JOURNAL_TEXT_BYTES - 2] = 0; /* one character shorter than what is kept */
    by_journal_add(&journal, 3, text);
    assert_int_equal(journal.next, 2);
}

static void a_saved_copy_is_checked_in_every_part(void **state)
{
    static uint8_t copy[BY_SAVED_HEADER_BYTES + 8192];
    size_t image_bytes, bytes;
    uint8_t *image = star_image(&small, &image_bytes);
    uint64_t sequence = 0;

    (void)state;
    bytes = BY_SAVED_HEADER_BYTES + image_bytes;
    assert_in_range(bytes, 1, sizeof copy);
    memcpy(copy + BY_SAVED_HEADER_BYTES, image, image_bytes);
    by_saved_seal(copy, bytes, 77);
    assert_int_equal(by_saved_bytes(copy), bytes);
    assert_null(by_saved_check(copy, bytes, &sequence));
    assert_int_equal(sequence, 77);
    assert_string_equal(by_saved_check(copy, bytes - 1, &sequence), "truncated");
    assert_string_equal(by_saved_check(copy, bytes + 1, &sequence), "truncated");
    assert_string_equal(by_saved_check(copy, BY_SAVED_HEADER_BYTES - 1, &sequence), "not a saved table");
    for (size_t i = 0; i < bytes; i++) {
        bool is_unused = i >= 24 && i < BY_SAVED_HEADER_BYTES;
        const char *fault;

        copy[i] ^= 0x10;
        fault = by_saved_check(copy, bytes, &sequence);
        assert_true(is_unused == (fault == NULL));
        assert_true(i >= 8 || (strcmp(fault, "not a saved table") == 0 && by_saved_bytes(copy) == 0));
        copy[i] ^= 0x10;
    }
    copy[BY_SAVED_HEADER_BYTES] ^= 1; /* a damaged image under a checksum that matches */
    by_saved_seal(copy, bytes, 78);
    assert_string_equal(by_saved_check(copy, bytes, &sequence), "its image is not valid");
    free(image);
}

static void refusals_state_what_is_there(void **state)
{
    struct rig_bench *bench = *state;
    size_t bytes;
    uint8_t *image = star_image(&small, &bytes);
    char want[200];

    push(bench, &small);
    client_request(&bench->request, by_Request_read_tag);
    bench->request.body.read.offset = (uint32_t)bytes + 1;
    bench->request.body.read.bytes = 1;
    assert_int_not_equal(ask(bench), 0);
    snprintf(want, sizeof want, "read: offset %zu is beyond the active image of %zu bytes", bytes + 1, bytes);
    assert_string_equal(bench->response.text, want);
    assert_int_not_equal(validate(bench, 5), 0);
    assert_string_equal(bench->response.text,
                        "validate: 0 of 0 bytes are staged: stage the whole image first");
    free(image);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_repeated_event_is_counted_with_the_time_of_the_last),
        cmocka_unit_test(the_journal_keeps_the_latest_events),
        cmocka_unit_test(a_long_event_is_cut_and_its_repetition_recognised),
        cmocka_unit_test(a_saved_copy_is_checked_in_every_part),
        cmocka_unit_test_setup_teardown(refusals_state_what_is_there, make_bench, free_bench),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
