/* Implements link_rig.h: the host's end of a port that shares memory. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "offload/base/bytes.h"
#include "offload/base/errors.h"
#include "offload/reduce/reduce.h"
#include "offload/wire/seal.h"
#include "tests/unit/dataplane/link_rig.h"

const struct star link_star = {.hosts = HOSTS, .trees = 1, .window = 8, .payload_max = PAYLOAD, .mtu = 1500};
char link_paths[HOSTS][64];

struct by_shell *link_open_shell(void)
{
    struct by_port_spec specs[HOSTS];
    struct by_shell_config config = {.name = "test",
                                     .ports = specs,
                                     .port_count = HOSTS,
                                     .driver = BY_DRIVER_AUTO,
                                     .slot_count = 8,
                                     .payload_max = PAYLOAD,
                                     .payload_limit = PAYLOAD,
                                     .entry_count = 1,
                                     .relay_count = 1,
                                     .image_bytes_max = 1 << 16,
                                     .control_fd = -1};
    struct by_shell *shell;

    for (unsigned i = 0; i < HOSTS; i++) {
        snprintf(link_paths[i], sizeof link_paths[i], "/tmp/banyan-link-%ld.%u", (long)getpid(), i);
        specs[i] = (struct by_port_spec){.kind = BY_PORT_SHM, .text = link_paths[i]};
    }
    assert_int_equal(by_shell_open(&shell, &config), 0);
    memory_load(shell, &link_star);
    return shell;
}

void link_serve(struct by_shell *shell)
{
    for (unsigned i = 0; i < HOSTS; i++)
        by_link_serve(shell->ports[i].link);
}

int link_sealed(const char *name, uint64_t bytes, int seals)
{
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, (off_t)bytes), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* Returns a memfd of one huge page that is not reserved. */
int link_huge_file(int seals)
{
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);

    assert_true(fd >= 0);
    assert_int_equal(ftruncate(fd, HUGE_BYTES), 0);
    assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

bool link_huge;
/* Answers the challenge in the hello; NULL: no answer. */
void (*link_prover)(const struct dataplane_link_end *end, struct by_shm_hello *hello);
/* Connects and sends a hello with `count` descriptors. Returns the answer's status, or 1 if there
 * is none. */
int link_greet(struct by_shell *shell, struct dataplane_link_end *end, unsigned host,
               struct by_shm_hello *hello, unsigned count, int seals)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct by_shm_welcome welcome = {0};
    int fds[BY_SHM_HELLO_FDS];
    uint8_t control[CMSG_SPACE(sizeof fds)] __attribute__((aligned(8))) = {0};
    struct iovec piece = {hello, sizeof *hello};
    struct msghdr message = {.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control};
    struct cmsghdr *header;

    memset(end, 0, sizeof *end);
    snprintf(address.sun_path, sizeof address.sun_path, "%s", link_paths[host]);
    end->socket = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(end->socket, (struct sockaddr *)&address, sizeof address), 0);
    end->cable_fd = link_sealed("cable", by_shm_bytes(PAYLOAD), seals);
    end->memory_fd = link_huge ? link_huge_file(seals) : link_sealed("memory", MEMORY, seals);
    end->cable = mmap(NULL, by_shm_bytes(PAYLOAD), PROT_READ | PROT_WRITE, MAP_SHARED, end->cable_fd, 0);
    end->memory =
        mmap(NULL, MEMORY, PROT_READ | PROT_WRITE, link_huge ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED,
             link_huge ? -1 : end->memory_fd, 0);
    assert_true(end->cable != MAP_FAILED && end->memory != MAP_FAILED);
    link_serve(shell);
    assert_int_equal(recv(end->socket, &end->challenge, sizeof end->challenge, MSG_DONTWAIT),
                     sizeof end->challenge);
    if (link_prover)
        link_prover(end, hello);
    fds[0] = end->cable_fd;
    fds[1] = end->memory_fd;
    message.msg_controllen = CMSG_SPACE(count * sizeof(int));
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(count * sizeof(int));
    memcpy(CMSG_DATA(header), fds, count * sizeof(int));
    assert_int_equal(sendmsg(end->socket, &message, 0), sizeof *hello);
    link_serve(shell);
    link_serve(shell);
    message.msg_controllen = sizeof control;
    piece = (struct iovec){&welcome, sizeof welcome};
    if (recvmsg(end->socket, &message, MSG_DONTWAIT) != (ssize_t)sizeof welcome)
        return 1;
    header = CMSG_FIRSTHDR(&message);
    if (welcome.status == 0) {
        int fd;

        assert_non_null(header);
        memcpy(&fd, CMSG_DATA(header), sizeof fd);
        end->there_bytes = welcome.memory_bytes;
        end->there = mmap(NULL, welcome.memory_bytes, PROT_READ, MAP_SHARED, fd, 0);
        assert_true(end->there != MAP_FAILED);
        /* The memory must be read-only. */
        assert_true(mmap(NULL, welcome.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) ==
                    MAP_FAILED);
        close(fd);
    }
    end->sender.queue = &end->cable->up;
    end->receiver.queue = &end->cable->down;
    return welcome.status;
}

