/*
 * A cable of shared memory: replaces the wire between a host and a switch on one machine. Each
 * direction has a queue of packets in slots. A slot holds the headers of a packet, and either its
 * payload or the place of the payload: in the host's memory, which the switch reads, or in the
 * switch's memory, which the host reads. So a user's payload is not copied before it is added, and
 * a sum is copied once, to the user's buffer.
 *
 * Both sides connect through a Unix socket (SOCK_SEQPACKET):
 *   1. The switch sends struct by_shm_challenge.
 *   2. The host creates the memory and sends struct by_shm_hello with two descriptors (the cable,
 *      the host's memory). In a keyed job it includes the by_shm_proof of the challenge.
 *   3. The switch replies with struct by_shm_welcome and one descriptor (its payloads, read-only).
 *   4. From then on each message is a doorbell: a consumer that is about to sleep sets a flag in
 *      the queue, and the producer sends a byte.
 * A socket has a file description at each end, so that neither side can make the other side's calls
 * block. Either side ends the cable by closing the socket.
 *
 * Each queue has one producer and one consumer, in different processes. Data written by the other
 * side is copied, then checked, then used. A payload may change while it is read: its psum detects
 * that, or, where there is no psum (decision 203), any of its values may be read. This file has
 * only the layout and the atomic steps; the shells make the system calls.
 */
#ifndef BY_WIRE_SHM_H
#define BY_WIRE_SHM_H

#include <stdint.h>

#include "offload/base/assert.h"
#include "offload/base/siphash.h"
#include "offload/wire/wire.h"

#define BY_SHM_MAGIC   0x42594d43u /* "BYMC" */
#define BY_SHM_VERSION 3u
/* Packets of a queue (count, a power of two): two windows of the default size. */
#define BY_SHM_SLOTS 512u
#define BY_SHM_LINE  64u /* bytes of a cache line */

/* The place of a packet's payload. */
enum by_shm_place {
    BY_SHM_SMALL = 1, /* in the slot */
    BY_SHM_COPY,      /* in the slot's own room behind the queues */
    BY_SHM_THERE,     /* in the producer's memory, from byte `at` */
};

/* A packet: two cache lines. Numbers are in the byte order of this machine. */
struct by_shm_packet {
    uint64_t at;
    uint32_t src_ip, dst_ip;
    uint16_t udp_port; /* destination; 0: relayed, the header's job determines the receiver */
    uint16_t payload_bytes;
    uint8_t place; /* enum by_shm_place */
    uint8_t ecn;
    uint8_t direct; /* as in struct by_rx */
    uint8_t reserved;
    uint8_t header[BY_WIRE_HEADER_BYTES];
    uint8_t small[BY_ERR_BYTES];
    uint8_t rest[16];
} __attribute__((aligned(64)));
BY_STATIC_ASSERT(sizeof(struct by_shm_packet) == 2 * BY_SHM_LINE, "a slot is two cache lines");

struct by_shm_queue {
    uint32_t tail __attribute__((aligned(64))); /* packets added, written by the producer */
    uint32_t head __attribute__((aligned(64))); /* packets consumed, written by the consumer */
    uint32_t asleep;                            /* the consumer sleeps and needs a doorbell */
    struct by_shm_packet packet[BY_SHM_SLOTS];
};

/* The cable. The rooms of the slots follow it, from the start of a page: first those of `up`, then
 * those of `down`. */
struct by_shm_cable {
    struct by_shm_queue up, down; /* from the host, to the host */
};

#define BY_SHM_ROOMS_AT ((sizeof(struct by_shm_cable) + 4095u) / 4096u * 4096u)

/* Returns the size of a cable whose slots have rooms of `room_bytes` bytes. */
static inline uint64_t by_shm_bytes(uint32_t room_bytes)
{
    return BY_SHM_ROOMS_AT + 2 * (uint64_t)BY_SHM_SLOTS * room_bytes;
}

/* Returns the room of slot `slot` of `up` (direction 0) or `down` (1). */
static inline uint8_t *by_shm_room(struct by_shm_cable *cable, uint32_t room_bytes, unsigned direction,
                                   uint32_t slot)
{
    return (uint8_t *)cable + BY_SHM_ROOMS_AT +
           (uint64_t)room_bytes * (direction * BY_SHM_SLOTS + (slot & (BY_SHM_SLOTS - 1)));
}

/* The switch's challenge, which makes each proof unique. */
struct by_shm_challenge {
    uint32_t magic, version;
    uint64_t nonce[2];
    uint16_t node; /* the switch's node id from its table; BY_NODE_NONE: no table */
    uint16_t reserved[3];
};

struct by_shm_hello {
    uint32_t magic, version;
    uint32_t ip;         /* the host's address on this cable, host order */
    uint32_t room_bytes; /* size of a slot's room: a multiple of 64 */
    uint64_t memory_bytes;
    uint16_t udp_port; /* UDP port of this job's host */
    uint16_t reserved[3];
    uint64_t proof; /* for a keyed job */
};
#define BY_SHM_HELLO_FDS 2u

/* Proves that the host has the job's key. `key` is the key of packets from the host to the switch
 * as its parent. The message has 32 bytes, a length that no packet's tag covers (seal.h). */
