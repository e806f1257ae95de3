/*
 * The table of checks, and the function that runs them. See doctor.h. banyan-doctor(1) describes
 * what each check examines and its remedies.
 */
#include "control/view/doctor/doctor.h"

#include <stdlib.h>

static const struct by_check checks[] = {
    {"rights", "rights of this user: raw sockets, programs in the kernel", by_check_rights},
    {"kernel", "AF_XDP, BTF, tcx, compiled programs", by_check_kernel},
    {"hugepages", "memory for switches with NICs", by_check_hugepages},
    {"memlock", "memory that may be locked", by_check_memlock},
    {"buffers", "limits of socket buffers", by_check_buffers},
    {"cores", "processes of banyan per processor", by_check_cores},
    {"clock", "the time of day, and the service that maintains it", by_check_clock},
    {"versions", "programs, library and plugins of one version", by_check_versions},
    {"keys", "the controller's certificates", by_check_keys},
    {"interface", "it exists, is up, has a carrier", by_check_interface},
    {"mtu", "the interface's MTU and the table's", by_check_mtu},
    {"xdp", "native XDP, one receive queue", by_check_xdp},
    {"ring", "receive descriptors", by_check_ring},
    {"segments", "GSO batches are cut before rings receive them", by_check_segments},
    {"address", "IP and MAC addresses match the table", by_check_address},
    {"paths", "the reverse path filter of hosts with several links", by_check_paths},
    {"peer", "the node at the other end answers and is the expected one", by_check_peer},
    {"cables", "cables, speeds, MTUs and names are those of the topology and site files", by_check_cables},
    {"reach", "the switch answers with the expected name", by_check_reach},
    {"skew", "the switch runs this version", by_check_skew},
    {"time", "its clock and ours", by_check_time},
    {"table", "its table is that of the file", by_check_table},
    {"plan", "all switches' tables come from one plan", by_check_plan},
    {"push", "no push is incomplete", by_check_push},
    {"room", "slots, ports, entries, relays and chunks for the file's table", by_check_room},
    {"able", "the switch supports the operations of the file's table", by_check_able},
    {"writer", "only one controller writes", by_check_writer},
    {"ports", "its ports are up", by_check_ports},
    {"ways", "its ports send results by reference", by_check_ways},
    {"drops", "counters that indicate trouble", by_check_drops},
    {"controller", "the controller answers and is healthy", by_check_controller},
};

const struct by_check *by_checks(uint32_t *count)
{
    *count = sizeof(checks) / sizeof(checks[0]);
    return checks;
}

void by_doctor_judge(struct by_doctor *doctor)
{
    for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
        doctor->report.check = checks[i].name;
        checks[i].run(doctor);
    }
}

void by_doctor_free(struct by_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->switch_count; i++)
        by_switch_facts_free(&doctor->switches[i]);
    free(doctor->switches);
    free(doctor->places);
    free(doctor->status);
    by_topology_free(doctor->fabric.topology);
    by_collect_free(&doctor->fabric.collect);
    by_facts_list_free(&doctor->fabric.facts);
    by_report_free(&doctor->report);
}
