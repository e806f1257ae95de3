/* What programs read of the daemon: the whole status as JSON, and the whole metrics, of a fabric
 * with switches that are up, down and unknown, and jobs in several states. Expected texts were
 * checked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/base/alloc.h"
#include "control/service/daemon/latency.h"
#include "control/service/daemon/metrics.h"
#include "control/service/daemon/status.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

enum { H0, H1, S0, S1, X0, NODES };

struct status_rig {
    struct by_daemon daemon;
    struct by_job jobs[3];
    struct by_job_tables tables;
    struct by_plan *plans[2];
    struct by_lower_need need[NODES];
    bool member[NODES];
};

static const char *const one_tree[] = {"10 sw0: sw0>h0 sw0>sw1 sw1>h1", NULL};

/* Gives sw0 the table of an allreduce of job 3, or of jobs 3 and 4, with whose hash it answers. */
static void add_image(struct status_rig *rig, const char *const *trees, uint32_t job_count)
{
    struct by_daemon_switch *device = &rig->daemon.switches[0];
    struct by_plan *plan = bench_plan(rig->daemon.topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    struct by_lower_job jobs[2];
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};

    for (uint32_t i = 0; i < job_count; i++)
        jobs[i] = (struct by_lower_job){
            .job = (uint16_t)(3 + i), .plan_count = 1, .plans = (const struct by_plan *const *)&plan};
    if (by_lower(rig->daemon.topology, jobs, job_count, &(struct by_lower_options){0}, &lowering, &problem) !=
            0 ||
        by_lowering_image(lowering, S0, &device->image.bytes, &device->image.size, &problem) != 0)
        fail_msg("%s", problem.text);
    device->image.hash = 0xabcdef;
    device->hello.table_hash = 0xabcdef;
    by_lowering_free(lowering);
    bench_plan_free(plan);
}

static void add_ports(struct by_daemon_switch *device)
{
    by_CountersReply *counters = &device->counters;

    counters->ports_count = 3; /* the last is no port of the fabric */
    for (unsigned i = 0; i < 3; i++) {
        by_PortCounters *port = &counters->ports[i];

        *port = (by_PortCounters){.rx_packets = 100 * i + 11,
                                  .rx_bytes = 100 * i + 12,
                                  .tx_packets = 100 * i + 13,
                                  .tx_bytes = 100 * i + 14,
                                  .rx_dropped = 100 * i + 15,
                                  .tx_dropped = 100 * i + 16,
                                  .down = i == 1};
        snprintf(port->name, sizeof(port->name), "p%u", i);
    }
    counters->engine_count = 2;
    counters->engine[0].value = 7;
    counters->engine[1].value = 8;
    snprintf(counters->engine[0].name, sizeof(counters->engine[0].name), "up");
    snprintf(counters->engine[1].name, sizeof(counters->engine[1].name), "late");
    counters->shares_count = 1;
    counters->shares[0] = (by_ShareCounters){
        .job = 3, .share = 250000000, .rx_bytes = 21, .tx_bytes = 22, .held = 23, .dropped = 24};
}

static struct status_rig *rig_open(void)
{
    struct status_rig *rig = by_alloc(1, sizeof(*rig));
    struct by_daemon *daemon = &rig->daemon;
    struct by_problem problem = {0};
    static const char *const names[] = {"sw0", "sw1", "x\"0"};

