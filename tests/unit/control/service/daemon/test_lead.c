/* The election of a leader and the renewal of its lease, with an etcd, a clock and a thread that
 * the test simulates. */
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/lead.h"
#include "control/service/daemon/say.h"
#include "offload/base/errors.h"
#include "offload/linux/notify.h"
#include "tests/unit/control/service/daemon/descriptors.h"
#include "tests/unit/control/service/daemon/record.h"

enum { CLIENTS = 2 };

/* The same for all, apart from its address. */
struct lead_client {
    bool open;
};

static struct {
    struct by_lead *lead;
    struct lead_client clients[CLIENTS]; /* of the wait, and of the renewal */
    unsigned opened;
    unsigned descriptors; /* of the process before the lead was opened */
    /* etcd */
    char leader[160]; /* value of the key, "": there is none */
    int64_t revision, lease;
    int open_error, survey_error, get_error, grant_error, put_error, renew_error;
    int64_t granted, left_s; /* the lease that it grants; what is left after a renewal */
    /* the wait and the renewals */
    unsigned pauses, last;          /* the last one is ended: by a signal, or the end */
    void (*after)(unsigned pauses); /* changes what happens */
    void *(*run)(void *);
    void *argument;
    int see_error;
} rig;

/* ---- etcd ---- */

static int result(int error, const char *text, struct by_problem *problem)
{
    return error == 0 ? 0 : by_problem_say(problem, error, "%s", text);
}

int by_etcd_open(const char *text, const char *keys, struct by_etcd **etcd, struct by_problem *problem)
{
    assert_string_equal(text, "etcd:http://a");
    assert_string_equal(keys, "keys");
    if (rig.open_error != 0 && rig.opened == 1)
        return result(rig.open_error, "no client", problem);
    rig.clients[rig.opened].open = true;
    *etcd = (struct by_etcd *)&rig.clients[rig.opened++];
    return 0;
}

void by_etcd_close(struct by_etcd *etcd)
{
    struct lead_client *client = (struct lead_client *)etcd;

    if (client == NULL)
        return;
    assert_true(client->open);
    client->open = false;
}

int by_etcd_survey(struct by_etcd *etcd, struct by_problem *problem)
{
    assert_ptr_equal(etcd, &rig.clients[0]);
    record("survey\n");
    return result(rig.survey_error, "no member answers", problem);
}

int by_etcd_get(struct by_etcd *etcd, const char *name, json_t **entry, struct by_problem *problem)
{
    assert_ptr_equal(etcd, &rig.clients[0]);
    assert_string_equal(name, "leader");
    *entry = NULL;
    if (rig.get_error == 0 && rig.leader[0] != 0)
        *entry = json_pack("{s:s*,s:I,s:I}", "value", rig.leader[0] != '?' ? rig.leader : NULL,
                           "create_revision", (json_int_t)rig.revision, "lease", (json_int_t)rig.lease);
    return result(rig.get_error, "etcd does not answer", problem);
}

int64_t by_etcd_number(const json_t *object, const char *name)
{
    return json_integer_value(json_object_get(object, name));
}

json_t *by_etcd_key(const struct by_etcd *etcd, const char *name)
{
    assert_ptr_equal(etcd, &rig.clients[0]);
    return json_string(name);
}

json_t *by_etcd_bytes(const void *bytes, size_t size)
{
    return json_stringn(bytes, size);
}

uint8_t *by_etcd_take_bytes(const json_t *text, size_t *size)
{
    if (text == NULL)
        return NULL;
    *size = json_string_length(text);
    return (uint8_t *)by_copy_part(json_string_value(text), *size);
}

/* Creates the key for the process that asks, as the request says, unless it exists. */
static void create_leader(const json_t *request)
{
    const json_t *compare = json_array_get(json_object_get(request, "compare"), 0);
    const json_t *put =
        json_object_get(json_array_get(json_object_get(request, "success"), 0), "request_put");

    assert_string_equal(json_string_value(json_object_get(compare, "key")), "leader");
    assert_string_equal(json_string_value(json_object_get(compare, "target")), "CREATE");
    assert_string_equal(json_string_value(json_object_get(compare, "result")), "EQUAL");
    assert_string_equal(json_string_value(json_object_get(compare, "create_revision")), "0");
    assert_string_equal(json_string_value(json_object_get(put, "key")), "leader");
    record("create with lease %s\n", json_string_value(json_object_get(put, "lease")));
    if (rig.leader[0] != 0 || rig.put_error == BY_EINVAL)
        return;
    snprintf(rig.leader, sizeof(rig.leader), "%s", json_string_value(json_object_get(put, "value")));
    rig.lease = strtoll(json_string_value(json_object_get(put, "lease")), NULL, 10);
    rig.revision = 99;
}

