/*
 * Collectives between hosts, each rank a process on the loopback interface: all collectives, with
 * every algorithm, with sizes from one element to some hundred kilobytes, in place and out of
 * place. Members compute the expected results themselves. Values are small integers, so that sums
 * of floats are exact in any order; otherwise all ranks must get the same bits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/unit/host-driver/fallback/team.h"

#define COUNT_MAX 12011u /* elements */

struct collectives_buffers {
    uint64_t *send, *recv; /* TEAM_MAX * COUNT_MAX elements of 8 bytes */
};

static const uint64_t counts[] = {0, 1, 2, 3, 7, 64, 1000, COUNT_MAX};

static int open_all(struct team_member *member, struct collectives_buffers *buffers)
{
    size_t bytes = (size_t)TEAM_MAX * COUNT_MAX * 8;

    buffers->send = malloc(bytes);
    buffers->recv = malloc(bytes);
    if (buffers->send == NULL || buffers->recv == NULL)
        return member_wrong(member, "no memory");
    return member_open(member);
}

/* Returns element `index` of rank `rank`: 0 to 6, so that sums of 17 ranks are exact in 16 bits
 * too. */
static uint32_t value_of(uint32_t rank, uint64_t index)
{
    return (uint32_t)((index * 5 + rank * 3 + (index >> 7)) % 7);
}

static void put(void *buffer, uint64_t at, banyan_dtype_t dtype, uint32_t value)
{
    static const uint16_t half[8] = {0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700};
    float single = (float)value;
    double twice = value;
    uint32_t bits;

    memcpy(&bits, &single, sizeof(bits));
    switch (dtype) {
    case BANYAN_F32:
        memcpy((uint8_t *)buffer + at * 4, &single, 4);
        break;
    case BANYAN_F64:
        memcpy((uint8_t *)buffer + at * 8, &twice, 8);
        break;
    case BANYAN_F16:
        memcpy((uint8_t *)buffer + at * 2, &half[value], 2);
        break;
    case BANYAN_BF16:
        memcpy((uint8_t *)buffer + at * 2, (const uint8_t *)&bits + 2, 2);
        break;
    case BANYAN_I8:
    case BANYAN_U8:
    case BANYAN_I32:
    case BANYAN_U32:
    case BANYAN_I64:
    case BANYAN_U64:
    default: {
        uint64_t wide = value;

        memcpy((uint8_t *)buffer + at * banyan_dtype_size(dtype), &wide, banyan_dtype_size(dtype));
    }
    }
}

/* Reads an element that is an integer below 256. */
static uint32_t get(const void *buffer, uint64_t at, banyan_dtype_t dtype)
{
    uint64_t wide = 0;
    uint32_t bits = 0;
    float single;
    double twice;

    switch (dtype) {
    case BANYAN_F32:
        memcpy(&single, (const uint8_t *)buffer + at * 4, 4);
        return (uint32_t)single;
    case BANYAN_F64:
        memcpy(&twice, (const uint8_t *)buffer + at * 8, 8);
        return (uint32_t)twice;
    case BANYAN_BF16:
        memcpy((uint8_t *)&bits + 2, (const uint8_t *)buffer + at * 2, 2);
        memcpy(&single, &bits, 4);
        return (uint32_t)single;
    case BANYAN_F16:
        memcpy(&bits, (const uint8_t *)buffer + at * 2, 2);
        return bits == 0 ? 0 : ((bits & 0x3ff) | 0x400) >> (25 - (bits >> 10 & 31));
    case BANYAN_I8:
    case BANYAN_U8:
    case BANYAN_I32:
    case BANYAN_U32:
    case BANYAN_I64:
    case BANYAN_U64:
    default:
        memcpy(&wide, (const uint8_t *)buffer + at * banyan_dtype_size(dtype), banyan_dtype_size(dtype));
        return (uint32_t)wide;
    }
}

static uint32_t reduced(const struct team_member *member, uint64_t index, banyan_op_t op)
{
    uint32_t sum = value_of(0, index);

    for (uint32_t rank = 1; rank < member->count; rank++) {
        uint32_t value = value_of(rank, index);

        sum = op == BANYAN_MAX ? (value > sum ? value : sum) : op == BANYAN_BXOR ? sum ^ value : sum + value;
    }
    return sum;
}

