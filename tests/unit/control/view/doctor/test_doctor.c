/*
 * Each check of banyan doctor on artificial facts: it finds nothing in sound facts, and one problem
 * with a remedy if one fact is corrupted. Then the facts of real sockets and of this machine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/controller/keys.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"
#include "tests/unit/control/service/controller/fake.h"
#include "tests/unit/control/view/doctor/sound.h"

static void nothing_is_found_where_nothing_is_wrong(void **state)
{
    struct by_doctor *doctor = sound_open();

    (void)state;
    by_doctor_judge(doctor);
    assert_null(sound_find(doctor, "anything"));
    assert_true(by_report_count(&doctor->report, BY_GRADE_OK) > 30);
    sound_close(doctor);
}

/* One corrupted fact and the expected finding. */
struct ill {
    const char *check;
    enum by_grade grade;
    const char *text, *remedy; /* parts of the finding's texts */
    void (*spoil)(struct by_doctor *doctor);
};

/* X(NAME, "check", GRADE, "text", "remedy", corruption), with M machine, K keys, P a place, S a
 * switch. */
#define ILL_LIST(X)                                                                                          \
    X(no_rights, "rights", ADVICE, "lacks CAP_NET_RAW CAP_NET_ADMIN CAP_BPF", "run as root",                 \
      M->capabilities = 0)                                                                                   \
    X(no_btf, "kernel", ADVICE, "vmlinux is missing", "CONFIG_DEBUG_INFO_BTF", M->has_btf = false)           \
    X(no_jit, "kernel", ADVICE, "interprets", "bpf_jit_enable=1", M->jit = 0)                                \
    X(no_af_xdp, "kernel", ADVICE, "no AF_XDP", "CONFIG_XDP_SOCKETS", M->has_af_xdp = false)                 \
    X(no_tcx, "kernel", TROUBLE, "Linux 6.1 has no tcx", "Linux 6.6", M->kernel_minor = 1)                   \
    X(no_hugepages, "hugepages", ADVICE, "none are reserved", "vm.nr_hugepages=", M->hugepages = 0)          \
    X(no_free_hugepages, "hugepages", ADVICE, "all 512 are in use", "larger N", M->hugepages_free = 0)       \
    X(many_processes, "cores", ADVICE, "9 processes of banyan share 8", "fewer ranks", M->processes = 9)     \
    X(old_clock, "clock", TROUBLE, "it shows 1970-01-01", "set it", (M->unix_s = 5, K->from_s = 0))          \
    X(free_clock, "clock", ADVICE, "no time service maintains it", "chrony", M->is_synchronized = false)     \
    X(old_program, "versions", TROUBLE, "is 0.0.9; this is", "one version",                                  \
      strcpy(M->programs[0].version, "0.0.9"))                                                               \
    X(dumb_program, "versions", ADVICE, "reports no version", "again", M->programs[0].version[0] = 0)        \
    X(late_keys, "keys", TROUBLE, "expired at 2027-01-15", "--controller operator --renew",                  \
      K->until_s = SOUND_NOW_S - 1)                                                                          \
    X(early_keys, "keys", TROUBLE, "not valid before", "clock", K->from_s = SOUND_NOW_S + 1)                 \
    X(old_keys, "keys", ADVICE, "expires in 9 days", "--renew", K->until_s = SOUND_NOW_S + 9 * 86400)        \
    X(other_keys, "keys", TROUBLE, "keys of a controller", "--host host0", D->joins = "tls:c:1")             \
    X(foreign_keys, "keys", TROUBLE, "keys of operator, but this host is host0", "--host host0",             \
      (D->joins = "tls:c:1", K->role = "host"))                                                              \
    X(no_keys, "keys", TROUBLE, "is not set, but BANYAN_CONTROLLER is tls:c:1", "--host host0",              \
      (D->joins = "tls:c:1", K->folder = NULL))                                                              \
    X(late_host, "keys", TROUBLE, "expired at 2027-01-15", "--host host0 --renew",                           \
      (strcpy(K->name, "host0"), K->role = "host", K->until_s = SOUND_NOW_S - 1))                            \
    X(bad_keys, "keys", TROUBLE, "no such file", "banyan keys", strcpy(K->fault, "no such file"))            \
    X(no_interface, "interface", TROUBLE, "does not exist; available: lo, p0", "ip link set OLD name NEW",   \
      (P->interface.exists = false, strcpy(P->interface.existing, "lo, p0")))                                \
    X(is_down, "interface", TROUBLE, "is down", "ip link set eth0 up", P->interface.is_up = false)           \
    X(no_carrier, "interface", TROUBLE, "no carrier", "cable", P->interface.has_carrier = false)             \
    X(small_mtu, "mtu", TROUBLE, "has an MTU of 1400, the table requires 1500", "ip link set eth0 mtu 1500", \
      P->interface.mtu = 1400)                                                                               \
    X(no_native, "xdp", ADVICE, "no native XDP", "NIC", P->interface.native_xdp = 0)                         \
    X(queues, "xdp", ADVICE, "4 receive queues", "ethtool -L eth0 combined 1", P->interface.queues = 4)      \
    X(few_descriptors, "ring", ADVICE, "256 receive descriptors of 1024", "ethtool -G eth0 rx 1024",         \
      P->interface.ring = 256)                                                                               \
    X(whole_trains, "segments", TROUBLE, "carries whole GSO batches", "tx-udp-segmentation off",             \
      P->interface.cuts = 0)                                                                                 \
    X(no_address, "address", TROUBLE, "does not have the table's address 10.0.0.1",                          \
      "ip addr add 10.0.0.1/31 dev eth0", P->interface.address_count = 0)                                    \
    X(no_ipv6, "address", TROUBLE, "does not have the table's address fd00::1",                              \
      "ip addr add fd00::1/127 dev eth0", (P->port.own_ip = 1, P->own_ipv6[0] = 0xfd, P->own_ipv6[15] = 1))  \
    X(other_mac, "address", TROUBLE, "is 02:00:00:00:00:07", "address 02:00:00:00:00:01",                    \
      P->interface.mac[5] = 7)                                                                               \
    X(strict, "paths", TROUBLE, "reverse path filter", "rp_filter=0", P->interface.is_strict = true)         \
    X(silent_peer, "peer", TROUBLE, "10.0.0.0 (node 9) does not answer", "has a table",                      \
      P->peer = BY_PEER_SILENT)                                                                              \
    X(silent_ipv6, "peer", TROUBLE, "fd00::2 (node 9) does not answer", "has a table",                       \
      (P->port.peer_ip = 2, P->peer_ipv6[0] = 0xfd, P->peer_ipv6[15] = 2, P->peer = BY_PEER_SILENT))         \
    X(unseen_peer, "peer", UNSEEN, "is unknown", "root", P->peer = BY_PEER_UNSEEN)                           \
    X(other_peer, "peer", TROUBLE, "answers as 02:00:00:00:00:08", "cables", P->peer_mac[5] = 8)             \
    X(wrong_address, "reach", TROUBLE, "answers as 'spine0'", "addresses", strcpy(S->hello.name, "spine0"))  \
    X(other_version, "skew", TROUBLE, "runs banyan 0.0.9", "one version",                                    \
      strcpy(S->hello.software, "banyan 0.0.9"))                                                             \
    X(other_time, "time", ADVICE, "60 s behind", "chrony", S->ahead_ns = -60 * INT64_C(1000000000))          \
    X(no_table, "table", TROUBLE, "no table is active", "banyan push",                                       \
      (S->hello.table_hash = 0, S->hello.table_push = 0))                                                    \
    X(saved_table, "table", TROUBLE, "before its restart", "--saved",                                        \
      (S->hello.table_hash = 0, S->hello.saved_hash = 5))                                                    \
    X(other_table, "table", TROUBLE, "is active, the file is", "banyan diff", S->hello.table_hash++)         \
    X(other_plan, "plan", TROUBLE, "of another lowering than that of leaf0", "push the whole folder",        \
      D->switches[1].hello.table_cookie = 8)                                                                 \
    X(open_push, "push", TROUBLE, "waits for a push to end", "--settle", S->hello.validated_hash = 3)        \
    X(few_slots, "room", TROUBLE, "requires 64 slots; it has 63", "--slots", S->hello.slot_count = 63)       \
    X(few_ports, "room", TROUBLE, "requires 2 ports; it has 1", "all its ports", S->hello.port_count = 1)    \
    X(small_chunks, "room", TROUBLE, "requires 1408 bytes of a chunk; it has 1024", "--mtu",                 \
      S->hello.payload_max = 1024)                                                                           \
    X(few_entries, "room", TROUBLE, "requires 3 entries; it has 2", "fewer trees", S->hello.entry_max = 2)   \
    X(cannot_sum, "able", TROUBLE, "requires sums, which it does not support", "aggregate",                  \
      S->hello.able = by_Able_ABLE_REPLICATE)                                                                \
    X(cannot_copy, "able", TROUBLE, "requires replication, which it does not support", "multicast",          \
      S->hello.able = by_Able_ABLE_SUM)                                                                      \
    X(other_writer, "writer", ADVICE, "connected (election id of 31) after", "one controller",               \
      S->hello.election_id = 31)                                                                             \
    X(port_down, "ports", TROUBLE, "port p1 is down", "cable",                                               \
      (S->counters.ports[1].down = true, strcpy(S->counters.ports[1].name, "p1")))                           \
    X(copying_port, "ways", ADVICE, "port p1 (net_e1000_em) sends results as copies: no IOMMU", "IOMMU",     \
      (S->ports.ports[1].by_reference = false, strcpy(S->ports.ports[1].why, "no IOMMU")))                   \
    X(bad_memory, "drops", TROUBLE, "memory of partial sums was corrupted: 2", "test its memory",            \
      S->counters.engine[0].value = 2)                                                                       \
    X(old_packets, "drops", ADVICE, "another generation arrived: 4", "last push",                            \
      (strcpy(S->counters.engine[0].name, "drop_gen"), S->counters.engine[0].value = 4))                     \
    X(no_controller, "controller", TROUBLE, "is banyand running", "start banyand",                           \
      (free(D->status), D->status = NULL, strcpy(D->no_status.text, "is banyand running?")))                 \
    X(no_status, "controller", TROUBLE, "its status cannot be read", "check that banyand listens",           \
      strcpy(D->status, "<html>"))                                                                           \
    X(old_controller, "controller", TROUBLE, "is banyand 0.0.9", "one version",                              \
      sound_status(D, "up", "1", "running", "30", "0.0.9"))                                                  \
    X(lost_switch, "controller", TROUBLE, "is down, as the controller reports: no answer", "start it",       \
      sound_status(D, "down", "1", "running", "30", BY_VERSION))                                             \
    X(stray_table, "controller", TROUBLE, "not the one that the controller loaded", "by hand",               \
      sound_status(D, "up", "2", "running", "30", BY_VERSION))                                               \
    X(follower, "controller", ADVICE, "is a follower: banyand on a leads", "run this on its machine",        \
      (free(D->status), D->status = by_copy_text("{\"version\": \"" BY_VERSION "\", \"leads\": false, "      \
                                                 "\"follows\": true, \"text\": \"banyand on a leads\"}")))   \
    X(failed_job, "controller", TROUBLE, "has failed: no way around spine0", "banyan job end",               \
      sound_status(D, "up", "1", "failed", "30", BY_VERSION))                                                \
    X(later_writer, "controller", TROUBLE,                                                                   \
      "later election id (30) has taken it over from this controller (29)", "end the other",                 \
      (D->switches[1].hello.election_id = 0, sound_status(D, "up", "1", "running", "29", BY_VERSION)))

