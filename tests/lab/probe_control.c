/* The control channel's client of switch-probe: blocking, one request at a time, writing in pieces
 * so that the switch must put them together. */
#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "offload/base/bytes.h"
#include "offload/table/image.h"
#include "tests/lab/probe.h"

static void fail(const char *what)
{
    fprintf(stderr, "switch-probe: %s: %s\n", what, strerror(errno));
    exit(1);
}

int probe_dial(const char *address)
{
    struct sockaddr_un local = {.sun_family = AF_UNIX};
    struct sockaddr_in remote = {.sin_family = AF_INET};
    struct timeval limit = {.tv_sec = 5};
    const char *colon = strrchr(address, ':');
    char host[64] = "";
    int fd;

    if (strncmp(address, "unix:", 5) == 0) {
        snprintf(local.sun_path, sizeof local.sun_path, "%s", address + 5);
        fd = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&local, sizeof local) != 0)
            fail(address);
    } else {
        snprintf(host, sizeof host, "%.*s", (int)(colon - address - 4), address + 4);
        inet_pton(AF_INET, host, &remote.sin_addr);
        remote.sin_port = htons((uint16_t)atoi(colon + 1));
        fd = socket(AF_INET, SOCK_STREAM, 0);
        if (connect(fd, (struct sockaddr *)&remote, sizeof remote) != 0)
            fail(address);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    return fd;
}

static void read_all(int fd, uint8_t *data, size_t bytes)
{
    for (size_t have = 0; have < bytes;) {
        ssize_t got = recv(fd, data + have, bytes - have, 0);

        if (got <= 0)
            fail("no answer from the switch");
        have += (size_t)got;
    }
}

void probe_answer(int fd, by_Response *response)
{
    static uint8_t answer[BY_CHANNEL_OUT_MIN];

    read_all(fd, answer, BY_CONTROL_LENGTH_BYTES);
    read_all(fd, answer + BY_CONTROL_LENGTH_BYTES, by_get32(answer));
    client_decode(answer, BY_CONTROL_LENGTH_BYTES + by_get32(answer), response);
}

/* One request, written `piece` bytes at a time, and its answer. */
static void ask(int fd, const by_Request *request, size_t piece, by_Response *response)
{
    static uint8_t frame[CLIENT_FRAME_MAX];
    size_t bytes = client_frame(request, frame);

    for (size_t done = 0; done < bytes;) {
        ssize_t sent = send(fd, frame + done, bytes - done < piece ? bytes - done : piece, MSG_NOSIGNAL);

        if (sent <= 0)
            fail("the switch closed the channel");
        done += (size_t)sent;
    }
    probe_answer(fd, response);
    if (response->id != request->id) {
        fprintf(stderr, "switch-probe: answer %" PRIu64 " to request %" PRIu64 "\n", response->id,
                request->id);
        exit(1);
    }
}

static int step(int fd, by_Request *request, size_t piece, by_Response *response)
{
    ask(fd, request, piece, response);
    if (response->error == 0)
        return 0;
    fprintf(stderr, "switch-probe: refused: %s\n", response->text);
    return 1;
}

/* Reads the active image back and compares. */
static int read_back(int fd, const uint8_t *image, size_t bytes, size_t piece)
{
    static by_Request request;
    static by_Response response;
    size_t offset = 0;

    while (offset < bytes) {
        const by_ReadReply *read = &response.body.read;

        client_request(&request, by_Request_read_tag);
        request.body.read.offset = (uint32_t)offset;
        request.body.read.bytes = BY_CHUNK_BYTES_MAX;
        if (step(fd, &request, piece, &response) != 0)
            return 1;
        if (read->total != bytes || read->data.size == 0 ||
            memcmp(read->data.bytes, image + offset, read->data.size) != 0) {
            fprintf(stderr, "switch-probe: what was read back at %zu differs\n", offset);
            return 1;
        }
        offset += read->data.size;
    }
    return 0;
}

int probe_push(const char *address, const char *path, size_t piece)
{
    static uint8_t image[1 << 20];
    static by_Request request;
    static by_Response response;
    FILE *file = fopen(path, "rb");
    size_t bytes = file ? fread(image, 1, sizeof image, file) : 0;
    uint64_t hash = by_image_hash(image, bytes);
    int fd = probe_dial(address), result = 0;

    if (bytes == 0 || piece == 0)
        fail(path);
    fclose(file);
    for (size_t offset = 0; offset < bytes && result == 0; offset += BY_CHUNK_BYTES_MAX) {
        client_stage(&request, image, bytes, (uint32_t)offset,
                     (uint32_t)(bytes - offset < BY_CHUNK_BYTES_MAX ? bytes - offset : BY_CHUNK_BYTES_MAX));
        result = step(fd, &request, piece, &response);
    }
    if (result == 0) {
        client_request(&request, by_Request_validate_tag);
        request.body.validate.hash = hash;
        result = step(fd, &request, piece, &response);
    }
    if (result == 0) {
        client_request(&request, by_Request_commit_tag);
        request.body.commit.hash = hash;
        result = step(fd, &request, piece, &response);
    }
    if (result == 0)
        result = read_back(fd, image, bytes, piece);
    close(fd);
    return result;
}

void probe_read_counters(const char *address, by_Response *response)
{
    static by_Request request;
    int fd = probe_dial(address);

    client_request(&request, by_Request_counters_tag);
    if (step(fd, &request, 65536, response) != 0)
        exit(1);
    close(fd);
}

uint64_t probe_counter(const by_Response *response, const char *name)
{
    const by_CountersReply *reply = &response->body.counters;

    for (unsigned i = 0; i < reply->engine_count; i++)
        if (strcmp(reply->engine[i].name, name) == 0)
            return reply->engine[i].value;
    fprintf(stderr, "switch-probe: the switch has no counter %s\n", name);
    exit(1);
}

int probe_counters(const char *address)
{
    static by_Response response;
    const by_CountersReply *reply = &response.body.counters;

    probe_read_counters(address, &response);
    for (unsigned i = 0; i < reply->engine_count; i++)
        printf("%s %" PRIu64 "\n", reply->engine[i].name, reply->engine[i].value);
    for (unsigned i = 0; i < reply->ports_count; i++)
        printf("port %s rx %" PRIu64 " %" PRIu64 " tx %" PRIu64 " %" PRIu64 " dropped %" PRIu64 " %" PRIu64
               "\n",
               reply->ports[i].name, reply->ports[i].rx_packets, reply->ports[i].rx_bytes,
               reply->ports[i].tx_packets, reply->ports[i].tx_bytes, reply->ports[i].rx_dropped,
               reply->ports[i].tx_dropped);
    return 0;
}
