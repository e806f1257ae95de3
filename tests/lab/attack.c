/*
 * lab-attack: what somebody with a raw socket on one cable can try against the jobs of a switch. He
 * knows the switch's table (a file) but for its keys, which this program does not look at, and sees
 * the packets of his own cable, or of another one given by its namespace. What he sends is counted
 * by the switch or by hosts; lab-attacks.sh compares.
 *
 *   lab-attack KIND --table FILE --iface IF [--job J] [--child C] [--as C] [--count N] [--seconds
 * S]
 *              [--see NAMESPACE:IF] [--former FILE]
 *
 * KIND is one of `kinds` below. --child: whose place is claimed; --as: whose address is given as
 * the source (by default that of the cable's own host). Packets go to the switch port at the other
 * end of IF's cable, or, when IF is the switch's own end, to the host. --former: a table that the
 * switch had before; what is sent is sealed under the job's key in it, as a host of that job kept
 * it. Prints how many were sent. Single-threaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "offload/base/bytes.h"
#include "offload/base/prng.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/seal.h"
#include "tests/lab/probe.h"

/* Source port of what we send, so that we know it again: nobody else looks at it. */
#define MARK       4444u
#define FRAME_MAX  1514u
#define SNIFF_MS   5000
#define BATCH      32u
#define PAYLOAD_AT (BY_FRAME_HEADER_BYTES + BY_WIRE_HEADER_BYTES)

struct attack {
    const struct attack_kind *kind;
    const char *iface, *see;
    unsigned job, child, count, seconds;
    int as; /* -1: the host of the cable */
    int out, in;
    uint8_t *image;
    struct by_image_header header;
    struct by_image_entry entry; /* the first of the job */
    struct by_image_job jobs;    /* the job */
    struct by_image_port port;   /* at the switch's end of our cable */
    int from_switch;             /* we are at that end */
    uint8_t frame[FRAME_MAX];
    size_t bytes;
    struct by_prng prng;
    bool is_former; /* a former tenant: with the keys that he had of the hop from the host to its switch */
    struct by_hop_keys former;
    struct by_siphash_key former_payload;
    unsigned cover;
};

struct attack_kind {
    const char *name;
    /* Makes the next frame to send in `attack->frame`. */
    void (*make)(struct attack *attack, unsigned number);
    int type; /* of the packets that are waited for on the cable that is seen; 0: none */
};

static void fail(const char *what)
{
    fprintf(stderr, "lab-attack: %s: %s\n", what, errno ? strerror(errno) : "no");
    exit(1);
}

/* ---- the switch's table ---- */

/* The image in a file, and its header. */
static uint8_t *read_image(const char *path, struct by_image_header *header)
{
    FILE *file = fopen(path, "rb");
    uint8_t *image = malloc(1 << 20);
    size_t bytes = file && image ? fread(image, 1, 1 << 20, file) : 0;

    if (by_image_check(image, bytes, NULL, NULL) != 0)
        fail(path);
    fclose(file);
    by_image_header(image, header);
    return image;
}

/* The keys of the hop from our child's host to the switch, as another table of the switch has them.
 */
static void read_former(struct attack *attack, const char *path)
{
    struct by_image_header header;
    uint8_t *image = read_image(path, &header);
    struct by_image_entry entry = {0};
    struct by_image_child child;
    struct by_image_key record;
    struct by_siphash_key key;

    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY] && entry.job != attack->job; i++)
        by_image_entry(image, i, &entry);
    if (entry.job != attack->job || attack->child >= entry.child_count ||
        !by_image_key_find(image, (uint16_t)attack->job, &record))
        fail("the former table has no key of the job");
    by_image_child(image, entry.first_child + attack->child, &child);
    by_siphash_key_read(&key, record.key);
    by_hop_keys_make(&key, child.node, header.node, 1, &attack->former);
    by_payload_key_make(&key, &attack->former_payload);
    attack->cover = record.cover;
    attack->is_former = true;
    free(image);
}

static void make_relayed(struct attack *attack, unsigned number);