    daemon->topology = bench_topology("h0 h1 sw0* sw1* x0", "h0-sw0 sw0-sw1 h1-sw1 sw1-x0 h1>x0");
    assert_int_equal(by_address_map_make(daemon->topology, &daemon->map, &problem), 0);
    daemon->links = by_alloc(daemon->topology->link_count, sizeof(*daemon->links));
    daemon->links[0].down = daemon->links[2].down = true;
    daemon->topology->arcs[daemon->topology->links[0].arc_ba].capacity = 30; /* to h0 */
    daemon->counts.link_downs = 31;
    daemon->counts.swallows = 32;
    daemon->counts.switch_downs = 33;
    daemon->counts.switch_reboots = 34;
    daemon->counts.pushes = 35;
    daemon->counts.moves = 41;
    daemon->counts.push_errors = 36;
    daemon->counts.push_seconds = 37.5;
    daemon->counts.plan_seconds = 38.25;
    daemon->election_id = UINT64_MAX;
    daemon->switch_count = 3;
    daemon->switches = by_alloc(3, sizeof(*daemon->switches));
    for (unsigned i = 0; i < 3; i++) {
        struct by_daemon_switch *device = &daemon->switches[i];

        device->node = S0 + i;
        device->name = names[i];
        device->state = i == 0 ? BY_SWITCH_UP : i == 1 ? BY_SWITCH_DOWN : BY_SWITCH_UNKNOWN;
        snprintf(device->address, sizeof(device->address), "unix:/run/%u", i);
    }
    snprintf(daemon->switches[1].text, sizeof(daemon->switches[1].text), "no answer for 1.25 s");
    daemon->switches[1].silent_ms = 1250;
    daemon->switches[0].hello.boot_nonce = 0x123;
    daemon->switches[0].hello.slot_count = 1000;
    daemon->switches[0].hello.entry_max = 99;
    snprintf(daemon->switches[0].hello.software, sizeof(daemon->switches[0].hello.software), "banyan 9");
    add_image(rig, one_tree, 1);
    add_ports(&daemon->switches[0]);
    daemon->switches[0].waiting_table = 0xabcdef;
    daemon->switches[0].waiting.entries_count = 3;
    daemon->switches[0].waiting.entries[0] =
        (by_WaitingEntry){.job = 3, .tree = 0, .seq = 5, .state = 2, .missing = 2};
    daemon->switches[0].waiting.entries[1] =
        (by_WaitingEntry){.job = 3, .tree = 0, .seq = 6, .state = 3, .missing = 0};
    daemon->switches[0].waiting.entries[2] =
        (by_WaitingEntry){.job = 4, .tree = 0, .seq = 7, .state = 1, .missing = 3};
    daemon->switches[1].waiting.entries_count = 1; /* it is down */

    for (unsigned i = 0; i < 3; i++) {
        rig->jobs[i].spec.job = (uint16_t)(3 + i);
        rig->jobs[i].spec.share = (struct by_fraction){0, 1};
        daemon->jobs[daemon->job_count++] = &rig->jobs[i];
    }
    rig->member[H1] = true;
    for (unsigned i = 0; i < 2; i++) {
        rig->plans[i] = by_alloc(1, sizeof(struct by_plan));
        rig->plans[i]->unit = by_copy_text("GB/s");
        rig->plans[i]->optimum = (struct by_fraction){10 + i, 3};
        rig->plans[i]->achieved = (struct by_fraction){5, 2};
        rig->plans[i]->tree_count = 4 + i;
    }
    rig->need[S0] = (struct by_lower_need){.entries = 2, .slots = 300};
    rig->need[S1] = (struct by_lower_need){.entries = 1, .slots = 40};
    rig->tables = (struct by_job_tables){
        .gen = 17, .window = 64, .plan_count = 2, .plans = rig->plans, .need = rig->need};
    snprintf(rig->tables.note, sizeof(rig->tables.note), "windows are halved");
    rig->jobs[0].state = BY_JOB_RUNNING;
    rig->jobs[0].tables = &rig->tables;
    rig->jobs[0].spec.want_count = 2;
    rig->jobs[0].spec.wants[0] = (struct by_job_want){.collective = BY_COLLECTIVE_ALLREDUCE, .root = -1};
    rig->jobs[0].spec.wants[1] = (struct by_job_want){.collective = BY_COLLECTIVE_BROADCAST, .root = H0};
    rig->jobs[0].spec.share = (struct by_fraction){1, 4};
    snprintf(rig->jobs[0].spec.name, sizeof(rig->jobs[0].spec.name), "train");
    rig->jobs[1].state = BY_JOB_FAILED;
    rig->jobs[1].tables = &rig->tables; /* it holds nothing */
    rig->jobs[1].spec.member = rig->member;
    snprintf(rig->jobs[1].text, sizeof(rig->jobs[1].text), "no path");
    rig->jobs[2].state = BY_JOB_STARTING;
    rig->jobs[2].spec.window = 128;
    rig->jobs[2].spec.want_count = 1;
    rig->jobs[2].spec.wants[0] = (struct by_job_want){.collective = BY_COLLECTIVE_BARRIER, .root = -1};
    return rig;
}

static void rig_close(struct status_rig *rig)
{
    by_latency_free(rig->jobs[0].latency);
    for (unsigned i = 0; i < 2; i++) {
        free(rig->plans[i]->unit);
        free(rig->plans[i]);
    }
    free(rig->daemon.switches[0].image.bytes);
    free(rig->daemon.switches);
    free(rig->daemon.links);
    by_address_map_free(&rig->daemon.map);
    by_topology_free(rig->daemon.topology);
    free(rig);
}

/* Fails at the first line that differs. */
static void same_lines(const char *text, const char *expected)
{
    while (*text != 0 && *expected != 0) {
        size_t length = strcspn(text, "\n"), wanted = strcspn(expected, "\n");

        if (length != wanted || memcmp(text, expected, length) != 0)
            fail_msg("\"%.*s\" instead of \"%.*s\"", (int)length, text, (int)wanted, expected);
        text += length + (text[length] != 0);
        expected += wanted + (expected[wanted] != 0);
    }
    assert_string_equal(text, expected);
}

