/* Implements sound.h. */
#include "tests/unit/control/view/doctor/sound.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"

#define ALL_CAPABILITIES ((UINT64_C(1) << 41) - 1)

static void make_machine(struct by_doctor_machine *machine)
{
    *machine = (struct by_doctor_machine){.capabilities = ALL_CAPABILITIES,
                                          .hugepages = 512,
                                          .hugepages_free = 500,
                                          .hugepage_kib = 2048,
                                          .memlock = BY_UNKNOWN,
                                          .has_btf = true,
                                          .has_af_xdp = true,
                                          .kernel_major = 6,
                                          .kernel_minor = 8,
                                          .jit = 1,
                                          .rmem_max = 16 << 20,
                                          .wmem_max = 16 << 20,
                                          .cores = 8,
                                          .processes = 8,
                                          .unix_s = SOUND_NOW_S,
                                          .is_synchronized = true,
                                          .program_count = 1};
    machine->programs[0] = (struct by_doctor_program){.path = "/usr/bin/banyan-perf", .version = BY_VERSION};
}

static void make_place(struct by_doctor_place *place, unsigned index)
{
    static const uint8_t mac[6] = {2, 0, 0, 0, 0, 1}, peer_mac[6] = {2, 0, 0, 0, 0, 2};
    struct by_interface *interface = &place->interface;

    *place = (struct by_doctor_place){
        .table = "host0.table",
        .header = {.kind = BY_NODE_HOST},
        .port = {.own_ip = 0x0a000001, .peer_ip = 0x0a000000, .peer_node = 9, .mtu = 1500},
        .peer = BY_PEER_ANSWERS};
    place->header.count[BY_SECTION_PORT] = 2;
    memcpy(place->port.own_mac, mac, 6);
    memcpy(place->port.peer_mac, peer_mac, 6);
    memcpy(place->peer_mac, peer_mac, 6);
    *interface = (struct by_interface){.name = "eth0",
                                       .exists = true,
                                       .is_up = true,
                                       .has_carrier = true,
                                       .mtu = 1500,
                                       .address_count = 1,
                                       .addresses = {0x0a000001},
                                       .queues = 1,
                                       .ring = 1024,
                                       .ring_max = 1024,
                                       .cuts = 1,
                                       .native_xdp = 1};
    interface->name[3] = (char)('0' + index);
    memcpy(interface->mac, mac, 6);
}

void sound_image(struct by_switch_facts *facts, const struct by_image_header *header)
{
    free(facts->image);
    facts->bytes = by_image_bytes(header->count);
    facts->image = by_alloc(facts->bytes, 1);
    by_image_put_header(facts->image, header);
    facts->hello.table_hash = by_image_hash(facts->image, facts->bytes);
}

static void make_switch(struct by_switch_facts *facts, const char *name)
{
    struct by_image_header header = {
        .cookie = 7, .kind = BY_NODE_SWITCH, .slot_count = 64, .payload_max = 1408};

    header.count[BY_SECTION_PORT] = 2;
    header.count[BY_SECTION_ENTRY] = 3;
    *facts = (struct by_switch_facts){.name = by_copy_text(name),
                                      .address = by_copy_text("unix:/nowhere"),
                                      .path = by_copy_text("one.table"),
                                      .round_ns = 50000,
                                      .ahead_ns = -1000};
    facts->hello = (by_HelloReply){.software = "banyan " BY_VERSION,
                                   .port_count = 2,
                                   .slot_count = 1024,
                                   .payload_max = 1408,
                                   .entry_max = 100,
                                   .relay_max = 100,
                                   .image_bytes_max = 1 << 20,
                                   .able = by_Able_ABLE_REPLICATE | by_Able_ABLE_SUM,
                                   .table_cookie = 7,
                                   .table_push = 30,
                                   .election_id = 30,
                                   .uptime_ns = 5000000000};
    snprintf(facts->hello.name, sizeof(facts->hello.name), "%s", name);
    facts->collectives = 0xff;
    facts->counters.ports_count = 2;
    facts->ports.ports_count = facts->ports.total = 2;
    for (unsigned i = 0; i < 2; i++) {
        facts->ports.ports[i] = (by_Port){.driver = "net_e1000_em", .by_reference = true, .mtu = 1500};
        snprintf(facts->ports.ports[i].name, sizeof(facts->ports.ports[i].name), "p%u", i);
    }
    facts->counters.engine_count = 1;
    facts->counters.engine[0] = (by_Counter){.name = "alarm_memory", .value = 0};
    sound_image(facts, &header);
}

struct by_doctor *sound_open(void)
{
    struct by_doctor *doctor = by_alloc(1, sizeof(*doctor));

    make_machine(&doctor->machine);
    doctor->keys = (struct by_key_facts){.folder = "keys/operator",
                                         .role = "controller",
                                         .name = "operator",
                                         .from_s = SOUND_NOW_S - 1000,
                                         .until_s = SOUND_NOW_S + 365 * 86400};
    doctor->node = "host0";
    doctor->place_count = doctor->switch_count = 2;
    doctor->places = by_alloc(2, sizeof(*doctor->places));
    doctor->switches = by_alloc(2, sizeof(*doctor->switches));
    for (unsigned i = 0; i < 2; i++) {
        make_place(&doctor->places[i], i);
        make_switch(&doctor->switches[i], i ? "leaf1" : "leaf0");
    }
    doctor->rings = true;
    doctor->controller = "http://127.0.0.1:46249";
    sound_status(doctor, "up", "1", "running", "40", BY_VERSION);
    return doctor;
}

void sound_status(struct by_doctor *doctor, const char *state, const char *table, const char *job,
                  const char *election, const char *version)
{
    char text[1024];

    snprintf(text, sizeof(text),
             "{\"version\": \"%s\", \"leads\": true, \"changing\": false, \"election_id\": \"%s\", "
             "\"links_down\": [], "
             "\"switches\": [{\"name\": \"leaf0\", \"state\": \"%s\", \"error\": \"no answer\", \"table\": "
             "\"%s\", "
             "\"table_wanted\": \"1\"}], \"jobs\": [{\"name\": \"train\", \"state\": \"%s\", \"text\": \"no "
             "way around "
             "spine0\"}]}",
             version, election, state, table, job);
    free(doctor->status);
    doctor->status = by_copy_text(text);
}

void sound_close(struct by_doctor *doctor)
{
    by_doctor_free(doctor);
    free(doctor);
}

const struct by_finding *sound_find(const struct by_doctor *doctor, const char *check)
{
    const struct by_finding *found = NULL;

    for (uint32_t i = 0; i < doctor->report.count; i++) {
        const struct by_finding *finding = &doctor->report.findings[i];

        if (finding->grade == BY_GRADE_OK)
            continue;
        if (found != NULL || strcmp(finding->check, check) != 0)
            fail_msg("%s of %s found: %s", finding->check, finding->subject, finding->text);
        found = finding;
    }
    return found;
}
