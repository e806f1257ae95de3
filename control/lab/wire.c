/*
 * The wires of a lab with --rate: one process that forwards raw frames between the two veth pairs
 * of each cable, each direction at its rate. A direction has a queue of about 20 ms; a frame that
 * finds it full is dropped, and TCP adapts to the rate. The process sleeps in epoll_wait while
 * there is nothing to do. See ways.h.
 *
 * Time is in integer nanoseconds. A frame of n bytes occupies its direction for n / rate, and the
 * remainder of this division is carried over, so the rate is exact on average. While a queue holds
 * frames, a late wake-up costs nothing up to LATE_NS: the frames that should have left leave at
 * once. A direction without frames accumulates only IDLE_NS, so that a burst after a pause is not
 * faster than the link.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/lab/ways.h"
#include "offload/base/bytes.h"

#define SECOND_NS UINT64_C(1000000000)
/* Depth of a queue: time, least number of frames, and most bytes. */
#define QUEUE_NS     UINT64_C(20000000)
#define QUEUE_FRAMES 8u
#define QUEUE_BYTES  (UINT64_C(4) << 20)
/* See above (nanoseconds). */
#define LATE_NS UINT64_C(20000000)
#define IDLE_NS UINT64_C(200000)
/* Pause after each turn, so that fast links do not cause a wake-up for each frame. */
#define PAUSE_NS 200000
/* Frames in a system call, and most calls for one socket in turn (count). */
#define BATCH 32u
#define CALLS 4u
/* Buffer of a packet socket, for the time that the process does not run (bytes). */
#define SOCKET_BYTES (8 << 20)
/* Bytes that the kernel puts before a frame and expects there: where its checksum is missing. So a
 * checksum that the sender's kernel leaves to its interface passes the wire like that. */
#define PREFIX ((uint32_t)sizeof(struct virtio_net_hdr))
/* Depth of the queue for short frames (bytes). And the least bytes of such a frame: an Ethernet
 * header and one of IP; ARP is longer. */
#define SHORT_BYTES (UINT64_C(64) << 10)
#define SHORT_MIN   (ETH_HLEN + 20u)
/* Flags of a segment (RFC 9293, section 3.1). */
#define TCP_FIN 1u
#define TCP_RST 4u
/* Bytes before a frame in a queue: its length. Records are multiples of that. */
#define RECORD         8u
#define ALIGNED(bytes) (((bytes) + RECORD - 1) / RECORD * RECORD)

/* A ring of frames, each in one piece behind its length. */
struct queue {
    uint64_t limit, queued; /* bytes: most, and now */
    uint8_t *records;
    uint64_t room, head, tail;
};

/* One direction. Its queues are in the order of their precedence. */
struct lab_wire {
    struct lab_way *way;
    int out;         /* packet socket at the end where frames leave */
    uint64_t due_ns; /* when the next frame may leave */
    uint64_t parts;  /* remainder of the last division, in nanoseconds / rate */
    struct queue queues[2];
};

struct lab_wires {
    uint32_t count;
    struct lab_wire *wires; /* by way */
    int *sockets;           /* by way, where its frames enter */
    int epoll, timer;
    uint64_t timer_ns;    /* when the timer expires; 0: it is not set */
    uint32_t frame_bytes; /* longest frame */
    uint8_t *frames;      /* of one system call */
};

void lab_wire_name(uint32_t way, char name[16])
{
    snprintf(name, 16, "wire%u", way);
}

/* Whether a frame is in a queue. */
static bool is_waiting(const struct lab_wire *wire)
{
    return wire->queues[0].queued > 0 || wire->queues[1].queued > 0;
}

static uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

/* ---- queue ---- */

static void open_queue(struct queue *queue, uint64_t limit, uint32_t frame_bytes)
{
    /* The shortest frame has an Ethernet header, so a record has at most twice its bytes; one more
     * frame may not fit at the end of the ring. */
    *queue = (struct queue){.limit = limit, .room = ALIGNED(2 * limit + 2 * (frame_bytes + RECORD))};
    queue->records = by_alloc(queue->room, 1);
}

