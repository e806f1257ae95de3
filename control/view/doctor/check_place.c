/*
 * Checks of interfaces, with or without a table of this machine that names them. Facts are those of
 * machine.h. Pure except for the report.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "control/tables/address.h"
#include "control/view/doctor/doctor.h"

/* Writes an address of a port: `ip`, or `ipv6` if that is a number. */
static void ip_text(uint32_t ip, const uint8_t ipv6[BY_IPV6_BYTES], char text[BY_ADDRESS_TEXT])
{
    if (!by_ipv6_is(ip))
        by_address_text(&(struct by_ipv6_book){.records = NULL}, ip, text);
    else if (inet_ntop(AF_INET6, ipv6, text, BY_ADDRESS_TEXT) == NULL)
        text[0] = 0;
}

static void mac_text(const uint8_t mac[6], char text[18])
{
    snprintf(text, 18, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
}

/* Returns the next place whose interface exists, from *index on; NULL after the last one. */
static const struct by_doctor_place *next_place(const struct by_doctor *doctor, uint32_t *index)
{
    while (*index < doctor->place_count) {
        const struct by_doctor_place *place = &doctor->places[(*index)++];

        if (place->interface.exists)
            return place;
    }
    return NULL;
}

void by_check_interface(struct by_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->place_count; i++) {
        const struct by_interface *interface = &doctor->places[i].interface;
        char remedy[256];

        if (!interface->exists) {
            by_report_add(
                &doctor->report, BY_GRADE_TROUBLE, interface->name,
                doctor->places[i].table
                    ? "give it the table's name (ip link set OLD name NEW), or use this machine's table"
                    : "name one of these",
                "does not exist; available: %s", interface->existing);
        } else if (!interface->is_up) {
            snprintf(remedy, sizeof(remedy), "ip link set %s up", interface->name);
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, interface->name, remedy, "is down");
        } else if (!interface->has_carrier) {
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, interface->name,
                          "check the cable, and that the other end is up", "has no carrier");
        } else {
            by_report_add(&doctor->report, BY_GRADE_OK, interface->name, NULL, "is up");
        }
    }
}

void by_check_mtu(struct by_doctor *doctor)
{
    const struct by_doctor_place *place;

    for (uint32_t i = 0; (place = next_place(doctor, &i)) != NULL;) {
        const struct by_interface *interface = &place->interface;
        char remedy[256];

        snprintf(remedy, sizeof(remedy), "ip link set %s mtu %u, or make tables with --mtu %u",
                 interface->name, place->port.mtu, interface->mtu);
        if (place->table && interface->mtu < place->port.mtu)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, interface->name, remedy,
                          "has an MTU of %u, the table requires %u: full chunks will not pass",
                          interface->mtu, place->port.mtu);
        else if (place->table && interface->mtu > place->port.mtu)
            by_report_add(&doctor->report, BY_GRADE_OK, interface->name, NULL,
                          "has an MTU of %u, the table uses %u of it", interface->mtu, place->port.mtu);
        else
            by_report_add(&doctor->report, BY_GRADE_OK, interface->name, NULL, "has an MTU of %u",
                          interface->mtu);
    }
}

void by_check_xdp(struct by_doctor *doctor)
{
    const struct by_doctor_place *place;

    for (uint32_t i = 0; (place = next_place(doctor, &i)) != NULL;) {
        const struct by_interface *interface = &place->interface;
        char remedy[256];

        if (interface->native_xdp == 0)
            by_report_add(&doctor->report, BY_GRADE_ADVICE, interface->name,
                          "use a NIC whose driver supports it, or accept the cost",
                          "its driver has no native XDP: AF_XDP copies every frame");
        snprintf(remedy, sizeof(remedy), "ethtool -L %s combined 1", interface->name);
        if (interface->queues > 1)
            by_report_add(&doctor->report, BY_GRADE_ADVICE, interface->name, remedy,
                          "has %u receive queues, but AF_XDP reads one: packet sockets are used instead",
                          interface->queues);
        if (interface->native_xdp != 0 && interface->queues <= 1)
            by_report_add(&doctor->report, BY_GRADE_OK, interface->name, NULL, "%s, one receive queue",
                          interface->native_xdp > 0 ? "native XDP" : "XDP features not reported");
    }
}

void by_check_ring(struct by_doctor *doctor)
{
    const struct by_doctor_place *place;

    for (uint32_t i = 0; (place = next_place(doctor, &i)) != NULL;) {
        const struct by_interface *interface = &place->interface;
        char remedy[256];

        snprintf(remedy, sizeof(remedy), "ethtool -G %s rx %u", interface->name, interface->ring_max);
        if (interface->ring > 0 && interface->ring < interface->ring_max / 2)
            by_report_add(&doctor->report, BY_GRADE_ADVICE, interface->name, remedy,
                          "has %u receive descriptors of %u: bursts may be lost", interface->ring,
                          interface->ring_max);
    }
}