#define X(name, check, grade, text, remedy, spoilt)                                                          \
    static void spoil_##name(struct by_doctor *D)                                                            \
    {                                                                                                        \
        struct by_doctor_machine *M = &D->machine;                                                           \
        struct by_key_facts *K = &D->keys;                                                                   \
        struct by_doctor_place *P = &D->places[0];                                                           \
        struct by_switch_facts *S = &D->switches[0];                                                         \
                                                                                                             \
        (void)M, (void)K, (void)P, (void)S;                                                                  \
        spoilt;                                                                                              \
    }
ILL_LIST(X)
#undef X

static void each_thing_that_is_wrong_is_found_alone_and_with_its_remedy(void **state)
{
    static const struct ill ills[] = {
#define X(name, check, grade, text, remedy, spoilt) {check, BY_GRADE_##grade, text, remedy, spoil_##name},
        ILL_LIST(X)
#undef X
    };

    (void)state;
    for (size_t i = 0; i < sizeof(ills) / sizeof(ills[0]); i++) {
        struct by_doctor *doctor = sound_open();
        const struct by_finding *finding;

        ills[i].spoil(doctor);
        by_doctor_judge(doctor);
        finding = sound_find(doctor, ills[i].check);
        if (finding == NULL || finding->grade != ills[i].grade ||
            strstr(finding->text, ills[i].text) == NULL || strstr(finding->remedy, ills[i].remedy) == NULL)
            fail_msg("%s, '%s': found '%s' -> '%s'", ills[i].check, ills[i].text,
                     finding ? finding->text : "nothing", finding ? finding->remedy : "");
        sound_close(doctor);
    }
}

