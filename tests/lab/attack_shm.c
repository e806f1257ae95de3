/*
 * What a process can try at the socket of a switch that shares memory: attack_shm KIND SOCKET
 * UDP-PORT [TABLE]. squat: claims the port without a proof. huge: hands over a huge page that
 * nothing has reserved, and has it read. deaf: rings without end and never takes a bell. keys:
 * looks for the keys of TABLE in what it can map. Prints what the switch answered. Exit status 0:
 * let in (keys: and no key was found), 1: refused, or a key was found, 3: environment.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "offload/table/image.h"
#include "offload/wire/shm.h"

#define ROOM  1408u
#define BYTES (2u << 20)
#define RINGS 100000u

static _Noreturn void die(const char *what)
{
    fprintf(stderr, "attack_shm: %s: %s\n", what, strerror(errno));
    exit(3);
}

static int sealed(uint64_t bytes, unsigned flags)
{
    int fd = memfd_create("attack", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);

    if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        die("memfd");
    return fd;
}

static int greet(const char *path, uint16_t udp_port, int cable, int memory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct by_shm_challenge challenge;
    struct by_shm_hello hello = {.magic = BY_SHM_MAGIC,
                                 .version = BY_SHM_VERSION,
                                 .room_bytes = ROOM,
                                 .memory_bytes = BYTES,
                                 .udp_port = udp_port};
    const int fds[BY_SHM_HELLO_FDS] = {cable, memory};
    uint8_t control[CMSG_SPACE(sizeof fds)] __attribute__((aligned(8))) = {0};
    struct iovec piece = {&hello, sizeof hello};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    struct cmsghdr *header = CMSG_FIRSTHDR(&message);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

    snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
    if (fd < 0 || connect(fd, (const struct sockaddr *)&address, sizeof address) != 0 ||
        recv(fd, &challenge, sizeof challenge, 0) != (ssize_t)sizeof challenge)
        die(path);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(header), fds, sizeof fds);
    if (sendmsg(fd, &message, MSG_NOSIGNAL) != (ssize_t)sizeof hello)
        die("hello");
    return fd;
}

/* The answer; the switch's memory is in *fd. */
static int hear(int socket, struct by_shm_welcome *welcome, int *fd)
{
    uint8_t control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
    struct iovec piece = {welcome, sizeof *welcome};
    struct msghdr message = {
        .msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};

    if (recvmsg(socket, &message, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *welcome)
        die("no answer");
    if (welcome->status == 0 && CMSG_FIRSTHDR(&message))
        memcpy(fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof *fd);
    puts(welcome->status == 0 ? "let in" : welcome->text);
    return welcome->status == 0 ? 0 : 1;
}

/* A packet whose payload is the first of the memory's. */
static void point(struct by_shm_cable *cable, int socket)
{
    cable->up.packet[0] =
        (struct by_shm_packet){.place = BY_SHM_THERE, .payload_bytes = 1024, .udp_port = 9, .direct = 1};
    __atomic_store_n(&cable->up.tail, 1, __ATOMIC_RELEASE);
    send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static int find_keys(const char *table, int fd)
{
    static uint8_t image[1 << 20];
    struct by_image_header header;
    struct by_image_key key;
    struct stat stat;
    FILE *file = fopen(table, "re");
    uint8_t *memory;

    if (!file || fread(image, 1, sizeof image, file) < BY_IMAGE_HEADER_BYTES || fstat(fd, &stat) != 0)
        die(table);
    fclose(file);
    memory = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_SHARED, fd, 0);
    by_image_header(image, &header);
    if (memory == MAP_FAILED || header.count[BY_SECTION_KEY] == 0)
        die("no keys to look for");
    for (uint32_t i = 0; i < header.count[BY_SECTION_KEY]; i++) {
        by_image_key(image, i, &key);
        if (memmem(memory, (size_t)stat.st_size, key.key, sizeof key.key))
            return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    int huge = argc > 3 && strcmp(argv[1], "huge") == 0, memory_fd = -1, socket, status;
    struct by_shm_welcome welcome = {0};
    struct by_shm_cable *cable;
    int cable_fd;

    if (argc < 4)
        return 2;
    cable_fd = sealed(by_shm_bytes(ROOM), 0);
    cable = mmap(NULL, by_shm_bytes(ROOM), PROT_READ | PROT_WRITE, MAP_SHARED, cable_fd, 0);
    if (cable == MAP_FAILED)
        die("cable");
    socket = greet(argv[2], (uint16_t)atoi(argv[3]), cable_fd, sealed(BYTES, huge ? MFD_HUGETLB : 0));
    status = hear(socket, &welcome, &memory_fd);
    if (status == 0 && huge)
        point(cable, socket);
    for (unsigned i = 0; status == 0 && strcmp(argv[1], "deaf") == 0 && i < RINGS; i++)
        send(socket, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (status == 0 && strcmp(argv[1], "keys") == 0 && argc > 4)
        status = find_keys(argv[4], memory_fd);
    return status;
}
