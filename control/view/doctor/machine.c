/*
 * Reads the machine's facts from /proc, /sys and system calls, without changing anything. See
 * machine.h.
 */
#include "control/view/doctor/machine.h"

#include <ctype.h>
#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif

#define LINE_BYTES 512

/* Bytes of a file that are searched in one step. */
#define SEARCH_BYTES 65536u
/* Longest mark before a version (bytes). */
#define MARK_BYTES 32u

/* Reads the number in a file that contains only one, or returns BY_UNKNOWN. */
static uint64_t read_number(const char *path)
{
    FILE *file = fopen(path, "re");
    unsigned long long value = 0;
    int count = file ? fscanf(file, "%llu", &value) : 0;

    if (file)
        fclose(file);
    return count == 1 ? value : BY_UNKNOWN;
}

/*
 * Reads the value after "NAME:" in a file of such lines, in the given base, or returns BY_UNKNOWN.
 */
static uint64_t read_field(const char *path, const char *name, int base)
{
    FILE *file = fopen(path, "re");
    size_t length = strlen(name);
    uint64_t value = BY_UNKNOWN;
    char line[LINE_BYTES];

    while (file && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, name, length) == 0 && line[length] == ':')
            value = strtoull(line + length + 1, NULL, base);
    if (file)
        fclose(file);
    return value;
}

static bool can_af_xdp(void)
{
    int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (fd >= 0)
        close(fd);
    return fd >= 0;
}

/* Counts processes whose name begins with banyan-: switches and ranks. */
static uint64_t count_processes(void)
{
    DIR *dir = opendir("/proc");
    uint64_t count = 0;

    for (struct dirent *entry; dir && (entry = readdir(dir)) != NULL;) {
        char path[64], name[32] = "";
        FILE *file;

        if (!isdigit((unsigned char)entry->d_name[0]))
            continue;
        snprintf(path, sizeof(path), "/proc/%.20s/comm", entry->d_name);
        file = fopen(path, "re");
        if (file && fgets(name, sizeof(name), file) != NULL)
            count += strncmp(name, "banyan-", 7) == 0;
        if (file)
            fclose(file);
    }
    if (dir)
        closedir(dir);
    return count;
}

/*
 * Finds the version after `mark` in a file's bytes ("banyan-switchd 0.1.0"); "" if there is none.
 */
static void find_version(FILE *file, const char *mark, char version[24])
{
    static char bytes[MARK_BYTES + 24 + SEARCH_BYTES];
    size_t length = strlen(mark), kept = 0, count;

    version[0] = 0;
    while (version[0] == 0 && (count = fread(bytes + kept, 1, SEARCH_BYTES, file)) > 0) {
        size_t have = kept + count;

        for (char *at = bytes; (at = memmem(at, have - (size_t)(at - bytes), mark, length)) != NULL; at++) {
            size_t digits = 0;

            while (digits < 23 && at + length + digits < bytes + have &&
                   (isdigit((unsigned char)at[length + digits]) || at[length + digits] == '.'))
                digits++;
            if (digits > 0)
                snprintf(version, 24, "%.*s", (int)digits, at + length);
            if (digits > 0)
                break;
        }
        kept = have < MARK_BYTES + 24 ? have : MARK_BYTES + 24;
        memmove(bytes, bytes + have - kept, kept);
    }
}

static void add_program(struct by_doctor_machine *machine, const char *path, const char *mark)
{
    struct by_doctor_program *program = &machine->programs[machine->program_count];
    char whole[PATH_MAX];
    FILE *file;

    if (machine->program_count == BY_PROGRAMS_MAX || realpath(path, whole) == NULL)
        return;
    for (uint32_t i = 0; i < machine->program_count; i++)
        if (strncmp(machine->programs[i].path, whole, sizeof(program->path) - 1) == 0)
            return;
    file = fopen(whole, "re");
    if (file == NULL)
        return;
    snprintf(program->path, sizeof(program->path), "%.255s", whole);
    find_version(file, mark, program->version);
    fclose(file);
    machine->program_count++;
}

/* Finds the programs and libraries of this program's installation, of /usr/local and of /usr. */
static void find_programs(struct by_doctor_machine *machine)
{
    static const struct {
        const char *path, *mark;
    } files[] = {
        {"bin/banyan-switchd", "banyan-switchd "},
        {"bin/banyan-perf", "banyan-perf "},
        {"lib/libbanyan.so.0", "@(#)banyan "},
        {"lib/banyan/openmpi/mca_coll_banyan.so", "@(#)banyan "},
        {"lib/banyan/libbanyan-mpich.so", "@(#)banyan "},
    };
    char self[PATH_MAX] = "", path[PATH_MAX + 64];
    ssize_t bytes = readlink("/proc/self/exe", self, sizeof(self) - 1);

    for (int i = 0; bytes > 0 && i < 2; i++) {
        char *slash = strrchr(self, '/');

        if (slash)
            *slash = 0;
    }
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", self, files[i].path);
        add_program(machine, path, files[i].mark);
        snprintf(path, sizeof(path), "/usr/local/%s", files[i].path);
        add_program(machine, path, files[i].mark);
        snprintf(path, sizeof(path), "/usr/%s", files[i].path);
        add_program(machine, path, files[i].mark);
    }
}

void by_machine_read(struct by_doctor_machine *machine)
{
    struct rlimit locked = {0};
    struct utsname name;
    struct timex clock = {0};

    memset(machine, 0, sizeof(*machine));
    machine->capabilities = read_field("/proc/self/status", "CapEff", 16);
    if (machine->capabilities == BY_UNKNOWN)
        machine->capabilities = 0;
    machine->hugepages = read_field("/proc/meminfo", "HugePages_Total", 10);
    machine->hugepages_free = read_field("/proc/meminfo", "HugePages_Free", 10);
    machine->hugepage_kib = read_field("/proc/meminfo", "Hugepagesize", 10);
    machine->memlock = BY_UNKNOWN;
    if (getrlimit(RLIMIT_MEMLOCK, &locked) == 0 && locked.rlim_cur != RLIM_INFINITY)
        machine->memlock = locked.rlim_cur;
    machine->has_btf = access("/sys/kernel/btf/vmlinux", R_OK) == 0;
    machine->has_af_xdp = can_af_xdp();
    if (uname(&name) == 0)
        sscanf(name.release, "%u.%u", &machine->kernel_major, &machine->kernel_minor);
    machine->jit = read_number("/proc/sys/net/core/bpf_jit_enable");
    machine->rmem_max = read_number("/proc/sys/net/core/rmem_max");
    machine->wmem_max = read_number("/proc/sys/net/core/wmem_max");
    machine->cores = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
    machine->processes = count_processes();
    machine->unix_s = (int64_t)time(NULL);
    machine->is_synchronized = adjtimex(&clock) != TIME_ERROR;
    find_programs(machine);
}
