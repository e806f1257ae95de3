/*
 * `banyan doctor`: finds problems that would keep banyan from working. First it reads facts
 * (machine.h, switches.h). Then the checks of one table judge them, and suggest a remedy for each
 * problem. Neighbours: control/cli/doctor.c is the command, report.h holds the findings.
 * Single-threaded.
 */
#ifndef BY_VIEW_DOCTOR_DOCTOR_H
#define BY_VIEW_DOCTOR_DOCTOR_H

#include "control/base/report.h"
#include "control/discover/collect.h"
#include "control/view/doctor/machine.h"
#include "control/view/doctor/switches.h"
#include "offload/table/image.h"

/* A port in a table of this machine, with its interface and peer. */
struct by_doctor_place {
    const char *table; /* name of the table's file; NULL: the user named the interface directly */
    struct by_image_header header;
    struct by_image_port port;
    uint8_t own_ipv6[BY_IPV6_BYTES], peer_ipv6[BY_IPV6_BYTES]; /* of the port, if they are not IPv4's */
    struct by_interface interface;
    enum by_peer peer; /* 0: not queried */
    uint8_t peer_mac[6];
};

/* The user's keys: faults, the certificate's role and name, and validity. */
struct by_key_facts {
    const char *folder;         /* NULL: no keys were given */
    char fault[320];            /* "" if the keys are usable */
    const char *role;           /* role of the certificate: switch, controller, host; or "" */
    char name[BY_NAME_MAX + 1]; /* name in the certificate */
    int64_t from_s, until_s;    /* period in which all certificates are valid; 0: unknown */
};

/* What the nodes of a site report, to be compared with its files. */
struct by_doctor_fabric {
    struct by_topology *topology; /* with the site's names, if it has a file; NULL: nothing to compare */
    struct by_collect collect;
    struct by_facts_list facts;
};

struct by_doctor {
    struct by_doctor_machine machine;
    struct by_key_facts keys;
    struct by_doctor_place *places;
    uint32_t place_count, place_room;
    struct by_switch_facts *switches;
    uint32_t switch_count, switch_room;
    const char *joins;           /* controller that hosts of jobs join from this machine, or NULL */
    const char *node;            /* name of this host at that controller */
    const char *controller;      /* address of a controller whose status is queried, or NULL */
    char *status;                /* what it answered (control/service/daemon/status.h), or NULL */
    struct by_problem no_status; /* the reason if there is no status */
    struct by_doctor_fabric fabric;
    struct by_report report;
    bool rings; /* hosts receive frames by rings (BANYAN_RING) */
};

/* A check: a row of the table. */
struct by_check {
    const char *name;
    const char *about;
    void (*run)(struct by_doctor *doctor);
};

/* Returns all `*count` checks, in the order in which they run. */
const struct by_check *by_checks(uint32_t *count);
/* Runs all checks on the facts that were read. */
void by_doctor_judge(struct by_doctor *doctor);
void by_doctor_free(struct by_doctor *doctor);

/* Reads the certificates of a folder (firmware/secure/tls.h describes its files). */
void by_key_facts_read(const char *folder, struct by_key_facts *facts);

/* Queries the status of doctor->controller, if it is set. */
void by_controller_read(struct by_doctor *doctor);

#define BY_CHECK(name) void by_check_##name(struct by_doctor *doctor)
/* check_machine.c */
BY_CHECK(rights);
BY_CHECK(kernel);
BY_CHECK(hugepages);
BY_CHECK(memlock);
BY_CHECK(buffers);
BY_CHECK(cores);
BY_CHECK(clock);
BY_CHECK(versions);
BY_CHECK(keys);
/* check_place.c */
BY_CHECK(interface);
BY_CHECK(mtu);
BY_CHECK(xdp);
BY_CHECK(ring);
BY_CHECK(segments);
BY_CHECK(address);
BY_CHECK(paths);
BY_CHECK(peer);
/* check_cable.c */
BY_CHECK(cables);
/* check_switch.c */
BY_CHECK(reach);
BY_CHECK(skew);
BY_CHECK(time);
BY_CHECK(table);
BY_CHECK(plan);
BY_CHECK(push);
BY_CHECK(room);
BY_CHECK(able);
BY_CHECK(writer);
BY_CHECK(ports);
BY_CHECK(ways);
BY_CHECK(drops);
/* check_controller.c */
BY_CHECK(controller);

#endif