/* clang-format off */
static const char whole_status[] =
    "{\"version\":\"" BY_VERSION "\",\"topology\":\"bench\",\"election_id\":\"18446744073709551615\","
    "\"leads\":true,\"changing\":false,\"switches\":[{\"name\":\"sw0\",\"state\":\"up\","
    "\"address\":\"unix:/run/0\",\"silent_ms\":0,\"error\":null,\"software\":\"banyan 9\","
    "\"boot\":\"0000000000000123\",\"table\":\"0000000000abcdef\","
    "\"table_wanted\":\"0000000000abcdef\",\"slots\":{\"limit\":1000,\"held\":300},"
    "\"entries\":{\"limit\":99,\"held\":2},\"ports\":[{\"name\":\"p0\",\"peer\":\"h0\","
    "\"down\":false,\"rx_capacity\":10000000000.0,\"tx_capacity\":30000000000.0,\"rx_packets\":11,"
    "\"rx_bytes\":12,\"tx_packets\":13,\"tx_bytes\":14,\"rx_dropped\":15,\"tx_dropped\":16},"
    "{\"name\":\"p1\",\"peer\":\"sw1\",\"down\":true,\"rx_capacity\":10000000000.0,"
    "\"tx_capacity\":10000000000.0,\"rx_packets\":111,\"rx_bytes\":112,\"tx_packets\":113,"
    "\"tx_bytes\":114,\"rx_dropped\":115,\"tx_dropped\":116},{\"name\":\"p2\",\"peer\":null,"
    "\"down\":false,\"rx_capacity\":null,\"tx_capacity\":null,\"rx_packets\":211,\"rx_bytes\":212,"
    "\"tx_packets\":213,\"tx_bytes\":214,\"rx_dropped\":215,\"tx_dropped\":216}],"
    "\"engine\":{\"up\":7,\"late\":8},\"shares\":[{\"job\":3,\"share\":0.25,\"rx_bytes\":21,"
    "\"tx_bytes\":22,\"held\":23,\"dropped\":24}],\"waiting\":[{\"job\":3,\"tree\":0,\"chunk\":5,"
    "\"waits_for\":\"children\",\"missing\":[\"h1\"]},{\"job\":3,\"tree\":0,\"chunk\":6,"
    "\"waits_for\":\"parent\",\"missing\":[]},{\"job\":4,\"tree\":0,\"chunk\":7,"
    "\"waits_for\":\"nothing\",\"missing\":[]}]},{\"name\":\"sw1\",\"state\":\"down\","
    "\"address\":\"unix:/run/1\",\"silent_ms\":1250,\"error\":\"no answer for 1.25 s\","
    "\"software\":\"\",\"boot\":null,\"table\":null,\"table_wanted\":null,\"slots\":{\"limit\":0,"
    "\"held\":40},\"entries\":{\"limit\":0,\"held\":1},\"ports\":[],\"engine\":{},\"shares\":[],"
    "\"waiting\":[]},{\"name\":\"x\\\"0\",\"state\":\"unknown\",\"address\":\"unix:/run/2\","
    "\"silent_ms\":0,\"error\":null,\"software\":\"\",\"boot\":null,\"table\":null,"
    "\"table_wanted\":null,\"slots\":{\"limit\":0,\"held\":0},\"entries\":{\"limit\":0,\"held\":0},"
    "\"ports\":[],\"engine\":{},\"shares\":[],\"waiting\":[]}],\"links_down\":[{\"a\":\"h0\",\"b\":\"sw0\"},{\"a\":\"h1\","
    "\"b\":\"sw1\"}],\"jobs\":[{\"job\":3,\"name\":\"train\",\"state\":\"running\",\"text\":null,"
    "\"generation\":17,\"ranks\":2,\"window\":64,\"note\":\"windows are halved\",\"share\":\"1/4\","
    "\"plans\":[{\"collective\":\"allreduce\",\"root\":null,\"optimum\":{\"num\":10,\"den\":3,"
    "\"value\":3.3333333333333335},\"achieved\":{\"num\":5,\"den\":2,\"value\":2.5},"
    "\"unit\":\"GB/s\",\"trees\":4},{\"collective\":\"broadcast\",\"root\":\"h0\","
    "\"optimum\":{\"num\":11,\"den\":3,\"value\":3.6666666666666665},\"achieved\":{\"num\":5,"
    "\"den\":2,\"value\":2.5},\"unit\":\"GB/s\",\"trees\":5}],\"held\":[{\"switch\":\"sw0\","
    "\"slots\":300,\"entries\":2},{\"switch\":\"sw1\",\"slots\":40,\"entries\":1}],"
    "\"hosts\":[\"h0\",\"h1\"]},{\"job\":4,\"name\":\"\",\"state\":\"failed\",\"text\":\"no path\","
    "\"generation\":17,\"ranks\":1,\"window\":64,\"note\":\"windows are halved\",\"share\":\"0\","
    "\"plans\":[],\"held\":[{\"switch\":\"sw0\",\"slots\":300,\"entries\":2},{\"switch\":\"sw1\","
    "\"slots\":40,\"entries\":1}],\"hosts\":[\"h1\"]},{\"job\":5,\"name\":\"\","
    "\"state\":\"starting\",\"text\":null,\"generation\":0,\"ranks\":2,\"window\":128,"
    "\"note\":null,\"share\":\"0\",\"plans\":[{\"collective\":\"barrier\",\"root\":null}],"
    "\"held\":[],\"hosts\":[\"h0\",\"h1\"]}]}";

