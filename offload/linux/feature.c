/* Features by name; see feature.h. Source: linux/ethtool.h. Any thread. */
#include "offload/linux/feature.h"

#include <linux/ethtool.h>
#include <linux/if_vlan.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* Maximum features of a kernel (count); current kernels have some 60. */
#define FEATURES_MAX 256u

struct names {
    struct ethtool_gstrings head;
    char name[FEATURES_MAX][ETH_GSTRING_LEN];
};

static int ask(int fd, const char *interface, void *command)
{
    struct ifreq request = {.ifr_data = command};

    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", interface);
    return ioctl(fd, SIOCETHTOOL, &request);
}

/* Returns the number of a feature, and the count of 32-bit words for all features; -1 when it does
 * not exist. */
static int find(int fd, const char *interface, const char *name, uint32_t *words)
{
    struct {
        struct ethtool_sset_info info;
        uint32_t count;
    } set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = 1ull << ETH_SS_FEATURES}};
    struct names *names;
    int found = -1;

    if (ask(fd, interface, &set) != 0 || set.info.sset_mask == 0 || set.count > FEATURES_MAX)
        return -1;
    names = calloc(1, sizeof(*names));
    if (names == NULL)
        return -1;
    names->head =
        (struct ethtool_gstrings){.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_FEATURES, .len = set.count};
    if (ask(fd, interface, names) == 0)
        for (uint32_t i = 0; i < set.count && found < 0; i++)
            if (strncmp(names->name[i], name, ETH_GSTRING_LEN) == 0)
                found = (int)i;
    free(names);
    *words = (set.count + 31) / 32;
    return found;
}

int by_feature_get(int fd, const char *interface, const char *name)
{
    struct {
        struct ethtool_gfeatures head;
        struct ethtool_get_features_block block[FEATURES_MAX / 32];
    } all = {.head = {.cmd = ETHTOOL_GFEATURES}};
    int index = find(fd, interface, name, &all.head.size);

    if (index < 0 || ask(fd, interface, &all) != 0)
        return -1;
    return all.block[index / 32].active >> index % 32 & 1;
}

int by_feature_set(int fd, const char *interface, const char *name, bool on)
{
    struct {
        struct ethtool_sfeatures head;
        struct ethtool_set_features_block block[FEATURES_MAX / 32];
    } all = {.head = {.cmd = ETHTOOL_SFEATURES}};
    int index = find(fd, interface, name, &all.head.size);

    if (index < 0)
        return -1;
    all.block[index / 32].valid = 1u << index % 32;
    all.block[index / 32].requested = on ? 1u << index % 32 : 0;
    return ask(fd, interface, &all) >= 0 ? 0 : -1;
}

bool by_feature_virtual(int fd, const char *interface)
{
    static const char *const none[] = {"", "N/A", "tun", "tap"}; /* bus names of virtual devices */
    struct ethtool_drvinfo info = {.cmd = ETHTOOL_GDRVINFO};

    if (ask(fd, interface, &info) != 0)
        return true;
    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        if (strcmp(info.bus_info, none[i]) == 0)
            return true;
    return false;
}

unsigned by_feature_vlan(int fd, const char *interface)
{
    struct vlan_ioctl_args request = {.cmd = GET_VLAN_VID_CMD};

    snprintf(request.device1, sizeof(request.device1), "%s", interface);
    return ioctl(fd, SIOCGIFVLAN, &request) == 0 && request.u.VID > 0 ? (unsigned)request.u.VID : 0;
}