int by_etcd_ask(struct by_etcd *etcd, const char *path, json_t *request, uint32_t timeout_ms, json_t **reply,
                struct by_problem *problem)
{
    int error = 0;

    *reply = NULL;
    if (strcmp(path, "/v3/kv/range") == 0) {
        json_t *entry = NULL;

        assert_int_equal(timeout_ms, 30);
        assert_string_equal(json_string_value(json_object_get(request, "key")), "leader");
        assert_null(json_object_get(request, "serializable")); /* of a majority */
        error = by_etcd_get(etcd, "leader", &entry, problem);
        *reply = error != 0 ? NULL : entry != NULL ? json_pack("{s:[o]}", "kvs", entry) : json_object();
        json_decref(request);
        return error;
    }
    assert_int_equal(timeout_ms, BY_ETCD_ASK_MS);
    if (strcmp(path, "/v3/lease/grant") == 0) {
        record("grant %s s\n", json_string_value(json_object_get(request, "TTL")));
        error = result(rig.grant_error, "no lease", problem);
        if (error == 0)
            *reply = json_pack("{s:I}", "ID", (json_int_t)rig.granted++);
    } else if (strcmp(path, "/v3/kv/txn") == 0) {
        create_leader(request);
        error = result(rig.put_error, "the answer is lost", problem);
    } else if (strcmp(path, "/v3/lease/revoke") == 0) {
        record("revoke %s\n", json_string_value(json_object_get(request, "ID")));
    } else {
        assert_string_equal(path, "/v3/lease/keepalive");
        assert_ptr_equal(etcd, &rig.clients[1]); /* of its own thread */
        record("renew %s\n", json_string_value(json_object_get(request, "ID")));
        error = result(rig.renew_error, "etcd does not answer", problem);
        if (error == 0)
            *reply = json_pack("{s:{s:I}}", "result", "TTL", (json_int_t)rig.left_s);
    }
    json_decref(request);
    return error;
}

/* ---- time, threads and lines ---- */

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument);
int __wrap_pthread_join(pthread_t thread, void **result);

int __wrap_poll(struct pollfd *fds, nfds_t count, int timeout_ms)
{
    assert_true(count == 1 && fds->events == POLLIN);
    record("wait %d\n", timeout_ms);
    if (++rig.pauses == rig.last)
        return 1;
    if (rig.after != NULL)
        rig.after(rig.pauses);
    return 0;
}

int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                          void *argument)
{
    (void)attributes;
    *thread = pthread_self();
    rig.run = run;
    rig.argument = argument;
    return 0;
}

int __wrap_pthread_join(pthread_t thread, void **result)
{
    (void)thread;
    (void)result;
    record("join\n");
    return 0;
}

/* The longest name that a machine can have. */
int __wrap_gethostname(char *name, size_t size);

int __wrap_gethostname(char *name, size_t size)
{
    for (size_t i = 0; i < size; i++)
        name[i] = i < 63 ? 'n' : i < 64 ? 'm' : 0;
    return 0;
}

void by_notify(const char *state)
{
    if (strcmp(state, "WATCHDOG=1") != 0)
        record("notify %s\n", state);
}

static int see(void *context, const char *leader, const char *text, struct by_problem *problem)
{
    assert_ptr_equal(context, &rig);
    record("see %s: %s\n", leader != NULL ? leader : "no leader", text);
    return result(rig.see_error, "no server", problem);
}

/* ---- runs ---- */

static void open_rig(void)
{
    struct by_problem problem = {0};

    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.descriptors = count_descriptors();
    rig.granted = 41;
    rig.left_s = 2;
    assert_int_equal(by_lead_open("etcd:http://a", "keys", &rig.lead, &problem), 0);
    assert_int_equal(rig.opened, 2);
    assert_ptr_equal(by_lead_etcd(rig.lead), &rig.clients[0]);
}

static void close_rig(const char *told)
{
    record_clear();
    by_lead_close(rig.lead);
    record_expect(told);
    assert_false(rig.clients[0].open || rig.clients[1].open);
    assert_int_equal(count_descriptors(), rig.descriptors);
}

