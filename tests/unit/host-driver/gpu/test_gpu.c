/*
 * Operations on buffers in a GPU's memory, over a fake driver library whose device memory faults
 * when the processor accesses it: every collective, in place and out of place, whole and in chunks,
 * with device memory at any rank and at either end.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/host-driver/fallback/team.h"
#include "tests/unit/host-driver/gpu/fake_cuda.h"
#include "tests/unit/host-driver/rig.h"

#define RANKS 4
#define COUNT 1501u
#define ROOT  1u

static struct host_driver_rig rig;
static struct fabric fabric;
static fake_take_fn *take;
static fake_give_fn *give;
static fake_write_fn *device_write;
static fake_read_fn *device_read;
static fake_counts_fn *count_all;
static fake_fail_fn *fail_copies;
static int32_t values[RANKS][RANKS * COUNT], out[RANKS * COUNT];
static const uint64_t unequal[RANKS] = {700, 0, 1501, 3};

enum gpu_kind { ALLREDUCE, REDUCE, BROADCAST, ALLGATHER, SCATTER, GATHERV, SCATTERV, KINDS };

/* A buffer of a rank, large enough for the vectors of all ranks. */
struct buffer {
    int32_t *at;
    bool device;
};

static struct buffer buffer_take(bool device)
{
    size_t bytes = sizeof(values[0]);
    struct buffer buffer = {.device = device, .at = device ? take(bytes) : malloc(bytes)};

    assert_non_null(buffer.at);
    return buffer;
}

static void buffer_give(struct buffer *buffer)
{
    if (buffer->device)
        give(buffer->at);
    else
        free(buffer->at);
}

static void buffer_write(struct buffer *buffer, size_t at, const int32_t *from, size_t count)
{
    if (buffer->device)
        device_write(buffer->at + at, from, count * 4);
    else
        memcpy(buffer->at + at, from, count * 4);
}

static void buffer_read(int32_t *to, const struct buffer *buffer, size_t at, size_t count)
{
    if (buffer->device)
        device_read(to, buffer->at + at, count * 4);
    else
        memcpy(to, buffer->at + at, count * 4);
}

/* Returns the elements of a shard, and in `before` those before it. */
static size_t shard(enum gpu_kind kind, uint32_t rank, size_t *before)
{
    *before = rank * COUNT;
    if (kind != GATHERV && kind != SCATTERV)
        return COUNT;
    *before = 0;
    for (uint32_t r = 0; r < rank; r++)
        *before += unequal[r];
    return unequal[rank];
}

static size_t all_of(enum gpu_kind kind)
{
    size_t before, own = shard(kind, RANKS - 1, &before);

    return before + own;
}

/* For each side of the operation: its elements, and where they begin in place. */
static void sides(enum gpu_kind kind, uint32_t rank, size_t *send, size_t *send_at, size_t *recv,
                  size_t *recv_at)
{
    size_t before, own = shard(kind, rank, &before);
    bool gathers = kind == ALLGATHER || kind == GATHERV, scatters = kind == SCATTER || kind == SCATTERV;

    *send = scatters ? all_of(kind) : gathers ? own : COUNT;
    *recv = gathers ? all_of(kind) : scatters ? own : COUNT;
    *send_at = gathers ? before : 0;
    *recv_at = scatters ? before : 0;
}

static banyan_status_t describe(enum gpu_kind kind, uint32_t rank, int32_t *send, int32_t *recv,
                                struct banyan_request **request)
{
    struct banyan_comm *comm = rig.comm[rank];

    switch (kind) {
    case ALLREDUCE:
        return banyan_allreduce_init(comm, send, recv, COUNT, BANYAN_I32, BANYAN_SUM, request);
    case REDUCE:
        return banyan_reduce_init(comm, send, recv, COUNT, BANYAN_I32, BANYAN_SUM, ROOT, request);
    case BROADCAST:
        return banyan_broadcast_init(comm, send, COUNT, BANYAN_I32, ROOT, request);
    case ALLGATHER:
        return banyan_allgather_init(comm, send, recv, COUNT, BANYAN_I32, request);
    case SCATTER:
        return banyan_reduce_scatter_init(comm, send, recv, COUNT, BANYAN_I32, BANYAN_SUM, request);
    case GATHERV:
        return banyan_allgatherv_init(comm, send, recv, unequal, BANYAN_I32, request);
    case SCATTERV:
    case KINDS:
    default:
        return banyan_reduce_scatterv_init(comm, send, recv, unequal, BANYAN_I32, BANYAN_SUM, request);
    }
}