static void find_job(struct attack *attack)
{
    uint32_t i;

    for (i = 0; i < attack->header.count[BY_SECTION_ENTRY]; i++) {
        by_image_entry(attack->image, i, &attack->entry);
        if (attack->entry.job == attack->job)
            break;
    }
    if (i == attack->header.count[BY_SECTION_ENTRY] && attack->kind->make != make_relayed)
        fail("no such job");
    for (i = 0; i < attack->header.count[BY_SECTION_JOB]; i++) {
        by_image_job(attack->image, i, &attack->jobs);
        if (attack->jobs.job == attack->job)
            break;
    }
}

/* Our cable, by the hardware address of our end. */
static void find_port(struct attack *attack)
{
    char path[128], text[64] = "";
    unsigned mac[6] = {0};
    uint8_t own[6];
    FILE *file;

    snprintf(path, sizeof(path), "/sys/class/net/%s/address", attack->iface);
    file = fopen(path, "r");
    if (!file || !fgets(text, sizeof(text), file) ||
        sscanf(text, "%x:%x:%x:%x:%x:%x", &mac[0], &mac[1], &mac[2], &mac[3], &mac[4], &mac[5]) != 6)
        fail(path);
    fclose(file);
    for (unsigned i = 0; i < 6; i++)
        own[i] = (uint8_t)mac[i];
    for (uint32_t i = 0; i < attack->header.count[BY_SECTION_PORT]; i++) {
        by_image_port(attack->image, i, &attack->port);
        attack->from_switch = memcmp(own, attack->port.own_mac, 6) == 0;
        if (attack->from_switch || memcmp(own, attack->port.peer_mac, 6) == 0)
            return;
    }
    errno = 0;
    fail("the cable is not in the table");
}

static struct by_image_child child_of(const struct attack *attack, unsigned child)
{
    struct by_image_child record = {.ip = attack->port.peer_ip, .udp_port = BY_UDP_PORT};

    if (child < attack->entry.child_count)
        by_image_child(attack->image, attack->entry.first_child + child, &record);
    return record;
}

/* ---- frames ---- */

static struct by_header header_of(struct attack *attack, unsigned number)
{
    return (struct by_header){.type = BY_TYPE_CONTRIB,
                              .child = (uint8_t)attack->child,
                              .op = BY_OP_SUM,
                              .dtype = BY_DTYPE_F32,
                              .mode = BY_MODE_FAST,
                              .job = attack->entry.job,
                              .tree = attack->entry.tree,
                              .gen = attack->jobs.gen,
                              .count = (uint16_t)(attack->entry.payload_max / 4),
                              .nleaf = 1,
                              .seq = number,
                              .witness = by_leaf_tag(attack->entry.job, (uint16_t)attack->child),
                              .optag = by_optag(1, BY_COLLECTIVE_ALLREDUCE, 0, 1u << 18)};
}

/* Puts Ethernet, IP and UDP around a packet of `bytes` that stands in the frame. */
static void wrap(struct attack *attack, size_t bytes)
{
    struct by_frame carrier = {.src_port = MARK, .dst_port = BY_UDP_PORT, .ecn = 2, .bytes = (uint16_t)bytes};

    if (attack->from_switch) {
        memcpy(carrier.src_mac, attack->port.own_mac, 6);
        memcpy(carrier.dst_mac, attack->port.peer_mac, 6);
        carrier.src_ip = attack->port.own_ip;
        carrier.dst_ip = attack->port.peer_ip;
        carrier.dst_port = child_of(attack, attack->child).udp_port;
    } else {
        memcpy(carrier.src_mac, attack->port.peer_mac, 6);
        memcpy(carrier.dst_mac, attack->port.own_mac, 6);
        carrier.src_ip = attack->as >= 0 ? child_of(attack, (unsigned)attack->as).ip : attack->port.peer_ip;
        carrier.dst_ip = attack->port.own_ip;
    }
    by_frame_build(&carrier, attack->frame);
    attack->bytes = BY_FRAME_HEADER_BYTES + bytes;
}

