/* Implements hub.h: a controller and switches inside a test's process. */
#include "tests/unit/host-driver/hub.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "host-driver/memory.h"
#include "host-driver/progress.h"
#include "offload/base/errors.h"
#include "tests/unit/host-driver/rig.h"

/* Returns a fabric without trees; the caller frees it. */
static struct fabric *make_fabric(uint16_t gen)
{
    struct fabric *fabric = calloc(1, sizeof(*fabric));
    char name[16];

    assert_non_null(fabric);
    for (int h = 0; h < HUB_HOSTS; h++) {
        snprintf(name, sizeof(name), "h%d", h);
        fabric_host(fabric, name);
    }
    for (int s = 0; s < HUB_SWITCHES; s++) {
        snprintf(name, sizeof(name), "s%d", s);
        fabric_switch(fabric, name, 0);
    }
    /* The last switch first: a tree rooted at a host uses the host's first cables. */
    for (int s = HUB_SWITCHES - 1; s >= 0; s--)
        for (int h = 0; h < HUB_HOSTS; h++)
            fabric_cable(fabric, h, HUB_HOSTS + s, 1000, 1000);
    fabric_job_add(fabric, 1, gen);
    return fabric;
}

static struct fabric_tree *add_tree(struct fabric *fabric, int root)
{
    struct fabric_tree *tree = fabric_tree_add(fabric, 0, root, 0, NULL);

    assert_non_null(tree);
    tree->window = 32;
    tree->payload_max = 512;
    return tree;
}

/* Makes the tables of generation `gen`, whose trees use all switches except the first gen - 1, but
 * at least the last. */
static void make_images(struct host_driver_hub *hub, uint16_t gen, bool inner)
{
    struct fabric *fabric = make_fabric(gen);

    for (int s = gen <= HUB_SWITCHES ? gen - 1 : HUB_SWITCHES - 1; s < HUB_SWITCHES; s++)
        add_tree(fabric, inner && gen > 1 ? 0 : HUB_HOSTS + s);
    for (int n = 0; n < HUB_NODES; n++)
        hub->image[gen][n].bytes = fabric_image(fabric, n, &hub->image[gen][n].size);
    free(fabric);
}

/* Makes the tables of hub_open_standbys: a switch has generations 1 to 3 in one. */
static void make_standby_images(struct host_driver_hub *hub, bool inner)
{
    static const int root[2] = {HUB_HOSTS + 2, HUB_HOSTS + 1};
    struct fabric *base = make_fabric(1), *standbys = calloc(2, sizeof(*standbys)), *later = make_fabric(4);

    assert_non_null(standbys);
    for (int s = 0; s < 2; s++) {
        struct fabric *one = make_fabric((uint16_t)(2 + s));

        add_tree(base, HUB_HOSTS + s);
        add_tree(later, HUB_HOSTS + 1 + s);
        add_tree(one, inner ? 0 : root[s]);
        add_tree(one, root[s])->collectives = BY_LEAF_ROUNDS;
        standbys[s] = *one;
        free(one);
    }
    for (int n = 0; n < HUB_NODES; n++) {
        for (int gen = 1; gen <= (n < HUB_HOSTS ? 3 : 1); gen++)
            hub->image[gen][n].bytes =
                fabric_image_standby(base, standbys, 2, gen - 1, n, &hub->image[gen][n].size);
        hub->image[4][n].bytes = fabric_image(later, n, &hub->image[4][n].size);
    }
    free(base);
    free(standbys);
    free(later);
}

/* Returns a switch or host of the fabric. */
static struct by_fabric_node *node_of(struct host_driver_hub *hub, int node)
{
    struct by_image_header header;

    by_image_header(hub->image[1][node].bytes, &header);
    for (uint32_t n = 0; n < hub->fabric->node_count; n++)
        if (strcmp(hub->fabric->nodes[n].header.name, header.name) == 0)
            return &hub->fabric->nodes[n];
    fail_msg("no node %s", header.name);
    return NULL;
}

