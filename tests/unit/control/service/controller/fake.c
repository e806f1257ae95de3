/* Implements fake.h. */
#include "tests/unit/control/service/controller/fake.h"

#include <ctype.h>
#include <pb_decode.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "firmware/agent/agent.h"
#include "firmware/agent/refuse.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/table/image.h"
#include "proto/control.pb.h"

/* Ends the program after an error of the system. */
static void must(bool done)
{
    if (!done) {
        perror("fake switch");
        abort();
    }
}

static int fake_stage(void *node, const uint8_t *image, size_t bytes, struct by_image_fault *fault)
{
    struct controller_fake *fake = node;

    if (fake->refuse_stage != 0) {
        *fault =
            (struct by_image_fault){.section = "entry", .index = 3, .what = "no room for it", .value = 7};
        return fake->refuse_stage;
    }
    memcpy(fake->staged, image, bytes);
    fake->staged_bytes = bytes;
    return by_image_check(image, bytes, NULL, fault);
}

static int fake_commit(void *node)
{
    struct controller_fake *fake = node;

    if (fake->refuse_commit != 0)
        return fake->refuse_commit;
    memcpy(fake->active, fake->staged, fake->staged_bytes);
    fake->active_bytes = fake->staged_bytes;
    fake->commits++;
    return 0;
}

static void fake_abort(void *node)
{
    ((struct controller_fake *)node)->aborts++;
}

static const uint8_t *fake_image(void *node, size_t *bytes)
{
    struct controller_fake *fake = node;

    *bytes = fake->active_bytes;
    return fake->active_bytes ? fake->active : NULL;
}

static int fake_counter(void *node, uint32_t index, struct by_agent_counter *out)
{
    *out = (struct by_agent_counter){.name = "rx", .value = 12345678901234ull};
    if (index == 1)
        *out = (struct by_agent_counter){.name = "complete",
                                         .value = ((struct controller_fake *)node)->complete};
    return index == 0 || (index == 1 && ((struct controller_fake *)node)->complete > 0) ? 0 : BY_ENOENT;
}

static int fake_port(void *node, uint32_t index, struct by_agent_port *out)
{
    const struct controller_fake *fake = node;

    *out = (struct by_agent_port){.name = index ? "p1" : "p0", .rx_bytes = 1000 + index, .tx_packets = 7};
    out->down = index < 2 && fake->down[index];
    return index < 2 ? 0 : BY_ENOENT;
}

static int fake_waiting(void *node, uint32_t index, struct by_bank_view *out)
{
    (void)node;
    *out = (struct by_bank_view){.seq = 42, .state = BY_BANK_AGG, .missing = 5};
    return index == 0 ? 0 : BY_EAGAIN;
}

static const struct by_agent_ops ops = {
    .stage = fake_stage,
    .commit = fake_commit,
    .abort = fake_abort,
    .image = fake_image,
    .counter = fake_counter,
    .port = fake_port,
    .waiting = fake_waiting,
    .keep = NULL,
    .clock = NULL,
    .share = NULL,
    .interface = NULL,
    .announce = NULL,
    .way = NULL,
};

/* Returns whether the first bytes of a message, preceded by its length, are those of a request that
 * writes. */
static bool is_write(const uint8_t *bytes, size_t count)
{
    pb_istream_t stream = pb_istream_from_buffer(bytes, count);
    pb_wire_type_t type;
    uint32_t tag;
    bool end = false;

    if (!pb_read(&stream, NULL, BY_CONTROL_LENGTH_BYTES))
        return false;
    while (!end && pb_decode_tag(&stream, &type, &tag, &end) && tag < by_Request_hello_tag)
        if (!pb_skip_field(&stream, type))
            return false;
    return !end && tag >= by_Request_stage_tag && tag <= by_Request_abort_tag;
}

void fake_crash(struct crash *crash)
{
    while (crash->process == 0)
        usleep(100);
    kill(crash->process, SIGKILL);
    waitpid(crash->process, NULL, 0);
    crash->process = -1;
}

/* Counts a request. Returns true if the controller ends at this request, after ending it. */
static bool is_last(struct crash *crash, bool writes)
{
    if ((crash->writes && !writes) || atomic_fetch_sub(&crash->left, 1) != 1)
        return false;
    fake_crash(crash);
    return true;
}

atomic_int fake_busy_most;

static void be_late(struct controller_fake *fake)
{
    static atomic_int busy;
    int now = atomic_fetch_add(&busy, 1) + 1, most = fake_busy_most;

    while (now > most && !atomic_compare_exchange_weak(&fake_busy_most, &most, now))
        ;
    usleep((useconds_t)fake->late_us);
    atomic_fetch_sub(&busy, 1);
}

