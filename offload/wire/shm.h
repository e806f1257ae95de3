/*
 * A cable of memory: what a host and a switch on one machine share in place of a wire. Each
 * direction has a queue of packets in slots; a slot holds the packet's headers, and its payload, or
 * says where that lies: in the host's own memory, which the switch reads, or in the switch's, which
 * the host reads. So a payload of a user is copied nowhere before it is added, and a sum is copied
 * once, to where the user wants it.
 *
 * They meet at a Unix socket (SOCK_SEQPACKET). The switch sends struct by_shm_challenge; the host
 * makes the memory and sends struct by_shm_hello with two descriptors (the cable, the host's
 * memory), and in a keyed job with by_shm_proof of the challenge; the answer is struct
 * by_shm_welcome with one descriptor (the switch's payloads, to be read only). From then on each
 * message is a bell: a consumer that wants to sleep says so in the queue, and the producer sends a
 * byte. A socket has a file description at each end, so that neither side can make the other one's
 * calls block. Either side ends the cable by closing the socket.
 *
 * Each queue has one producer and one consumer, in different processes. What the other side writes
 * is checked before it is used, and copied before it is checked; a payload may change under the
 * reader, and is worth then what its psum says, or, where it has none (decision 203), any of its
 * values. Layout and atomic steps only; the system calls are the shells'.
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

/* Where a packet's payload lies. */
enum by_shm_place {
    BY_SHM_SMALL = 1, /* in the slot */
    BY_SHM_COPY,      /* in the slot's own room behind the queues */
    BY_SHM_THERE,     /* in the producer's memory, from byte `at` on */
};

/* A packet: two cache lines. Numbers are in the order of this machine. */
struct by_shm_packet {
    uint64_t at;
    uint32_t src_ip, dst_ip;
    uint16_t udp_port; /* destination; 0: relayed, the job in the header says whose it is */
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
    uint32_t tail __attribute__((aligned(64))); /* packets put in, by the producer */
    uint32_t head __attribute__((aligned(64))); /* packets done with, by the consumer */
    uint32_t asleep;                            /* the consumer wants its bell */
    struct by_shm_packet packet[BY_SHM_SLOTS];
};

/* The cable. Behind it, from a page's start on, are the slots' rooms: those of `up`, then those of
 * `down`. */
struct by_shm_cable {
    struct by_shm_queue up, down; /* from the host, to the host */
};

#define BY_SHM_ROOMS_AT ((sizeof(struct by_shm_cable) + 4095u) / 4096u * 4096u)

/* Bytes of a cable whose slots have rooms of `room_bytes`. */
static inline uint64_t by_shm_bytes(uint32_t room_bytes)
{
    return BY_SHM_ROOMS_AT + 2 * (uint64_t)BY_SHM_SLOTS * room_bytes;
}

/* Room `slot` of `up` (direction 0) or `down` (1). */
static inline uint8_t *by_shm_room(struct by_shm_cable *cable, uint32_t room_bytes, unsigned direction,
                                   uint32_t slot)
{
    return (uint8_t *)cable + BY_SHM_ROOMS_AT +
           (uint64_t)room_bytes * (direction * BY_SHM_SLOTS + (slot & (BY_SHM_SLOTS - 1)));
}

/* What the host's proof must be new for. */
struct by_shm_challenge {
    uint32_t magic, version;
    uint64_t nonce[2];
    uint16_t node; /* the switch's, by its table; BY_NODE_NONE: it has none */
    uint16_t reserved[3];
};

struct by_shm_hello {
    uint32_t magic, version;
    uint32_t ip;         /* the host's on this cable, host order */
    uint32_t room_bytes; /* of a slot's room: a multiple of 64 */
    uint64_t memory_bytes;
    uint16_t udp_port; /* on which this job's host listens */
    uint16_t reserved[3];
    uint64_t proof; /* of a keyed job */
};
#define BY_SHM_HELLO_FDS 2u

/* Shows that the host has the job's key: `key` is that of packets from the host to the switch as
 * its parent. A message of 32 bytes, which no packet's tag covers (seal.h). */
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
    int32_t status; /* 0, or BY_E*: then `text` says why, and there is no memory */
    uint32_t reserved;
    uint64_t memory_bytes;
    char text[160];
};

/* The producer's side of a queue. */
struct by_shm_sender {
    struct by_shm_queue *queue;
    uint32_t tail; /* packets put in, of which `published` are seen by the consumer */
    uint32_t published;
    uint32_t head; /* packets that the consumer was done with when we last looked */
};

/* A free slot to fill, or NULL when the consumer is that far behind. by_shm_put makes it the next
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

/* Shows the consumer what was put in; true when it sleeps and its bell must be rung. */
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

/* The consumer's side. */
struct by_shm_receiver {
    struct by_shm_queue *queue;
    uint32_t head; /* packets taken */
    uint32_t tail; /* packets that were there when we last looked */
};

/* The next packet, or NULL. It stays until by_shm_done. */
static inline const struct by_shm_packet *by_shm_take(struct by_shm_receiver *receiver)
{
    if (receiver->head == receiver->tail) {
        receiver->tail = __atomic_load_n(&receiver->queue->tail, __ATOMIC_ACQUIRE);
        if (receiver->tail - receiver->head > BY_SHM_SLOTS)
            receiver->tail = receiver->head; /* more than there is room for: nobody has put that in */
        if (receiver->head == receiver->tail)
            return 0;
    }
    return &receiver->queue->packet[receiver->head++ & (BY_SHM_SLOTS - 1)];
}

/*
 * Where the payload of a packet taken from slot `slot` of `direction` lies, in the packet, the
 * slot's room or the sender's `memory`; NULL when that is not all inside, so that the packet is not
 * sound.
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

/* Gives back all packets that were taken. */
static inline void by_shm_done(struct by_shm_receiver *receiver)
{
    __atomic_store_n(&receiver->queue->head, receiver->head, __ATOMIC_RELEASE);
}

/* Says that the consumer sleeps; false, and it does not, when there is a packet after all. */
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