static void write_tables(const struct host_driver_hub *hub)
{
    for (int n = 0; n < HUB_NODES; n++) {
        const struct hub_image *image = &hub->image[1][n];
        struct by_image_header header;
        char path[160];
        FILE *file;

        by_image_header(image->bytes, &header);
        snprintf(path, sizeof(path), "%s/%s.table", hub->folder, header.name);
        file = fopen(path, "wb");
        assert_non_null(file);
        assert_int_equal(fwrite(image->bytes, 1, image->size, file), image->size);
        assert_int_equal(fclose(file), 0);
    }
}

static void begin(struct host_driver_hub *hub, uint64_t seed)
{
    memset(hub, 0, sizeof(*hub));
    hub->prng.state = seed;
    snprintf(hub->folder, sizeof(hub->folder), "/tmp/banyan-test-XXXXXX");
    assert_non_null(mkdtemp(hub->folder));
}

/* Starts the fabric with generation 1, and the controller. */
static void start(struct host_driver_hub *hub)
{
    write_tables(hub);
    if (banyan_fabric_open(hub->folder, &hub->fabric) != BANYAN_OK)
        fail_msg("%s", banyan_last_error());
    for (size_t p = 0; p < sizeof(hub->peers) / sizeof(hub->peers[0]); p++)
        hub->peers[p].fd = -1;
    snprintf(hub->socket, sizeof(hub->socket), "unix:%s/controller", hub->folder);
    hub->listener = -1;
    hub_start(hub);
}

void hub_open(struct host_driver_hub *hub, uint64_t seed, bool inner)
{
    begin(hub, seed);
    for (uint16_t gen = 1; gen <= HUB_GENS; gen++)
        make_images(hub, gen, inner);
    start(hub);
}

void hub_open_standbys(struct host_driver_hub *hub, uint64_t seed, bool inner)
{
    begin(hub, seed);
    make_standby_images(hub, inner);
    start(hub);
}

void hub_join(struct host_driver_hub *hub)
{
    rig_set("BANYAN_CONTROLLER", hub->socket);
    rig_set("BANYAN_LOG", "0");
    for (int h = 0; h < HUB_HOSTS; h++) {
        struct banyan_config config;
        char name[8];

        snprintf(name, sizeof(name), "h%d", h);
        banyan_config_init(&config);
        config.fabric = hub->fabric;
        config.host = name;
        if (banyan_init(&config, &hub->context[h]) != BANYAN_OK ||
            banyan_comm_create(hub->context[h], 1, &hub->comm[h]) != BANYAN_OK)
            fail_msg("%s", banyan_last_error());
    }
    rig_set("BANYAN_CONTROLLER", NULL);
}

void hub_close(struct host_driver_hub *hub)
{
    for (int h = 0; h < HUB_HOSTS; h++) {
        if (hub->comm[h] != NULL)
            assert_int_equal(banyan_comm_destroy(hub->comm[h]), BANYAN_OK);
        if (hub->context[h] != NULL)
            assert_int_equal(banyan_finalize(hub->context[h]), BANYAN_OK);
    }
    assert_int_equal(banyan_fabric_close(hub->fabric), BANYAN_OK);
    hub_stop(hub);
    for (int g = 0; g <= HUB_GENS; g++)
        for (int n = 0; n < HUB_NODES; n++)
            free(hub->image[g][n].bytes);
    rig_remove(hub->folder);
}

void hub_kill(struct host_driver_hub *hub, int which)
{
    by_progress_close(node_of(hub, HUB_HOSTS + which)->own);
}

void hub_push(struct host_driver_hub *hub, uint16_t gen)
{
    for (int s = 0; s < HUB_SWITCHES; s++) {
        const struct hub_image *image = &hub->image[gen][HUB_HOSTS + s];
        struct by_progress_config config = {.image = image->bytes, .image_bytes = image->size};
        struct by_fabric_node *node = node_of(hub, HUB_HOSTS + s);

        if (node->own->transport == NULL)
            continue;
        by_progress_close(node->own);
        assert_int_equal(by_progress_open(node->own, &config, node->own_transport), 0);
    }
}

/* ---- the controller ---- */