static void open_wire(struct lab_wire *wire, struct lab_way *way, int out, uint32_t frame_bytes)
{
    uint64_t limit = way->rate / (SECOND_NS / QUEUE_NS);

    limit = limit > QUEUE_BYTES ? QUEUE_BYTES : limit;
    limit = limit < (uint64_t)QUEUE_FRAMES * frame_bytes ? (uint64_t)QUEUE_FRAMES * frame_bytes : limit;
    *wire = (struct lab_wire){.way = way, .out = out};
    open_queue(&wire->queues[0], SHORT_BYTES, frame_bytes);
    open_queue(&wire->queues[1], limit, frame_bytes);
}

/*
 * Whether the frame is ARP, or TCP without data that does not end the connection. Such frames
 * overtake data. Otherwise data in one direction would delay acknowledgements of the other, which
 * then arrive in bursts, and a queue that is full of data would drop a SYN, which TCP repeats after
 * a second.
 */
static bool is_short(const uint8_t *frame, uint32_t bytes)
{
    uint32_t type = bytes >= SHORT_MIN ? by_get16(frame + 12) : 0, ip, tcp;

    if (type != ETH_P_IP || frame[ETH_HLEN + 9] != IPPROTO_TCP)
        return type == ETH_P_ARP;
    ip = (frame[ETH_HLEN] & 15u) * 4;
    if (ETH_HLEN + ip + 20 > bytes)
        return false;
    tcp = (frame[ETH_HLEN + ip + 12] >> 4) * 4u;
    return by_get16(frame + ETH_HLEN + 2) == ip + tcp &&
           (frame[ETH_HLEN + ip + 13] & (TCP_FIN | TCP_RST)) == 0;
}

/* Adds a frame, or drops it if the queue is full. */
static void push(struct lab_wire *wire, const uint8_t *frame, uint32_t bytes, uint64_t now)
{
    struct queue *queue = &wire->queues[is_short(frame + PREFIX, bytes - PREFIX) ? 0 : 1];
    uint64_t length = bytes, zero = 0;

    if (bytes >= PREFIX + LAB_DATA_BYTES && wire->way->first_ns == 0)
        wire->way->first_ns = now;
    if (queue->queued + bytes > queue->limit) {
        wire->way->lost++;
        return;
    }
    if (!is_waiting(wire) && wire->due_ns + IDLE_NS < now)
        wire->due_ns = now - IDLE_NS;
    if (queue->tail + RECORD + bytes > queue->room - RECORD) {
        memcpy(queue->records + queue->tail, &zero, sizeof(zero)); /* the next one is at the beginning */
        queue->tail = 0;
    }
    memcpy(queue->records + queue->tail, &length, sizeof(length));
    memcpy(queue->records + queue->tail + RECORD, frame, bytes);
    queue->tail += ALIGNED(RECORD + bytes);
    queue->queued += bytes;
}

/* Takes the first frame of a queue that has one. It stays where it is until the next push. */
static struct iovec pull(struct queue *queue)
{
    uint64_t length;
    uint8_t *frame;

    memcpy(&length, queue->records + queue->head, sizeof(length));
    if (length == 0) {
        queue->head = 0;
        memcpy(&length, queue->records, sizeof(length));
    }
    frame = queue->records + queue->head + RECORD;
    queue->head += ALIGNED(RECORD + length);
    queue->queued -= length;
    return (struct iovec){frame, length};
}

/* ---- rate ---- */

/* Passes frames to the other end. A frame that the kernel does not take is lost. */
static void send_frames(struct lab_wire *wire, struct mmsghdr *messages, uint32_t count, uint64_t now)
{
    for (uint32_t done = 0; done < count;) {
        int sent = sendmmsg(wire->out, messages + done, count - done, MSG_DONTWAIT);

        if (sent < 0 && errno == EINTR)
            continue;
        if (sent <= 0) {
            wire->way->lost++;
            done++;
            continue;
        }
        for (int i = 0; i < sent; i++, done++) {
            wire->way->frames++;
            wire->way->bytes += messages[done].msg_len - PREFIX;
            if (messages[done].msg_len >= PREFIX + LAB_DATA_BYTES)
                wire->way->last_ns = now;
        }
    }
}

