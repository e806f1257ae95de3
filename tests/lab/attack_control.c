/*
 * control-attack: what somebody who can connect to a switch's control port can try. Every attempt
 * must be answered with an error or closed, and the switch must go on answering others.
 *
 *   control-attack malformed|replay|loris|idle|handshakes ADDRESS PORT
 *   control-attack hello          writes the bytes of a HELLO to stdout, for clients of other kinds
 *
 * malformed: frames that are cut, endless, empty, of another version, or random. replay: writes
 * under an election id that a later one has replaced, and commits of old images. loris: connections
 * that say a byte now and then. handshakes: TLS that begins and goes no further, for a second;
 * prints how many. Single-threaded.
 */
#include <arpa/inet.h>
#include <inttypes.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/base/prng.h"
#include "tests/unit/firmware/client.h"

#define LORIS_CLIENTS 40
#define WAIT_SECONDS  3
/* Of firmware/linux/server.c: places for clients, and for how long one that only reads keeps its
 * place. */
#define PLACES        16
#define READER_IDLE_S 5

static struct sockaddr_in target = {.sin_family = AF_INET};
static by_Request request;
static by_Response response;
static uint8_t frame[CLIENT_FRAME_MAX], answer[BY_CHANNEL_OUT_MIN];

static int dial(void)
{
    struct timeval limit = {.tv_sec = WAIT_SECONDS};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    if (fd < 0 || connect(fd, (struct sockaddr *)&target, sizeof(target)) != 0) {
        perror("control-attack: connect");
        exit(1);
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    return fd;
}

static int read_all(int fd, uint8_t *data, size_t bytes)
{
    for (size_t have = 0; have < bytes;) {
        ssize_t got = recv(fd, data + have, bytes - have, 0);

        if (got <= 0)
            return -1;
        have += (size_t)got;
    }
    return 0;
}

/* The answer that comes: its error in *error. -1: none does. */
static int take_answer(int fd, int32_t *error)
{
    uint32_t bytes;

    if (read_all(fd, answer, BY_CONTROL_LENGTH_BYTES) != 0)
        return -1;
    bytes = by_get32(answer);
    if (bytes > BY_RESPONSE_BYTES_MAX || read_all(fd, answer + BY_CONTROL_LENGTH_BYTES, bytes) != 0)
        return -1;
    client_decode(answer, BY_CONTROL_LENGTH_BYTES + bytes, &response);
    *error = response.error;
    return 0;
}

/* Sends `request`; its answer's error. */
static int32_t ask(int fd)
{
    size_t bytes = client_frame(&request, frame);
    int32_t error = -1;

    if (send(fd, frame, bytes, MSG_NOSIGNAL) != (ssize_t)bytes || take_answer(fd, &error) != 0) {
        fputs("control-attack: no answer\n", stderr);
        exit(1);
    }
    return error;
}

/* 1 when a client that means well is answered, and the table is the one of `hash` (0: any). */
static int is_well(uint64_t *hash)
{
    int fd = dial(), right;

    client_request(&request, by_Request_hello_tag);
    right = ask(fd) == 0 && (*hash == 0 || response.body.hello.table_hash == *hash);
    *hash = response.body.hello.table_hash;
    close(fd);
    return right;
}

/* ---- malformed ---- */

/* Sends bytes that deserve no success: 1 when an error answers, the switch closes, or it still
 * waits for the rest of a message. */
static int is_refused(const uint8_t *bytes, size_t count)
{
    int fd = dial(), right;
    int32_t error = 0;

    if (send(fd, bytes, count, MSG_NOSIGNAL) < 0)
        return 0;
    shutdown(fd, SHUT_WR);
    right = take_answer(fd, &error) != 0 || error < 0;
    close(fd);
    return right;
}

static size_t framed(uint8_t *out, size_t bytes)
{
    by_put32(out, (uint32_t)bytes);
    return BY_CONTROL_LENGTH_BYTES + bytes;
}

static size_t make_malformed(unsigned number, struct by_prng *prng, uint8_t *out)
{
    size_t bytes;

    switch (number) {
    case 0: /* an empty message */
        return framed(out, 0);
    case 1: /* a length that no message has */
        by_put32(out, UINT32_MAX);
        return 4;
    case 2:
        by_put32(out, BY_REQUEST_BYTES_MAX + 1);
        return 4;
    case 3: /* half a length */
        return 2;
    case 4: /* less than its length says */
        client_request(&request, by_Request_hello_tag);
        return client_frame(&request, out) - 1;
    case 5: /* another version */
        client_request(&request, by_Request_hello_tag);
        request.version = 99;
        return client_frame(&request, out);
    case 6: /* no body */
        client_request(&request, 0);
        return client_frame(&request, out);
    case 7: /* an image larger than any, from its middle on */
        client_request(&request, by_Request_stage_tag);
        request.body.stage.total = UINT32_MAX;
        request.body.stage.offset = UINT32_MAX - 1;
        return client_frame(&request, out);
    case 8: /* made of what is active, from beyond its end */
        client_request(&request, by_Request_stage_tag);
        request.body.stage.total = 4096;
        request.body.stage.pieces_count = 1;
        request.body.stage.pieces[0] = (by_Piece){.from = UINT32_MAX, .copy = UINT32_MAX};
        return client_frame(&request, out);
    case 9: /* a read of what is not there */
        client_request(&request, by_Request_read_tag);
        request.body.read.offset = UINT32_MAX;
        request.body.read.bytes = UINT32_MAX;
        return client_frame(&request, out);
    default: /* bytes of any kind, most of them in frames of the right length */
        bytes = 1 + by_prng_below(prng, 300);
        for (size_t i = 0; i < bytes + 4; i++)
            out[i] = (uint8_t)by_prng_next(prng);
        return number % 4 ? framed(out, bytes) : bytes + 4;
    }
}

static int attack_malformed(void)
{
    struct by_prng prng = {20261121};
    uint8_t bytes[CLIENT_FRAME_MAX];
    uint64_t hash = 0;

    if (!is_well(&hash))
        return 1;
    for (unsigned i = 0; i < 400; i++) {
        size_t count = make_malformed(i, &prng, bytes);

        if (!is_refused(bytes, count) || (i % 50 < 10 && !is_well(&hash))) {
            fprintf(stderr, "control-attack: malformed message %u was taken, or ended the switch\n", i);
            return 1;
        }
    }
    return !is_well(&hash);
}

/* ---- replay ---- */

/* What a controller said that a later one has replaced. */
static int attack_replay(void)
{
    struct timespec now;
    uint64_t hash = 0, election;
    uint8_t byte = 0;
    int fd;

    clock_gettime(CLOCK_REALTIME, &now);
    election = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (!is_well(&hash))
        return 1;
    fd = dial();
    client_request(&request, by_Request_hello_tag);
    request.election_id = election;
    if (ask(fd) != 0)
        return 1;
    client_stage(&request, &byte, 1, 0, 1);
    request.election_id = election - 1;
    if (ask(fd) != BY_EPERM)
        return 1;
    client_request(&request, by_Request_commit_tag);
    request.election_id = election - 1;
    request.body.commit.hash = hash;
    if (ask(fd) != BY_EPERM)
        return 1;
    client_request(&request, by_Request_commit_tag); /* of a table that is not the one that waits */
    request.election_id = election;
    request.body.commit.hash = hash ^ 1;
    if (ask(fd) >= 0)
        return 1;
    client_request(&request, by_Request_commit_tag); /* of the active one, again: nothing changes */
    request.election_id = election;
    request.body.commit.hash = hash;
    if (ask(fd) != 0)
        return 1;
    close(fd);
    return !is_well(&hash);
}

/* ---- loris ---- */

static int attack_loris(void)
{
    int clients[LORIS_CLIENTS];
    uint64_t hash = 0;

    for (unsigned i = 0; i < LORIS_CLIENTS; i++)
        clients[i] = dial();
    for (unsigned turn = 0; turn < 4; turn++) {
        for (unsigned i = 0; i < LORIS_CLIENTS; i++)
            send(clients[i], "", 1, MSG_NOSIGNAL); /* of a length; those that were closed do not matter */
        usleep(100000);
        if (!is_well(&hash))
            return 1;
    }
    for (unsigned i = 0; i < LORIS_CLIENTS; i++)
        close(clients[i]);
    return 0;
}

/* ---- idle ---- */

/* All places are taken by connections that stay: first by such that said two bytes of nonsense,
 * then by such whose HELLO was answered and that are idle since. 0 when a client that means well is
 * answered both times.
 */
static int attack_idle(void)
{
    static const uint8_t nonsense[] = {2, 0, 0, 0, 0xff, 0xff};
    int clients[2 * PLACES];
    uint64_t hash = 0;
    int32_t error;

    for (unsigned i = 0; i < PLACES; i++) {
        clients[i] = dial();
        if (send(clients[i], nonsense, sizeof(nonsense), MSG_NOSIGNAL) < 0 ||
            take_answer(clients[i], &error) != 0)
            return 1;
    }
    if (!is_well(&hash))
        return 1;
    for (unsigned i = PLACES; i < 2 * PLACES; i++) {
        clients[i] = dial();
        client_request(&request, by_Request_hello_tag);
        if (ask(clients[i]) != 0)
            return 1;
    }
    sleep(READER_IDLE_S + 1);
    if (!is_well(&hash))
        return 1;
    for (unsigned i = 0; i < 2 * PLACES; i++)
        close(clients[i]);
    return 0;
}

static int print_hello(void)
{
    size_t bytes;

    client_request(&request, by_Request_hello_tag);
    bytes = client_frame(&request, frame);
    return fwrite(frame, 1, bytes, stdout) == bytes && fflush(stdout) == 0 ? 0 : 1;
}

/* ---- handshakes ---- */

static int attack_handshakes(void)
{
    SSL_CTX *context = SSL_CTX_new(TLS_client_method());
    struct timespec begin, now;
    unsigned count = 0;

    if (!context)
        return 1;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        SSL *tls = SSL_new(context);
        int fd = dial();

        SSL_set_fd(tls, fd);
        if (SSL_connect(tls) <= 0)
            ERR_clear_error();
        SSL_free(tls);
        close(fd);
        count++;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec * 1000 + now.tv_nsec / 1000000 <
             begin.tv_sec * 1000 + begin.tv_nsec / 1000000 + 1000);
    SSL_CTX_free(context);
    printf("%u handshakes begun in a second\n", count);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } attacks[] = {{"malformed", attack_malformed},
                   {"replay", attack_replay},
                   {"loris", attack_loris},
                   {"idle", attack_idle},
                   {"handshakes", attack_handshakes}};

    signal(SIGPIPE, SIG_IGN);
    if (argc == 2 && strcmp(argv[1], "hello") == 0)
        return print_hello();
    if (argc == 4 && inet_pton(AF_INET, argv[2], &target.sin_addr) == 1) {
        target.sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10));
        for (size_t i = 0; i < sizeof(attacks) / sizeof(attacks[0]); i++)
            if (strcmp(argv[1], attacks[i].name) == 0)
                return attacks[i].run();
    }
    fputs("usage: control-attack malformed|replay|loris|idle|handshakes ADDRESS PORT, or hello\n", stderr);
    return 2;
}