/* Sends the agent's refusal of a client that exceeds the rate, or a refusal without a reason. */
static bool refuse(int fd, bool misleads)
{
    uint8_t out[BY_CONTROL_LENGTH_BYTES + 512], *message = out + BY_CONTROL_LENGTH_BYTES;
    size_t room = sizeof(out) - BY_CONTROL_LENGTH_BYTES;
    size_t bytes = misleads ? by_refuse(BY_EPERM, "an election id is not what this is about", message, room)
                            : by_refuse_rate(message, room);

    by_put32(out, (uint32_t)bytes);
    bytes += BY_CONTROL_LENGTH_BYTES;
    return send(fd, out, bytes, MSG_NOSIGNAL) == (ssize_t)bytes;
}

/* Changes the words, keeps the length. */
static void reword(uint8_t *message, size_t bytes)
{
    uint8_t *at = memmem(message, bytes, "election id", 11);

    for (unsigned i = 0; at != NULL && i < 11; i++)
        at[i] = (uint8_t)toupper(at[i]);
}

/* In two pieces: a reader must accept a partial message. */
static bool send_all(int fd, const uint8_t *out, size_t bytes)
{
    return send(fd, out, bytes / 2, MSG_NOSIGNAL) >= 0 &&
           send(fd, out + bytes / 2, bytes - bytes / 2, MSG_NOSIGNAL) >= 0;
}

/* Answers the requests in `in`. Returns false if the connection must be closed. */
static bool answer(struct controller_fake *fake, struct by_channel *channel, int fd, const uint8_t *in,
                   size_t count)
{
    static _Thread_local uint8_t out[BY_CHANNEL_OUT_MIN];
    struct crash *crash = fake->crash;
    bool writes = is_write(in, count);
    size_t done = 0, used = 1;

    if (fake->garbage)
        return send(fd, "\0\0\0\4abcd", 8, MSG_NOSIGNAL) == 8;
    if (fake->hasty || fake->misleading)
        return refuse(fd, fake->misleading);
    if (crash != NULL && crash->before && is_last(crash, writes))
        return false;
    while (done < count && used > 0) {
        int32_t bytes;
        bool sent;

        pthread_mutex_lock(&fake->lock);
        bytes = by_channel_step(channel, fake->agent, in + done, count - done, &used, out, sizeof(out));
        pthread_mutex_unlock(&fake->lock);
        if (bytes < 0)
            return false;
        done += used;
        if (fake->reworded && bytes > 0)
            reword(out, (size_t)bytes);
        if (crash != NULL && !crash->before && bytes > 0 && is_last(crash, writes))
            return false;
        if (bytes > 0 && fake->late_us > 0)
            be_late(fake);
        while (bytes > 0 && fake->holds && fake->commits > 0 && !fake->end)
            usleep(1000);
        pthread_mutex_lock(&fake->lock); /* for a whole answer or notice */
        sent = bytes == 0 || send_all(fd, out, (size_t)bytes);
        pthread_mutex_unlock(&fake->lock);
        if (!sent)
            return false;
    }
    return true;
}

void fake_notify(struct controller_fake *fake)
{
    static _Thread_local uint8_t out[BY_CHANNEL_OUT_MIN];

    pthread_mutex_lock(&fake->lock);
    for (unsigned i = 0; i < FAKE_CLIENTS_MAX; i++) {
        const struct fake_client *client = &fake->clients[i];
        size_t bytes = 0;

        if (client->fd >= 0 && client->channel != NULL)
            bytes = by_channel_notice(client->channel, fake->agent, out, sizeof(out));
        if (bytes > 0)
            send_all(client->fd, out, bytes);
    }
    pthread_mutex_unlock(&fake->lock);
}

/* Reads one request with its length, or as much as there is of something else. Returns its bytes, 0
 * at the end. */
static size_t receive(int fd, uint8_t *in, size_t room)
{
    size_t have = 0, want = BY_CONTROL_LENGTH_BYTES;

    while (have < want) {
        ssize_t count = recv(fd, in + have, want - have, 0);

        if (count <= 0)
            return 0;
        have += (size_t)count;
        if (have == BY_CONTROL_LENGTH_BYTES && by_get32(in) <= room - BY_CONTROL_LENGTH_BYTES)
            want += by_get32(in);
    }
    return have;
}

/* Waits until that many whole requests have arrived, for two seconds at most. */
static bool await_requests(int fd, int wanted)
{
    static _Thread_local uint8_t in[65536];

    for (unsigned waited = 0; waited < 2000; waited++) {
        ssize_t have = recv(fd, in, sizeof(in), MSG_PEEK | MSG_DONTWAIT);
        size_t at = 0;
        int count = 0;

        while (have > 0 && at + BY_CONTROL_LENGTH_BYTES <= (size_t)have &&
               at + BY_CONTROL_LENGTH_BYTES + by_get32(in + at) <= (size_t)have) {
            at += BY_CONTROL_LENGTH_BYTES + by_get32(in + at);
            count++;
        }
        if (count >= wanted)
            return true;
        usleep(1000);
    }
    return false;
}