static const char whole_metrics[] =
    "# HELP banyan_build_info 1; the version of banyand is a label\n"
    "# TYPE banyan_build_info gauge\n"
    "banyan_build_info{version=\"" BY_VERSION "\"} 1\n"
    "# HELP banyan_leads 1 while this banyand controls the fabric, 0 while it follows or starts\n"
    "# TYPE banyan_leads gauge\n"
    "banyan_leads 1\n"
    "# HELP banyan_switch_up 1 when the switch answers\n"
    "# TYPE banyan_switch_up gauge\n"
    "banyan_switch_up{switch=\"sw0\"} 1\n"
    "banyan_switch_up{switch=\"sw1\"} 0\n"
    "banyan_switch_up{switch=\"x\\\"0\"} 0\n"
    "# HELP banyan_switch_silence_seconds Seconds since the last answer, 0 while the switch answers\n"
    "# TYPE banyan_switch_silence_seconds gauge\n"
    "banyan_switch_silence_seconds{switch=\"sw0\"} 0\n"
    "banyan_switch_silence_seconds{switch=\"sw1\"} 1.25\n"
    "banyan_switch_silence_seconds{switch=\"x\\\"0\"} 0\n"
    "# HELP banyan_switch_build_info 1; the version of the switch's software is a label\n"
    "# TYPE banyan_switch_build_info gauge\n"
    "banyan_switch_build_info{switch=\"sw0\",version=\"banyan 9\"} 1\n"
    "# HELP banyan_switch_waiting_trees Trees whose oldest chunk waits for children or the parent\n"
    "# TYPE banyan_switch_waiting_trees gauge\n"
    "banyan_switch_waiting_trees{switch=\"sw0\"} 3\n"
    "banyan_switch_waiting_trees{switch=\"sw1\"} 0\n"
    "banyan_switch_waiting_trees{switch=\"x\\\"0\"} 0\n"
    "# HELP banyan_switch_slots Slots that the switch has\n"
    "# TYPE banyan_switch_slots gauge\n"
    "banyan_switch_slots{switch=\"sw0\"} 1000\n"
    "banyan_switch_slots{switch=\"sw1\"} 0\n"
    "banyan_switch_slots{switch=\"x\\\"0\"} 0\n"
    "# HELP banyan_switch_slots_held Slots that jobs hold\n"
    "# TYPE banyan_switch_slots_held gauge\n"
    "banyan_switch_slots_held{switch=\"sw0\"} 300\n"
    "banyan_switch_slots_held{switch=\"sw1\"} 40\n"
    "banyan_switch_slots_held{switch=\"x\\\"0\"} 0\n"
    "# HELP banyan_engine_events_total Counters of the engine and the shell\n"
    "# TYPE banyan_engine_events_total counter\n"
    "banyan_engine_events_total{switch=\"sw0\",event=\"up\"} 7\n"
    "banyan_engine_events_total{switch=\"sw0\",event=\"late\"} 8\n"
    "# HELP banyan_port_receive_bytes_total Bytes of frames received\n"
    "# TYPE banyan_port_receive_bytes_total counter\n"
    "banyan_port_receive_bytes_total{switch=\"sw0\",port=\"p0\"} 12\n"
    "banyan_port_receive_bytes_total{switch=\"sw0\",port=\"p1\"} 112\n"
    "banyan_port_receive_bytes_total{switch=\"sw0\",port=\"p2\"} 212\n"
    "# HELP banyan_port_receive_packets_total Frames received\n"
    "# TYPE banyan_port_receive_packets_total counter\n"
    "banyan_port_receive_packets_total{switch=\"sw0\",port=\"p0\"} 11\n"
    "banyan_port_receive_packets_total{switch=\"sw0\",port=\"p1\"} 111\n"
    "banyan_port_receive_packets_total{switch=\"sw0\",port=\"p2\"} 211\n"
    "# HELP banyan_port_receive_dropped_total Frames lost before they reached the switch\n"
    "# TYPE banyan_port_receive_dropped_total counter\n"
    "banyan_port_receive_dropped_total{switch=\"sw0\",port=\"p0\"} 15\n"
    "banyan_port_receive_dropped_total{switch=\"sw0\",port=\"p1\"} 115\n"
    "banyan_port_receive_dropped_total{switch=\"sw0\",port=\"p2\"} 215\n"
    "# HELP banyan_port_transmit_bytes_total Bytes of frames sent\n"
    "# TYPE banyan_port_transmit_bytes_total counter\n"
    "banyan_port_transmit_bytes_total{switch=\"sw0\",port=\"p0\"} 14\n"
    "banyan_port_transmit_bytes_total{switch=\"sw0\",port=\"p1\"} 114\n"
    "banyan_port_transmit_bytes_total{switch=\"sw0\",port=\"p2\"} 214\n"
    "# HELP banyan_port_transmit_packets_total Frames sent\n"
    "# TYPE banyan_port_transmit_packets_total counter\n"
    "banyan_port_transmit_packets_total{switch=\"sw0\",port=\"p0\"} 13\n"
    "banyan_port_transmit_packets_total{switch=\"sw0\",port=\"p1\"} 113\n"
    "banyan_port_transmit_packets_total{switch=\"sw0\",port=\"p2\"} 213\n"
    "# HELP banyan_port_transmit_dropped_total Frames that the port did not accept\n"
    "# TYPE banyan_port_transmit_dropped_total counter\n"
    "banyan_port_transmit_dropped_total{switch=\"sw0\",port=\"p0\"} 16\n"
    "banyan_port_transmit_dropped_total{switch=\"sw0\",port=\"p1\"} 116\n"
    "banyan_port_transmit_dropped_total{switch=\"sw0\",port=\"p2\"} 216\n"
    "# HELP banyan_port_up 1 when the port has a carrier\n"
    "# TYPE banyan_port_up gauge\n"
    "banyan_port_up{switch=\"sw0\",port=\"p0\"} 1\n"
    "banyan_port_up{switch=\"sw0\",port=\"p1\"} 0\n"
    "banyan_port_up{switch=\"sw0\",port=\"p2\"} 1\n"
    "# HELP banyan_port_receive_capacity_bytes_per_second Bandwidth of the port's link in the topology\n"
    "# TYPE banyan_port_receive_capacity_bytes_per_second gauge\n"
    "banyan_port_receive_capacity_bytes_per_second{switch=\"sw0\",port=\"p0\"} 10000000000\n"
    "banyan_port_receive_capacity_bytes_per_second{switch=\"sw0\",port=\"p1\"} 10000000000\n"
    "# HELP banyan_port_transmit_capacity_bytes_per_second Bandwidth of the port's link in the topology\n"
    "# TYPE banyan_port_transmit_capacity_bytes_per_second gauge\n"
    "banyan_port_transmit_capacity_bytes_per_second{switch=\"sw0\",port=\"p0\"} 30000000000\n"
    "banyan_port_transmit_capacity_bytes_per_second{switch=\"sw0\",port=\"p1\"} 10000000000\n"
    "# HELP banyan_share_receive_bytes_total Bytes received of a job at ports with a rate, on the cable\n"
    "# TYPE banyan_share_receive_bytes_total counter\n"
    "banyan_share_receive_bytes_total{switch=\"sw0\",job=\"3\"} 21\n"
    "# HELP banyan_share_transmit_bytes_total Bytes sent of a job at ports with a rate, on the cable\n"
    "# TYPE banyan_share_transmit_bytes_total counter\n"
    "banyan_share_transmit_bytes_total{switch=\"sw0\",job=\"3\"} 22\n"
    "# HELP banyan_share_held_total Packets delayed because their job exceeded its share\n"
    "# TYPE banyan_share_held_total counter\n"
    "banyan_share_held_total{switch=\"sw0\",job=\"3\"} 23\n"
    "# HELP banyan_share_dropped_total Packets dropped because their job far exceeded its share\n"
    "# TYPE banyan_share_dropped_total counter\n"
    "banyan_share_dropped_total{switch=\"sw0\",job=\"3\"} 24\n"
    "# HELP banyan_job_state 1 for the current state of the job\n"
    "# TYPE banyan_job_state gauge\n"
    "banyan_job_state{job=\"3\",state=\"starting\"} 0\n"
    "banyan_job_state{job=\"3\",state=\"running\"} 1\n"
    "banyan_job_state{job=\"3\",state=\"recovering\"} 0\n"
    "banyan_job_state{job=\"3\",state=\"failed\"} 0\n"
    "banyan_job_state{job=\"3\",state=\"ending\"} 0\n"
    "banyan_job_state{job=\"4\",state=\"starting\"} 0\n"
    "banyan_job_state{job=\"4\",state=\"running\"} 0\n"
    "banyan_job_state{job=\"4\",state=\"recovering\"} 0\n"
    "banyan_job_state{job=\"4\",state=\"failed\"} 1\n"
    "banyan_job_state{job=\"4\",state=\"ending\"} 0\n"
    "banyan_job_state{job=\"5\",state=\"starting\"} 1\n"
    "banyan_job_state{job=\"5\",state=\"running\"} 0\n"
    "banyan_job_state{job=\"5\",state=\"recovering\"} 0\n"
    "banyan_job_state{job=\"5\",state=\"failed\"} 0\n"
    "banyan_job_state{job=\"5\",state=\"ending\"} 0\n"
    "# HELP banyan_job_generation Generation of the job's tables, 0 without tables\n"
    "# TYPE banyan_job_generation gauge\n"
    "banyan_job_generation{job=\"3\"} 17\n"
    "banyan_job_generation{job=\"4\"} 17\n"
    "banyan_job_generation{job=\"5\"} 0\n"
    "# HELP banyan_job_ranks Ranks of the job\n"
    "# TYPE banyan_job_ranks gauge\n"
    "banyan_job_ranks{job=\"3\"} 2\n"
    "banyan_job_ranks{job=\"4\"} 1\n"
    "banyan_job_ranks{job=\"5\"} 2\n"
    "# HELP banyan_job_optimum_bytes_per_second Proven bound of the algorithm bandwidth on the fabric as it is\n"
    "# TYPE banyan_job_optimum_bytes_per_second gauge\n"
    "banyan_job_optimum_bytes_per_second{job=\"3\",collective=\"allreduce\"} 3333333333.3333335\n"
    "banyan_job_optimum_bytes_per_second{job=\"3\",collective=\"broadcast\"} 3666666666.6666665\n"
    "# HELP banyan_job_achieved_bytes_per_second Algorithm bandwidth of the trees of the job's plan\n"
    "# TYPE banyan_job_achieved_bytes_per_second gauge\n"
    "banyan_job_achieved_bytes_per_second{job=\"3\",collective=\"allreduce\"} 2500000000\n"
    "banyan_job_achieved_bytes_per_second{job=\"3\",collective=\"broadcast\"} 2500000000\n"
    "# HELP banyan_job_operation_seconds Durations of operations at all ranks\n"
    "# TYPE banyan_job_operation_seconds histogram\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"1e-05\"} 1\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"4e-05\"} 1\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"0.00016\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"0.00064\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"0.00256\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"0.01024\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"0.04096\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"0.16384\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"0.65536\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"2.62144\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"10.4858\"} 2\n"
    "banyan_job_operation_seconds_bucket{job=\"3\",collective=\"allreduce\",le=\"+Inf\"} 2\n"
    "banyan_job_operation_seconds_sum{job=\"3\",collective=\"allreduce\"} 7.2999999999999999e-05\n"
    "banyan_job_operation_seconds_count{job=\"3\",collective=\"allreduce\"} 2\n"
    "# HELP banyan_job_operation_bytes_total Data of operations at all ranks, as in algorithm bandwidth\n"
    "# TYPE banyan_job_operation_bytes_total counter\n"
    "banyan_job_operation_bytes_total{job=\"3\",collective=\"allreduce\"} 8192\n"
    "# HELP banyan_links_down Links without a carrier\n"
    "# TYPE banyan_links_down gauge\n"
    "banyan_links_down 2\n"
    "# HELP banyan_link_downs_total Links that went down\n"
    "# TYPE banyan_link_downs_total counter\n"
    "banyan_link_downs_total 31\n"
    "# HELP banyan_swallows_total Links and switches found to drop packets silently\n"
    "# TYPE banyan_swallows_total counter\n"
    "banyan_swallows_total 32\n"
    "# HELP banyan_switch_downs_total Switches that stopped answering\n"
    "# TYPE banyan_switch_downs_total counter\n"
    "banyan_switch_downs_total 33\n"
    "# HELP banyan_switch_reboots_total Switches that answered after a restart\n"
    "# TYPE banyan_switch_reboots_total counter\n"
    "banyan_switch_reboots_total 34\n"
    "# HELP banyan_standby_moves_total Times that the ranks of a job moved to a standby by themselves\n"
    "# TYPE banyan_standby_moves_total counter\n"
    "banyan_standby_moves_total 41\n"
    "# HELP banyan_pushes_total Two-phase pushes\n"
    "# TYPE banyan_pushes_total counter\n"
    "banyan_pushes_total 35\n"
    "# HELP banyan_push_errors_total Pushes that failed\n"
    "# TYPE banyan_push_errors_total counter\n"
    "banyan_push_errors_total 36\n"
    "# HELP banyan_push_seconds_total Total time of pushes\n"
    "# TYPE banyan_push_seconds_total counter\n"
    "banyan_push_seconds_total 37.5\n"
    "# HELP banyan_plan_seconds_total Total time of planning, verifying and lowering\n"
    "# TYPE banyan_plan_seconds_total counter\n"
    "banyan_plan_seconds_total 38.25\n";
