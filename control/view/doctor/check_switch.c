/*
 * Checks of switches: compares their reports (switches.h) with the files that they should have.
 * Pure except for the report.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "control/tables/address.h"
#include "control/tables/dump.h"
#include "control/view/doctor/doctor.h"
#include "offload/base/errors.h"
#include "offload/wire/types.h"

/* Larger differences of clocks are reported (ns). */
#define SKEW_NS 2000000000

/* Returns the next switch that answered, from *index on; NULL after the last one. */
static const struct by_switch_facts *next_switch(const struct by_doctor *doctor, uint32_t *index)
{
    while (*index < doctor->switch_count) {
        const struct by_switch_facts *facts = &doctor->switches[(*index)++];

        if (facts->error == 0)
            return facts;
    }
    return NULL;
}

static const char *remedy_of(int error)
{
    switch (error) {
    case BY_EPERM:
        return "use keys of one authority at both ends, made or renewed with `banyan keys`";
    case BY_EVERSION:
    case BY_EFORMAT:
        return "install one version on all machines, and check the address";
    case BY_ETIMEDOUT:
        return "check its log: it is up but does not answer (--timeout waits longer)";
    case BY_EINVAL:
        return "write NAME=unix:PATH, NAME=tcp:HOST:PORT or NAME=tls:HOST:PORT, and --keys for tls:";
    default:
        return "start banyan-switchd there with this --control address, or correct the address";
    }
}

void by_check_reach(struct by_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->switch_count; i++) {
        const struct by_switch_facts *facts = &doctor->switches[i];

        if (facts->error != 0)
            by_report_add(&doctor->report, facts->error == BY_EINVAL ? BY_GRADE_UNSEEN : BY_GRADE_TROUBLE,
                          facts->name, remedy_of(facts->error), "%.300s", facts->problem.text);
        else if (strcmp(facts->hello.name, facts->name) != 0)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name, "correct the addresses",
                          "%s answers as '%s'", facts->address, facts->hello.name);
        else
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL,
                          "answers in %" PRIu64 " us, up for %" PRIu64 " s", facts->round_ns / 1000,
                          (uint64_t)facts->hello.uptime_ns / 1000000000u);
    }
}

void by_check_skew(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        if (strcmp(facts->hello.software, "banyan " BY_VERSION) == 0)
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL, "runs %s", facts->hello.software);
        else
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                          "install one version on all machines", "runs %s; this is banyan " BY_VERSION,
                          facts->hello.software);
    }
}

void by_check_time(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        int64_t apart = facts->ahead_ns < 0 ? -facts->ahead_ns : facts->ahead_ns;

        if (facts->ahead_ns == INT64_MIN)
            continue;
        if (apart > SKEW_NS + (int64_t)facts->round_ns)
            by_report_add(&doctor->report, BY_GRADE_ADVICE, facts->name,
                          "run a time service such as chrony on both",
                          "its clock is %" PRId64 " s %s ours: certificates and logs will not agree",
                          apart / 1000000000, facts->ahead_ns < 0 ? "behind" : "ahead of");
        else
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL, "its clock is ours");
    }
}

void by_check_table(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        const by_HelloReply *hello = &facts->hello;
        uint64_t wanted = facts->image ? by_image_hash(facts->image, facts->bytes) : 0;
        char remedy[256];

        snprintf(remedy, sizeof(remedy),
                 "banyan diff %.80s %.100s shows the difference, banyan push loads the file", facts->address,
                 facts->path ? facts->path : "FILE");
        if (hello->table_hash == 0)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                          hello->saved_hash ? "banyan push --saved, or push its table" : "banyan push",
                          hello->saved_hash ? "no table is active; the one from before its restart is saved"
                                            : "no table is active");
        else if (facts->image && hello->table_hash != wanted)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name, remedy,
                          "%016" PRIx64 " is active, the file is %016" PRIx64, (uint64_t)hello->table_hash,
                          wanted);
        else
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL, "%016" PRIx64 " is active%s",
                          (uint64_t)hello->table_hash, facts->image ? ", as in the file" : "");
    }
}

/* All images of one lowering have the same cookie. */
void by_check_plan(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts, *first = NULL;
    bool same = true;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        if (facts->hello.table_hash == 0)
            continue;
        if (first == NULL)
            first = facts;
        if (facts->hello.table_cookie == first->hello.table_cookie)
            continue;
        same = false;
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                      "push the whole folder of one `banyan tables` to all switches",
                      "its table (cookie %016" PRIx64 ") is of another lowering than that of %s (%016" PRIx64
                      ")",
                      (uint64_t)facts->hello.table_cookie, first->name, (uint64_t)first->hello.table_cookie);
    }
    if (first != NULL && same)
        by_report_add(&doctor->report, BY_GRADE_OK, "", NULL, "all tables are of one lowering, %016" PRIx64,
                      (uint64_t)first->hello.table_cookie);
}

