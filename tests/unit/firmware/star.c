/* Implements star.h: the star of the switch's tests. */
#include "tests/unit/firmware/star.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/reduce/reduce.h"
#include "offload/table/image.h"

#define BASE_IP 0xc6120000u /* 198.18.0.0 */

uint32_t star_host_ip(unsigned host)
{
    return BASE_IP + 2 * host;
}

uint32_t star_port_ip(unsigned port)
{
    return BASE_IP + 2 * port + 1;
}

void star_mac(uint32_t ip, uint8_t mac[6])
{
    mac[0] = 0x02;
    mac[1] = 0x62;
    by_put32(mac + 2, ip);
}

void star_put_ports(const struct star *star, uint8_t *image)
{
    for (unsigned i = 0; i < star->hosts; i++) {
        struct by_image_port port = {.own_ip = star_port_ip(i),
                                     .peer_ip = star_host_ip(i),
                                     .peer_node = (uint16_t)(1 + i),
                                     .mtu = star->mtu};

        snprintf(port.name, sizeof port.name, "p%u", i);
        star_mac(port.own_ip, port.own_mac);
        star_mac(port.peer_ip, port.peer_mac);
        by_image_put_port(image, i, &port);
    }
}

static void put_tree(const struct star *star, uint8_t *image, uint16_t tree)
{
    struct by_image_entry entry = {.job = STAR_JOB,
                                   .tree = tree,
                                   .parent_node = BY_NODE_NONE,
                                   .child_count = (uint8_t)star->hosts,
                                   .first_child = (uint32_t)tree * star->hosts,
                                   .window = star->window,
                                   .payload_max = star->payload_max,
                                   .slot_base = (uint32_t)tree * star->window,
                                   .nleaf = star->hosts};

    by_image_put_entry(image, tree, &entry);
    for (unsigned i = 0; i < star->hosts; i++) {
        struct by_image_child child = {.port = (uint16_t)i,
                                       .node = (uint16_t)(1 + i),
                                       .ip = star_host_ip(i),
                                       .udp_port = BY_UDP_PORT,
                                       .rank = (uint16_t)i};

        by_image_put_child(image, entry.first_child + i, &child);
    }
}

uint8_t *star_image(const struct star *star, size_t *bytes)
{
    struct by_image_header header = {.cookie = star->cookie,
                                     .kind = BY_NODE_SWITCH,
                                     .slot_count = (uint32_t)star->trees * star->window,
                                     .payload_max = star->payload_max,
                                     .name = "star"};
    struct by_image_job job = {.job = STAR_JOB,
                               .gen = STAR_GEN,
                               .rank_count = star->hosts,
                               .rank = BY_RANK_NONE,
                               .tree_count = star->trees,
                               .udp_port = BY_UDP_PORT};
    uint8_t *image;

    header.count[BY_SECTION_PORT] = star->hosts;
    header.count[BY_SECTION_JOB] = 1;
    header.count[BY_SECTION_ENTRY] = star->trees;
    header.count[BY_SECTION_CHILD] = (uint32_t)star->trees * star->hosts;
    *bytes = by_image_bytes(header.count);
    image = calloc(1, *bytes);
    if (!image)
        abort();
    by_image_put_header(image, &header);
    star_put_ports(star, image);
    by_image_put_job(image, 0, &job);
    for (uint16_t tree = 0; tree < star->trees; tree++)
        put_tree(star, image, tree);
    by_image_seal(image);
    return image;
}

