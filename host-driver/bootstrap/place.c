/* The addresses at which rank 0 listens, as a text that any launcher can carry; see bootstrap.h. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "offload/base/bytes.h"
#include "offload/base/errors.h"

#define VERSION    1u
#define HEAD_BYTES 12u /* version, count, port, machine */
#define BYTES_MAX  (HEAD_BYTES + 5u * BY_PLACE_MAX)

_Static_assert(2 * BYTES_MAX < BY_PLACE_TEXT, "a place fits its text");

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325) /* FNV-1a */
#define HASH_TIMES UINT64_C(0x100000001b3)

bool by_place_machine(uint64_t *machine)
{
    uint64_t hash = HASH_BEGIN;
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    bool known = file != NULL;
    struct stat space = {0};
    int c;

    while (file != NULL && (c = getc(file)) != EOF)
        hash = (hash ^ (uint8_t)c) * HASH_TIMES;
    if (file != NULL)
        fclose(file);
    if (stat("/proc/self/ns/net", &space) == 0)
        hash = (hash ^ space.st_ino) * HASH_TIMES;
    else
        known = false;
    *machine = hash;
    return known;
}

/* A user's number means the same user within one user namespace only; a kernel without these has
 * one. */
bool by_place_space(uint64_t *space)
{
    struct stat users = {0};
    bool known = by_place_machine(space);

    (void)stat("/proc/self/ns/user", &users);
    *space = (*space ^ users.st_ino) * HASH_TIMES;
    *space = (*space ^ geteuid()) * HASH_TIMES;
    return known;
}

/* Adds the addresses of interfaces that are up, and running or not. */
static void add_addresses(struct by_bootstrap_place *place, const struct ifaddrs *all, bool running)
{
    for (const struct ifaddrs *one = all; one != NULL && place->count < BY_PLACE_MAX; one = one->ifa_next) {
        struct sockaddr_in address, mask;

        if (one->ifa_addr == NULL || one->ifa_addr->sa_family != AF_INET || one->ifa_netmask == NULL ||
            !(one->ifa_flags & IFF_UP) || (one->ifa_flags & IFF_LOOPBACK) ||
            ((one->ifa_flags & IFF_RUNNING) != 0) != running)
            continue;
        memcpy(&address, one->ifa_addr, sizeof(address));
        memcpy(&mask, one->ifa_netmask, sizeof(mask));
        place->ip[place->count] = ntohl(address.sin_addr.s_addr);
        place->bits[place->count++] = (uint8_t)__builtin_popcount(mask.sin_addr.s_addr);
    }
}

void by_place_here(struct by_bootstrap_place *place, uint16_t port)
{
    struct ifaddrs *all = NULL;

    *place = (struct by_bootstrap_place){.port = port};
    by_place_machine(&place->machine);
    if (getifaddrs(&all) != 0)
        return;
    add_addresses(place, all, true);
    /* Linux reports an interface as running up to a second after it has its carrier. */
    add_addresses(place, all, false);
    freeifaddrs(all);
}

void by_place_write(const struct by_bootstrap_place *place, char text[BY_PLACE_TEXT])
{
    uint8_t bytes[BYTES_MAX] = {VERSION, place->count};
    size_t size = HEAD_BYTES + (size_t)5 * place->count;

    by_put16(bytes + 2, place->port);
    by_put64(bytes + 4, place->machine);
    for (uint32_t i = 0; i < place->count; i++) {
        by_put32(bytes + HEAD_BYTES + 5 * i, place->ip[i]);
        bytes[HEAD_BYTES + 5 * i + 4] = place->bits[i];
    }
    for (size_t i = 0; i < size; i++)
        snprintf(text + 2 * i, 3, "%02x", bytes[i]);
}

static int digit_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int by_place_read(const char *text, struct by_bootstrap_place *place)
{
    uint8_t bytes[BYTES_MAX] = {0};
    size_t length = strnlen(text, BY_PLACE_TEXT);

    if (length % 2 != 0 || length < 2 * HEAD_BYTES || length > 2 * BYTES_MAX)
        return BY_EFORMAT;
    for (size_t i = 0; i < length / 2; i++) {
        int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

        if (high < 0 || low < 0)
            return BY_EFORMAT;
        bytes[i] = (uint8_t)(high << 4 | low);
    }
    *place = (struct by_bootstrap_place){
        .count = bytes[1], .port = by_get16(bytes + 2), .machine = by_get64(bytes + 4)};
    if (bytes[0] != VERSION || place->count > BY_PLACE_MAX || place->port == 0 ||
        length != 2 * (HEAD_BYTES + (size_t)5 * place->count))
        return BY_EFORMAT;
    for (uint32_t i = 0; i < place->count; i++) {
        place->ip[i] = by_get32(bytes + HEAD_BYTES + 5 * i);
        place->bits[i] = bytes[HEAD_BYTES + 5 * i + 4];
        if (place->bits[i] > 32)
            return BY_EFORMAT;
    }
    return 0;
}

/* Whether `here` has this address, or one in its network. */
static bool is_own(const struct by_bootstrap_place *here, uint32_t ip)
{
    for (uint32_t i = 0; i < here->count; i++)
        if (here->ip[i] == ip)
            return true;
    return false;
}

static bool is_near(const struct by_bootstrap_place *here, uint32_t ip, uint8_t bits)
{
    uint32_t mask = bits == 0 ? 0 : UINT32_MAX << (32 - bits);

    for (uint32_t i = 0; i < here->count; i++)
        if (((here->ip[i] ^ ip) & mask) == 0)
            return true;
    return false;
}

uint32_t by_place_order(const struct by_bootstrap_place *place, const struct by_bootstrap_place *here,
                        uint32_t ip[BY_PLACE_MAX + 1])
{
    bool same = place->machine == here->machine;
    uint32_t count = 0;

    if (same)
        ip[count++] = INADDR_LOOPBACK;
    for (int near = 1; near >= 0; near--)
        for (uint32_t i = 0; i < place->count; i++)
            if ((same || !is_own(here, place->ip[i])) &&
                is_near(here, place->ip[i], place->bits[i]) == (near == 1))
                ip[count++] = place->ip[i];
    return count;
}
