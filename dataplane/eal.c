/*
 * DPDK's environment. Many switches run on one machine (a lab has one per node), so each has its
 * own file prefix, allocates in memory, and is not pinned. EAL would pin every process to the first
 * CPU; instead the only lcore may run on all CPUs allowed to this process. Main thread only.
 */
#include "dataplane/eal.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <rte_malloc.h>

#include "dataplane/say.h"
#include "offload/base/errors.h"

/* Maximum number of EAL arguments, and of those set here besides the PCI addresses. */
#define ARGUMENTS_MAX 128u
#define OWN_ARGUMENTS 16u
/* Hugepage memory for packet buffers (bytes): base, and per port. With less, the process runs
 * without hugepages. */
#define HUGE_BASE     (64ull << 20)
#define HUGE_PER_PORT (12ull << 20)
/* Memory (MiB) reserved without hugepages; pages are allocated on first touch. */
#define NO_HUGE_MIB "2048"
#define PREFIX_HEAD "banyan."

static char runtime_dir[256];

/* Reads a number of pages for one size of hugepage from the kernel; 0 if unavailable. */
static unsigned long huge_count(const char *size, const char *what)
{
    char path[320];
    unsigned long count = 0;
    FILE *file;

    snprintf(path, sizeof path, "/sys/kernel/mm/hugepages/%s/%s", size, what);
    file = fopen(path, "r");
    if (!file)
        return 0;
    if (fscanf(file, "%lu", &count) != 1)
        count = 0;
    fclose(file);
    return count;
}

/* Returns the bytes of hugepages of all sizes that are free and not reserved. */
static unsigned long long huge_free(void)
{
    DIR *dir = opendir("/sys/kernel/mm/hugepages");
    unsigned long long total = 0;

    if (!dir)
        return 0;
    for (struct dirent *entry; (entry = readdir(dir));) {
        unsigned long kib, unused, promised;

        if (sscanf(entry->d_name, "hugepages-%lukB", &kib) != 1)
            continue;
        unused = huge_count(entry->d_name, "free_hugepages");
        promised = huge_count(entry->d_name, "resv_hugepages");
        if (unused > promised)
            total += (unsigned long long)kib * 1024 * (unused - promised);
    }
    closedir(dir);
    return total;
}

/* "0@(0,1,5)": lcore 0 on every CPU that this process may use. */
static void lcore_text(char *text, size_t bytes)
{
    cpu_set_t cpus;
    size_t used = (size_t)snprintf(text, bytes, "0@(");
    const char *comma = "";

    CPU_ZERO(&cpus);
    if (sched_getaffinity(0, sizeof cpus, &cpus) != 0)
        CPU_SET(0, &cpus);
    for (int cpu = 0; cpu < CPU_SETSIZE && used + 8 < bytes; cpu++) {
        if (!CPU_ISSET(cpu, &cpus))
            continue;
        used += (size_t)snprintf(text + used, bytes - used, "%s%d", comma, cpu);
        comma = ",";
    }
    snprintf(text + used, bytes - used, ")");
}

/* Removes a runtime folder of banyan, which contains only sockets. */
static void remove_folder(const char *path)
{
    DIR *dir = opendir(path);

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        char file[768];

        if (strncmp(entry->d_name, "dpdk_telemetry.v", 16) != 0)
            continue;
        snprintf(file, sizeof file, "%s/%s", path, entry->d_name);
        unlink(file);
    }
    closedir(dir);
    rmdir(path);
}

/* Removes folders of killed switches, recognised by their name and a process that no longer
 * exists. */