uint8_t *star_relay_image(uint32_t share, uint32_t rate, size_t *bytes)
{
    const struct star star = {.hosts = 2, .mtu = 1500};
    struct by_image_header header = {.kind = BY_NODE_SWITCH, .payload_max = 64, .name = "relay"};
    struct by_image_job job = {.job = STAR_JOB,
                               .gen = STAR_GEN,
                               .rank_count = 2,
                               .rank = BY_RANK_NONE,
                               .tree_count = 1,
                               .udp_port = STAR_RELAYED_PORT,
                               .share = share};
    struct by_image_relay relay = {
        .job = STAR_JOB, .src_ip = star_host_ip(0), .dst_ip = star_host_ip(1), .port = 1};
    struct by_image_port port;
    uint8_t *image;

    header.count[BY_SECTION_PORT] = star.hosts;
    header.count[BY_SECTION_JOB] = 1;
    header.count[BY_SECTION_RELAY] = 1;
    *bytes = by_image_bytes(header.count);
    image = calloc(1, *bytes);
    if (!image)
        abort();
    by_image_put_header(image, &header);
    star_put_ports(&star, image);
    by_image_port(image, 0, &port);
    port.rate_in = rate;
    by_image_put_port(image, 0, &port);
    by_image_put_job(image, 0, &job);
    by_image_put_relay(image, 0, &relay);
    by_image_seal(image);
    return image;
}

size_t star_relayed(const struct star *star, uint8_t *frame)
{
    struct by_frame fields = {.src_ip = star_host_ip(0),
                              .dst_ip = star_host_ip(1),
                              .src_port = STAR_RELAYED_PORT,
                              .dst_port = STAR_RELAYED_PORT};

    fields.bytes = (uint16_t)star_contribution(star, 0, 0, 0, (uint16_t)(star->payload_max / 4),
                                               frame + BY_FRAME_HEADER_BYTES);
    star_mac(star_host_ip(0), fields.src_mac);
    star_mac(star_port_ip(0), fields.dst_mac);
    by_frame_build(&fields, frame);
    return BY_FRAME_HEADER_BYTES + fields.bytes;
}

size_t star_contribution(const struct star *star, unsigned host, uint16_t tree, uint32_t seq, uint16_t count,
                         uint8_t *packet)
{
    struct by_header header = {.type = BY_TYPE_CONTRIB,
                               .child = (uint8_t)host,
                               .op = BY_OP_SUM,
                               .dtype = BY_DTYPE_I32,
                               .mode = BY_MODE_FAST,
                               .job = STAR_JOB,
                               .tree = tree,
                               .gen = STAR_GEN,
                               .count = count,
                               .nleaf = 1,
                               .seq = seq,
                               .witness = by_leaf_tag(STAR_JOB, (uint16_t)host),
                               .optag = by_optag(1, BY_COLLECTIVE_ALLREDUCE, 0, count)};

    (void)star;
    for (unsigned k = 0; k < count; k++) {
        int32_t value = (int32_t)(1000 * host + seq + k);

        memcpy(packet + BY_WIRE_HEADER_BYTES + 4 * k, &value, 4);
    }
    header.psum = by_psum(packet + BY_WIRE_HEADER_BYTES, 4u * count);
    by_header_encode(&header, packet);
    return BY_WIRE_HEADER_BYTES + 4u * count;
}

int32_t star_sum(const struct star *star, uint32_t seq, unsigned k)
{
    int32_t sum = 0;

    for (unsigned host = 0; host < star->hosts; host++)
        sum += (int32_t)(1000 * host + seq + k);
    return sum;
}

size_t star_frame(unsigned host, const uint8_t *packet, size_t bytes, uint8_t *frame)
{
    struct by_frame fields = {.src_ip = star_host_ip(host),
                              .dst_ip = star_port_ip(host),
                              .src_port = BY_UDP_PORT,
                              .dst_port = BY_UDP_PORT,
                              .bytes = (uint16_t)bytes};

    star_mac(fields.src_ip, fields.src_mac);
    star_mac(fields.dst_ip, fields.dst_mac);
    by_frame_build(&fields, frame);
    memmove(frame + BY_FRAME_HEADER_BYTES, packet, bytes);
    return BY_FRAME_HEADER_BYTES + bytes;
}

void star_retag(uint8_t *packet)
{
    by_put32(packet + 32, 0);
    by_put32(packet + 36, by_crc32c(0, packet, 32));
}