static int32_t sum_at(size_t i)
{
    int32_t sum = 0;

    for (uint32_t rank = 0; rank < RANKS; rank++)
        sum += values[rank][i];
    return sum;
}

static void check(enum gpu_kind kind, uint32_t rank, const struct buffer *result, size_t at, size_t count)
{
    buffer_read(out, result, at, count);
    for (size_t i = 0; i < count; i++) {
        size_t before = 0;
        int32_t wanted = 0;

        if (kind == ALLREDUCE || kind == REDUCE) {
            wanted = sum_at(i);
        } else if (kind == BROADCAST) {
            wanted = values[ROOT][i];
        } else if (kind == SCATTER || kind == SCATTERV) {
            shard(kind, rank, &before);
            wanted = sum_at(before + i);
        } else {
            for (uint32_t r = 0; r < RANKS; r++) {
                size_t own = shard(kind, r, &before);

                if (i >= before && i < before + own)
                    wanted = values[r][i - before];
            }
        }
        if (out[i] != wanted)
            fail_msg("kind %d, rank %u, element %zu: %d instead of %d", kind, rank, i, out[i], wanted);
    }
}

/* Tests all requests in turn until each has ended. On a fabric in memory a wait for one rank moves
 * the packets of all ranks, but not their copies. */
static void finish(struct banyan_request **request, uint32_t count)
{
    uint32_t left = count;
    int done[2 * RANKS] = {0};

    while (left > 0) {
        left = count;
        for (uint32_t i = 0; i < count; i++) {
            if (!done[i] && banyan_test(request[i], &done[i]) != BANYAN_OK)
                fail_msg("request %u: %s", i, banyan_last_error());
            left -= done[i] != 0;
        }
    }
}

/* Runs one operation. Bit 2 * rank of `device` is the rank's send buffer, the next bit its receive
 * buffer. */
static void run(enum gpu_kind kind, bool in_place, unsigned device, unsigned times)
{
    struct banyan_request *request[RANKS];
    struct buffer send[RANKS], recv[RANKS];

    for (uint32_t rank = 0; rank < RANKS; rank++) {
        size_t sends, receives, send_at, recv_at;

        sides(kind, rank, &sends, &send_at, &receives, &recv_at);
        send[rank] = buffer_take(device >> 2 * rank & 1);
        recv[rank] = in_place ? send[rank] : buffer_take(device >> (2 * rank + 1) & 1);
        assert_int_equal(describe(kind, rank, send[rank].at + (in_place ? send_at : 0),
                                  recv[rank].at + (in_place ? recv_at : 0), &request[rank]),
                         BANYAN_OK);
    }
    for (unsigned time = 0; time < times; time++) {
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            size_t sends, receives, send_at, recv_at;

            sides(kind, rank, &sends, &send_at, &receives, &recv_at);
            if (kind != BROADCAST || rank == ROOT)
                buffer_write(&send[rank], in_place ? send_at : 0, values[rank], sends);
        }
        for (uint32_t rank = 0; rank < RANKS; rank++)
            assert_int_equal(banyan_post(request[rank]), BANYAN_OK);
        finish(request, RANKS);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            size_t sends, receives, send_at, recv_at;

            sides(kind, rank, &sends, &send_at, &receives, &recv_at);
            if (kind == BROADCAST)
                check(kind, rank, &send[rank], 0, receives);
            else if (kind != REDUCE || rank == ROOT)
                check(kind, rank, &recv[rank], in_place ? recv_at : 0, receives);
        }
    }
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(banyan_free(request[rank]), BANYAN_OK);
        buffer_give(&send[rank]);
        if (!in_place)
            buffer_give(&recv[rank]);
    }
}

static void open_all(const char *gpu, const char *chunk)
{
    rig_set("BANYAN_GPU", gpu);
    rig_set("BANYAN_GPU_CHUNK", chunk);
    memset(&fabric, 0, sizeof(fabric));
    rig_star(&fabric, RANKS, 8);
    rig_open(&rig, &fabric, 1);
}

/* Closes the communicators. `device`: memory that must outlive them, or NULL. */
static void close_all(struct buffer *device)
{
    struct fake_counts counts;

    rig_close(&rig);
    if (device != NULL)
        buffer_give(device);
    count_all(&counts);
    assert_int_equal(counts.pinned, 0);
    assert_int_equal(counts.streams, 0);
    assert_int_equal(counts.events, 0);
    assert_int_equal(counts.device, 0);
    assert_int_equal(counts.contexts, 0);
}