static void fill(const struct team_member *member, void *buffer, uint64_t count, banyan_dtype_t dtype)
{
    for (uint64_t i = 0; i < count; i++)
        put(buffer, i, dtype, value_of(member->rank, i));
}

static int check_status(const struct team_member *member, banyan_status_t status, const char *what)
{
    return status == BANYAN_OK ? 0 : member_wrong(member, "%s: %s", what, banyan_last_error());
}

static int reduces(const struct team_member *member, struct collectives_buffers *b, uint64_t count,
                   banyan_dtype_t dtype, banyan_op_t op, int in_place)
{
    uint32_t root = (uint32_t)((count + op) % member->count);
    size_t bytes = banyan_dtype_size(dtype);
    void *recv = in_place ? (void *)b->send : (void *)b->recv;
    int wrong = 0;

    fill(member, b->send, count, dtype);
    wrong |=
        check_status(member, banyan_allreduce(member->comm, b->send, recv, count, dtype, op), "allreduce");
    for (uint64_t i = 0; i < count && !wrong; i++)
        if (get(recv, i, dtype) != reduced(member, i, op))
            wrong = member_wrong(member, "allreduce %s %s of %llu: element %llu is %u", banyan_op_name(op),
                                 banyan_dtype_name(dtype), (unsigned long long)count, (unsigned long long)i,
                                 get(recv, i, dtype));
    fill(member, b->send, count, dtype);
    wrong |=
        check_status(member, banyan_reduce(member->comm, b->send, recv, count, dtype, op, root), "reduce");
    for (uint64_t i = 0; i < count && !wrong && member->rank == root; i++)
        if (get(recv, i, dtype) != reduced(member, i, op))
            wrong = member_wrong(member, "reduce %s %s of %llu: element %llu", banyan_op_name(op),
                                 banyan_dtype_name(dtype), (unsigned long long)count, (unsigned long long)i);
    fill(member, b->send, count * member->count, dtype);
    recv = in_place ? (uint8_t *)b->send + member->rank * count * bytes : (uint8_t *)b->recv;
    wrong |= check_status(member, banyan_reduce_scatter(member->comm, b->send, recv, count, dtype, op),
                          "reduce-scatter");
    for (uint64_t i = 0; i < count && !wrong; i++)
        if (get(recv, i, dtype) != reduced(member, member->rank * count + i, op))
            wrong = member_wrong(member, "reduce-scatter %s %s of %llu: element %llu", banyan_op_name(op),
                                 banyan_dtype_name(dtype), (unsigned long long)count, (unsigned long long)i);
    return wrong;
}

static int copies(const struct team_member *member, struct collectives_buffers *b, uint64_t count,
                  banyan_dtype_t dtype, int in_place)
{
    uint32_t root = (uint32_t)(count * 7 % member->count);
    size_t bytes = banyan_dtype_size(dtype);
    void *own = in_place ? (uint8_t *)b->recv + member->rank * count * bytes : (uint8_t *)b->send;
    int wrong = 0;

    memset(b->recv, 0xee, (size_t)(count * bytes * member->count));
    fill(member, own, count, dtype);
    wrong |= check_status(member, banyan_allgather(member->comm, own, b->recv, count, dtype), "allgather");
    for (uint32_t rank = 0; rank < member->count; rank++)
        for (uint64_t i = 0; i < count && !wrong; i++)
            if (get(b->recv, rank * count + i, dtype) != value_of(rank, i))
                wrong = member_wrong(member, "allgather of %llu: element %llu of rank %u",
                                     (unsigned long long)count, (unsigned long long)i, rank);
    fill(member, b->recv, count, dtype);
    wrong |= check_status(member, banyan_broadcast(member->comm, b->recv, count, dtype, root), "broadcast");
    for (uint64_t i = 0; i < count && !wrong; i++)
        if (get(b->recv, i, dtype) != value_of(root, i))
            wrong = member_wrong(member, "broadcast of %llu from %u: element %llu", (unsigned long long)count,
                                 root, (unsigned long long)i);
    return wrong | check_status(member, banyan_barrier(member->comm), "barrier");
}

