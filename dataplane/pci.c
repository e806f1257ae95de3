/* Implements pci.h. */
#include "dataplane/pci.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"

#define PATH 512
/* Name of a driver or of a group (bytes). */
#define NAME 64

/* Drivers through which DPDK reaches a card; those of NVIDIA and Microsoft stay bound to it. */
static const char *const usable[] = {"vfio-pci",  "uio_pci_generic", "igb_uio",
                                     "mlx4_core", "mlx5_core",       "mana"};

static bool is_network(const char *root, const char *address)
{
    char path[PATH], class[16] = "";
    FILE *file;

    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/class", root, address);
    file = fopen(path, "r");
    if (!file)
        return false;
    if (!fgets(class, sizeof class, file))
        class[0] = 0;
    fclose(file);
    return strncmp(class, "0x02", 4) == 0;
}

/* Lists the existing network cards, for an error text. */
static void list_cards(const char *root, char *text, size_t bytes)
{
    char path[PATH];
    size_t used = 0;
    DIR *dir;

    snprintf(path, sizeof path, "%s/sys/bus/pci/devices", root);
    snprintf(text, bytes, "none");
    dir = opendir(path);
    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));)
        if (entry->d_name[0] != '.' && is_network(root, entry->d_name) &&
            used + strlen(entry->d_name) + 3 < bytes)
            used += (size_t)snprintf(text + used, bytes - used, "%s%s", used ? ", " : "", entry->d_name);
    closedir(dir);
}

/* Returns the name of what the link `what` of a device points to; empty without the link. */
static void read_link(const char *root, const char *address, const char *what, char name[NAME])
{
    char path[PATH], target[PATH];
    ssize_t length;
    const char *slash;

    name[0] = 0;
    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s/%s", root, address, what);
    length = readlink(path, target, sizeof target - 1);
    if (length <= 0)
        return;
    target[length] = 0;
    slash = strrchr(target, '/');
    snprintf(name, NAME, "%.*s", NAME - 1, slash ? slash + 1 : target);
}

static bool is_usable(const char *driver)
{
    for (unsigned i = 0; i < sizeof usable / sizeof usable[0]; i++)
        if (strcmp(driver, usable[i]) == 0)
            return true;
    return false;
}

/* vfio gives a group to a process only if no other device of the group has a driver of the
 * kernel. */
static int check_neighbours(const char *root, const char *address, const char *group)
{
    char path[PATH], driver[NAME];
    int result = 0;
    DIR *dir;

    snprintf(path, sizeof path, "%s/sys/kernel/iommu_groups/%s/devices", root, group);
    dir = opendir(path);
    if (!dir)
        return 0;
    for (struct dirent *entry; result == 0 && (entry = readdir(dir));) {
        if (entry->d_name[0] == '.' || strcmp(entry->d_name, address) == 0)
            continue;
        read_link(root, entry->d_name, "driver", driver);
        if (driver[0] == 0 || strcmp(driver, "pcieport") == 0 || strncmp(driver, "vfio", 4) == 0)
            continue;
        by_say(
            "--pci %s: device %s is in the same IOMMU group (%s) and bound to %s: bind it to vfio-pci too, "
            "or to no driver",
            address, entry->d_name, group, driver);
        result = BY_EIO;
    }
    closedir(dir);
    return result;
}

/* Opens the group, as DPDK will. */
static int check_group(const char *path, const char *address, const char *group)
{
    int fd = open(path, O_RDWR | O_CLOEXEC);

    if (fd >= 0) {
        close(fd);
        return 0;
    }
    if (errno == EBUSY) {
        by_say("--pci %s: another process uses its IOMMU group (%s), and vfio gives a group to one process: "
               "`fuser -v /dev/vfio/%s` names it; end it, or use another card",
               address, group, group);
        return BY_EIO;
    }
    by_say("--pci %s: cannot use /dev/vfio/%s (%s): run as root, or give your group this file (and raise "
           "`ulimit -l`)",
           address, group, strerror(errno));
    return errno == EACCES || errno == EPERM ? BY_EPERM : BY_EIO;
}

static int check_vfio(const char *root, const char *address)
{
    char group[NAME], path[PATH];
    int result;

    read_link(root, address, "iommu_group", group);
    if (group[0] == 0) {
        by_say("--pci %s: no IOMMU protects it, and vfio requires one: boot with intel_iommu=on or "
               "amd_iommu=on; where there is none, `echo 1 "
               ">/sys/module/vfio/parameters/enable_unsafe_noiommu_mode` before vfio-pci is bound",
               address);
        return BY_EIO;
    }
    snprintf(path, sizeof path, "%s/dev/vfio/%s", root, group);
    if (access(path, F_OK) != 0)
        snprintf(path, sizeof path, "%s/dev/vfio/noiommu-%s", root, group);
    result = check_group(path, address, group);
    return result != 0 ? result : check_neighbours(root, address, group);
}

int by_pci_check(const char *root, const char *address)
{
    char path[PATH], text[PATH], driver[NAME];

    snprintf(path, sizeof path, "%s/sys/bus/pci/devices/%s", root, address);
    if (strchr(address, '/') || access(path, F_OK) != 0) {
        list_cards(root, text, sizeof text);
        by_say("--pci %s: no such device; network devices: %s", address, text);
        return BY_ENOENT;
    }
    if (!is_network(root, address)) {
        list_cards(root, text, sizeof text);
        by_say("--pci %s: not a network device; network devices: %s", address, text);
        return BY_EINVAL;
    }
    read_link(root, address, "driver", driver);
    if (!is_usable(driver)) {
        by_say(
            "--pci %s: bound to %s%s: `modprobe vfio-pci && dpdk-devbind.py -b vfio-pci %s` gives it to DPDK "
            "(the kernel loses the interface)",
            address, driver[0] ? "the kernel's driver " : "no driver", driver, address);
        return BY_EIO;
    }
    return strcmp(driver, "vfio-pci") == 0 ? check_vfio(root, address) : 0;
}