static void without_privileges_small_limits_are_told_of(void **state)
{
    struct by_doctor *doctor = sound_open();
    unsigned found = 0;

    (void)state;
    doctor->machine.capabilities = 0;
    doctor->machine.memlock = 8 << 20;
    doctor->machine.rmem_max = 212992;
    by_doctor_judge(doctor);
    for (uint32_t i = 0; i < doctor->report.count; i++) {
        const struct by_finding *finding = &doctor->report.findings[i];

        found += strcmp(finding->check, "memlock") == 0 && strstr(finding->text, "8192 KiB") != NULL;
        found +=
            strcmp(finding->check, "buffers") == 0 && strstr(finding->text, "rmem_max is 212992") != NULL;
    }
    assert_int_equal(found, 2);
    sound_close(doctor);
}

static void a_switch_that_answers_is_seen_and_one_that_does_not_has_a_remedy(void **state)
{
    const struct by_session_options access = {.timeout_ms = 2000};
    struct by_doctor *doctor = sound_open();
    struct by_switch_facts *facts = &doctor->switches[0];
    struct controller_fake *fake = fake_start("leaf0", 1024, 65536);
    const struct by_finding *finding = NULL;

    (void)state;
    free(facts->address);
    facts->address = by_copy_text(fake->address);
    by_switch_facts_read(facts, &access);
    assert_int_equal(facts->error, 0);
    assert_string_equal(facts->hello.name, "leaf0");
    assert_int_equal(facts->hello.slot_count, 1024);
    assert_int_equal(facts->counters.ports_count, 2);
    assert_true(facts->ahead_ns == INT64_MIN); /* the switch has no clock */
    fake_stop(fake);
    by_switch_facts_read(facts, &access);
    assert_int_equal(facts->error, BY_EAGAIN);
    by_doctor_judge(doctor);
    finding = sound_find(doctor, "reach");
    assert_non_null(finding);
    assert_non_null(strstr(finding->text, "cannot connect"));
    assert_non_null(strstr(finding->remedy, "start banyan-switchd"));
    sound_close(doctor);
}