static int await(struct by_problem *problem)
{
    *problem = (struct by_problem){0};
    return by_lead_wait(rig.lead, 5, see, &rig, problem);
}

static bool is_lost(void)
{
    struct pollfd fd = {.fd = by_lead_fd(rig.lead), .events = POLLIN};

    return ppoll(&fd, 1, &(struct timespec){0}, NULL) == 1;
}

/* Leads, with lease 41, and lets the thread renew until the pause of this number. */
static void lead_and_renew(unsigned last)
{
    struct by_problem problem;

    open_rig();
    assert_int_equal(await(&problem), 0);
    record_clear();
    rig.pauses = 0;
    rig.last = last;
}

/* ---- tests ---- */

static void without_a_leader_this_process_becomes_it(void **state)
{
    struct by_problem problem;
    json_t *guard;
    char value[200];

    (void)state;
    open_rig();
    assert_int_equal(await(&problem), 0);
    record_expect("survey\ngrant 2 s\ncreate with lease 41\nwait 0\nnotify STATUS=leads\n");
    snprintf(value, sizeof(value),
             "banyand on nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnm, process %ld, ",
             (long)getpid());
    assert_int_equal(strncmp(rig.leader, value, strlen(value)), 0);
    assert_int_equal(strspn(rig.leader + strlen(value), "0123456789abcdef"), 16);
    assert_int_equal(by_lead_term(rig.lead), 99);
    guard = by_lead_guard(rig.lead);
    assert_string_equal(json_string_value(json_object_get(guard, "key")), "leader");
    assert_string_equal(json_string_value(json_object_get(guard, "target")), "CREATE");
    assert_string_equal(json_string_value(json_object_get(guard, "result")), "EQUAL");
    assert_string_equal(json_string_value(json_object_get(guard, "create_revision")), "99");
    json_decref(guard);
    assert_false(is_lost());
    close_rig("join\nrevoke 41\n");
}

static void a_leader_confirms_that_it_leads(void **state)
{
    struct by_problem problem;

    (void)state;
    open_rig();
    assert_int_equal(await(&problem), 0);
    assert_int_equal(by_lead_confirm(rig.lead, &problem), 0);
    rig.get_error = BY_EIO;
    assert_int_equal(by_lead_confirm(rig.lead, &problem), BY_EIO);
    rig.get_error = 0;
    rig.revision = 100;
    assert_int_equal(by_lead_confirm(rig.lead, &problem), BY_EPERM);
    rig.leader[0] = 0;
    assert_int_equal(by_lead_confirm(rig.lead, &problem), BY_EPERM);
    assert_string_equal(problem.text, "this banyand leads no longer");
    assert_false(is_lost()); /* a write would find that out */
    close_rig("join\nrevoke 41\n");
}

static void leave_the_lead(unsigned pauses)
{
    if (pauses == 3)
        rig.leader[0] = 0;
}

static void another_leader_is_told_once_and_followed_when_it_ends(void **state)
{
    struct by_problem problem;

    (void)state;
    open_rig();
    snprintf(rig.leader, sizeof(rig.leader), "banyand on b");
    rig.after = leave_the_lead;
    assert_int_equal(await(&problem), 0);
    record_expect(
        "survey\nsaid: banyand on b leads: this one takes over when that one ends\n"
        "notify STATUS=banyand on b leads: this one takes over when that one ends\n"
        "see banyand on b: banyand on b leads: this one takes over when that one ends\nnotify READY=1\n"
        "wait 100\nsee banyand on b: banyand on b leads: this one takes over when that one ends\nwait 100\n"
        "see banyand on b: banyand on b leads: this one takes over when that one ends\nwait 100\n"
        "grant 2 s\ncreate with lease 41\nwait 0\nnotify STATUS=leads\n");
    close_rig("join\nrevoke 41\n");
}

static void a_leader_without_a_name_is_another_one(void **state)
{
    struct by_problem problem;

    (void)state;
    open_rig();
    rig.leader[0] = '?'; /* the key has no value, or none that can be read */
    rig.last = 1;
    assert_int_equal(await(&problem), BY_EABORTED);
    assert_non_null(strstr(recorded,
                           "see another banyand: another banyand leads: this one takes over when that "
                           "one ends\n"));
    close_rig("");
}