/* Serves one client until it disconnects. */
static void *serve(void *argument)
{
    static _Thread_local struct by_channel channel;
    static _Thread_local uint8_t in[BY_CONTROL_LENGTH_BYTES + BY_REQUEST_BYTES_MAX + BY_PSK_BYTES];
    struct fake_client *client = argument;
    struct controller_fake *fake = client->fake;
    size_t count;

    by_channel_init(&channel, fake->guard);
    pthread_mutex_lock(&fake->lock);
    client->channel = &channel;
    pthread_mutex_unlock(&fake->lock);
    if (fake->together > 0 && !await_requests(client->fd, fake->together))
        fake->missed++;
    while ((count = receive(client->fd, in, sizeof(in))) > 0)
        if (!fake->silent && !answer(fake, &channel, client->fd, in, count))
            break;
    pthread_mutex_lock(&fake->lock);
    client->channel = NULL;
    pthread_mutex_unlock(&fake->lock);
    shutdown(client->fd, SHUT_RDWR);
    return NULL;
}

/* Finds a place for another client, and releases those of disconnected clients. Returns NULL if
 * there is none. */
static struct fake_client *find_place(struct controller_fake *fake)
{
    for (unsigned i = 0; i < FAKE_CLIENTS_MAX; i++) {
        struct fake_client *client = &fake->clients[i];

        if (client->fd >= 0 && pthread_tryjoin_np(client->thread, NULL) == 0) {
            close(client->fd);
            client->fd = -1;
        }
        if (client->fd < 0)
            return client;
    }
    return NULL;
}

static void *serve_all(void *argument)
{
    struct controller_fake *fake = argument;

    while (!fake->end) {
        int fd = accept(fake->listener, NULL, NULL);
        struct fake_client *client = fd >= 0 ? find_place(fake) : NULL;

        if (fd < 0)
            break;
        if (client == NULL) {
            close(fd);
            continue;
        }
        *client = (struct fake_client){.fake = fake, .fd = fd};
        must(pthread_create(&client->thread, NULL, serve, client) == 0);
    }
    return NULL;
}

uint32_t fake_able = by_Able_ABLE_STANDBY;

struct controller_fake *fake_start(const char *name, uint32_t slots, uint32_t image_bytes_max)
{
    static atomic_ullong nonces = 9;
    struct controller_fake *fake = by_alloc(1, sizeof(*fake));
    struct sockaddr_un to = {.sun_family = AF_UNIX};
    struct by_agent_config config = {.name = name,
                                     .software = "fake 1",
                                     .boot_nonce = atomic_fetch_add(&nonces, 1),
                                     .port_count = 256,
                                     .slot_count = slots,
                                     .payload_max = 8192,
                                     .entry_max = 4096,
                                     .able = fake_able,
                                     .image_bytes_max = image_bytes_max,
                                     .ops = &ops,
                                     .node = fake};

    pthread_mutex_init(&fake->lock, NULL);
    for (unsigned i = 0; i < FAKE_CLIENTS_MAX; i++)
        fake->clients[i].fd = -1;
    fake->staged = by_alloc(image_bytes_max, 1);
    fake->active = by_alloc(image_bytes_max, 1);
    snprintf(fake->path, sizeof(fake->path), "/tmp/by-test-%ld-%s.sock", (long)getpid(), name);
    snprintf(fake->address, sizeof(fake->address), "unix:%s", fake->path);
    memcpy(to.sun_path, fake->path, sizeof(to.sun_path));
    unlink(fake->path);
    must(posix_memalign(&fake->memory, 64, by_agent_size(&config)) == 0);
    must(by_agent_init(&fake->agent, fake->memory, by_agent_size(&config), &config) == 0);
    fake->listener = socket(AF_UNIX, SOCK_STREAM, 0);
    must(bind(fake->listener, (struct sockaddr *)&to, sizeof(to)) == 0);
    must(listen(fake->listener, 8) == 0);
    must(pthread_create(&fake->thread, NULL, serve_all, fake) == 0);
    return fake;
}

void fake_stop(struct controller_fake *fake)
{
    fake->end = 1;
    shutdown(fake->listener, SHUT_RDWR);
    pthread_join(fake->thread, NULL);
    for (unsigned i = 0; i < FAKE_CLIENTS_MAX; i++) {
        if (fake->clients[i].fd < 0)
            continue;
        shutdown(fake->clients[i].fd, SHUT_RDWR);
        pthread_join(fake->clients[i].thread, NULL);
        close(fake->clients[i].fd);
    }
    pthread_mutex_destroy(&fake->lock);
    close(fake->listener);
    unlink(fake->path);
    free(fake->memory);
    free(fake->staged);
    free(fake->active);
    free(fake);
}