/* `header` with `bytes` of arbitrary payload whose psum is right. */
static void put_packet(struct attack *attack, struct by_header *header, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        attack->frame[PAYLOAD_AT + i] = (uint8_t)(i * 7 + header->seq);
    header->psum = by_psum(attack->frame + PAYLOAD_AT, bytes);
    if (attack->header.count[BY_SECTION_KEY] > 0)
        header->flags |= BY_FLAG_KEYED;
    by_header_encode(header, attack->frame + BY_FRAME_HEADER_BYTES);
    if (attack->is_former)
        by_header_seal(attack->frame + BY_FRAME_HEADER_BYTES, &attack->former.out,
                       by_payload_digest(&attack->former_payload, attack->cover, header->type,
                                         attack->frame + PAYLOAD_AT, (uint32_t)bytes));
    else if (header->flags & BY_FLAG_KEYED) /* a guess */
        by_put64(attack->frame + BY_FRAME_HEADER_BYTES + 32, by_prng_next(&attack->prng));
    wrap(attack, BY_WIRE_HEADER_BYTES + bytes);
}

/* What a relay of the job would pass on, from whose place we are not. */
static void make_relayed(struct attack *attack, unsigned number)
{
    struct by_image_relay relay = {0};
    struct by_header header = header_of(attack, number);
    struct by_frame carrier = {.src_port = MARK, .dst_port = BY_UDP_PORT, .ecn = 2};
    uint32_t i = 0;

    for (; i < attack->header.count[BY_SECTION_RELAY]; i++) {
        by_image_relay(attack->image, i, &relay);
        if (relay.job == attack->job)
            break;
    }
    if (i == attack->header.count[BY_SECTION_RELAY])
        fail("the table has no relay of the job");
    header.job = relay.job;
    header.tree = relay.tree;
    header.flags = BY_FLAG_NODATA;
    header.count = 0;
    put_packet(attack, &header, 0);
    memcpy(carrier.src_mac, attack->port.peer_mac, 6);
    memcpy(carrier.dst_mac, attack->port.own_mac, 6);
    carrier.src_ip = relay.src_ip;
    carrier.dst_ip = relay.dst_ip;
    carrier.bytes = BY_WIRE_HEADER_BYTES;
    by_frame_build(&carrier, attack->frame);
}

static void make_plain(struct attack *attack, unsigned number)
{
    struct by_header header = header_of(attack, number);

    put_packet(attack, &header, attack->entry.payload_max);
}

static void make_gen(struct attack *attack, unsigned number)
{
    struct by_header header = header_of(attack, number);

    header.gen--;
    put_packet(attack, &header, attack->entry.payload_max);
}

static void make_no_job(struct attack *attack, unsigned number)
{
    struct by_header header = header_of(attack, number);

    header.job = 777;
    put_packet(attack, &header, attack->entry.payload_max);
}

static void make_oversize(struct attack *attack, unsigned number)
{
    struct by_header header = header_of(attack, number);

    header.count = (uint16_t)(attack->entry.payload_max / 4 + 2);
    put_packet(attack, &header, attack->entry.payload_max + 8u);
}

static void make_cut(struct attack *attack, unsigned number)
{
    struct by_header header = header_of(attack, number);

    put_packet(attack, &header, attack->entry.payload_max / 8u * 4u);
}

static void make_stub(struct attack *attack, unsigned number)
{
    make_plain(attack, number);
    wrap(attack, BY_WIRE_HEADER_BYTES - 1);
}

/* ---- frames made of what is seen ---- */

/* Waits for a packet of our job and type on the cable that we see, into the frame; its header. */
static struct by_header capture(struct attack *attack)
{
    struct pollfd event = {.fd = attack->in, .events = POLLIN};
    struct by_header header;
    const uint8_t *payload;
    struct by_frame frame;

    while (poll(&event, 1, SNIFF_MS) == 1) {
        ssize_t got = recv(attack->in, attack->frame, sizeof(attack->frame), MSG_TRUNC);

        if (got <= 0 || (size_t)got > sizeof(attack->frame) ||
            by_frame_parse(attack->frame, (size_t)got, &frame) != 0 ||
            by_header_decode(frame.data, frame.bytes, &header, &payload) <= 0)
            continue;
        if (header.job != attack->job || header.type != attack->kind->type || frame.src_port == MARK)
            continue;
        attack->bytes = BY_FRAME_HEADER_BYTES + frame.bytes;
        by_put16(attack->frame + 34, MARK);
        return header;
    }
    errno = ETIMEDOUT;
    fail("no packet of the job is seen");
    return header;
}