static void run_all(void)
{
    /* All ranks; one rank; send only; receive only; a mixture; none. */
    static const unsigned devices[] = {0xff, 0x0c, 0x55, 0xaa, 0x36, 0};

    for (int kind = 0; kind < KINDS; kind++)
        for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
            run((enum gpu_kind)kind, false, devices[i], 2);
            run((enum gpu_kind)kind, true, devices[i], 1);
        }
}

static void every_collective_takes_device_buffers_whole(void **state)
{
    (void)state;
    open_all("auto", NULL);
    run_all();
    close_all(NULL);
}

static void every_collective_takes_device_buffers_in_chunks(void **state)
{
    struct fake_counts before, after;

    (void)state;
    open_all("on", "1000");
    count_all(&before);
    run_all();
    count_all(&after);
    assert_true(after.overlapped > before.overlapped);
    assert_true(after.copies_in > before.copies_in + 1000);
    close_all(NULL);
}

/* Rank 0 has the first operation on a device and the second on the host: both are sent in the order
 * of their posts. */
static void what_is_posted_after_a_device_buffer_waits_for_its_turn(void **state)
{
    struct banyan_request *request[RANKS][2];
    struct buffer device;
    static int32_t sums[RANKS][2][COUNT];

    (void)state;
    open_all("auto", NULL);
    device = buffer_take(true);
    buffer_write(&device, 0, values[0], COUNT);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        const void *first = rank == 0 ? device.at : values[rank];

        assert_int_equal(banyan_allreduce_init(rig.comm[rank], first, sums[rank][0], COUNT, BANYAN_I32,
                                               BANYAN_SUM, &request[rank][0]),
                         BANYAN_OK);
        assert_int_equal(banyan_allreduce_init(rig.comm[rank], values[rank], sums[rank][1], 7, BANYAN_I32,
                                               BANYAN_MAX, &request[rank][1]),
                         BANYAN_OK);
        assert_int_equal(banyan_post(request[rank][0]), BANYAN_OK);
        assert_int_equal(banyan_post(request[rank][1]), BANYAN_OK);
    }
    finish(&request[0][0], 2 * RANKS);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(sums[rank][0][COUNT - 1], sum_at(COUNT - 1));
        assert_int_equal(sums[rank][1][3], values[RANKS - 1][3]);
    }
    close_all(&device);
}

static void a_copy_that_fails_ends_the_operation_with_cudas_words(void **state)
{
    struct banyan_request *request[RANKS];
    struct buffer device[RANKS];
    banyan_status_t status = BANYAN_OK;
    uint32_t failed = 0;
    int done;

    (void)state;
    open_all("on", "1000");
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        device[rank] = buffer_take(true);
        assert_int_equal(describe(ALLREDUCE, rank, device[rank].at, device[rank].at, &request[rank]),
                         BANYAN_OK);
    }
    fail_copies(RANKS * 3 + 1);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        assert_int_equal(banyan_post(request[rank]), BANYAN_OK);
    for (uint32_t rank = 0; status == BANYAN_OK; rank = (rank + 1) % RANKS) {
        status = banyan_test(request[rank], &done);
        failed = rank;
    }
    expect(status, BANYAN_EIO, "CUDA: cuMemcpy");
    assert_non_null(strstr(banyan_last_error(), "CUDA_ERROR_ILLEGAL_ADDRESS (700)"));
    assert_int_equal(banyan_comm_async_error(rig.comm[failed]), BANYAN_EIO);
    fail_copies(-1);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        banyan_abort(rig.comm[rank]);
        if (rank != failed)
            assert_int_not_equal(banyan_wait(request[rank]), BANYAN_OK);
        buffer_give(&device[rank]);
    }
    close_all(NULL);
}

static void a_communicator_that_goes_takes_running_copies_with_it(void **state)
{
    struct banyan_request *request;
    struct buffer device;

    (void)state;
    open_all("on", "1000");
    device = buffer_take(true);
    assert_int_equal(describe(ALLREDUCE, 0, device.at, device.at, &request), BANYAN_OK);
    assert_int_equal(banyan_post(request), BANYAN_OK);
    close_all(&device);
}