void hub_start(struct host_driver_hub *hub)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};

    snprintf(address.sun_path, sizeof(address.sun_path), "%s", hub->socket + 5);
    unlink(address.sun_path);
    hub->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    assert_true(hub->listener >= 0);
    assert_int_equal(bind(hub->listener, (struct sockaddr *)&address, sizeof(address)), 0);
    assert_int_equal(listen(hub->listener, 16), 0);
}

static void drop_peer(struct hub_peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    free(peer->in);
    *peer = (struct hub_peer){.fd = -1, .host = -1};
}

void hub_stop(struct host_driver_hub *hub)
{
    for (size_t p = 0; p < sizeof(hub->peers) / sizeof(hub->peers[0]); p++)
        drop_peer(&hub->peers[p]);
    if (hub->listener >= 0)
        close(hub->listener);
    hub->listener = -1;
}

/* Sends the whole frame, however slow the rank is. The rank moves only in this process, so a full
 * socket would be a bug of the test. */
static void put(struct hub_peer *peer, const struct by_member_frame *frame)
{
    uint8_t *bytes = malloc(BY_MEMBER_FIXED_MAX + frame->bytes);
    size_t size, at = 0;

    assert_non_null(bytes);
    size = by_member_put(frame, bytes);
    if (frame->bytes > 0)
        memcpy(bytes + size, frame->data, frame->bytes);
    size += frame->bytes;
    while (at < size) {
        ssize_t sent = send(peer->fd, bytes + at, size - at, MSG_NOSIGNAL);

        if (sent < 0 && errno == EPIPE)
            break;
        assert_true(sent > 0);
        at += (size_t)sent;
    }
    free(bytes);
}

static struct hub_peer *peer_of(struct host_driver_hub *hub, int host)
{
    for (size_t p = 0; p < sizeof(hub->peers) / sizeof(hub->peers[0]); p++)
        if (hub->peers[p].fd >= 0 && hub->peers[p].host == host)
            return &hub->peers[p];
    return NULL;
}

static void take(struct host_driver_hub *hub, struct hub_peer *peer, const struct by_member_frame *frame)
{
    peer->told[frame->type]++;
    if (frame->type == BY_MEMBER_HELLO) {
        assert_true(frame->bytes == 2 && frame->data[0] == 'h');
        peer->host = frame->data[1] - '0';
        peer->carried = frame->gen;
        peer->hello_rank = frame->rank;
        put(peer, &(struct by_member_frame){
                      .type = BY_MEMBER_WELCOME,
                      .job = 1,
                      .gen = frame->gen > 0 ? frame->gen : 1,
                      .data = hub->image[1][peer->host].bytes,
                      .bytes = frame->gen > 0 ? 0 : (uint32_t)hub->image[1][peer->host].size});
    } else if (frame->type == BY_MEMBER_CARRIED) {
        peer->carried = frame->gen;
    } else if (frame->type == BY_MEMBER_SUSPECT) {
        peer->stuck += frame->code == BY_ESTATE;
    } else if (frame->type == BY_MEMBER_SAY) {
        struct hub_peer *to = peer_of(hub, frame->peer);

        hub->heard++;
        if (to == NULL || by_prng_below(&hub->prng, 16) < hub->loss)
            return;
        put(to, &(struct by_member_frame){.type = BY_MEMBER_HEARD,
                                          .job = frame->job,
                                          .rank = frame->peer,
                                          .gen = frame->gen,
                                          .peer = frame->rank,
                                          .data = frame->data,
                                          .bytes = frame->bytes});
    }
}

static void listen_to(struct host_driver_hub *hub, struct hub_peer *peer)
{
    struct by_member_frame frame;
    size_t at = 0, used;
    ssize_t got;

    if (peer->room - peer->used < 65536) {
        peer->room = peer->room * 2 + 65536;
        peer->in = realloc(peer->in, peer->room);
        assert_non_null(peer->in);
    }
    got = recv(peer->fd, peer->in + peer->used, peer->room - peer->used, MSG_DONTWAIT);
    if (got == 0) {
        drop_peer(peer);
        return;
    }
    if (got < 0)
        return;
    peer->used += (size_t)got;
    while (by_member_get(peer->in + at, peer->used - at, BY_MEMBER_HOST, &frame, &used) == 0) {
        take(hub, peer, &frame);
        at += used;
    }
    memmove(peer->in, peer->in + at, peer->used - at);
    peer->used -= at;
}

