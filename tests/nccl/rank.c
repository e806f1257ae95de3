/*
 * A rank of NCCL on a host of a lab: messages between neighbours in a ring, then CollNet over the
 * table of the host, in one version of the interface. `banyan lab run` starts it on each host and
 * tells it where the ranks meet (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT).
 *   nccl-rank [version] [bytes] [rounds] [seconds]    (default: 12 1048576 1)
 * With a fourth argument rank 1 sets its interface down instead, after so many seconds, and its
 * neighbours must notice.
 * Exit status 0: all right; 1: a wrong result; 3: CollNet is not used.
 */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "tests/nccl/work.h"

#define RANKS_MAX 64
#define CONNECT_S 10 /* after which a neighbour that does not connect has ended (s) */

struct place {
    int rank, ranks;
    int files[RANKS_MAX]; /* rank 0: of each rank; others: [0] */
};

static void die(const char *what)
{
    fprintf(stderr, "nccl-rank: %s (%s)\n", what, nccl_log_last());
    exit(1);
}

static int number_of(const char *name)
{
    const char *value = getenv(name);

    if (value == NULL)
        die("RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT must be set; use `banyan lab run`");
    return atoi(value);
}

/* ---- where the ranks meet, in NCCL's place ---- */

static void meet(struct place *place)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    int on = 1, door = socket(AF_INET, SOCK_STREAM, 0);

    place->rank = number_of("RANK");
    place->ranks = number_of("WORLD_SIZE");
    address.sin_port = htons((uint16_t)number_of("MASTER_PORT"));
    if (place->ranks > RANKS_MAX || inet_pton(AF_INET, getenv("MASTER_ADDR"), &address.sin_addr) != 1)
        die("MASTER_ADDR or WORLD_SIZE is wrong");
    if (place->rank > 0) {
        for (int i = 0; connect(door, (struct sockaddr *)&address, sizeof(address)) != 0; i++) {
            if (i == 200)
                die("rank 0 cannot be reached");
            close(door);
            nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
            door = socket(AF_INET, SOCK_STREAM, 0);
        }
        place->files[0] = door;
        if (write(door, &place->rank, sizeof(int)) != (ssize_t)sizeof(int))
            die("rank 0 has ended");
        return;
    }
    setsockopt(door, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(door, (struct sockaddr *)&address, sizeof(address)) != 0 || listen(door, RANKS_MAX) != 0)
        die("rank 0 cannot listen");
    for (int i = 1; i < place->ranks; i++) {
        int file = accept(door, NULL, NULL), rank;

        if (recv(file, &rank, sizeof(rank), MSG_WAITALL) != (ssize_t)sizeof(rank) || rank < 1 ||
            rank >= place->ranks)
            die("a stranger has connected");
        place->files[rank] = file;
    }
    close(door);
}

static void move(int file, void *data, size_t bytes, int sends)
{
    ssize_t moved = sends ? send(file, data, bytes, MSG_NOSIGNAL) : recv(file, data, bytes, MSG_WAITALL);

    if (moved != (ssize_t)bytes)
        die("a rank has ended");
}

static void share(void *context, const void *mine, void *all, size_t bytes)
{
    struct place *place = context;
    size_t total = bytes * (size_t)place->ranks;
    char *table = all;

    memcpy(table + (size_t)place->rank * bytes, mine, bytes);
    if (place->rank > 0) {
        move(place->files[0], table + (size_t)place->rank * bytes, bytes, 1);
        move(place->files[0], all, total, 0);
        return;
    }
    for (int rank = 1; rank < place->ranks; rank++)
        move(place->files[rank], table + (size_t)rank * bytes, bytes, 0);
    for (int rank = 1; rank < place->ranks; rank++)
        move(place->files[rank], all, total, 1);
}

/* ---- messages: each rank sends to the next ---- */

struct ring {
    void *listener, *sender, *receiver, *send_memory, *recv_memory;
    unsigned char *out, *in;
    size_t bytes;
    int left; /* the rank before */
};

static void open_ring(struct nccl_driver *driver, struct place *place, size_t bytes, struct ring *ring)
{
    double until = nccl_now() + CONNECT_S;
    uint8_t mine[BY_NCCL_HANDLE_BYTES], all[RANKS_MAX][BY_NCCL_HANDLE_BYTES];

    memset(ring, 0, sizeof(*ring));
    ring->bytes = bytes;
    ring->out = malloc(bytes);
    ring->in = calloc(1, bytes);
    ring->left = (place->rank + place->ranks - 1) % place->ranks;
    if (nccl_listen(driver, 0, mine, &ring->listener) != BY_NCCL_OK)
        die("listen");
    share(place, mine, all, sizeof(mine));
    while (ring->sender == NULL || ring->receiver == NULL) {
        if (nccl_now() > until)
            die("a neighbour does not connect");
        if (ring->sender == NULL &&
            nccl_connect(driver, 0, all[(place->rank + 1) % place->ranks], &ring->sender) != BY_NCCL_OK)
            die("connect");
        if (ring->receiver == NULL && driver->accept(ring->listener, &ring->receiver, NULL) != BY_NCCL_OK)
            die("accept");
    }
    for (size_t i = 0; i < bytes; i++)
        ring->out[i] = (unsigned char)(i * 7 + i / 253 + (size_t)place->rank);
    if (driver->add_memory(ring->sender, ring->out, bytes, BY_NCCL_MEMORY_HOST, &ring->send_memory) !=
            BY_NCCL_OK ||
        driver->add_memory(ring->receiver, ring->in, bytes, BY_NCCL_MEMORY_HOST, &ring->recv_memory) !=
            BY_NCCL_OK)
        die("registration");
}