static void keys_are_read_and_those_of_two_authorities_told_apart(void **state)
{
    char folder[64], other[64], path[160], from[160];
    struct by_authority *authority;
    struct by_problem problem = {0};
    struct by_key_facts facts;
    bool made;

    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/by-doctor-%ld-a", (long)getpid());
    snprintf(other, sizeof(other), "/tmp/by-doctor-%ld-b", (long)getpid());
    for (int i = 0; i < 2; i++) {
        assert_int_equal(by_authority_open(i ? other : folder, 10, &authority, &made, &problem), 0);
        assert_int_equal(by_authority_issue(authority, "me", BY_KEYS_HOST, 5, false, &problem), 0);
        by_authority_close(authority);
    }
    snprintf(path, sizeof(path), "%s/me", folder);
    by_key_facts_read(path, &facts);
    assert_string_equal(facts.fault, "");
    assert_string_equal(facts.role, "host");
    assert_string_equal(facts.name, "me");
    assert_int_equal((facts.until_s - time(NULL) + 3600) / 86400, 5);
    assert_true(facts.from_s <= time(NULL));
    snprintf(path, sizeof(path), "%s/me/ca.pem", folder);
    snprintf(from, sizeof(from), "%s/me/ca.pem", other);
    assert_int_equal(rename(from, path), 0);
    snprintf(path, sizeof(path), "%s/me", folder);
    by_key_facts_read(path, &facts);
    assert_string_equal(facts.fault, "cert.pem is not by the authority of ca.pem");
    snprintf(from, sizeof(from), "%s/me/key.pem", folder);
    assert_int_equal(chmod(from, 0640), 0);
    by_key_facts_read(path, &facts);
    assert_non_null(strstr(facts.fault, "chmod 600"));
    by_key_facts_read("/nonexistent", &facts);
    assert_non_null(strstr(facts.fault, "ca.pem"));
    snprintf(path, sizeof(path), "rm -r %s %s", folder, other);
    assert_int_equal(system(path), 0);
}

static void this_machine_and_its_loopback_can_be_read(void **state)
{
    struct by_doctor_machine machine;
    struct by_interface interface;

    (void)state;
    by_machine_read(&machine);
    assert_true(machine.cores > 0 && machine.kernel_major > 2 && machine.unix_s > 1700000000);
    by_interface_read("lo", &interface);
    assert_true(interface.exists && interface.mtu >= 1500);
    by_interface_read("no-such-interface-at-all", &interface);
    assert_false(interface.exists);
    assert_non_null(strstr(interface.existing, "lo"));
}

static void every_check_has_a_name_of_its_own(void **state)
{
    uint32_t count;
    const struct by_check *checks = by_checks(&count);

    (void)state;
    for (uint32_t i = 0; i < count; i++)
        for (uint32_t j = 0; j < i; j++)
            assert_string_not_equal(checks[i].name, checks[j].name);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_found_where_nothing_is_wrong),
        cmocka_unit_test(each_thing_that_is_wrong_is_found_alone_and_with_its_remedy),
        cmocka_unit_test(without_privileges_small_limits_are_told_of),
        cmocka_unit_test(a_switch_that_answers_is_seen_and_one_that_does_not_has_a_remedy),
        cmocka_unit_test(keys_are_read_and_those_of_two_authorities_told_apart),
        cmocka_unit_test(this_machine_and_its_loopback_can_be_read),
        cmocka_unit_test(every_check_has_a_name_of_its_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL) + test_report();
}
