/* The network interfaces that the plugin offers; see device.h. Any thread. */
#include "host-driver/plugin/nccl/device.h"

#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/plugin/nccl/core.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* NCCL keeps names of devices, so a device that was found once keeps its place. */
static struct by_nccl_device devices[BY_NCCL_DEVICES_MAX];
static int device_count;

/* 1 if the list, whose names are separated by commas, is empty or has the name. */
static int is_listed(const char *list, const char *name)
{
    size_t bytes = strlen(name);

    if (*list == 0)
        return 1;
    for (const char *at = list; *at != 0; at += *at == ',') {
        size_t length = strcspn(at, ",");

        if (length == bytes && memcmp(at, name, bytes) == 0)
            return 1;
        at += length;
    }
    return 0;
}

static int is_usable(const struct ifaddrs *entry, const char *list)
{
    if (entry->ifa_addr == NULL || !(entry->ifa_flags & IFF_UP) || !is_listed(list, entry->ifa_name))
        return 0;
    if (*list == 0 && (entry->ifa_flags & IFF_LOOPBACK))
        return 0;
    if (entry->ifa_addr->sa_family == AF_INET)
        return 1;
    /* a link-local address needs a scope, which differs between hosts */
    return entry->ifa_addr->sa_family == AF_INET6 &&
           !IN6_IS_ADDR_LINKLOCAL(&((const struct sockaddr_in6 *)(const void *)entry->ifa_addr)->sin6_addr);
}

static void describe(struct by_nccl_device *device)
{
    char path[64], real[PATH_MAX], host[64] = "";
    FILE *file;
    int speed = 0;

    snprintf(path, sizeof(path), "/sys/class/net/%s/device", device->name);
    if (realpath(path, real) != NULL && strlen(real) < sizeof(device->pci_path))
        snprintf(device->pci_path, sizeof(device->pci_path), "%.*s", (int)sizeof(device->pci_path) - 1, real);
    snprintf(path, sizeof(path), "/sys/class/net/%s/speed", device->name);
    file = fopen(path, "re");
    if (file != NULL) {
        if (fscanf(file, "%d", &speed) != 1)
            speed = 0;
        fclose(file);
    }
    /* interfaces without a known speed report -1, or none */
    device->speed_mbps = speed > 0 ? speed : 10000;
    gethostname(host, sizeof(host) - 1);
    device->guid = 0xcbf29ce484222325u; /* FNV-1a of the host's and the interface's name */
    for (const char *at = host; *at != 0; at++)
        device->guid = (device->guid ^ (unsigned char)*at) * 0x100000001b3u;
    for (const char *at = device->name; *at != 0; at++)
        device->guid = (device->guid ^ (unsigned char)*at) * 0x100000001b3u;
}

static struct by_nccl_device *place_of(const char *name)
{
    for (int i = 0; i < device_count; i++)
        if (strcmp(devices[i].name, name) == 0)
            return &devices[i];
    if (device_count == BY_NCCL_DEVICES_MAX)
        return NULL;
    return &devices[device_count];
}

/* An IPv4 address is preferred where an interface has both; the first of a family is used. */
static void add(const struct ifaddrs *entry)
{
    struct by_nccl_device *device = place_of(entry->ifa_name);
    int family = entry->ifa_addr->sa_family;

    if (device == NULL)
        return;
    if (device == &devices[device_count]) {
        snprintf(device->name, sizeof(device->name), "%s", entry->ifa_name);
        describe(device);
        device_count++;
    } else if (device->address.ss_family == AF_INET || family != AF_INET) {
        return;
    }
    memset(&device->address, 0, sizeof(device->address));
    memcpy(&device->address, entry->ifa_addr,
           family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
    if (family == AF_INET)
        ((struct sockaddr_in *)&device->address)->sin_port = 0;
    else
        ((struct sockaddr_in6 *)&device->address)->sin6_port = 0;
}

int by_nccl_devices_find(void)
{
    struct by_nccl_settings settings = by_nccl_settings();
    struct ifaddrs *all;
    int count;

    if (by_nccl_device_count() > 0)
        return BY_NCCL_OK;
    if (getifaddrs(&all) != 0)
        return by_nccl_fail(BY_NCCL_SYSTEM, "the network interfaces cannot be listed");
    pthread_mutex_lock(&lock);
    for (const struct ifaddrs *entry = all; entry != NULL; entry = entry->ifa_next)
        if (is_usable(entry, settings.interface))
            add(entry);
    count = device_count;
    pthread_mutex_unlock(&lock);
    freeifaddrs(all);
    if (count > 0)
        return BY_NCCL_OK;
    if (settings.interface[0] != 0)
        return by_nccl_fail(
            BY_NCCL_USAGE,
            "BANYAN_NCCL_INTERFACE is '%s', and no such interface is up with an address; `ip -br "
            "address` lists them",
            settings.interface);
    return by_nccl_fail(BY_NCCL_SYSTEM,
                        "no interface except the loopback interface is up with an address; name "
                        "one in BANYAN_NCCL_INTERFACE");
}

int by_nccl_device_count(void)
{
    int count;

    pthread_mutex_lock(&lock);
    count = device_count;
    pthread_mutex_unlock(&lock);
    return count;
}

const struct by_nccl_device *by_nccl_device_at(int index)
{
    return index >= 0 && index < by_nccl_device_count() ? &devices[index] : NULL;
}
