/* Datagrams of any bytes for a pair: what is read is what was written, and a pair takes any
 * sequence of parcels that are formed rightly, keeps its counts, and stays within its memory. */
#include "host-driver/fallback/pair.h"
#include "tests/fuzz/input.h"

#define SLOTS 8u
#define BYTES 16u

static void check(const struct by_host_pair *pair)
{
    FUZZ_CHECK(pair->out.next - pair->out.first <= SLOTS && pair->out.end - pair->out.first <= SLOTS);
    FUZZ_CHECK(pair->out.flight + pair->out.lost <= pair->out.next - pair->out.first);
    FUZZ_CHECK(pair->in.come - pair->in.first <= SLOTS && pair->in.beyond < SLOTS);
    FUZZ_CHECK(pair->tempo.window > 0);
}

/* A parcel near what the other end would say. */
static void give(struct input *input, struct by_host_pair *pair, uint64_t now_ns)
{
    uint8_t datagram[BY_PARCEL_HEADER_BYTES + BYTES + 1] = {0};
    struct by_parcel parcel = {.kind = (uint8_t)(input_bytes(input, 1) % 4),
                               .push = input_bytes(input, 1) & 1,
                               .seq = pair->in.come + (uint32_t)(int8_t)input_bytes(input, 1),
                               .order = pair->out.order + (uint32_t)(int8_t)input_bytes(input, 1),
                               .ack = pair->out.first + (uint32_t)(int8_t)input_bytes(input, 1),
                               .room = (uint16_t)input_bytes(input, 1),
                               .bytes = (uint16_t)(input_bytes(input, 1) % (BYTES + 2))};
    struct by_parcel read;

    for (uint32_t i = 0; i < parcel.bytes; i++)
        datagram[BY_PARCEL_HEADER_BYTES + i] = (uint8_t)input_bytes(input, 1);
    by_parcel_write(&parcel, datagram);
    if (by_parcel_read(datagram, BY_PARCEL_HEADER_BYTES + (size_t)parcel.bytes, &read) != 0)
        return;
    FUZZ_CHECK(read.seq == parcel.seq && read.bytes == parcel.bytes && read.kind == parcel.kind);
    by_pair_take(pair, &read, now_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t memory[2 * SLOTS * BYTES];
    const struct by_pair_config config = {
        .slot_count = SLOTS, .slot_bytes = BYTES, .window = SLOTS, .peer_bytes = BYTES, .peer_window = SLOTS};
    struct input input = {data, size};
    uint64_t now_ns = 1000000;
    struct by_parcel parcel;
    struct by_host_pair pair;

    fuzz_count(1);
    if (by_parcel_read(data, size, &parcel) == 0) {
        FUZZ_CHECK(parcel.payload >= data && parcel.payload + parcel.bytes == data + size);
        FUZZ_CHECK(parcel.kind == BY_PARCEL_DATA || parcel.kind == BY_PARCEL_ACK);
    }
    by_pair_open(&pair, &config, memory);
    while (input.size > 0) {
        uint8_t buffer[BYTES * 2] = {0};

        switch (input_bytes(&input, 1) % 5) {
        case 0:
            by_pair_write(&pair, buffer, input_bytes(&input, 1) % sizeof(buffer));
            break;
        case 1:
            by_pair_flush(&pair);
            break;
        case 2:
            FUZZ_CHECK(by_pair_read(&pair, buffer, sizeof(buffer)) <= sizeof(buffer));
            break;
        case 3:
            now_ns += (uint64_t)input_bytes(&input, 1) << 20;
            for (unsigned i = 0; by_pair_next(&pair, now_ns, &parcel); i++)
                FUZZ_CHECK(i <= 2 * SLOTS);
            FUZZ_CHECK(by_pair_deadline(&pair) > now_ns);
            break;
        default:
            give(&input, &pair, now_ns);
            break;
        }
        check(&pair);
    }
    return 0;
}