/* Sends the frames that are due, up to a batch. Returns whether more are due. */
static bool serve(struct lab_wire *wire, uint64_t now)
{
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];
    uint32_t count = 0;

    if (wire->due_ns + LATE_NS < now) {
        wire->way->late_ns += now - LATE_NS - wire->due_ns;
        wire->due_ns = now - LATE_NS;
    }
    while (is_waiting(wire) && wire->due_ns <= now && count < BATCH) {
        uint64_t cost;

        vectors[count] = pull(&wire->queues[wire->queues[0].queued > 0 ? 0 : 1]);
        cost = (vectors[count].iov_len - PREFIX) * SECOND_NS + wire->parts;
        messages[count] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[count], .msg_iovlen = 1}};
        count++;
        wire->due_ns += cost / wire->way->rate;
        wire->parts = cost % wire->way->rate;
    }
    send_frames(wire, messages, count, now);
    return is_waiting(wire) && wire->due_ns <= now;
}

/* Sends all frames that are due, and sets the timer for the next one. */
static void serve_all(struct lab_wires *wires)
{
    uint64_t now = now_ns(), next = UINT64_MAX;
    struct itimerspec time = {0};

    for (uint32_t i = 0; i < wires->count; i++) {
        struct lab_wire *wire = &wires->wires[i];

        while (is_waiting(wire) && serve(wire, now))
            ;
        if (is_waiting(wire) && wire->due_ns < next)
            next = wire->due_ns;
    }
    if (next == UINT64_MAX)
        next = 0;
    if (next == wires->timer_ns)
        return;
    wires->timer_ns = next;
    time.it_value.tv_sec = (time_t)(next / SECOND_NS);
    time.it_value.tv_nsec = (long)(next % SECOND_NS);
    timerfd_settime(wires->timer, TFD_TIMER_ABSTIME, &time, NULL);
}

/* Takes the frames that have entered a wire. */
static void receive(struct lab_wires *wires, uint32_t way)
{
    struct mmsghdr messages[BATCH];
    struct iovec vectors[BATCH];

    for (uint32_t i = 0; i < BATCH; i++) {
        vectors[i] = (struct iovec){wires->frames + (size_t)i * wires->frame_bytes, wires->frame_bytes};
        messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
    }
    for (uint32_t call = 0; call < CALLS; call++) {
        int count = recvmmsg(wires->sockets[way], messages, BATCH, MSG_DONTWAIT, NULL);
        uint64_t now = now_ns();

        for (int i = 0; i < count; i++)
            push(&wires->wires[way], wires->frames + (size_t)i * wires->frame_bytes, messages[i].msg_len,
                 now);
        if (count < (int)BATCH)
            break;
    }
}

/* ---- process ---- */

/* Opens a packet socket of one interface, in the namespace of this process. */
static int open_socket(uint32_t way)
{
    struct sockaddr_ll address = {.sll_family = AF_PACKET, .sll_protocol = __builtin_bswap16(ETH_P_ALL)};
    int on = 1, bytes = SOCKET_BYTES, fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    char name[16];

    lab_wire_name(way, name);
    address.sll_ifindex = (int)if_nametoindex(name);
    if (fd < 0 || address.sll_ifindex == 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) != 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) != 0 ||
        bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0) {
        fprintf(stderr, "banyan: lab: %s: %s\n", name, strerror(errno));
        return -1;
    }
    return fd;
}