/* clang-format on */

static void the_status_has_the_whole_state(void **state)
{
    struct status_rig *rig = rig_open();
    json_t *json = by_status_json(&rig->daemon);
    char *text = json_dumps(json, JSON_COMPACT);

    (void)state;
    assert_non_null(text);
    assert_string_equal(text, whole_status);
    free(text);
    json_decref(json);
    rig_close(rig);
}

static void a_daemon_that_starts_or_changes_tables_says_so(void **state)
{
    struct status_rig *rig = rig_open();
    json_t *json;

    (void)state;
    rig->daemon.start = (struct by_start *)rig; /* not read */
    rig->daemon.change = (struct by_change *)rig;
    json = by_status_json(&rig->daemon);
    assert_true(json_is_false(json_object_get(json, "leads")));
    assert_true(json_is_true(json_object_get(json, "changing")));
    json_decref(json);
    rig_close(rig);
}

/* Children are those of the switch's own table; of another table their names are unknown. */
static void trees_of_another_table_wait_for_nothing_that_is_known(void **state)
{
    struct status_rig *rig = rig_open();
    struct by_daemon_switch *device = &rig->daemon.switches[0];
    json_t *json;

    (void)state;
    device->image.hash++;
    json = by_status_waits(&rig->daemon, device);
    assert_int_equal(json_array_size(json), 3);
    assert_int_equal(json_array_size(json_object_get(json_array_get(json, 0), "missing")), 0);
    json_decref(json);
    device->hello.table_hash++; /* the report is of the table before */
    assert_int_equal(by_status_waiting(device), 0);
    json = by_status_waits(&rig->daemon, device);
    assert_int_equal(json_array_size(json), 0);
    json_decref(json);
    rig_close(rig);
}

