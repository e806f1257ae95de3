/* The fabric in memory: nodes, cables and simulated time; see fabric.h. The ports' transport is
 * memory.c. */
#include "host-driver/fabric.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/address.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/memory.h"

#define SUFFIX ".table"
/* simulated time of a round: far below a retransmission timeout, however long the queues are */
#define ROUND_NS 1000u

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int is_table(const char *name)
{
    size_t bytes = strlen(name);

    return bytes > sizeof(SUFFIX) - 1 && strcmp(name + bytes - (sizeof(SUFFIX) - 1), SUFFIX) == 0;
}

/* Lists the tables in `folder`, sorted, so that the order of nodes does not depend on the file
 * system. */
static int list_tables(const char *folder, char ***paths, uint32_t *count)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;
    int error = 0;

    *paths = NULL;
    *count = 0;
    if (directory == NULL)
        return by_fail(BY_ENOENT, "%s: %s; create the folder with 'banyan tables'", folder, strerror(errno));
    while (error == 0 && (entry = readdir(directory)) != NULL) {
        char **more;
        char *path;

        if (!is_table(entry->d_name))
            continue;
        more = realloc(*paths, (*count + 1) * sizeof(*more));
        if (more != NULL)
            *paths = more;
        if (more == NULL || asprintf(&path, "%s/%s", folder, entry->d_name) < 0)
            error = by_fail(BY_ENOMEM, "no memory for the list of tables in %s", folder);
        else
            (*paths)[(*count)++] = path;
    }
    closedir(directory);
    if (error == 0 && *count == 0)
        error =
            by_fail(BY_ENOENT, "%s contains no NODE.table; create the tables with 'banyan tables'", folder);
    if (*count > 1)
        qsort(*paths, *count, sizeof(**paths), by_name);
    return error;
}

/* Reads a node's table and ports; switches start immediately. */
static int add_node(struct banyan_fabric *fabric, struct by_fabric_node *node, const char *path)
{
    int error;

    node->fabric = fabric;
    error = by_host_image_read(path, &node->image, &node->image_bytes);
    if (error != 0)
        return error;
    error = by_image_ports_check(node->image);
    if (error != 0)
        return error;
    by_image_header(node->image, &node->header);
    node->port_count = node->header.count[BY_SECTION_PORT];
    node->ports = calloc(node->port_count + 1, sizeof(*node->ports));
    if (node->ports == NULL)
        return by_fail(BY_ENOMEM, "no memory for the ports of %s", node->header.name);
    for (uint32_t i = 0; i < node->port_count; i++)
        by_image_port(node->image, i, &node->ports[i].image);
    if (node->header.kind == BY_NODE_SWITCH) {
        struct by_progress_config config = {.image = node->image, .image_bytes = node->image_bytes};

        node->own = calloc(1, sizeof(*node->own));
        if (node->own == NULL)
            return by_fail(BY_ENOMEM, "no memory for switch %s", node->header.name);
        error = by_faults_read(&fabric->settings, node->header.node, &config.fault);
        if (error == 0)
            error = by_fabric_join(fabric, node, BY_UDP_PORT, node->own, &node->own_transport);
        if (error == 0)
            error = by_progress_open(node->own, &config, node->own_transport);
        return error;
    }
    return 0;
}

/* Connects every port to the port whose own address is its peer address. */
static int connect_ports(struct banyan_fabric *fabric)
{
    for (uint32_t n = 0; n < fabric->node_count; n++) {
        for (uint32_t p = 0; p < fabric->nodes[n].port_count; p++) {
            struct by_fabric_port *port = &fabric->nodes[n].ports[p];

            for (uint32_t m = 0; m < fabric->node_count && port->peer == NULL; m++) {
                for (uint32_t q = 0; q < fabric->nodes[m].port_count; q++) {
                    if (fabric->nodes[m].ports[q].image.own_ip != port->image.peer_ip)
                        continue;
                    port->peer = &fabric->nodes[m];
                    port->peer_port = (uint16_t)q;
                    break;
                }
            }
            if (port->peer == NULL) {
                char ip[BY_IP_TEXT];

                by_image_ip_text(fabric->nodes[n].image, port->image.peer_ip, ip);
                return by_fail(
                    BY_ENOENT,
                    "%s port %s is cabled to %s, an address of no table in the folder; is a table missing?",
                    fabric->nodes[n].header.name, port->image.name, ip);
            }
        }
    }
    return 0;
}

static void free_all(struct banyan_fabric *fabric)
{
    for (uint32_t n = 0; n < fabric->node_count; n++) {
        struct by_fabric_node *node = &fabric->nodes[n];

        if (node->own != NULL)
            by_progress_close(node->own);
        if (node->own_transport != NULL)
            node->own_transport->ops->close(node->own_transport);
        free(node->own);
        free(node->ports);
        free(node->image);
    }
    by_memory_drain(fabric);
    free(fabric->nodes);
    free(fabric);
}