/* The counter of calls that run the way under test. */
static const char *counter_of_calls(void)
{
    return strcmp(getenv("BANYAN_NEAR"), "memory") == 0 ? "hosts/single" : "hosts/calls";
}

static int run_sizes(struct team_member *member)
{
    struct collectives_buffers buffers;
    int wrong = open_all(member, &buffers);

    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]) && !wrong; i++)
        for (int in_place = 0; in_place < 2 && !wrong; in_place++) {
            wrong |= reduces(member, &buffers, counts[i], BANYAN_F32, BANYAN_SUM, in_place);
            wrong |= reduces(member, &buffers, counts[i], BANYAN_U32, BANYAN_SUM, in_place);
            wrong |= copies(member, &buffers, counts[i], BANYAN_F64, in_place);
        }
    if (!wrong && member->count > 1 && member_counter(member, counter_of_calls()) < 100)
        wrong = member_wrong(member, "nothing ran between hosts");
    member_close(member);
    free(buffers.send);
    free(buffers.recv);
    return wrong;
}

static int run_types(struct team_member *member)
{
    struct collectives_buffers buffers;
    int wrong = open_all(member, &buffers);

    for (unsigned dtype = BANYAN_I8; dtype <= BANYAN_F64; dtype++)
        for (unsigned op = BANYAN_SUM; op <= BANYAN_BXOR; op++)
            for (uint64_t count = 5; count < 5000 && !wrong; count = count * 40 + 1)
                if (banyan_supports((banyan_op_t)op, (banyan_dtype_t)dtype) &&
                    (op == BANYAN_SUM || op == BANYAN_MAX || op == BANYAN_BXOR))
                    wrong |=
                        reduces(member, &buffers, count, (banyan_dtype_t)dtype, (banyan_op_t)op, count == 5);
    member_close(member);
    free(buffers.send);
    free(buffers.recv);
    return wrong;
}

/* Unequal shards: rank r has (r * r + 2) mod 5 parts of `part` elements, so that some ranks have
 * none. */
static int shares(const struct team_member *member, struct collectives_buffers *b, uint64_t part,
                  banyan_dtype_t dtype, int in_place)
{
    uint64_t share[TEAM_MAX], first[TEAM_MAX + 1] = {0}, own;
    size_t bytes = banyan_dtype_size(dtype);
    uint8_t *at;
    int wrong;

    for (uint32_t rank = 0; rank < member->count; rank++) {
        share[rank] = (rank * rank + 2) % 5 * part;
        first[rank + 1] = first[rank] + share[rank];
    }
    own = share[member->rank];
    at = (uint8_t *)(in_place ? b->recv : b->send) + (in_place ? first[member->rank] * bytes : 0);
    memset(b->recv, 0xee, (size_t)(first[member->count] * bytes));
    fill(member, at, own, dtype);
    wrong = check_status(member, banyan_allgatherv(member->comm, at, b->recv, share, dtype), "allgatherv");
    for (uint32_t rank = 0; rank < member->count; rank++)
        for (uint64_t i = 0; i < share[rank] && !wrong; i++)
            if (get(b->recv, first[rank] + i, dtype) != value_of(rank, i))
                wrong = member_wrong(member, "allgatherv of %llu a part: element %llu of rank %u",
                                     (unsigned long long)part, (unsigned long long)i, rank);
    fill(member, b->send, first[member->count], dtype);
    at = in_place ? (uint8_t *)b->send + first[member->rank] * bytes : (uint8_t *)b->recv;
    wrong |= check_status(member, banyan_reduce_scatterv(member->comm, b->send, at, share, dtype, BANYAN_SUM),
                          "reduce_scatterv");
    for (uint64_t i = 0; i < own && !wrong; i++)
        if (get(at, i, dtype) != reduced(member, first[member->rank] + i, BANYAN_SUM))
            wrong = member_wrong(member, "reduce_scatterv of %llu a part: element %llu",
                                 (unsigned long long)part, (unsigned long long)i);
    return wrong;
}