void by_check_push(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        if (facts->hello.validated_hash != 0)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                          "banyan push --settle completes or discards it",
                          "%016" PRIx64 " waits for a push to end", (uint64_t)facts->hello.validated_hash);
        else
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL, "no push is open");
    }
}

void by_check_room(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        const by_HelloReply *hello = &facts->hello;
        struct by_image_header header = {0};
        uint32_t before = doctor->report.count;

        if (facts->image)
            by_image_header(facts->image, &header);
        const struct {
            const char *what, *remedy;
            uint64_t wanted, has;
        } rows[] = {
            {"slots", "start it with --slots, or make tables with a smaller --window", header.slot_count,
             hello->slot_count},
            {"ports", "start it with all its ports", header.count[BY_SECTION_PORT], hello->port_count},
            {"bytes of a chunk", "use a larger MTU at its ports, or make tables with a smaller --mtu",
             header.payload_max, hello->payload_max},
            {"entries", "plan fewer trees, or use a larger board", header.count[BY_SECTION_ENTRY],
             hello->entry_max},
            {"relays", "plan fewer trees, or use a larger board", header.count[BY_SECTION_RELAY],
             hello->relay_max},
            {"bytes of a table", "plan fewer trees, or use a larger board", facts->bytes,
             hello->image_bytes_max},
        };

        for (size_t row = 0; facts->image && row < sizeof(rows) / sizeof(rows[0]); row++)
            if (rows[row].has != 0 && rows[row].wanted > rows[row].has)
                by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name, rows[row].remedy,
                              "the file's table requires %" PRIu64 " %s; it has %" PRIu64, rows[row].wanted,
                              rows[row].what, rows[row].has);
        if (doctor->report.count == before)
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL,
                          "%u of %u slots are used, %u of %u entries", (unsigned)hello->slots_used,
                          (unsigned)hello->slot_count, (unsigned)hello->entry_count,
                          (unsigned)hello->entry_max);
    }
}

void by_check_able(struct by_doctor *doctor)
{
    static const uint32_t sums =
        1u << BY_COLLECTIVE_ALLREDUCE | 1u << BY_COLLECTIVE_REDUCE | 1u << BY_COLLECTIVE_REDUCE_SCATTER;
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        uint32_t able = facts->hello.able;

        if (able == 0)
            continue;
        if (facts->collectives != 0 && !(able & by_Able_ABLE_REPLICATE))
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                          "use another board, or a topology in which it only forwards (\"multicast\": false)",
                          "the file's table requires replication, which it does not support");
        else if ((facts->collectives & sums) != 0 && !(able & by_Able_ABLE_SUM))
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                          "use another board, or a topology in which it does not sum (\"aggregate\": false)",
                          "the file's table requires sums, which it does not support");
        else
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL, "%s%s%s%s",
                          able & by_Able_ABLE_REPLICATE ? "replicates" : "forwards",
                          able & by_Able_ABLE_SUM ? ", sums" : "",
                          able & by_Able_ABLE_DET ? ", mode det" : "",
                          able & by_Able_ABLE_EXACT ? ", mode exact" : "");
    }
}

/* Election IDs are times: the later one may write. Converts an ID to a date. */
static const char *when(uint64_t election_id, char text[40])
{
    time_t second = (time_t)(election_id / 1000000000u);
    struct tm parts;

    if (election_id < 1000000000u * UINT64_C(1000000000) || localtime_r(&second, &parts) == NULL ||
        strftime(text, 40, "%F %T", &parts) == 0)
        snprintf(text, 40, "%" PRIu64, election_id);
    return text;
}

void by_check_writer(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;
    char later[40], own[40];

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        const by_HelloReply *hello = &facts->hello;

        if (hello->election_id != 0 && hello->table_push != 0 && hello->election_id > hello->table_push)
            by_report_add(&doctor->report, BY_GRADE_ADVICE, facts->name,
                          "find the writer (banyan show --log), and let only one controller write",
                          "another writer connected (election id of %s) after the one whose table is active "
                          "(%s)",
                          when(hello->election_id, later), when(hello->table_push, own));
        else
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL,
                          "the last writer's table is active");
    }
}