banyan_status_t banyan_fabric_open(const char *folder, struct banyan_fabric **out)
{
    struct banyan_fabric *fabric;
    char **paths = NULL;
    uint32_t count = 0;
    int error;

    if (folder == NULL || out == NULL)
        return by_fail(BY_EINVAL, "banyan_fabric_open: %s is NULL", folder == NULL ? "folder" : "fabric");
    fabric = calloc(1, sizeof(*fabric));
    if (fabric == NULL)
        return by_fail(BY_ENOMEM, "no memory for a fabric");
    error = by_settings_load(&fabric->settings);
    if (error == 0)
        error = list_tables(folder, &paths, &count);
    if (error == 0) {
        fabric->nodes = calloc(count > 0 ? count : 1, sizeof(*fabric->nodes));
        if (fabric->nodes == NULL)
            error = by_fail(BY_ENOMEM, "no memory for %u nodes", count);
    }
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        fabric->node_count = i + 1;
        error = add_node(fabric, &fabric->nodes[i], paths[i]);
    }
    if (error == 0)
        error = connect_ports(fabric);
    for (uint32_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
    if (error != 0) {
        free_all(fabric);
        return (banyan_status_t)error;
    }
    *out = fabric;
    return BANYAN_OK;
}

banyan_status_t banyan_fabric_close(struct banyan_fabric *fabric)
{
    if (fabric == NULL)
        return by_fail(BY_EINVAL, "banyan_fabric_close: fabric is NULL");
    for (const struct by_memory *m = fabric->members; m != NULL; m = m->next)
        if (m->node->header.kind == BY_NODE_HOST)
            return by_fail(BY_EBUSY, "a communicator of %s still uses the fabric; destroy it first",
                           m->node->header.name);
    free_all(fabric);
    return BANYAN_OK;
}

/* Hosts are in the order of their node ids, which is the order of the topology file and of
 * ranks. */
const char *banyan_fabric_host(const struct banyan_fabric *fabric, uint32_t index)
{
    const struct by_fabric_node *found = NULL;
    uint32_t floor = 0;

    if (fabric == NULL)
        return NULL;
    for (uint32_t i = 0; i <= index; i++) {
        found = NULL;
        for (uint32_t n = 0; n < fabric->node_count; n++) {
            const struct by_fabric_node *node = &fabric->nodes[n];

            if (node->header.kind == BY_NODE_HOST && node->header.node >= floor &&
                (found == NULL || node->header.node < found->header.node))
                found = node;
        }
        if (found == NULL)
            return NULL;
        floor = found->header.node + 1u;
    }
    return found->header.name;
}

banyan_status_t banyan_fabric_link(const struct banyan_fabric *fabric, uint32_t index,
                                   struct banyan_link *link)
{
    if (fabric == NULL || link == NULL)
        return by_fail(BY_EINVAL, "banyan_fabric_link: %s is NULL", fabric == NULL ? "fabric" : "link");
    for (uint32_t n = 0; n < fabric->node_count; n++) {
        const struct by_fabric_node *node = &fabric->nodes[n];

        if (index < node->port_count) {
            const struct by_fabric_port *port = &node->ports[index];

            link->from = node->header.name;
            link->from_port = port->image.name;
            link->to = port->peer->header.name;
            link->to_port = port->peer->ports[port->peer_port].image.name;
            link->packets = port->sent_packets;
            link->bytes = port->sent_bytes;
            return BANYAN_OK;
        }
        index -= node->port_count;
    }
    return BANYAN_ENOENT;
}

struct by_fabric_node *by_fabric_host(struct banyan_fabric *fabric, const char *name)
{
    for (uint32_t n = 0; n < fabric->node_count; n++)
        if (fabric->nodes[n].header.kind == BY_NODE_HOST && strcmp(fabric->nodes[n].header.name, name) == 0)
            return &fabric->nodes[n];
    by_fail(BY_ENOENT, "the fabric has no host '%s'; banyan_fabric_host lists them", name);
    return NULL;
}

const uint8_t *by_fabric_image(const struct by_fabric_node *node, size_t *bytes)
{
    *bytes = node->image_bytes;
    return node->image;
}

uint64_t by_fabric_now(const struct banyan_fabric *fabric)
{
    return fabric->now_ns;
}

uint32_t by_fabric_step(struct banyan_fabric *fabric, uint64_t until_ns)
{
    uint64_t deadline = UINT64_MAX;
    uint32_t moved = 0;

    fabric->now_ns += ROUND_NS;
    for (struct by_memory *m = fabric->members; m != NULL; m = m->next)
        if (m->progress->transport != NULL)
            moved += by_progress_step(m->progress, fabric->now_ns);
    if (moved > 0 || until_ns <= fabric->now_ns)
        return moved;
    for (const struct by_memory *m = fabric->members; m != NULL; m = m->next) {
        uint64_t due = m->progress->transport != NULL ? by_progress_deadline(m->progress) : UINT64_MAX;

        if (due < deadline)
            deadline = due;
    }
    if (deadline > until_ns)
        deadline = until_ns;
    if (deadline == UINT64_MAX)
        return 0;
    if (deadline > fabric->now_ns)
        fabric->now_ns = deadline;
    return 1;
}