static int run_shares(struct team_member *member)
{
    static const char *const ways[] = {"circulant", "ring", "rhd"};
    int wrong = 0;

    for (size_t way = 0; way < 3 && !wrong; way++) {
        struct collectives_buffers buffers;

        setenv("BANYAN_FALLBACK", ways[way], 1);
        wrong = open_all(member, &buffers);
        for (uint64_t part = 1; part < 1000 && !wrong; part = part * 17 + 3)
            for (int in_place = 0; in_place < 2 && !wrong; in_place++) {
                wrong |= shares(member, &buffers, part, BANYAN_F32, in_place);
                wrong |= shares(member, &buffers, part, BANYAN_BF16, in_place);
                wrong |= shares(member, &buffers, part, BANYAN_I64, in_place);
            }
        member_close(member);
        free(buffers.send);
        free(buffers.recv);
    }
    return wrong;
}

static void shares_of_unequal_size_are_right(void **state)
{
    (void)state;
    team_must(1, run_shares, NULL);
    team_must(2, run_shares, NULL);
    team_must(4, run_shares, NULL);
    team_must(7, run_shares, NULL);
}

/* The same total size at all ranks, with different shards. */
static int cut_otherwise(struct team_member *member)
{
    uint64_t share[TEAM_MAX] = {0};
    uint32_t send[64] = {0}, recv[64];
    int wrong = member_open(member);

    share[member->rank == 0 ? 0 : 1] = 60;
    share[member->rank == 0 ? 1 : 0] = 4;
    if (!wrong && banyan_allgatherv(member->comm, send, recv, share, BANYAN_U32) != BANYAN_EMISMATCH)
        wrong = member_wrong(member, "no mismatch: %s", banyan_last_error());
    member_close(member);
    return wrong;
}

static void ranks_with_other_shares_are_told(void **state)
{
    (void)state;
    team_must(2, cut_otherwise, NULL);
}

static void all_sizes_are_right(const char *way, uint32_t step)
{
    setenv("BANYAN_FALLBACK", way, 1);
    for (uint32_t count = 1; count <= 9; count += step)
        team_must(count, run_sizes, NULL);
    team_must(8, run_sizes, NULL);
    unsetenv("BANYAN_FALLBACK");
}

static void results_are_exact_for_1_to_9_ranks(void **state)
{
    (void)state;
    all_sizes_are_right("circulant", 1);
}

static void a_ring_gives_exact_results(void **state)
{
    (void)state;
    all_sizes_are_right("ring", 2);
}

static void halving_and_doubling_give_exact_results(void **state)
{
    (void)state;
    all_sizes_are_right("rhd", 3);
}

static void every_operator_on_every_type_is_right(void **state)
{
    (void)state;
    team_must(3, run_types, NULL);
    team_must(6, run_types, NULL);
}

/* Sums that are rounded: an allgather compares each rank's bits with those of rank 0. */
static int sum_rounded(struct team_member *member)
{
    struct collectives_buffers buffers;
    int wrong = open_all(member, &buffers);

    for (uint64_t count = 3; count <= 3000 && !wrong; count *= 10) {
        float *send = (float *)buffers.send;
        uint32_t hash[2] = {0, 0}, all[2 * TEAM_MAX];

        for (uint64_t i = 0; i < count; i++)
            send[i] = 1.0f / (float)(1 + (i * 31 + member->rank * 977) % 1009);
        wrong |= check_status(
            member, banyan_allreduce(member->comm, send, buffers.recv, count, BANYAN_F32, BANYAN_SUM), "sum");
        for (uint64_t i = 0; i < count; i++) {
            uint32_t bits;

            memcpy(&bits, (const uint8_t *)buffers.recv + i * 4, 4);
            hash[0] = hash[0] * 31 + bits;
            hash[1] ^= bits;
        }
        wrong |= check_status(member, banyan_allgather(member->comm, hash, all, 2, BANYAN_U32), "hashes");
        for (uint32_t i = 0; i < 2 * member->count && !wrong; i++)
            if (all[i] != all[i % 2])
                wrong = member_wrong(member, "rank %u has other bits than rank 0", i / 2);
    }
    member_close(member);
    free(buffers.send);
    free(buffers.recv);
    return wrong;
}