static void make_replay(struct attack *attack, unsigned number)
{
    (void)number;
    capture(attack);
}

/* What came down goes up again. */
static void make_reflection(struct attack *attack, unsigned number)
{
    (void)number;
    capture(attack);
    wrap(attack, attack->bytes - BY_FRAME_HEADER_BYTES);
}

/* A contribution as the sender of the seen one might make it next: others' numbers, ahead of its
 * own. */
static void make_next(struct attack *attack, unsigned number)
{
    struct by_header header = capture(attack);

    header.seq += 1 + number % 64;
    put_packet(attack, &header, attack->bytes - PAYLOAD_AT);
}

/* The seen contribution, with its own tag, but for a bit of the payload and one of psum. */
static void make_altered(struct attack *attack, unsigned number)
{
    struct by_header header = capture(attack);
    uint8_t *data = attack->frame + PAYLOAD_AT;

    data[4 * (number % 16)] ^= 1;
    header.psum = by_psum(data, attack->bytes - PAYLOAD_AT);
    by_put32(attack->frame + BY_FRAME_HEADER_BYTES + 24, header.psum);
    if (!(header.flags & BY_FLAG_KEYED))
        by_header_encode(&header, attack->frame + BY_FRAME_HEADER_BYTES);
}

/* One word more, another less: psum and tag stay as they are. */
static void make_balanced(struct attack *attack, unsigned number)
{
    uint32_t word[2];
    uint8_t *data = attack->frame + PAYLOAD_AT + 8u * (number % 16);

    capture(attack);
    memcpy(word, data, sizeof(word));
    word[0]++;
    word[1]--;
    memcpy(data, word, sizeof(word));
}

/* Another child's contribution in the place of --child. */
static void make_elsewhere(struct attack *attack, unsigned number)
{
    struct by_header header = capture(attack);

    (void)number;
    attack->frame[BY_FRAME_HEADER_BYTES + 3] = (uint8_t)attack->child;
    header.child = (uint8_t)attack->child;
    if (!(header.flags & BY_FLAG_KEYED))
        by_header_encode(&header, attack->frame + BY_FRAME_HEADER_BYTES);
    wrap(attack, attack->bytes - BY_FRAME_HEADER_BYTES);
}

/* An answer to the seen contribution, as its parent might give it. */
static void make_result(struct attack *attack, unsigned number)
{
    struct by_header header = capture(attack);

    (void)number;
    header.type = BY_TYPE_RESULT;
    header.flags &= BY_FLAG_KEYED;
    header.nleaf = attack->jobs.rank_count;
    header.witness = 0;
    for (uint16_t r = 0; r < attack->jobs.rank_count; r++)
        header.witness += by_leaf_tag((uint16_t)attack->job, r);
    put_packet(attack, &header, attack->bytes - PAYLOAD_AT);
}

static const struct attack_kind kinds[] = {
    {"contribution", make_plain, 0},
    {"gen", make_gen, 0},
    {"no-job", make_no_job, 0},
    {"oversize", make_oversize, 0},
    {"cut", make_cut, 0},
    {"stub", make_stub, 0},
    {"relayed", make_relayed, 0},
    {"replay", make_replay, BY_TYPE_CONTRIB},
    {"reflection", make_reflection, BY_TYPE_RESULT},
    {"next", make_next, BY_TYPE_CONTRIB},
    {"altered", make_altered, BY_TYPE_CONTRIB},
    {"balanced", make_balanced, BY_TYPE_CONTRIB},
    {"elsewhere", make_elsewhere, BY_TYPE_CONTRIB},
    {"result", make_result, BY_TYPE_CONTRIB},
};
#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

/* ---- sending ---- */