void link_leave(struct dataplane_link_end *end)
{
    close(end->socket);
    close(end->cable_fd);
    close(end->memory_fd);
    munmap(end->cable, by_shm_bytes(PAYLOAD));
    munmap(end->memory, MEMORY);
    if (end->there)
        munmap((void *)(uintptr_t)end->there, end->there_bytes);
}

struct by_shm_hello link_hello(void)
{
    return (struct by_shm_hello){.magic = BY_SHM_MAGIC,
                                 .version = BY_SHM_VERSION,
                                 .room_bytes = PAYLOAD,
                                 .memory_bytes = MEMORY,
                                 .udp_port = BY_UDP_PORT};
}

void link_join(struct by_shell *shell, struct dataplane_link_end *end, unsigned host)
{
    struct by_shm_hello words = link_hello();

    assert_int_equal(link_greet(shell, end, host, &words, BY_SHM_HELLO_FDS, F_SEAL_SHRINK), 0);
}

/* Host `host` contributes its values for chunk `seq`. The payload is in the host's own memory at
 * offset `at`. Without `summed` the packet's psum is wrong, and the slot is marked as having
 * none. */
void link_give_summed(struct dataplane_link_end *end, unsigned host, uint32_t seq, uint64_t at, bool summed)
{
    uint8_t packet[2048];
    size_t bytes = star_contribution(&link_star, host, 0, seq, COUNT, packet);
    struct by_shm_packet *slot = by_shm_slot(&end->sender);
    struct by_header header;
    const uint8_t *payload;

    assert_non_null(slot);
    assert_true(by_header_decode(packet, (uint32_t)bytes, &header, &payload) >= 0);
    header.psum += !summed;
    by_header_encode(&header, packet);
    memset(slot, 0, sizeof *slot);
    slot->src_ip = star_host_ip(host);
    slot->dst_ip = star_port_ip(host);
    slot->udp_port = BY_UDP_PORT;
    slot->payload_bytes = (uint16_t)(bytes - BY_WIRE_HEADER_BYTES);
    slot->direct = !summed;
    slot->place = BY_SHM_THERE;
    slot->at = at;
    memcpy(slot->header, packet, BY_WIRE_HEADER_BYTES);
    memcpy(end->memory + at % (MEMORY / 2), packet + BY_WIRE_HEADER_BYTES, slot->payload_bytes);
    by_shm_put(&end->sender);
    by_shm_publish(&end->sender);
}

void link_give(struct dataplane_link_end *end, unsigned host, uint32_t seq, uint64_t at)
{
    link_give_summed(end, host, seq, at, true);
}

/* The next result must be that of chunk `seq` and lie in the engine's memory. */
void link_take_result(struct dataplane_link_end *end, uint32_t seq)
{
    const struct by_shm_packet *packet = by_shm_take(&end->receiver);
    int32_t value;

    assert_non_null(packet);
    assert_int_equal(packet->place, BY_SHM_THERE);
    assert_int_equal(packet->payload_bytes, 4 * COUNT);
    assert_true(packet->at + packet->payload_bytes <= end->there_bytes);
    for (unsigned k = 0; k < COUNT; k++) {
        memcpy(&value, end->there + packet->at + 4 * k, 4);
        assert_int_equal(value, star_sum(&link_star, seq, k));
    }
}

unsigned link_references(struct by_shell *shell, uint32_t seq)
{
    struct by_bank_view view;

    assert_int_equal(by_engine_bank(by_shell_engine(shell), 0, seq % 8, seq / 8 & 1, &view), 0);
    return view.refs;
}