static void remove_stale_folders(const char *base)
{
    DIR *dir = opendir(base);

    if (!dir)
        return;
    for (struct dirent *entry; (entry = readdir(dir));) {
        const char *dot = strrchr(entry->d_name, '.');
        char path[768];
        long pid;

        if (strncmp(entry->d_name, PREFIX_HEAD, sizeof PREFIX_HEAD - 1) != 0 || !dot)
            continue;
        pid = strtol(dot + 1, NULL, 10);
        if (pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        remove_folder(path);
    }
    closedir(dir);
}

/* Whether the user's own arguments already contain `option`. */
static bool has_extra(const struct by_eal_config *config, const char *option)
{
    for (unsigned i = 0; i < config->extra_count; i++)
        if (strncmp(config->extra[i], option, strlen(option)) == 0)
            return true;
    return false;
}

static unsigned long long huge_needed(const struct by_eal_config *config)
{
    return HUGE_BASE + HUGE_PER_PORT * config->port_count;
}

static bool choose_no_huge(const struct by_eal_config *config)
{
    unsigned long long bytes = huge_free();

    if (config->no_huge || has_extra(config, "--no-huge"))
        return true;
    if (bytes >= huge_needed(config))
        return false;
    by_say("not enough hugepages (%llu MiB free, %llu needed): running without; `sysctl "
           "vm.nr_hugepages=%llu` provides them",
           bytes >> 20, huge_needed(config) >> 20, huge_needed(config) >> 21);
    return true;
}

/* Builds the arguments for EAL; the user's replace the defaults. Returns their number. */
static int build_arguments(const struct by_eal_config *config, bool no_huge, char *arguments[ARGUMENTS_MAX])
{
    static char program[] = "banyan-switchd";
    static char lcores[256], prefix[128];
    int count = 0;

    lcore_text(lcores, sizeof lcores);
    snprintf(prefix, sizeof prefix, "%s%s.%ld", PREFIX_HEAD, config->name, (long)getpid());
    arguments[count++] = program;
    /* No files; EAL refuses --in-memory without hugepages. */
    arguments[count++] = (char *)(no_huge ? "--no-shconf" : "--in-memory");
    if (no_huge && !has_extra(config, "--no-huge"))
        arguments[count++] = (char *)"--no-huge";
    if (no_huge && !has_extra(config, "-m")) {
        arguments[count++] = (char *)"-m";
        arguments[count++] = (char *)NO_HUGE_MIB;
    }
    if (!has_extra(config, "-l") && !has_extra(config, "-c") && !has_extra(config, "--lcores")) {
        arguments[count++] = (char *)"--lcores";
        arguments[count++] = lcores;
    }
    if (!has_extra(config, "--file-prefix")) {
        arguments[count++] = (char *)"--file-prefix";
        arguments[count++] = prefix;
    }
    if (!has_extra(config, "--log-level"))
        arguments[count++] = (char *)"--log-level=error";
    if (config->pci_count == 0)
        arguments[count++] = (char *)"--no-pci";
    for (unsigned i = 0; i < config->pci_count; i++) {
        arguments[count++] = (char *)"-a";
        arguments[count++] = (char *)(uintptr_t)config->pci[i];
    }
    for (unsigned i = 0; i < config->extra_count; i++)
        arguments[count++] = config->extra[i];
    return count;
}

int by_eal_start(const struct by_eal_config *config)
{
    char *arguments[ARGUMENTS_MAX], base[sizeof runtime_dir];
    bool no_huge = choose_no_huge(config);

    if (config->extra_count + 2 * config->pci_count + OWN_ARGUMENTS > ARGUMENTS_MAX) {
        by_say("too many EAL arguments: %u; the limit is %u", config->extra_count,
               ARGUMENTS_MAX - OWN_ARGUMENTS - 2 * config->pci_count);
        return BY_EINVAL;
    }
    if (no_huge && config->pci_count > 0) {
        by_say("--pci %s needs hugepages: `sysctl vm.nr_hugepages=%llu`", config->pci[0],
               huge_needed(config) >> 21);
        return BY_EIO;
    }
    rte_openlog_stream(stderr);
    if (rte_eal_init(build_arguments(config, no_huge, arguments), arguments) < 0) {
        by_say("cannot start DPDK: %s", rte_strerror(rte_errno));
        remove_folder(rte_eal_get_runtime_dir());
        return rte_errno == EINVAL ? BY_EINVAL : BY_EIO;
    }
    snprintf(runtime_dir, sizeof runtime_dir, "%s", rte_eal_get_runtime_dir());
    memcpy(base, runtime_dir, sizeof base);
    if (strrchr(base, '/'))
        *strrchr(base, '/') = 0;
    remove_stale_folders(base);
    return 0;
}

void by_eal_stop(void)
{
    rte_eal_cleanup();
    if (runtime_dir[0])
        remove_folder(runtime_dir);
    runtime_dir[0] = 0;
}

void *by_eal_memory(const char *what, size_t bytes, bool device)
{
    void *memory;

    if (device)
        return rte_zmalloc(what, bytes, 64);
    memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return NULL;
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void *by_eal_memory_shared(size_t bytes, int *fd)
{
    void *memory = MAP_FAILED;

    *fd = memfd_create("banyan-payloads", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (*fd >= 0 && ftruncate(*fd, (off_t)bytes) == 0)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, *fd, 0);
    if (memory == MAP_FAILED ||
        fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_FUTURE_WRITE | F_SEAL_SEAL) != 0) {
        if (memory != MAP_FAILED)
            munmap(memory, bytes);
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        return NULL;
    }
    madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

void by_eal_memory_free(void *memory, size_t bytes, bool device)
{
    if (!memory)
        return;
    if (device)
        rte_free(memory);
    else
        munmap(memory, bytes);
}