/* A socket that sees IF of NAMESPACE (a path, or "" for ours). */
static int open_in(const char *namespace, const char *iface)
{
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), there = -1, fd;

    if (namespace[0]) {
        there = open(namespace, O_RDONLY | O_CLOEXEC);
        if (there < 0 || setns(there, CLONE_NEWNET) != 0)
            fail(namespace);
        close(there);
    }
    fd = probe_socket(iface);
    if (home < 0 || setns(home, CLONE_NEWNET) != 0)
        fail("namespace");
    close(home);
    return fd;
}

static void open_seen(struct attack *attack)
{
    char namespace[256] = "";
    const char *colon = attack->see ? strrchr(attack->see, ':') : NULL;

    if (attack->kind->type == 0)
        return;
    if (colon)
        snprintf(namespace, sizeof(namespace), "%.*s", (int)(colon - attack->see), attack->see);
    attack->in = open_in(namespace, colon ? colon + 1 : attack->iface);
}

static double seconds_now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* As many as fit, for --seconds. */
static unsigned flood(struct attack *attack)
{
    static uint8_t frames[BATCH][FRAME_MAX];
    double end = seconds_now() + attack->seconds;
    unsigned sent = 0;

    while (seconds_now() < end) {
        struct mmsghdr messages[BATCH] = {0};
        struct iovec vectors[BATCH];
        int count;

        for (unsigned i = 0; i < BATCH; i++) {
            attack->kind->make(attack, sent + i);
            memcpy(frames[i], attack->frame, attack->bytes);
            vectors[i] = (struct iovec){frames[i], attack->bytes};
            messages[i].msg_hdr.msg_iov = &vectors[i];
            messages[i].msg_hdr.msg_iovlen = 1;
        }
        count = sendmmsg(attack->out, messages, BATCH, 0);
        sent += count > 0 ? (unsigned)count : 0;
    }
    return sent;
}

static unsigned some(struct attack *attack)
{
    unsigned sent = 0;

    for (unsigned i = 0; i < attack->count; i++) {
        attack->kind->make(attack, i);
        while (send(attack->out, attack->frame, attack->bytes, 0) < 0)
            if (errno != ENOBUFS)
                fail("send");
        sent++;
        if (attack->kind->type == 0 && i % 16 == 15)
            usleep(500); /* none is lost before the switch has seen it */
    }
    return sent;
}

int main(int argc, char **argv)
{
    static const struct option options[] = {
        {"table", required_argument, NULL, 't'},  {"iface", required_argument, NULL, 'i'},
        {"job", required_argument, NULL, 'j'},    {"child", required_argument, NULL, 'c'},
        {"as", required_argument, NULL, 'a'},     {"count", required_argument, NULL, 'n'},
        {"see", required_argument, NULL, 's'},    {"seconds", required_argument, NULL, 'S'},
        {"former", required_argument, NULL, 'f'}, {NULL, 0, NULL, 0},
    };
    static struct attack attack = {.job = 1, .count = 200, .as = -1};
    const char *table = NULL, *former = NULL;
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        unsigned value = optarg ? (unsigned)strtoul(optarg, NULL, 10) : 0;

        switch (option) {
        case 't':
            table = optarg;
            break;
        case 'i':
            attack.iface = optarg;
            break;
        case 'j':
            attack.job = value;
            break;
        case 'c':
            attack.child = value;
            break;
        case 'a':
            attack.as = (int)value;
            break;
        case 'n':
            attack.count = value;
            break;
        case 's':
            attack.see = optarg;
            break;
        case 'S':
            attack.seconds = value;
            break;
        case 'f':
            former = optarg;
            break;
        default:
            return 2;
        }
    }
    for (size_t i = 0; i < KINDS && optind < argc; i++)
        if (strcmp(kinds[i].name, argv[optind]) == 0)
            attack.kind = &kinds[i];
    if (!attack.kind || !table || !attack.iface) {
        fputs("usage: lab-attack KIND --table FILE --iface IF [options]\n", stderr);
        return 2;
    }
    attack.image = read_image(table, &attack.header);
    if (former)
        read_former(&attack, former);
    find_job(&attack);
    find_port(&attack);
    attack.out = open_in("", attack.iface);
    open_seen(&attack);
    printf("%u\n", attack.seconds ? flood(&attack) : some(&attack));
    free(attack.image);
    return 0;
}