/* The lease of another process must not be revoked. */
static void a_signal_ends_the_wait(void **state)
{
    struct by_problem problem;

    (void)state;
    open_rig();
    snprintf(rig.leader, sizeof(rig.leader), "banyand on b");
    rig.lease = 7;
    rig.last = 2;
    assert_int_equal(await(&problem), BY_EABORTED);
    close_rig("");
    open_rig(); /* also just before the look that would show that it leads */
    rig.last = 1;
    assert_int_equal(await(&problem), BY_EABORTED);
    close_rig("revoke 41\n");
}

static void come_back(unsigned pauses)
{
    rig.survey_error = pauses < 2 ? BY_EIO : 0;
    rig.get_error = pauses == 3 ? BY_EIO : 0;
}

static void an_etcd_that_does_not_answer_is_told_once(void **state)
{
    struct by_problem problem;

    (void)state;
    open_rig();
    snprintf(rig.leader, sizeof(rig.leader), "banyand on b");
    rig.survey_error = BY_EIO;
    rig.after = come_back;
    rig.last = 5;
    assert_int_equal(await(&problem), BY_EABORTED);
    record_expect(
        "survey\nsaid: no member answers\nnotify STATUS=no member answers\nsee no leader: no member answers\n"
        "wait 100\nsurvey\nsee no leader: no member answers\nwait 100\n"
        "survey\nsaid: banyand on b leads: this one takes over when that one ends\n"
        "notify STATUS=banyand on b leads: this one takes over when that one ends\n"
        "see banyand on b: banyand on b leads: this one takes over when that one ends\nnotify READY=1\n"
        "wait 100\nsaid: etcd does not answer\nnotify STATUS=etcd does not answer\n"
        "see no leader: etcd does not answer\nwait 100\n"
        "said: banyand on b leads: this one takes over when that one ends\n"
        "notify STATUS=banyand on b leads: this one takes over when that one ends\n"
        "see banyand on b: banyand on b leads: this one takes over when that one ends\nwait 100\n");
    close_rig("");
}

static void members_of_two_clusters_end_the_wait(void **state)
{
    struct by_problem problem;

    (void)state;
    open_rig();
    rig.survey_error = BY_EMISMATCH;
    assert_int_equal(await(&problem), BY_EMISMATCH);
    assert_string_equal(problem.text, "no member answers");
    close_rig("");
    open_rig();
    rig.survey_error = BY_EIO;
    rig.see_error = BY_EPERM; /* what the follower serves failed */
    assert_int_equal(await(&problem), BY_EIO);
    assert_string_equal(problem.text, "no server");
    close_rig("");
}

static void answer_again(unsigned pauses)
{
    (void)pauses;
    rig.grant_error = rig.put_error = 0;
    rig.granted = rig.granted == 0 ? 50 : rig.granted;
}

static void a_creation_that_fails_is_tried_again(void **state)
{
    struct by_problem problem;

    (void)state;
    open_rig();
    rig.grant_error = BY_EIO;
    rig.after = answer_again;
    assert_int_equal(await(&problem), 0);
    record_expect(
        "survey\ngrant 2 s\nsaid: no lease\nnotify STATUS=no lease\nsee no leader: no lease\nwait 100\n"
        "grant 2 s\ncreate with lease 41\nwait 0\nnotify STATUS=leads\n");
    close_rig("join\nrevoke 41\n");
    open_rig();
    rig.granted = 0;
    rig.after = answer_again;
    assert_int_equal(await(&problem), 0);
    record_expect("survey\ngrant 2 s\nsaid: etcd grants no lease\nnotify STATUS=etcd grants no lease\n"
                  "see no leader: etcd grants no lease\nwait 100\ngrant 2 s\ncreate with lease 1\nwait 0\n"
                  "notify STATUS=leads\n");
    close_rig("join\nrevoke 1\n");
    open_rig(); /* its answer was lost, and the next look shows it */
    rig.put_error = BY_EIO;
    assert_int_equal(await(&problem), 0);
    record_expect("survey\ngrant 2 s\ncreate with lease 41\nsaid: the answer is lost\n"
                  "notify STATUS=the answer is lost\nsee no leader: the answer is lost\nwait 100\n"
                  "notify STATUS=leads\n");
    close_rig("join\nrevoke 41\n");
}

static void a_lease_that_was_not_granted_is_not_given_back(void **state)
{
    struct by_problem problem;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        open_rig();
        rig.grant_error = i == 0 ? BY_EIO : 0;
        rig.granted = 0;
        rig.last = 1;
        assert_int_equal(await(&problem), BY_EABORTED);
        close_rig("");
    }
}