static void each_missing_child_is_named(void **state)
{
    struct status_rig *rig = rig_open();
    struct by_daemon_switch *device = &rig->daemon.switches[0];
    json_t *json, *missing;

    (void)state;
    device->waiting.entries[0].missing = UINT64_MAX; /* of two children */
    device->waiting.entries[1].missing = 1;
    json = by_status_waits(&rig->daemon, device);
    missing = json_object_get(json_array_get(json, 0), "missing");
    assert_int_equal(json_array_size(missing), 2);
    assert_string_equal(json_string_value(json_array_get(missing, 0)), "h0");
    assert_string_equal(json_string_value(json_array_get(missing, 1)), "h1");
    missing = json_object_get(json_array_get(json, 1), "missing");
    assert_int_equal(json_array_size(missing), 1);
    assert_string_equal(json_string_value(json_array_get(missing, 0)), "h0");
    json_decref(json);
    device->waiting.entries[0].tree = 1; /* not in the table */
    json = by_status_waits(&rig->daemon, device);
    assert_int_equal(json_array_size(json_object_get(json_array_get(json, 0), "missing")), 0);
    json_decref(json);
    rig_close(rig);
}

/* The table has an entry for the second tree of each of two jobs; sw0 only forwards the first. */
static void the_children_are_those_of_the_tree_that_waits(void **state)
{
    static const char *const trees[] = {"5 sw0: sw0>h0 sw0>sw1 sw1>h1", "5 h1: h1>sw1 sw1>sw0 sw0>h0", NULL};
    struct status_rig *rig = rig_open();
    struct by_daemon_switch *device = &rig->daemon.switches[0];

    (void)state;
    free(device->image.bytes);
    add_image(rig, trees, 2);
    for (uint32_t job = 2; job < 6; job++)
        for (uint32_t tree = 0; tree < 3; tree++) {
            bool known = (job == 3 || job == 4) && tree == 1;
            json_t *json, *missing;

            device->waiting.entries[0] =
                (by_WaitingEntry){.job = job, .tree = tree, .state = 2, .missing = UINT64_MAX};
            json = by_status_waits(&rig->daemon, device);
            missing = json_object_get(json_array_get(json, 0), "missing");
            assert_int_equal(json_array_size(missing), known ? 2 : 0);
            if (known) {
                assert_string_equal(json_string_value(json_array_get(missing, 0)), "h0");
                assert_string_equal(json_string_value(json_array_get(missing, 1)), "h1");
            }
            json_decref(json);
        }
    rig_close(rig);
}