static inline uint64_t by_shm_proof(const struct by_siphash_key *key,
                                    const struct by_shm_challenge *challenge,
                                    const struct by_shm_hello *hello)
{
    struct by_siphash_state state;

    by_siphash_begin(&state, key);
    by_siphash_word(&state, (uint64_t)BY_SHM_MAGIC << 32 | BY_SHM_VERSION);
    by_siphash_word(&state, challenge->nonce[0]);
    by_siphash_word(&state, challenge->nonce[1]);
    by_siphash_word(&state, (uint64_t)hello->ip << 16 | hello->udp_port);
    return by_siphash_end(&state, 0, 32);
}

struct by_shm_welcome {
    uint32_t magic, version;
    int32_t status; /* 0, or BY_E*: then `text` gives the reason and no memory is passed */
    uint32_t reserved;
    uint64_t memory_bytes;
    char text[160];
};

/* The producer's side of a queue. */
struct by_shm_sender {
    struct by_shm_queue *queue;
    uint32_t tail; /* packets added; the consumer sees the first `published` */
    uint32_t published;
    uint32_t head; /* packets that the consumer had finished when last read */
};

/* Returns a free slot to fill, or NULL when the queue is full. by_shm_put makes the slot the next
 * packet. */
static inline struct by_shm_packet *by_shm_slot(struct by_shm_sender *sender)
{
    if (sender->tail - sender->head >= BY_SHM_SLOTS) {
        sender->head = __atomic_load_n(&sender->queue->head, __ATOMIC_ACQUIRE);
        if (sender->tail - sender->head >= BY_SHM_SLOTS)
            return 0;
    }
    return &sender->queue->packet[sender->tail & (BY_SHM_SLOTS - 1)];
}

static inline void by_shm_put(struct by_shm_sender *sender)
{
    sender->tail++;
}

/* Makes the added packets visible to the consumer. Returns true when the consumer sleeps and needs
 * a doorbell. */
static inline int by_shm_publish(struct by_shm_sender *sender)
{
    if (sender->published == sender->tail)
        return 0;
    sender->published = sender->tail;
    __atomic_store_n(&sender->queue->tail, sender->tail, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    return __atomic_load_n(&sender->queue->asleep, __ATOMIC_RELAXED) != 0 &&
           __atomic_exchange_n(&sender->queue->asleep, 0, __ATOMIC_RELAXED) != 0;
}

/* The consumer's side of a queue. */
struct by_shm_receiver {
    struct by_shm_queue *queue;
    uint32_t head; /* packets removed */
    uint32_t tail; /* packets that were available when last read */
};

/* Returns the next packet, or NULL. It stays valid until by_shm_done. */
static inline const struct by_shm_packet *by_shm_take(struct by_shm_receiver *receiver)
{
    if (receiver->head == receiver->tail) {
        receiver->tail = __atomic_load_n(&receiver->queue->tail, __ATOMIC_ACQUIRE);
        if (receiver->tail - receiver->head > BY_SHM_SLOTS)
            receiver->tail = receiver->head; /* more than fit: the producer is faulty */
        if (receiver->head == receiver->tail)
            return 0;
    }
    return &receiver->queue->packet[receiver->head++ & (BY_SHM_SLOTS - 1)];
}

/*
 * Returns the payload of a packet taken from slot `slot` of `direction`: in the packet, in the
 * slot's room or in the sender's `memory`. Returns NULL when the payload is not entirely inside,
 * and the packet is therefore invalid.
 */
static inline const uint8_t *by_shm_payload(const struct by_shm_packet *packet, struct by_shm_cable *cable,
                                            uint32_t room_bytes, unsigned direction, uint32_t slot,
                                            const uint8_t *memory, uint64_t memory_bytes)
{
    if (packet->payload_bytes > BY_PAYLOAD_MAX)
        return 0;
    switch (packet->place) {
    case BY_SHM_SMALL:
        return packet->payload_bytes <= sizeof packet->small ? packet->small : 0;
    case BY_SHM_COPY:
        return packet->payload_bytes <= room_bytes ? by_shm_room(cable, room_bytes, direction, slot) : 0;
    case BY_SHM_THERE:
        return packet->at <= memory_bytes && packet->payload_bytes <= memory_bytes - packet->at
                   ? memory + packet->at
                   : 0;
    default:
        return 0;
    }
}

/* Returns all removed packets to the producer. */
static inline void by_shm_done(struct by_shm_receiver *receiver)
{
    __atomic_store_n(&receiver->queue->head, receiver->head, __ATOMIC_RELEASE);
}

/* Marks the consumer as sleeping and returns 1. Returns 0, without the mark, when a packet has
 * arrived in the meantime. */
static inline int by_shm_doze(struct by_shm_receiver *receiver)
{
    __atomic_store_n(&receiver->queue->asleep, 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (__atomic_load_n(&receiver->queue->tail, __ATOMIC_ACQUIRE) == receiver->head)
        return 1;
    __atomic_store_n(&receiver->queue->asleep, 0, __ATOMIC_RELAXED);
    return 0;
}

static inline void by_shm_wake(struct by_shm_receiver *receiver)
{
    __atomic_store_n(&receiver->queue->asleep, 0, __ATOMIC_RELAXED);
}

#endif
