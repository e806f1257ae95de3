/*
 * banyan doctor: looks for what would keep banyan from working, before it does. Facts are read
 * first (machine.h, switches.h), then each check of one table judges them, and says a remedy for
 * what it does not like. Neighbours: control/cli/doctor.c is the command, report.h what comes of
 * it. Single-threaded.
 */
#ifndef BY_VIEW_DOCTOR_DOCTOR_H
#define BY_VIEW_DOCTOR_DOCTOR_H

#include "control/view/doctor/machine.h"
#include "control/view/doctor/report.h"
#include "control/view/doctor/switches.h"
#include "offload/table/image.h"

/* A port of a table of this machine, and what is there. */
struct by_doctor_place {
    const char *table; /* the file's name; NULL: the interface was named by itself */
    struct by_image_header header;
    struct by_image_port port;
    struct by_interface interface;
    enum by_peer peer; /* 0: nobody was asked */
    uint8_t peer_mac[6];
};

/* Keys of this user: what is wrong with them, whose they are, and how long they hold. */
struct by_key_facts {
    const char *folder;         /* NULL: no keys were named */
    char fault[320];            /* "" when they can be used */
    const char *role;           /* what the certificate is for: switch, controller, host; or "" */
    char name[BY_NAME_MAX + 1]; /* whom it names */
    int64_t from_s, until_s;    /* when all its certificates are valid; 0: not known */
};

struct by_doctor {
    struct by_doctor_machine machine;
    struct by_key_facts keys;
    struct by_doctor_place *places;
    uint32_t place_count, place_room;
    struct by_switch_facts *switches;
    uint32_t switch_count, switch_room;
    const char *joins;           /* the controller that hosts of jobs join from here, or NULL */
    const char *node;            /* this host's name there */
    const char *controller;      /* address of one that is asked for its status, or NULL */
    char *status;                /* what it answered (control/service/daemon/status.h), or NULL */
    struct by_problem no_status; /* why not */
    struct by_report report;
    bool rings; /* hosts take frames out of rings (BANYAN_RING) */
};

/* A check: the row of a table. */
struct by_check {
    const char *name;
    const char *about;
    void (*run)(struct by_doctor *doctor);
};

/* All checks, in the order in which they run; `*count` of them. */
const struct by_check *by_checks(uint32_t *count);
/* Runs them over the facts that are there. */
void by_doctor_judge(struct by_doctor *doctor);
void by_doctor_free(struct by_doctor *doctor);

/* Reads the folder's certificates (firmware/secure/tls.h says what is in it). */
void by_key_facts_read(const char *folder, struct by_key_facts *facts);

/* Asks doctor->controller, if there is one. */
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
BY_CHECK(drops);
/* check_controller.c */
BY_CHECK(controller);

#endif