static char *metrics_of(struct by_daemon *daemon)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    by_metrics_write(daemon, stream);
    fclose(stream);
    return text;
}

static void the_metrics_have_each_counter(void **state)
{
    struct status_rig *rig = rig_open();
    uint8_t data[BY_LATENCY_ALL_BYTES] = {0};
    struct by_latency latency = {0};
    char *text;

    (void)state;
    by_latency_add(&latency, 4096, 3000);
    by_latency_add(&latency, 4096, 70000);
    by_latency_put(&latency, data);
    by_latency_take(
        &rig->daemon,
        &(struct by_daemon_event){
            .kind = BY_EVENT_MEASURED, .job = 3, .number = 1, .data = data, .bytes = sizeof(data)});
    text = metrics_of(&rig->daemon);
    same_lines(text, whole_metrics);
    free(text);
    rig->daemon.start = (struct by_start *)rig; /* not read */
    text = metrics_of(&rig->daemon);
    assert_non_null(strstr(text, "\nbanyan_leads 0\n"));
    free(text);
    rig_close(rig);
}

static void follower_is(const char *leader, bool answers, const char *expected)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    by_metrics_follower(leader, answers, stream);
    fclose(stream);
    same_lines(text, expected);
    free(text);
}

#define FOLLOWER                                                                                             \
    "# HELP banyan_build_info 1; the version of banyand is a label\n# TYPE banyan_build_info gauge\n"        \
    "banyan_build_info{version=\"" BY_VERSION "\"} 1\n"                                                      \
    "# HELP banyan_leads 1 while this banyand controls the fabric, 0 while it follows or starts\n"           \
    "# TYPE banyan_leads gauge\nbanyan_leads 0\n"                                                            \
    "# HELP banyan_store_up 1 if the shared store answered this follower's last look\n"                      \
    "# TYPE banyan_store_up gauge\n"

