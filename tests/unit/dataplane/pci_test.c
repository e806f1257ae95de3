/*
 * PCI addresses of network cards, in a folder that looks like /sys and /dev: what DPDK can use is
 * accepted, and each reason against it is reported with its remedy.
 */
#include "dataplane/pci.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "dataplane/eal.h"
#include "dataplane/say.h"
#include "offload/base/errors.h"

#define CARD "0000:01:00.0"

static char root[] = "/tmp/pci_test.XXXXXX";
static char said[4096];
static bool is_busy;

/* Makes the folders of `path` below the root, and with `content` a file. */
static void put(const char *path, const char *content)
{
    char whole[512];
    FILE *file;

    snprintf(whole, sizeof whole, "%s%s", root, path);
    for (char *slash = whole + sizeof root; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = 0;
        mkdir(whole, 0700);
    }
    if (!content) {
        mkdir(whole, 0700);
        return;
    }
    file = fopen(whole, "w");
    assert_non_null(file);
    fputs(content, file);
    fclose(file);
}

static void point(const char *path, const char *target)
{
    char whole[512];

    snprintf(whole, sizeof whole, "%s%s", root, path);
    unlink(whole);
    assert_int_equal(symlink(target, whole), 0);
}

static void card(const char *address, const char *class)
{
    char path[256];

    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/class", address);
    put(path, class);
}

/* Opens files for by_pci_check (the linker replaces its calls): a group that another process has
 * open is busy. */
int __real_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...);
int __wrap_open(const char *path, int flags, ...)
{
    if (is_busy && strstr(path, "/dev/vfio/")) {
        errno = EBUSY;
        return -1;
    }
    return __real_open(path, flags);
}

static int check_card(const char *const *address)
{
    return by_pci_check(root, *address);
}

static int start_without_hugepages(const char *const *address)
{
    const struct by_eal_config config = {.name = "unit", .pci = address, .pci_count = 1, .no_huge = true};

    return by_eal_start(&config);
}

/* Calls a function with an address; the message is in `said`. */
static int listen_to(int (*function)(const char *const *address), const char *address)
{
    FILE *file = tmpfile();
    int before = dup(STDERR_FILENO), result;
    size_t bytes;

    assert_non_null(file);
    fflush(stderr);
    dup2(fileno(file), STDERR_FILENO);
    result = function(&address);
    fflush(stderr);
    dup2(before, STDERR_FILENO);
    close(before);
    rewind(file);
    bytes = fread(said, 1, sizeof said - 1, file);
    said[bytes] = 0;
    fclose(file);
    return result;
}

static int check(const char *address)
{
    return listen_to(check_card, address);
}

static void expect(int result, const char *text)
{
    assert_int_equal(check(CARD), result);
    if (!strstr(said, text))
        fail_msg("'%s' is missing in: %s", text, said);
}

static int set_up(void **state)
{
    (void)state;
    by_say_name("unit");
    strcpy(root, "/tmp/pci_test.XXXXXX");
    if (!mkdtemp(root))
        return -1;
    card(CARD, "0x020000\n");
    put("/sys/kernel/iommu_groups/7/devices", NULL);
    point("/sys/bus/pci/devices/" CARD "/driver", "../../../../bus/pci/drivers/vfio-pci");
    point("/sys/bus/pci/devices/" CARD "/iommu_group", "../../../kernel/iommu_groups/7");
    point("/sys/kernel/iommu_groups/7/devices/" CARD, "../../../../devices/pci0000:00/" CARD);
    put("/dev/vfio/7", "");
    return 0;
}

static int tear_down(void **state)
{
    char command[128];

    (void)state;
    snprintf(command, sizeof command, "rm -rf %s", root);
    return system(command);
}

static void a_card_bound_to_vfio_is_accepted(void **state)
{
    (void)state;
    assert_int_equal(check(CARD), 0);
    assert_string_equal(said, "");
}

static void a_card_that_stays_with_its_kernel_driver_is_accepted(void **state)
{
    (void)state;
    point("/sys/bus/pci/devices/" CARD "/driver", "../../../../bus/pci/drivers/mlx5_core");
    assert_int_equal(check(CARD), 0);
}