static void rounded_sums_have_the_same_bits_on_all_ranks(void **state)
{
    (void)state;
    for (uint32_t count = 2; count <= 9; count += 3)
        team_must(count, sum_rounded, NULL);
}

/* Many requests at a time, completed in another order than posted, and posted again. */
static int run_many(struct team_member *member)
{
    struct banyan_request *request[40];
    uint32_t send[40], recv[40];
    int wrong = member_open(member);

    for (uint32_t i = 0; i < 40 && !wrong; i++)
        wrong |= check_status(
            member,
            banyan_allreduce_init(member->comm, &send[i], &recv[i], 1, BANYAN_U32, BANYAN_SUM, &request[i]),
            "init");
    for (uint32_t turn = 0; turn < 5 && !wrong; turn++) {
        for (uint32_t i = 0; i < 40; i++) {
            send[i] = i + member->rank + turn;
            wrong |= check_status(member, banyan_post(request[i]), "post");
        }
        for (uint32_t i = 40; i-- > 0 && !wrong;) {
            wrong |= check_status(member, banyan_wait(request[i]), "wait");
            if (recv[i] != member->count * (i + turn) + member->count * (member->count - 1) / 2)
                wrong |= member_wrong(member, "operation %u of turn %u gave %u", i, turn, recv[i]);
        }
    }
    member_close(member);
    return wrong;
}

static void many_operations_run_at_a_time_and_again(void **state)
{
    (void)state;
    team_must(4, run_many, NULL);
}

/* One context with communicators one after another and two at a time. */
static int make_many(struct team_member *member)
{
    int wrong = 0;

    if (banyan_init(NULL, &member->context) != BANYAN_OK)
        return member_wrong(member, "%s", banyan_last_error());
    for (uint32_t i = 0; i < 12 && !wrong; i++) {
        struct banyan_comm *first, *second;
        uint32_t one = 1, sum = 0;

        wrong |= check_status(member, banyan_comm_create(member->context, 0, &first), "first");
        if (!wrong)
            wrong |= check_status(member, banyan_comm_create(member->context, 0, &second), "second");
        if (wrong)
            break;
        wrong |= check_status(member, banyan_allreduce(second, &one, &sum, 1, BANYAN_U32, BANYAN_SUM), "sum");
        wrong |= check_status(member, banyan_allreduce(first, &one, &sum, 1, BANYAN_U32, BANYAN_SUM), "sum");
        if (sum != member->count)
            wrong |= member_wrong(member, "the sum of ones is %u", sum);
        banyan_comm_destroy(first);
        banyan_comm_destroy(second);
    }
    member_close(member);
    return wrong;
}

static void communicators_come_and_go(void **state)
{
    (void)state;
    team_must(3, make_many, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_are_exact_for_1_to_9_ranks),
        cmocka_unit_test(a_ring_gives_exact_results),
        cmocka_unit_test(halving_and_doubling_give_exact_results),
        cmocka_unit_test(shares_of_unequal_size_are_right),
        cmocka_unit_test(ranks_with_other_shares_are_told),
        cmocka_unit_test(every_operator_on_every_type_is_right),
        cmocka_unit_test(rounded_sums_have_the_same_bits_on_all_ranks),
        cmocka_unit_test(many_operations_run_at_a_time_and_again),
        cmocka_unit_test(communicators_come_and_go),
    };

    const struct CMUnitTest in_memory[] = {
        cmocka_unit_test(results_are_exact_for_1_to_9_ranks),
        cmocka_unit_test(shares_of_unequal_size_are_right),
        cmocka_unit_test(ranks_with_other_shares_are_told),
        cmocka_unit_test(every_operator_on_every_type_is_right),
        cmocka_unit_test(rounded_sums_have_the_same_bits_on_all_ranks),
        cmocka_unit_test(many_operations_run_at_a_time_and_again),
        cmocka_unit_test(communicators_come_and_go),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);

    setenv("BANYAN_NEAR", "memory", 1);
    return failed + cmocka_run_group_tests_name("all ranks share memory", in_memory, NULL, NULL);
}
