/* Implements rig.h. */
#include "tests/unit/host-driver/rig.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void write_file(const char *folder, const char *name, const uint8_t *bytes, size_t size)
{
    char path[160];
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s.table", folder, name);
    file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void new_folder(char folder[64])
{
    snprintf(folder, 64, "/tmp/banyan-test-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

/* Copies the records of one section from one image to another. */
#define COPY(SECTION, section)                                                                               \
    for (uint32_t i = 0; i < header.count[BY_SECTION_##SECTION]; i++) {                                      \
        struct by_image_##section record;                                                                    \
                                                                                                             \
        by_image_##section(image, i, &record);                                                               \
        by_image_put_##section(named, i, &record);                                                           \
    }

/* Returns the image with a name for every node, as in the controller's images. Frees the old
 * one. */
static uint8_t *add_names(const struct fabric *fabric, uint8_t *image, size_t *bytes)
{
    struct by_image_header header;
    uint16_t rank = 0;
    uint8_t *named;

    by_image_header(image, &header);
    assert_int_equal(header.count[BY_SECTION_NAME], 0);
    header.count[BY_SECTION_NAME] = (uint32_t)fabric->node_count;
    *bytes = by_image_bytes(header.count);
    named = calloc(1, *bytes);
    assert_non_null(named);
    by_image_put_header(named, &header);
    COPY(PORT, port)
    COPY(JOB, job)
    COPY(ENTRY, entry)
    COPY(CHILD, child)
    COPY(LEAF, leaf)
    COPY(RELAY, relay)
    COPY(HOP, hop)
    for (uint16_t n = 0; n < fabric->node_count; n++) {
        struct by_image_name name = {.node = n, .rank = BY_RANK_NONE};

        if (fabric->nodes[n].kind == BY_NODE_HOST)
            name.rank = rank++;
        memcpy(name.name, fabric->nodes[n].name, strlen(fabric->nodes[n].name));
        by_image_put_name(named, n, &name);
    }
    by_image_seal(named);
    free(image);
    return named;
}
#undef COPY

void rig_write(const struct fabric *fabric, char folder[64])
{
    new_folder(folder);
    for (int n = 0; n < fabric->node_count; n++) {
        size_t bytes;
        uint8_t *image = add_names(fabric, fabric_image(fabric, n, &bytes), &bytes);

        write_file(folder, fabric->nodes[n].name, image, bytes);
        free(image);
    }
}

void rig_remove(const char *folder)
{
    DIR *directory = opendir(folder);
    struct dirent *entry;

    while (directory != NULL && (entry = readdir(directory)) != NULL) {
        char path[400];

        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        if (entry->d_name[0] != '.')
            unlink(path);
    }
    if (directory != NULL)
        closedir(directory);
    rmdir(folder);
}

/* Moves an image of hosts around host 0 to the loopback interface: node n has 127.0.0.(n + 1) on
 * its only port. */
static void move_to_loopback(uint8_t *image)
{
    const uint32_t base = 0x7f000001;
    struct by_image_header header;

    by_image_header(image, &header);
    assert_int_equal(header.count[BY_SECTION_PORT], 1);
    for (uint32_t i = 0; i < header.count[BY_SECTION_PORT]; i++) {
        struct by_image_port port;

        by_image_port(image, i, &port);
        snprintf(port.name, sizeof(port.name), "lo");
        port.own_ip = base + header.node;
        port.peer_ip = base + port.peer_node;
        by_image_put_port(image, i, &port);
    }
    for (uint32_t i = 0; i < header.count[BY_SECTION_CHILD]; i++) {
        struct by_image_child child;

        by_image_child(image, i, &child);
        child.ip = base + child.node;
        by_image_put_child(image, i, &child);
    }
    for (uint32_t i = 0; i < header.count[BY_SECTION_LEAF]; i++) {
        struct by_image_leaf leaf;

        by_image_leaf(image, i, &leaf);
        leaf.parent_ip = base + leaf.parent_node;
        by_image_put_leaf(image, i, &leaf);
    }
    by_image_seal(image);
}

void rig_write_loopback(int hosts, char folder[64])
{
    struct fabric *fabric = calloc(1, sizeof(*fabric));
    struct fabric_tree *tree;
    int job;

    assert_non_null(fabric);
    assert_int_equal(hosts, 2); /* one cable: one port for each host */
    for (int h = 0; h < hosts; h++)
        fabric_host(fabric, h == 0 ? "h0" : "h1");
    fabric_cable(fabric, 0, 1, 1000, 1000);
    job = fabric_job_add(fabric, 1, 1);
    tree = fabric_tree_add(fabric, job, 0, 1, NULL);
    assert_non_null(tree);
    tree->window = 64;
    tree->payload_max = 1408;
    new_folder(folder);
    for (int n = 0; n < hosts; n++) {
        size_t bytes;
        uint8_t *image = add_names(fabric, fabric_image(fabric, n, &bytes), &bytes);

        move_to_loopback(image);
        write_file(folder, fabric->nodes[n].name, image, bytes);
        free(image);
    }
    free(fabric);
}

void rig_star(struct fabric *fabric, int hosts, uint16_t window)
{
    struct fabric_tree *tree;
    int job;

    memset(fabric, 0, sizeof(*fabric));
    fabric_star(fabric, hosts, 10000, 1000);
    job = fabric->job_count > 0 ? 0 : fabric_job_add(fabric, 1, 1);
    tree = fabric->jobs[job].tree_count > 0 ? &fabric->jobs[job].trees[0] : NULL;
    if (tree == NULL) {
        int root = 0;

        while (fabric->nodes[root].kind != BY_NODE_SWITCH)
            root++;
        tree = fabric_tree_add(fabric, job, root, 0, NULL);
    }
    assert_non_null(tree);
    tree->window = window;
    tree->payload_max = 256;
}

void rig_open(struct host_driver_rig *rig, const struct fabric *fabric, uint32_t job)
{
    const char *host;

    memset(rig, 0, sizeof(*rig));
    rig_write(fabric, rig->folder);
    if (banyan_fabric_open(rig->folder, &rig->fabric) != BANYAN_OK)
        fail_msg("%s", banyan_last_error());
    while ((host = banyan_fabric_host(rig->fabric, rig->count)) != NULL) {
        struct banyan_config config;

        banyan_config_init(&config);
        config.fabric = rig->fabric;
        config.host = host;
        if (banyan_init(&config, &rig->context[rig->count]) != BANYAN_OK ||
            banyan_comm_create(rig->context[rig->count], job, &rig->comm[rig->count]) != BANYAN_OK)
            fail_msg("%s", banyan_last_error());
        rig->count++;
    }
    assert_true(rig->count > 1);
}

void rig_close(struct host_driver_rig *rig)
{
    for (uint32_t r = 0; r < rig->count; r++) {
        assert_int_equal(banyan_comm_destroy(rig->comm[r]), BANYAN_OK);
        assert_int_equal(banyan_finalize(rig->context[r]), BANYAN_OK);
    }
    assert_int_equal(banyan_fabric_close(rig->fabric), BANYAN_OK);
    rig_remove(rig->folder);
}

void rig_set(const char *name, const char *value)
{
    if (value != NULL)
        setenv(name, value, 1);
    else
        unsetenv(name);
}

void rig_finish(struct host_driver_rig *rig, struct banyan_request **requests)
{
    for (uint32_t r = 0; r < rig->count; r++)
        if (banyan_post(requests[r]) != BANYAN_OK)
            fail_msg("%s", banyan_last_error());
    for (uint32_t r = 0; r < rig->count; r++)
        if (banyan_wait(requests[r]) != BANYAN_OK)
            fail_msg("%s", banyan_last_error());
    for (uint32_t r = 0; r < rig->count; r++)
        assert_int_equal(banyan_free(requests[r]), BANYAN_OK);
}
