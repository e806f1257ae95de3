/* The controller's end of the control channel, with bytes from any switch or impostor. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pb_encode.h>

#include "control/base/alloc.h"
#include "control/service/controller/message.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

static void a_message_in_pieces_is_incomplete_and_one_too_long_is_refused(void **state)
{
    by_Request request = {.version = 1, .id = 5, .which_body = by_Request_hello_tag};
    by_Response *response = by_alloc(1, sizeof(*response));
    uint8_t bytes[64], answer[] = {0, 0, 0, 4, 0x08, 1, 0x10, 5}; /* version 1, id 5 */
    size_t used = 0;

    (void)state;
    assert_int_equal(by_message_encode(&request, bytes, 3), 0);
    assert_int_equal(by_message_encode(&request, bytes, 6), 0);
    assert_true(by_message_encode(&request, bytes, sizeof(bytes)) > BY_MESSAGE_LENGTH_BYTES);
    for (size_t i = 0; i < sizeof(answer); i++)
        assert_int_equal(by_message_decode(answer, i, response, &used), BY_EAGAIN);
    assert_int_equal(by_message_decode(answer, sizeof(answer), response, &used), 0);
    assert_int_equal(used, sizeof(answer));
    assert_int_equal(response->id, 5);
    answer[5] = 2;
    assert_int_equal(by_message_decode(answer, sizeof(answer), response, &used), BY_EVERSION);
    by_put32(answer, BY_MESSAGE_BYTES_MAX + 1);
    assert_int_equal(by_message_decode(answer, sizeof(answer), response, &used), BY_EFORMAT);
    free(response);
}

static const char rude[] = "a\033[2J\nb\xff", as_text[] = "a?[2J?b?";

/* Encodes a response and decodes it at the controller's end. */
static void pass(const by_Response *sent, by_Response *read)
{
    uint8_t bytes[512];
    pb_ostream_t stream = pb_ostream_from_buffer(bytes + BY_MESSAGE_LENGTH_BYTES, 500);
    size_t used;

    assert_true(pb_encode(&stream, by_Response_fields, sent));
    by_put32(bytes, (uint32_t)stream.bytes_written);
    assert_int_equal(by_message_decode(bytes, BY_MESSAGE_LENGTH_BYTES + stream.bytes_written, read, &used),
                     0);
    assert_string_equal(read->text, as_text);
}

/* The texts of the process at an address appear on users' terminals and in JSON. */
static void what_a_switch_says_is_plain_text(void **state)
{
    by_Response *sent = by_alloc(1, sizeof(*sent)), *read = by_alloc(1, sizeof(*read));

    (void)state;
    *sent = (by_Response){.version = BY_MESSAGE_VERSION, .which_body = by_Response_hello_tag};
    strcpy(sent->text, rude);
    strcpy(sent->body.hello.name, rude);
    strcpy(sent->body.hello.software, rude);
    strcpy(sent->body.hello.board, rude);
    pass(sent, read);
    assert_string_equal(read->body.hello.name, as_text);
    assert_string_equal(read->body.hello.software, as_text);
    assert_string_equal(read->body.hello.board, as_text);

    sent->which_body = by_Response_counters_tag;
    sent->body.counters = (by_CountersReply){.engine_count = 1, .ports_count = 1};
    strcpy(sent->body.counters.engine[0].name, rude);
    strcpy(sent->body.counters.ports[0].name, rude);
    pass(sent, read);
    assert_string_equal(read->body.counters.engine[0].name, as_text);
    assert_string_equal(read->body.counters.ports[0].name, as_text);

    sent->which_body = by_Response_log_tag;
    sent->body.log = (by_LogReply){.events_count = 1};
    strcpy(sent->body.log.events[0].text, rude);
    pass(sent, read);
    assert_string_equal(read->body.log.events[0].text, as_text);
    free(sent);
    free(read);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_message_in_pieces_is_incomplete_and_one_too_long_is_refused),
        cmocka_unit_test(what_a_switch_says_is_plain_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
