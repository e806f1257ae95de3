/*
 * Many random messages through the NCCL plugin, and connections that end at random: by agreement,
 * or because one end closes with requests in progress. Each channel is a sender and a receiver
 * thread, as NCCL's proxy threads of two hosts. Both derive the same messages from the seed, so
 * every byte is checked.
 *   nccl-campaign [operations] [seed] [version] [largest]    (default: 10000 1 0 1048576)
 * Version 0 means each version in turn; `largest` is the size of one message in a hundred, up to
 * 1 GiB. Exit status 1: wrong data, a wrong result, a leak or a hang.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/nccl/driver.h"
#include "tests/open_files.h"

#define CHANNELS   3
#define EPOCH_MOST 600 /* messages of one connection */
#define SILENCE_S  60  /* without an event: a hang */

enum ending { BY_AGREEMENT, BY_SENDER, BY_RECEIVER };

struct channel {
    pthread_t threads[2];
    pthread_barrier_t meeting;
    uint64_t seed;
    unsigned number;
    uint64_t operations; /* to do */
    uint8_t handle[BY_NCCL_HANDLE_BYTES];
    void *listener;
    uint64_t arrived, bytes, aborted; /* written by the receiver */
};

/* What both ends know of one connection. */
struct epoch {
    uint64_t seed;
    unsigned count, stop; /* messages; the one at which an end gives up */
    enum ending ending;
};

struct flight {
    void *request, *memory;
    char *data;
    size_t bytes;
};

static struct nccl_driver driver;
static size_t largest = 1u << 20;