void hub_turn(struct host_driver_hub *hub)
{
    int fd = hub->listener >= 0 ? accept4(hub->listener, NULL, NULL, SOCK_CLOEXEC) : -1;

    for (size_t p = 0; p < sizeof(hub->peers) / sizeof(hub->peers[0]); p++) {
        if (hub->peers[p].fd < 0 && fd >= 0) {
            hub->peers[p] = (struct hub_peer){.fd = fd, .host = -1};
            fd = -1;
        }
        if (hub->peers[p].fd >= 0)
            listen_to(hub, &hub->peers[p]);
    }
    assert_true(fd < 0);
}

static void to_all(struct host_driver_hub *hub, struct by_member_frame frame, uint16_t image_of)
{
    for (int h = 0; h < HUB_HOSTS; h++) {
        struct hub_peer *peer = peer_of(hub, h);

        frame.rank = (uint16_t)h;
        if (image_of > 0) {
            frame.data = hub->image[image_of][h].bytes;
            frame.bytes = (uint32_t)hub->image[image_of][h].size;
        }
        if (peer != NULL)
            put(peer, &frame);
    }
}

void hub_freeze(struct host_driver_hub *hub, uint16_t gen, bool images)
{
    to_all(hub, (struct by_member_frame){.type = BY_MEMBER_FREEZE, .job = 1, .gen = gen}, images ? gen : 0);
}

void hub_go(struct host_driver_hub *hub, uint16_t gen)
{
    to_all(hub, (struct by_member_frame){.type = BY_MEMBER_GO, .job = 1, .gen = gen}, 0);
}

void hub_standby(struct host_driver_hub *hub, uint16_t gen, uint16_t base, uint8_t replaces)
{
    for (int h = 0; h < HUB_HOSTS; h++) {
        const struct hub_image *image = &hub->image[gen][h];
        struct hub_peer *peer = peer_of(hub, h);
        struct by_member_frame frame = {
            .type = BY_MEMBER_STANDBY, .job = 1, .rank = (uint16_t)h, .gen = gen, .base = base};
        uint8_t *data = malloc(1 + image->size);

        assert_non_null(data);
        data[0] = replaces;
        memcpy(data + 1, image->bytes, image->size);
        if (gen != base) {
            frame.mask_bytes = 1;
            frame.data = data;
            frame.bytes = (uint32_t)image->size + 1;
        }
        if (peer != NULL)
            put(peer, &frame);
        free(data);
    }
}

void hub_fail(struct host_driver_hub *hub, int32_t code, const char *text)
{
    to_all(hub,
           (struct by_member_frame){.type = BY_MEMBER_FAIL,
                                    .job = 1,
                                    .code = code,
                                    .data = (const uint8_t *)text,
                                    .bytes = (uint32_t)strlen(text)},
           0);
}

int hub_members(const struct host_driver_hub *hub)
{
    int count = 0;

    for (size_t p = 0; p < sizeof(hub->peers) / sizeof(hub->peers[0]); p++)
        count += hub->peers[p].fd >= 0 && hub->peers[p].host >= 0;
    return count;
}

int hub_carried(const struct host_driver_hub *hub, uint16_t gen)
{
    int count = 0;

    for (size_t p = 0; p < sizeof(hub->peers) / sizeof(hub->peers[0]); p++)
        count += hub->peers[p].fd >= 0 && hub->peers[p].host >= 0 && hub->peers[p].carried == gen;
    return count;
}

uint64_t hub_counter(const struct host_driver_hub *hub, int rank, const char *wanted)
{
    const char *name;
    uint64_t value;

    for (uint32_t i = 0; banyan_comm_counter(hub->comm[rank], i, &name, &value) == BANYAN_OK; i++)
        if (strcmp(name, wanted) == 0)
            return value;
    fail_msg("no counter %s", wanted);
    return 0;
}