static void a_follower_names_its_leader(void **state)
{
    (void)state;
    follower_is("", false, FOLLOWER "banyan_store_up 0\n");
    follower_is("a\\b\"c\nd", true,
                FOLLOWER "banyan_store_up 1\n"
                         "# HELP banyan_follows 1; the leader that was seen last is a label\n"
                         "# TYPE banyan_follows gauge\n"
                         "banyan_follows{leader=\"a\\\\b\\\"c d\"} 1\n");
}

static void the_capacity_of_a_link_is_that_of_the_direction(void **state)
{
    struct status_rig *rig = rig_open();
    const struct by_topology *topology = rig->daemon.topology;

    (void)state;
    assert_true(by_status_capacity(topology, 0, H0) == 10e9);
    assert_true(by_status_capacity(topology, 0, S0) == 30e9);
    assert_true(by_status_capacity(topology, 4, H1) == 10e9);
    assert_true(by_status_capacity(topology, 4, X0) == -1); /* it runs in the other direction */
    assert_true(by_status_capacity(topology, UINT32_MAX, H0) == -1);
    rig_close(rig);
}

static void a_link_of_less_than_a_byte_per_second_has_a_capacity(void **state)
{
    struct status_rig *rig = rig_open();
    json_t *json, *port;
    char *text;

    (void)state;
    rig->daemon.topology->scale = 100000000000; /* of 1 GB/s: 10 are 0.1 bytes per second */
    text = metrics_of(&rig->daemon);
    assert_non_null(strstr(
        text,
        "\nbanyan_port_receive_capacity_bytes_per_second{switch=\"sw0\",port=\"p1\"} 0.10000000000000001\n"));
    free(text);
    json = by_status_json(&rig->daemon);
    port = json_array_get(json_object_get(json_array_get(json_object_get(json, "switches"), 0), "ports"), 1);
    assert_true(json_real_value(json_object_get(port, "rx_capacity")) == 0.1);
    json_decref(json);
    rig_close(rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_has_the_whole_state),
        cmocka_unit_test(a_daemon_that_starts_or_changes_tables_says_so),
        cmocka_unit_test(trees_of_another_table_wait_for_nothing_that_is_known),
        cmocka_unit_test(each_missing_child_is_named),
        cmocka_unit_test(the_children_are_those_of_the_tree_that_waits),
        cmocka_unit_test(the_metrics_have_each_counter),
        cmocka_unit_test(a_follower_names_its_leader),
        cmocka_unit_test(the_capacity_of_a_link_is_that_of_the_direction),
        cmocka_unit_test(a_link_of_less_than_a_byte_per_second_has_a_capacity),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