static void close_ring(struct nccl_driver *driver, struct ring *ring)
{
    if (driver->close_sender(ring->sender) != BY_NCCL_OK ||
        driver->close_receiver(ring->receiver) != BY_NCCL_OK ||
        driver->close_listener(ring->listener) != BY_NCCL_OK)
        die("close");
    free(ring->out);
    free(ring->in);
}

static void pass_around(struct nccl_driver *driver, struct place *place, size_t bytes)
{
    void *send, *receive;
    int sent = 0, received = 0, size = 0;
    struct ring ring;

    open_ring(driver, place, bytes, &ring);
    if (nccl_send(driver, ring.sender, ring.out, bytes, place->rank, ring.send_memory, &send) != BY_NCCL_OK ||
        nccl_receive(driver, ring.receiver, 1, ring.in, bytes, ring.left, ring.recv_memory, &receive) !=
            BY_NCCL_OK)
        die("a message is refused");
    while (!sent || !received) {
        if (!sent && driver->test(send, &sent, NULL) != BY_NCCL_OK)
            die("send");
        if (!received && driver->test(receive, &received, &size) != BY_NCCL_OK)
            die("receive");
    }
    for (size_t i = 0; i < bytes; i++)
        if ((size_t)size != bytes || ring.in[i] != (unsigned char)(i * 7 + i / 253 + (size_t)ring.left))
            die("wrong data of a message");
    close_ring(driver, &ring);
}

/* ---- rank 1 vanishes: its interface is down, and nothing says so ---- */

/* Ranks 0 and 2 have a message to and from it under way, which must end as a remote error. Rank 1
 * does not read: after some time its window is full, and rank 0 has nothing outstanding. */
static void vanish(struct nccl_driver *driver, struct place *place, const char *interface, int seconds)
{
    size_t bytes = 64u << 20;
    double start, until;
    char command[128];
    struct ring ring;
    void *request = NULL;
    int result, done = 0;

    open_ring(driver, place, bytes, &ring);
    start = nccl_now();
    until = start + 60;
    if (place->rank == 1) {
        snprintf(command, sizeof(command), "ip link set %.32s down", interface);
        nanosleep(&(struct timespec){.tv_sec = seconds}, NULL);
        if (system(command) != 0)
            die("the interface cannot be set down");
        nanosleep(&(struct timespec){.tv_sec = 9}, NULL);
    } else if (place->rank == 0 || place->rank == 2) {
        result = place->rank == 0
                     ? nccl_send(driver, ring.sender, ring.out, bytes, 0, ring.send_memory, &request)
                     : nccl_receive(driver, ring.receiver, 1, ring.in, bytes, 1, ring.recv_memory, &request);
        while (result == BY_NCCL_OK && !done && nccl_now() < until) {
            result = driver->test(request, &done, NULL);
            nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
        }
        printf("rank %d: %s after %.0f s: %s\n", place->rank,
               result == BY_NCCL_REMOTE ? "a remote error" : "no remote error", nccl_now() - start,
               nccl_log_last());
        if (result != BY_NCCL_REMOTE)
            exit(1);
    }
    close_ring(driver, &ring);
}

int main(int argc, char **argv)
{
    int version = argc > 1 ? atoi(argv[1]) : NCCL_VERSION_LAST;
    size_t bytes = argc > 2 ? strtoull(argv[2], NULL, 10) : 1u << 20;
    int rounds = argc > 3 ? atoi(argv[3]) : 1;
    struct nccl_driver driver;
    struct place place = {0};
    struct nccl_work work = {.driver = &driver, .share = share, .context = &place, .largest = bytes};
    unsigned operations = 0;
    const char *interface = getenv("NCCL_SOCKET_IFNAME");

    if (interface != NULL)
        setenv("BANYAN_NCCL_INTERFACE", interface, 0);
    if (nccl_driver_open(&driver, version) != BY_NCCL_OK || nccl_coll_init(&driver) != BY_NCCL_OK)
        die("the plugin does not start");
    meet(&place);
    if (argc > 4 && interface != NULL) {
        vanish(&driver, &place, interface, atoi(argv[4]));
        return 0;
    }
    pass_around(&driver, &place, bytes);
    work.rank = place.rank;
    work.ranks = place.ranks;
    for (int i = 0; i < rounds; i++) {
        struct nccl_work second = work;

        if (nccl_work_open(&work) != BY_NCCL_OK) {
            printf("%s\n", nccl_log_last());
            return 3;
        }
        /* the job has one communicator at a time; the first one stays usable */
        if (nccl_work_open(&second) == BY_NCCL_OK)
            die("two communicators have the job");
        if (nccl_work_run(&work) != 0) {
            fprintf(stderr, "nccl-rank: %s\n", work.fault);
            return 1;
        }
        operations += work.operations;
        if (nccl_work_close(&work) != BY_NCCL_OK)
            die("close");
    }
    nccl_coll_finish(&driver);
    nccl_driver_close(&driver);
    printf("version %d: a ring of messages, %u collective operations, 0 wrong\n", version, operations);
    return 0;
}