/* Without staging the processor would access the memory. So a test that passes has used staging. */
static void device_memory_kills_who_touches_it(void **state)
{
    struct banyan_request *request[RANKS];
    struct buffer device;
    int status;
    pid_t child;

    (void)state;
    open_all("off", NULL);
    device = buffer_take(true);
    child = fork();
    if (child == 0) {
        signal(SIGSEGV, SIG_DFL);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            describe(ALLREDUCE, rank, rank == 0 ? device.at : values[rank], out, &request[rank]);
            banyan_post(request[rank]);
        }
        banyan_wait(request[0]);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(!WIFEXITED(status) || WEXITSTATUS(status) != 0);
    close_all(&device);
}

/* Between hosts; each rank is a process that sleeps while it waits. */
static int sum_over_tcp(struct team_member *member)
{
    struct buffer send = buffer_take(true), recv = buffer_take(member->rank == 1);
    int wrong = member_open(member);

    buffer_write(&send, 0, values[member->rank], COUNT);
    if (!wrong &&
        banyan_allreduce(member->comm, send.at, recv.at, COUNT, BANYAN_I32, BANYAN_SUM) != BANYAN_OK)
        wrong = member_wrong(member, "%s", banyan_last_error());
    buffer_read(out, &recv, 0, COUNT);
    for (size_t i = 0; i < COUNT && !wrong; i++)
        if (out[i] != sum_at(i))
            wrong = member_wrong(member, "element %zu is %d", i, out[i]);
    member_close(member);
    return wrong;
}

static void device_buffers_travel_between_hosts_too(void **state)
{
    (void)state;
    rig_set("BANYAN_GPU", "on");
    rig_set("BANYAN_GPU_CHUNK", "777");
    team_must(RANKS, sum_over_tcp, NULL);
}

static void settings_that_are_wrong_are_refused(void **state)
{
    struct banyan_comm *comm;

    (void)state;
    open_all("auto", NULL);
    banyan_comm_destroy(rig.comm[0]);
    banyan_finalize(rig.context[0]);
    rig_set("BANYAN_GPU", "perhaps");
    {
        struct banyan_config config;

        banyan_config_init(&config);
        config.fabric = rig.fabric;
        config.host = banyan_fabric_host(rig.fabric, 0);
        assert_int_equal(banyan_init(&config, &rig.context[0]), BANYAN_OK);
        expect(banyan_comm_create(rig.context[0], 1, &comm), BANYAN_EINVAL, "use auto, on or off");
        rig_set("BANYAN_GPU", "auto");
        banyan_finalize(rig.context[0]);
        assert_int_equal(banyan_init(&config, &rig.context[0]), BANYAN_OK);
        assert_int_equal(banyan_comm_create(rig.context[0], 1, &rig.comm[0]), BANYAN_OK);
    }
    close_all(NULL);
}

static void load_driver(const char *program)
{
    char path[512], folder[512];
    void *library;

    snprintf(folder, sizeof(folder), "%s", program);
    snprintf(path, sizeof(path), "%s/../lib/libfake-cuda.so", dirname(folder));
    setenv("BANYAN_CUDA_LIBRARY", path, 1);
    library = dlopen(path, RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(1);
    }
    take = (fake_take_fn *)dlsym(library, "fake_take");
    give = (fake_give_fn *)dlsym(library, "fake_give");
    device_write = (fake_write_fn *)dlsym(library, "fake_write");
    device_read = (fake_read_fn *)dlsym(library, "fake_read");
    count_all = (fake_counts_fn *)dlsym(library, "fake_counts");
    fail_copies = (fake_fail_fn *)dlsym(library, "fake_fail");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_collective_takes_device_buffers_whole),
        cmocka_unit_test(every_collective_takes_device_buffers_in_chunks),
        cmocka_unit_test(what_is_posted_after_a_device_buffer_waits_for_its_turn),
        cmocka_unit_test(a_copy_that_fails_ends_the_operation_with_cudas_words),
        cmocka_unit_test(a_communicator_that_goes_takes_running_copies_with_it),
        cmocka_unit_test(device_memory_kills_who_touches_it),
        cmocka_unit_test(settings_that_are_wrong_are_refused),
        cmocka_unit_test(device_buffers_travel_between_hosts_too),
    };

    (void)argc;
    setenv("HOME", "/nonexistent", 1);
    setenv("BANYAN_LOG", "0", 1);
    load_driver(argv[0]);
    for (uint32_t rank = 0; rank < RANKS; rank++)
        for (uint32_t i = 0; i < RANKS * COUNT; i++)
            values[rank][i] = (int32_t)(rank * 100000 + i * 7);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