static int open_wires(struct lab *lab, struct lab_wires *wires)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = UINT32_MAX};

    wires->count = 2 * lab->series->cable_count;
    wires->frame_bytes = (uint32_t)ALIGNED(PREFIX + lab->options.lower.mtu + LAB_HEADER_BYTES);
    wires->frames = by_alloc((size_t)BATCH * wires->frame_bytes, 1);
    wires->wires = by_alloc(wires->count, sizeof(*wires->wires));
    wires->sockets = by_alloc(wires->count, sizeof(*wires->sockets));
    wires->epoll = epoll_create1(EPOLL_CLOEXEC);
    wires->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (wires->epoll < 0 || wires->timer < 0 ||
        epoll_ctl(wires->epoll, EPOLL_CTL_ADD, wires->timer, &event) != 0)
        return -1;
    for (uint32_t w = 0; w < wires->count; w++) {
        wires->sockets[w] = open_socket(w);
        event.data.u32 = w;
        if (wires->sockets[w] < 0 || epoll_ctl(wires->epoll, EPOLL_CTL_ADD, wires->sockets[w], &event) != 0)
            return -1;
    }
    for (uint32_t w = 0; w < wires->count; w++)
        open_wire(&wires->wires[w], &lab->series->ways[w], wires->sockets[w ^ 1], wires->frame_bytes);
    return 0;
}

/*
 * The process of the wires, which the lab ends with a signal. A wire must not wait for a processor
 * as programs do: the process is in a real-time class if the kernel allows it. It sleeps whenever
 * no frame is due, and the kernel's limit for real-time processes protects the others.
 */
static int forward(struct lab *lab)
{
    static struct lab_wires wires; /* for the life of this process */
    struct epoll_event events[64];
    const struct timespec pause = {.tv_nsec = PAUSE_NS};

    if (lab_net_enter(lab->wires) != 0 || open_wires(lab, &wires) != 0) {
        fprintf(stderr, "banyan: lab: the wires cannot start: %s\n", strerror(errno));
        return BY_EXIT_ENVIRONMENT;
    }
    sched_setscheduler(0, SCHED_FIFO, &(struct sched_param){.sched_priority = 1});
    if (write(STDOUT_FILENO, "ready\n", 6) != 6)
        return BY_EXIT_ENVIRONMENT;
    for (;;) {
        int count = epoll_wait(wires.epoll, events, sizeof(events) / sizeof(events[0]), -1);

        for (int i = 0; i < count; i++) {
            uint64_t expired;

            if (events[i].data.u32 != UINT32_MAX)
                receive(&wires, events[i].data.u32);
            else if (read(wires.timer, &expired, sizeof(expired)) == sizeof(expired))
                wires.timer_ns = 0;
        }
        serve_all(&wires);
        nanosleep(&pause, NULL);
    }
}

static void note_ready(struct lab *lab, struct lab_process *process, const char *line)
{
    (void)lab;
    if (process->job == LAB_WIRES && strcmp(line, "ready") == 0)
        process->ready = true;
}

bool lab_wires_dead(struct lab *lab)
{
    for (uint32_t i = 0; i < lab->process_count; i++) {
        const struct lab_process *process = &lab->processes[i];
        char log[LAB_PATH + 64], text[512], end[32];

        if (process->job != LAB_WIRES || !process->ended || process->expected)
            continue;
        snprintf(log, sizeof(log), "%.480s/wires.log", lab->folder);
        lab_last_line(log, text, sizeof(text));
        lab_progress(lab, NULL);
        by_cli_fail(0, "lab: the wires ended (%s): %s", lab_process_end(process, end),
                    text[0] ? text : "they printed no output");
        snprintf(lab->error, sizeof(lab->error), "the wires ended");
        return true;
    }
    return false;
}

int lab_wires_start(struct lab *lab)
{
    char log[LAB_PATH + 64];
    struct lab_process *process;
    double deadline = lab_now() + LAB_READY_MS / 1e3;

    snprintf(log, sizeof(log), "%.480s/wires.log", lab->folder);
    process = lab_process_fork(lab, LAB_WIRES, "wires", log, forward);
    if (process == NULL)
        return BY_EXIT_ENVIRONMENT;
    while (!process->ready) {
        lab_process_poll(lab, 50, note_ready);
        if (lab_wires_dead(lab) || lab_stopping)
            return BY_EXIT_ENVIRONMENT;
        if (lab_now() > deadline)
            return by_cli_fail(BY_EXIT_ENVIRONMENT, "lab: the wires are not ready after 180 seconds");
    }
    return 0;
}