static uint64_t mix(uint64_t a, uint64_t b)
{
    uint64_t x = a * 0x9e3779b97f4a7c15u + b + 0x632be59bd9b4e019u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static void die(const struct channel *channel, const char *what, uint64_t number)
{
    fprintf(stderr, "version %d, channel %u, message %llu: %s (%s)\n", driver.version, channel->number,
            (unsigned long long)number, what, nccl_log_last());
    exit(1);
}

static void must(const struct channel *channel, int result, const char *what, uint64_t number)
{
    if (result != BY_NCCL_OK)
        die(channel, what, number);
}

/* ---- the plan of a connection ---- */

static struct epoch plan(const struct channel *channel, uint64_t number)
{
    struct epoch epoch = {.seed = mix(channel->seed, number)};

    epoch.count = 1 + (unsigned)(mix(epoch.seed, 1) % EPOCH_MOST);
    epoch.stop = (unsigned)(mix(epoch.seed, 2) % epoch.count);
    switch (mix(epoch.seed, 3) % 6) {
    case 0:
        epoch.ending = BY_SENDER;
        break;
    case 1:
        epoch.ending = BY_RECEIVER;
        break;
    default:
        epoch.ending = BY_AGREEMENT;
    }
    return epoch;
}

static size_t size_of(const struct epoch *epoch, unsigned index)
{
    uint64_t draw = mix(epoch->seed, 1000 + index);
    unsigned class = draw % 100;
    uint64_t rest = draw >> 8;

    if (class < 5)
        return 0;
    if (class < 60)
        return rest % 1025;
    if (class < 92)
        return rest % 16385;
    if (class < 99)
        return rest % 262145;
    return rest % (largest + 1);
}

static void fill(const struct epoch *epoch, unsigned index, char *data, size_t bytes)
{
    uint64_t word = mix(epoch->seed, 0x100000000u + index);
    size_t at = 0;

    for (; at + 8 <= bytes; at += 8, word = word * 6364136223846793005u + 1442695040888963407u)
        memcpy(data + at, &word, 8);
    memcpy(data + at, &word, bytes - at);
}

static int is_filled(const struct epoch *epoch, unsigned index, const char *data, size_t bytes)
{
    uint64_t word = mix(epoch->seed, 0x100000000u + index);
    size_t at = 0;

    for (; at + 8 <= bytes; at += 8, word = word * 6364136223846793005u + 1442695040888963407u)
        if (memcmp(data + at, &word, 8) != 0)
            return 0;
    return memcmp(data + at, &word, bytes - at) == 0;
}

/* ---- one end of a connection ---- */

struct end {
    struct channel *channel;
    struct epoch epoch;
    bool sends;
    void *comm;
    unsigned posted, done, window;
    double event; /* time of the last one */
    struct flight flights[BY_NCCL_REQUESTS_MAX];
};

static void drop(struct end *end, struct flight *flight)
{
    must(end->channel, driver.remove_memory(end->comm, flight->memory), "deregistration", end->posted);
    free(flight->data);
    memset(flight, 0, sizeof(*flight));
}

/* Posts the next message; 1, 0 if the plugin has no room for now, or < 0 at the end of the peer. */
static int post(struct end *end)
{
    struct flight *flight = &end->flights[end->posted % BY_NCCL_REQUESTS_MAX];
    unsigned index = end->posted;
    int result;

    if (flight->data == NULL) {
        size_t bytes = size_of(&end->epoch, index);

        /* a receive may be larger than the message */
        flight->bytes = end->sends ? bytes : bytes + mix(end->epoch.seed, 2000000 + index) % 64;
        flight->data = malloc(flight->bytes + 1);
        if (flight->data == NULL)
            die(end->channel, "no memory", index);
        if (end->sends)
            fill(&end->epoch, index, flight->data, bytes);
        must(end->channel,
             driver.add_memory(end->comm, flight->data, flight->bytes + 1, BY_NCCL_MEMORY_HOST,
                               &flight->memory),
             "registration", index);
    }
    result = end->sends ? nccl_send(&driver, end->comm, flight->data, flight->bytes, (int)(index & 0xffff),
                                    flight->memory, &flight->request)
                        : nccl_receive(&driver, end->comm, 1, flight->data, flight->bytes,
                                       (int)(index & 0xffff), flight->memory, &flight->request);
    if (result != BY_NCCL_OK)
        return -result;
    end->posted += flight->request != NULL;
    return flight->request != NULL;
}

static int test(struct end *end)
{
    struct flight *flight = &end->flights[end->done % BY_NCCL_REQUESTS_MAX];
    int done = 0, bytes = -1;
    int result = driver.test(flight->request, &done, &bytes);

    if (result != BY_NCCL_OK)
        return -result;
    if (!done)
        return 0;
    if ((size_t)bytes != size_of(&end->epoch, end->done))
        die(end->channel, "a wrong size", end->done);
    if (!end->sends) {
        if (!is_filled(&end->epoch, end->done, flight->data, (size_t)bytes))
            die(end->channel, "wrong data", end->done);
        end->channel->arrived++;
        end->channel->bytes += (uint64_t)bytes;
    }
    drop(end, flight);
    end->done++;
    return 1;
}

/* Runs until all messages are done, this end gives up, or the other has. */
static void run(struct end *end)
{
    enum ending own = end->sends ? BY_SENDER : BY_RECEIVER;
    bool gives_up = end->epoch.ending == own;
    bool may_fail = end->epoch.ending != BY_AGREEMENT && !gives_up;

    end->event = nccl_now();
    while (end->done < end->epoch.count) {
        int moved = 0;

        if (gives_up && end->done >= end->epoch.stop)
            break;
        while (moved >= 0 && end->posted < end->epoch.count && end->posted - end->done < end->window) {
            int step = post(end);

            moved = step < 0 ? step : moved + step;
            if (step <= 0)
                break;
        }
        if (moved >= 0 && end->done < end->posted) {
            int step = test(end);

            moved = step < 0 ? step : moved + step;
        }
        if (moved < 0) {
            if (moved != -BY_NCCL_REMOTE || !may_fail)
                die(end->channel, "an unexpected error", end->done);
            break;
        }
        if (moved > 0) {
            end->event = nccl_now();
        } else {
            if (nccl_now() - end->event > SILENCE_S)
                die(end->channel, "no progress", end->done);
            nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
        }
    }
}

static void close_end(struct end *end)
{
    for (unsigned i = 0; i < BY_NCCL_REQUESTS_MAX; i++)
        if (end->flights[i].data != NULL && mix(end->epoch.seed, i) & 1)
            drop(end, &end->flights[i]); /* NCCL deregisters before it closes, or does not */
    must(end->channel, end->sends ? driver.close_sender(end->comm) : driver.close_receiver(end->comm),
         "close", end->posted);
    for (unsigned i = 0; i < BY_NCCL_REQUESTS_MAX; i++)
        free(end->flights[i].data);
}

static void *serve(struct channel *channel, bool sends)
{
    uint64_t operations = 0;

    for (uint64_t number = 0; operations < channel->operations; number++) {
        struct end end = {.channel = channel, .epoch = plan(channel, number), .sends = sends};
        uint8_t handle[BY_NCCL_HANDLE_BYTES];
        double start;

        end.window = 1 + (unsigned)(mix(end.epoch.seed, sends ? 4 : 5) % BY_NCCL_REQUESTS_MAX);
        if (!sends)
            must(channel, nccl_listen(&driver, 0, channel->handle, &channel->listener), "listen", number);
        pthread_barrier_wait(&channel->meeting);
        memcpy(handle, channel->handle, sizeof(handle));
        start = nccl_now();
        while (end.comm == NULL) {
            int result = sends ? nccl_connect(&driver, 0, handle, &end.comm)
                               : driver.accept(channel->listener, &end.comm, NULL);

            must(channel, result, "connection", number);
            if (nccl_now() - start > SILENCE_S)
                die(channel, "no connection", number);
        }
        run(&end);
        close_end(&end);
        pthread_barrier_wait(&channel->meeting);
        if (!sends) {
            must(channel, driver.close_listener(channel->listener), "close of the listener", number);
            channel->aborted += end.epoch.ending != BY_AGREEMENT;
        }
        operations += end.epoch.ending == BY_AGREEMENT ? end.epoch.count : end.epoch.stop;
    }
    return NULL;
}

static void *serve_sender(void *channel)
{
    return serve(channel, true);
}

static void *serve_receiver(void *channel)
{
    return serve(channel, false);
}

/* ---- the campaign ---- */

static void campaign(int version, uint64_t operations, uint64_t seed)
{
    static struct channel channels[CHANNELS];
    uint64_t arrived = 0, bytes = 0, aborted = 0;
    unsigned files;
    double start = nccl_now();

    if (nccl_driver_open(&driver, version) != BY_NCCL_OK) {
        fprintf(stderr, "version %d does not start: %s\n", version, nccl_log_last());
        exit(1);
    }
    files = open_files();
    memset(channels, 0, sizeof(channels));
    for (unsigned i = 0; i < CHANNELS; i++) {
        channels[i].number = i;
        channels[i].seed = mix(seed, (uint64_t)version << 32 | i);
        channels[i].operations = (operations + CHANNELS - 1) / CHANNELS;
        pthread_barrier_init(&channels[i].meeting, NULL, 2);
        if (pthread_create(&channels[i].threads[0], NULL, serve_sender, &channels[i]) != 0 ||
            pthread_create(&channels[i].threads[1], NULL, serve_receiver, &channels[i]) != 0)
            die(&channels[i], "no thread", 0);
    }
    for (unsigned i = 0; i < CHANNELS; i++) {
        pthread_join(channels[i].threads[0], NULL);
        pthread_join(channels[i].threads[1], NULL);
        pthread_barrier_destroy(&channels[i].meeting);
        arrived += channels[i].arrived;
        bytes += channels[i].bytes;
        aborted += channels[i].aborted;
    }
    if (open_files() != files) {
        fprintf(stderr, "version %d: %u files are open, %u were before\n", version, open_files(), files);
        exit(1);
    }
    printf("version %d: %llu messages, %.1f MB, 0 wrong; %llu connections ended by one side; %.1f s\n",
           version, (unsigned long long)arrived, (double)bytes / 1e6, (unsigned long long)aborted,
           nccl_now() - start);
    nccl_driver_close(&driver);
}

int main(int argc, char **argv)
{
    uint64_t operations = argc > 1 ? strtoull(argv[1], NULL, 10) : 10000;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    int version = argc > 3 ? atoi(argv[3]) : 0;

    if (argc > 4)
        largest = strtoull(argv[4], NULL, 10);
    if (argc > 5 || operations == 0 || largest > 1u << 30 ||
        (version != 0 && (version < NCCL_VERSION_FIRST || version > NCCL_VERSION_LAST))) {
        fprintf(stderr, "usage: nccl-campaign [operations] [seed] [version] [largest]\n");
        return 2;
    }
    setenv("BANYAN_NCCL_INTERFACE", "lo", 0);
    for (int v = NCCL_VERSION_FIRST; v <= NCCL_VERSION_LAST; v++)
        if (version == 0 || v == version)
            campaign(v, version == 0 ? (operations + 4) / 5 : operations, seed);
    return 0;
}