static void a_card_without_a_dpdk_driver_is_refused(void **state)
{
    char driver[512];

    (void)state;
    point("/sys/bus/pci/devices/" CARD "/driver", "../../../../bus/pci/drivers/e1000e");
    expect(BY_EIO,
           "bound to the kernel's driver e1000e: `modprobe vfio-pci && dpdk-devbind.py -b vfio-pci " CARD
           "`");
    snprintf(driver, sizeof driver, "%s/sys/bus/pci/devices/" CARD "/driver", root);
    unlink(driver);
    expect(BY_EIO, "bound to no driver: ");
}

static void an_address_that_is_no_card_is_refused_with_the_list(void **state)
{
    (void)state;
    card("0000:02:00.0", "0x010802\n");
    card("0000:03:00.1", "0x020700\n");
    assert_int_equal(check("0000:09:00.0"), BY_ENOENT);
    assert_non_null(strstr(said, "no such device; network devices: "));
    assert_non_null(strstr(said, CARD));
    assert_non_null(strstr(said, "0000:03:00.1"));
    assert_null(strstr(said, "0000:02:00.0"));
    assert_int_equal(check("0000:02:00.0"), BY_EINVAL);
    assert_non_null(strstr(said, "--pci 0000:02:00.0: not a network device; network devices: "));
    assert_int_equal(check("../../../etc"), BY_ENOENT);
}

static void a_card_without_an_iommu_is_refused(void **state)
{
    char link[512];

    (void)state;
    snprintf(link, sizeof link, "%s/sys/bus/pci/devices/" CARD "/iommu_group", root);
    unlink(link);
    expect(BY_EIO, "no IOMMU protects it, and vfio requires one: boot with intel_iommu=on or amd_iommu=on");
}

static void a_group_that_cannot_be_opened_is_refused(void **state)
{
    char file[512];

    (void)state;
    snprintf(file, sizeof file, "%s/dev/vfio/7", root);
    unlink(file);
    expect(BY_EIO, "cannot use /dev/vfio/7 (No such file or directory): run as root");
    put("/dev/vfio/noiommu-7", "");
    assert_int_equal(check(CARD), 0);
}

static void a_group_that_another_process_uses_is_refused(void **state)
{
    (void)state;
    is_busy = true;
    expect(BY_EIO, "another process uses its IOMMU group (7), and vfio gives a group to one process: "
                   "`fuser -v /dev/vfio/7` names it");
    is_busy = false;
    assert_int_equal(check(CARD), 0);
}

static void a_card_without_hugepages_is_refused(void **state)
{
    (void)state;
    assert_int_equal(listen_to(start_without_hugepages, CARD), BY_EIO);
    assert_non_null(strstr(said, "--pci " CARD " needs hugepages: `sysctl vm.nr_hugepages="));
}

static void a_group_with_a_device_of_the_kernel_is_refused(void **state)
{
    (void)state;
    card("0000:01:00.1", "0x020000\n");
    point("/sys/kernel/iommu_groups/7/devices/0000:01:00.1", "../../../../devices/pci0000:00/0000:01:00.1");
    assert_int_equal(check(CARD), 0);
    point("/sys/bus/pci/devices/0000:01:00.1/driver", "../../../../bus/pci/drivers/igb");
    expect(BY_EIO, "device 0000:01:00.1 is in the same IOMMU group (7) and bound to igb");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_card_bound_to_vfio_is_accepted),
        TEST(a_card_that_stays_with_its_kernel_driver_is_accepted),
        TEST(a_card_without_a_dpdk_driver_is_refused),
        TEST(an_address_that_is_no_card_is_refused_with_the_list),
        TEST(a_card_without_an_iommu_is_refused),
        TEST(a_group_that_cannot_be_opened_is_refused),
        TEST(a_group_that_another_process_uses_is_refused),
        TEST(a_card_without_hugepages_is_refused),
        TEST(a_group_with_a_device_of_the_kernel_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