void by_check_ports(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        uint32_t before = doctor->report.count;
        char ip[BY_ADDRESS_TEXT];

        for (pb_size_t port = 0; port < facts->counters.ports_count; port++)
            if (facts->counters.ports[port].down)
                by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                              "check the cable, and that the other end is up", "port %s is down",
                              facts->counters.ports[port].name);
        for (pb_size_t port = 0; port < facts->counters.ports_count; port++)
            if (facts->counters.ports[port].silent != 0)
                by_report_add(
                    &doctor->report, BY_GRADE_TROUBLE, facts->name,
                    "check that the neighbour is up and has this address, and that both ends of the "
                    "cable have one VLAN",
                    "the neighbour %s at port %s does not answer %s",
                    by_dump_ip(facts->image, facts->counters.ports[port].silent, ip),
                    facts->counters.ports[port].name, by_dump_asks(facts->counters.ports[port].silent));
        if (doctor->report.count == before)
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL, "%u ports",
                          (unsigned)facts->counters.ports_count);
    }
}

void by_check_ways(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        uint32_t before = doctor->report.count;

        for (pb_size_t port = 0; port < facts->ports.ports_count; port++) {
            const by_Port *row = &facts->ports.ports[port];

            if (!row->by_reference)
                by_report_add(&doctor->report, BY_GRADE_ADVICE, facts->name,
                              "use a driver that accepts chained packets, behind an IOMMU, for more packets "
                              "per second",
                              "port %s (%s) sends results as copies: %s", row->name, row->driver,
                              row->why[0] ? row->why : "its driver requires it");
        }
        if (doctor->report.count == before && facts->ports.ports_count > 0)
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL,
                          "all ports send results by reference, the first through %s",
                          facts->ports.ports[0].driver);
    }
}

static const struct {
    const char *counter, *text, *remedy;
    enum by_grade grade;
} tales[] = {
    {"alarm_memory", "memory of partial sums was corrupted",
     "take the machine out of service and test its memory", BY_GRADE_TROUBLE},
    {"drop_version", "packets of another protocol version arrived", "install one version on all machines",
     BY_GRADE_TROUBLE},
    {"drop_gen", "packets of another generation arrived",
     "give all hosts the tables of the last push (BANYAN_TABLE)", BY_GRADE_ADVICE},
    {"drop_entry", "packets of jobs or trees arrived that its table does not have",
     "give hosts and switches tables of one lowering", BY_GRADE_ADVICE},
    {"drop_ingress", "packets arrived from a port or address that differs from the table's",
     "check cables, and whether a sender uses the address of another", BY_GRADE_ADVICE},
    {"shell_tx_no_neighbour", "packets were for a neighbour whose MAC address was not known yet",
     "check the neighbours of its ports, unless it has just got its table", BY_GRADE_ADVICE},
    {"shell_rx_vlan", "frames of another VLAN than that of the port arrived",
     "give both ends of each link one VLAN, at the machines and in the site file", BY_GRADE_ADVICE},
    {"drop_psum", "payloads arrived damaged", "check cables and NICs for errors (ethtool -S)",
     BY_GRADE_ADVICE},
    {"alarm_lost_state", "results arrived for chunks that it had not finished",
     "check whether it restarted during a call: such calls have failed", BY_GRADE_ADVICE},
    {"shell_rx_unaddressed", "frames arrived on a port that its table does not name",
     "push the table that names all its ports", BY_GRADE_ADVICE},
    {"shell_tx_no_memory", "packets were dropped for lack of buffers",
     "use a smaller --window, or fewer ports per switch", BY_GRADE_ADVICE},
};

void by_check_drops(struct by_doctor *doctor)
{
    const struct by_switch_facts *facts;

    for (uint32_t i = 0; (facts = next_switch(doctor, &i)) != NULL;) {
        uint32_t before = doctor->report.count;

        for (pb_size_t j = 0; j < facts->counters.engine_count; j++)
            for (size_t tale = 0; tale < sizeof(tales) / sizeof(tales[0]); tale++)
                if (facts->counters.engine[j].value != 0 &&
                    strcmp(facts->counters.engine[j].name, tales[tale].counter) == 0)
                    by_report_add(&doctor->report, tales[tale].grade, facts->name, tales[tale].remedy,
                                  "%s: %" PRIu64 " (%s, since it started)", tales[tale].text,
                                  (uint64_t)facts->counters.engine[j].value, tales[tale].counter);
        if (doctor->report.count == before)
            by_report_add(&doctor->report, BY_GRADE_OK, facts->name, NULL, "no counter indicates trouble");
    }
}