void by_check_segments(struct by_doctor *doctor)
{
    const struct by_doctor_place *place;

    for (uint32_t i = 0; (place = next_place(doctor, &i)) != NULL && doctor->rings;) {
        char remedy[256];

        snprintf(remedy, sizeof(remedy), "ethtool -K %s tx-udp-segmentation off, or BANYAN_RING=off",
                 place->interface.name);
        if (place->interface.cuts == 0)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, place->interface.name, remedy,
                          "BANYAN_RING is on, but the link carries whole GSO batches, of which a ring keeps "
                          "only the first bytes");
        else
            by_report_add(&doctor->report, BY_GRADE_OK, place->interface.name, NULL,
                          "GSO batches are cut into frames");
    }
}

/* Whether the interface has the own address of a port. */
static bool has_address(const struct by_doctor_place *place)
{
    const struct by_interface *interface = &place->interface;
    uint32_t ip = place->port.own_ip;

    for (uint32_t i = 0; i < interface->ipv6_count && by_ipv6_is(ip); i++)
        if (memcmp(interface->ipv6[i], place->own_ipv6, BY_IPV6_BYTES) == 0)
            return true;
    for (uint32_t i = 0; i < interface->address_count; i++)
        if (interface->addresses[i] == ip)
            return true;
    return false;
}

/* Whether the table leaves a MAC address to ARP. */
static bool is_zero(const uint8_t mac[6])
{
    static const uint8_t none[6] = {0};

    return memcmp(mac, none, sizeof(none)) == 0;
}

void by_check_address(struct by_doctor *doctor)
{
    const struct by_doctor_place *place;

    for (uint32_t i = 0; (place = next_place(doctor, &i)) != NULL;) {
        const struct by_interface *interface = &place->interface;
        bool is_host = place->header.kind == BY_NODE_HOST;
        char ip[BY_ADDRESS_TEXT], wanted[18], mac[18], remedy[256];

        if (!place->table)
            continue;
        ip_text(place->port.own_ip, place->own_ipv6, ip);
        mac_text(place->port.own_mac, wanted);
        mac_text(interface->mac, mac);
        if (is_host && !has_address(place)) {
            snprintf(remedy, sizeof(remedy), "ip addr add %s/%u dev %s", ip,
                     by_ipv6_is(place->port.own_ip) ? 127u : 31u, interface->name);
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, interface->name, remedy,
                          "does not have the table's address %s", ip);
        } else if (!is_zero(place->port.own_mac) && memcmp(interface->mac, place->port.own_mac, 6) != 0) {
            snprintf(remedy, sizeof(remedy), "ip link set %s address %s", interface->name, wanted);
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, interface->name, remedy,
                          "is %s, the table sends to %s", mac, wanted);
        } else {
            by_report_add(&doctor->report, BY_GRADE_OK, interface->name, NULL, "is %s at %s", ip, mac);
        }
    }
}

void by_check_paths(struct by_doctor *doctor)
{
    const struct by_doctor_place *place;

    for (uint32_t i = 0; (place = next_place(doctor, &i)) != NULL;) {
        char remedy[256];

        if (!place->table || place->header.kind != BY_NODE_HOST || place->header.count[BY_SECTION_PORT] < 2 ||
            !place->interface.is_strict)
            continue;
        snprintf(remedy, sizeof(remedy), "sysctl net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.%s.rp_filter=0",
                 place->interface.name);
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, place->interface.name, remedy,
                      "its reverse path filter is strict: packets of nodes behind another link are dropped");
    }
}

void by_check_peer(struct by_doctor *doctor)
{
    const struct by_doctor_place *place;

    for (uint32_t i = 0; (place = next_place(doctor, &i)) != NULL;) {
        const char *name = place->interface.name;
        char ip[BY_ADDRESS_TEXT], wanted[18], mac[18];

        if (place->peer == 0 && place->table && place->interface.has_program)
            by_report_add(&doctor->report, BY_GRADE_OK, name, NULL,
                          "no request sent: a running switch receives this port's frames");
        if (place->peer == 0)
            continue;
        ip_text(place->port.peer_ip, place->peer_ipv6, ip);
        mac_text(place->port.peer_mac, wanted);
        mac_text(place->peer_mac, mac);
        if (place->peer == BY_PEER_SILENT)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, name,
                          "check that it is up, that its switch has a table, and that this is the right "
                          "cable",
                          "%s (node %u) does not answer", ip, place->port.peer_node);
        else if (place->peer == BY_PEER_UNSEEN)
            by_report_add(&doctor->report, BY_GRADE_UNSEEN, name, "run as root to send a request",
                          "it is unknown whether %s (node %u) is present", ip, place->port.peer_node);
        else if (!is_zero(place->port.peer_mac) && memcmp(place->peer_mac, place->port.peer_mac, 6) != 0)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, name,
                          "check cables, and that both ends have tables of one lowering",
                          "%s answers as %s; the table states %s", ip, mac, wanted);
        else
            by_report_add(&doctor->report, BY_GRADE_OK, name, NULL, "%s (node %u) %s", ip,
                          place->port.peer_node,
                          place->peer == BY_PEER_ANSWERS ? "answers" : "is in the kernel's neighbour table");
    }
}