static void a_leader_renews_its_lease_until_it_ends(void **state)
{
    (void)state;
    lead_and_renew(3);
    rig.run(rig.argument);
    record_expect("wait 400\nrenew 41\nwait 400\nrenew 41\nwait 400\n");
    assert_false(is_lost());
    close_rig("join\nrevoke 41\n");
}

static void be_silent_for_a_while(unsigned pauses)
{
    rig.renew_error = pauses == 1 || pauses == 2 ? BY_EIO : 0;
}

static void a_leader_goes_on_while_etcd_does_not_answer(void **state)
{
    (void)state;
    lead_and_renew(5);
    rig.after = be_silent_for_a_while;
    rig.run(rig.argument);
    record_expect(
        "wait 400\nrenew 41\nsaid: --store: etcd does not answer\nwait 400\nrenew 41\nwait 400\nrenew 41\n"
        "said: --store: etcd answers again\nwait 400\nrenew 41\nwait 400\n");
    assert_false(is_lost());
    close_rig("join\nrevoke 41\n");
}

static void an_expired_lease_is_the_end_of_the_lead(void **state)
{
    (void)state;
    lead_and_renew(9);
    rig.left_s = 0;
    rig.run(rig.argument);
    record_expect("wait 400\nrenew 41\n");
    assert_true(is_lost());
    assert_string_equal(by_lead_text(rig.lead),
                        "the lease of the leadership has expired: this one follows now");
    by_lead_lose(rig.lead, "another reason"); /* the first one counts */
    assert_string_equal(by_lead_text(rig.lead),
                        "the lease of the leadership has expired: this one follows now");
    close_rig("join\nrevoke 41\n");
    lead_and_renew(9);
    rig.renew_error = BY_EMISMATCH;
    rig.run(rig.argument);
    assert_true(is_lost());
    assert_string_equal(by_lead_text(rig.lead), "etcd does not answer");
    close_rig("join\nrevoke 41\n");
}

static void what_cannot_be_opened_leaves_nothing(void **state)
{
    struct by_problem problem = {0};
    struct by_lead *lead = NULL;

    (void)state;
    memset(&rig, 0, sizeof(rig));
    record_clear();
    rig.open_error = BY_EINVAL;
    assert_int_equal(by_lead_open("etcd:http://a", "keys", &lead, &problem), BY_EINVAL);
    assert_string_equal(problem.text, "no client");
    assert_true(lead == NULL && !rig.clients[0].open);
    by_lead_close(NULL);
}

/* It requires two descriptors. */
static void without_a_descriptor_it_is_not_opened(void **state)
{
    (void)state;
    for (unsigned left = 0; left < 2; left++) {
        unsigned descriptors = count_descriptors();
        struct by_problem problem = {0};
        struct by_lead *lead = NULL;
        struct rlimit limit, low;
        int next = dup(STDERR_FILENO), error;

        memset(&rig, 0, sizeof(rig));
        close(next);
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
        low = (struct rlimit){.rlim_cur = (rlim_t)next + left, .rlim_max = limit.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        error = by_lead_open("etcd:http://a", "keys", &lead, &problem);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
        assert_int_equal(error, BY_EIO);
        assert_string_equal(problem.text, "no descriptor or random number for the election");
        assert_true(lead == NULL && !rig.clients[0].open && !rig.clients[1].open);
        assert_int_equal(count_descriptors(), descriptors);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_a_leader_this_process_becomes_it),
        cmocka_unit_test(a_leader_confirms_that_it_leads),
        cmocka_unit_test(another_leader_is_told_once_and_followed_when_it_ends),
        cmocka_unit_test(a_leader_without_a_name_is_another_one),
        cmocka_unit_test(a_signal_ends_the_wait),
        cmocka_unit_test(an_etcd_that_does_not_answer_is_told_once),
        cmocka_unit_test(members_of_two_clusters_end_the_wait),
        cmocka_unit_test(a_creation_that_fails_is_tried_again),
        cmocka_unit_test(a_lease_that_was_not_granted_is_not_given_back),
        cmocka_unit_test(a_leader_renews_its_lease_until_it_ends),
        cmocka_unit_test(a_leader_goes_on_while_etcd_does_not_answer),
        cmocka_unit_test(an_expired_lease_is_the_end_of_the_lead),
        cmocka_unit_test(what_cannot_be_opened_leaves_nothing),
        cmocka_unit_test(without_a_descriptor_it_is_not_opened),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
