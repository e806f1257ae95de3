/* Sessions with real agents (fake.h): requests that do not wait for each other, and notices. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/controller/push.h"
#include "control/service/controller/session.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "tests/unit/control/service/controller/fake.h"
#include "tests/unit/control/service/controller/setup.h"

static const struct by_session_options plain = {.timeout_ms = TIMEOUT};

/* As long as a push waits for one answer after another, each costs a round trip to a switch that is
 * busy with packets. */
static void an_image_is_sent_before_the_greeting_is_answered(void **state)
{
    struct setup setup;
    struct by_problem problem = {0};
    uint8_t *old;

    (void)state;
    setup_open(&setup, 4096);
    setup.fake[0]->together = setup.fake[1]->together = 3; /* Hello, Stage, Validate */
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    old = by_alloc(setup.targets[0].bytes, 1);
    memcpy(old, setup.targets[0].image, setup.targets[0].bytes);
    setup.targets[0].base = old;
    setup.targets[0].base_bytes = setup.targets[0].bytes;
    raise_generation(&setup);
    assert_int_equal(by_push(setup.targets, 2, &plain, &problem), 0);
    assert_int_equal(setup.fake[0]->missed + setup.fake[1]->missed, 0);
    assert_int_equal(setup.fake[0]->commits, 2);
    /* Another switch answers there: it may have validated the image, but does not commit it. */
    setup.targets[0].address = setup.fake[1]->address;
    assert_int_equal(by_push(setup.targets, 1, &plain, &problem), BY_ELIMIT);
    assert_non_null(strstr(problem.text, "answers as 'x1', and the image is for 'x0'"));
    assert_int_equal(setup.fake[1]->commits, 2);
    assert_int_equal(setup.fake[1]->aborts, 1);
    free(old);
    setup_close(&setup);
}

static void an_image_of_many_requests_is_loaded_whole(void **state)
{
    struct controller_fake *fake = fake_start("x0", 100, 64 * 16384);
    const struct by_session_options writer = {.timeout_ms = TIMEOUT, .election_id = 7};
    uint8_t *image = by_alloc(60 * 16384, 1); /* more requests than may be outstanding */
    struct by_problem problem = {0};
    struct by_session *session;
    by_HelloReply hello;

    (void)state;
    assert_int_equal(by_session_open(fake->address, &writer, &session, &problem), 0);
    assert_int_equal(by_session_load(session,
                                     &(struct by_session_load){.image = image,
                                                               .bytes = 60 * 16384,
                                                               .hash = by_image_hash(image, 60 * 16384) + 1},
                                     &hello, &problem),
                     BY_ECHECKSUM);
    assert_string_equal(hello.name, "x0");
    assert_int_equal(by_session_abort(session, &problem), 0);
    assert_int_equal(by_session_stage(session, image, 60 * 16384, &problem), 0);
    fake->hasty = 1; /* the first refusal ends it, and the session remains */
    assert_int_equal(by_session_stage(session, image, 60 * 16384, &problem), BY_EAGAIN);
    assert_true(by_session_refused(session));
    by_session_close(session);
    fake_stop(fake);
    free(image);
}

/* Waits for a notice, for two seconds at most. */
static int await_notice(struct by_session *session, by_CountersReply *reply)
{
    struct by_problem problem = {0};
    int error = BY_EAGAIN;

    for (unsigned i = 0; i < 2000 && error == BY_EAGAIN; i++) {
        error = by_session_notice(session, reply, &problem);
        if (error == BY_EAGAIN)
            usleep(1000);
    }
    return error;
}

static void notices_come_unasked_and_an_answer_replaces_those_before_it(void **state)
{
    const struct by_session_options notify = {.timeout_ms = TIMEOUT, .notify = true};
    struct controller_fake *fake = fake_start("x0", 100, IMAGE_MAX);
    by_CountersReply *counters = by_alloc(1, sizeof(*counters));
    struct by_problem problem = {0};
    struct by_session *session, *other;
    by_HelloReply hello;

    (void)state;
    assert_int_equal(by_session_open(fake->address, &notify, &session, &problem), 0);
    assert_int_equal(by_session_open(fake->address, &plain, &other, &problem), 0);
    fake_notify(fake); /* no client has requested notices yet */
    assert_int_equal(by_session_counters(session, counters, &problem), 0);
    assert_int_equal(by_session_counters(other, counters, &problem), 0);
    assert_int_equal(by_session_notice(session, counters, &problem), BY_EAGAIN);
    for (int down = 1; down >= 0; down--) {
        fake->down[1] = down;
        fake_notify(fake);
        assert_int_equal(await_notice(session, counters), 0);
        assert_int_equal(counters->ports[1].down, down);
        assert_int_equal(counters->ports[0].down, 0);
        assert_int_equal(by_session_notice(session, counters, &problem), BY_EAGAIN);
    }
    fake->down[0] = true; /* before the answer of another request it is kept, and other calls go on */
    fake_notify(fake);
    assert_int_equal(by_session_hello(session, &hello, &problem), 0);
    assert_int_equal(await_notice(session, counters), 0);
    assert_int_equal(counters->ports[0].down, 1);
    fake_notify(fake); /* the answer is newer than this one */
    fake->down[0] = false;
    assert_int_equal(by_session_counters(session, counters, &problem), 0);
    assert_int_equal(counters->ports[0].down, 0);
    assert_int_equal(by_session_notice(session, counters, &problem), BY_EAGAIN);
    assert_int_equal(by_session_notice(other, counters, &problem), BY_EAGAIN);
    fake_stop(fake); /* the end of the connection is no notice */
    assert_int_equal(await_notice(session, counters), BY_EIO);
    by_session_close(session);
    by_session_close(other);
    free(counters);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_image_is_sent_before_the_greeting_is_answered),
        cmocka_unit_test(an_image_of_many_requests_is_loaded_whole),
        cmocka_unit_test(notices_come_unasked_and_an_answer_replaces_those_before_it),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
