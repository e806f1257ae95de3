/*
 * The command `banyan info`: prints the features of this build and this machine, and with -c every
 * setting and its value. The settings belong to libbanyan, so banyan-perf, a program in the same
 * directory, prints them. Single-threaded.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "control/cli/cli.h"

#ifndef AF_XDP
#define AF_XDP 44
#endif

#define TEXT_BYTES 256

struct facts {
    struct utsname system;
    const char *instruction_sets;
    unsigned long long hugepages_total, hugepages_free, hugepage_kib;
    bool af_xdp;
    char af_xdp_why[TEXT_BYTES]; /* the reason if AF_XDP is not available */
    bool namespaces;
    long processors;
};

static const char *instruction_sets(void)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
        return "scalar, avx2, avx512";
    return __builtin_cpu_supports("avx2") ? "scalar, avx2" : "scalar";
#elif defined(__aarch64__)
    return "scalar, neon";
#else
    return "scalar";
#endif
}

static void read_hugepages(struct facts *facts)
{
    FILE *file = fopen("/proc/meminfo", "re");
    char line[TEXT_BYTES], name[TEXT_BYTES];
    unsigned long long value;

    if (file == NULL)
        return;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%255[^:]: %llu", name, &value) != 2)
            continue;
        if (strcmp(name, "HugePages_Total") == 0)
            facts->hugepages_total = value;
        else if (strcmp(name, "HugePages_Free") == 0)
            facts->hugepages_free = value;
        else if (strcmp(name, "Hugepagesize") == 0)
            facts->hugepage_kib = value;
    }
    fclose(file);
}

static void try_af_xdp(struct facts *facts)
{
    int fd = socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0);

    facts->af_xdp = fd >= 0;
    if (fd >= 0)
        close(fd);
    else
        snprintf(facts->af_xdp_why, sizeof(facts->af_xdp_why), "%s%s", strerror(errno),
                 errno == EPERM          ? "; run as root, or with CAP_NET_RAW and CAP_BPF"
                 : errno == EAFNOSUPPORT ? "; the kernel needs CONFIG_XDP_SOCKETS"
                                         : "");
}

static void gather(struct facts *facts)
{
    memset(facts, 0, sizeof(*facts));
    if (uname(&facts->system) != 0)
        snprintf(facts->system.sysname, sizeof(facts->system.sysname), "unknown");
    facts->instruction_sets = instruction_sets();
    facts->processors = sysconf(_SC_NPROCESSORS_ONLN);
    facts->namespaces = geteuid() == 0 && access("/proc/self/ns/net", R_OK) == 0;
    read_hugepages(facts);
    try_af_xdp(facts);
}

static void print_text(const struct facts *facts)
{
    printf("banyan            %s\n", BY_VERSION);
    printf("compiler          %s\n", __VERSION__);
    printf("system            %s %s %s, %ld processors\n", facts->system.sysname, facts->system.release,
           facts->system.machine, facts->processors);
    printf("instruction sets  %s\n", facts->instruction_sets);
    printf("hugepages         %llu of %llu free, %llu KiB each%s\n", facts->hugepages_free,
           facts->hugepages_total, facts->hugepage_kib,
           facts->hugepages_total
               ? ""
               : " (banyan-switchd runs without them, but slower; sysctl vm.nr_hugepages=N reserves some)");
    printf("AF_XDP            %s%s%s\n", facts->af_xdp ? "yes" : "no", facts->af_xdp ? "" : ": ",
           facts->af_xdp_why);
    printf("namespaces        %s\n", facts->namespaces ? "yes: the lab runs on real switches"
                                                       : "no: not root; the lab runs --in-process");
    printf("\nbanyan info -c prints the settings.\n");
}

static void print_json(const struct facts *facts)
{
    printf("{\"version\": \"%s\", \"compiler\": \"%s\", \"system\": \"%s %s %s\", \"processors\": %ld, "
           "\"instruction_sets\": \"%s\",\n",
           BY_VERSION, __VERSION__, facts->system.sysname, facts->system.release, facts->system.machine,
           facts->processors, facts->instruction_sets);
    printf(" \"hugepages\": {\"total\": %llu, \"free\": %llu, \"kib\": %llu}, \"af_xdp\": %s, "
           "\"namespaces\": %s}\n",
           facts->hugepages_total, facts->hugepages_free, facts->hugepage_kib,
           facts->af_xdp ? "true" : "false", facts->namespaces ? "true" : "false");
}

static int print_settings(bool json)
{
    char name[] = "banyan info", settings[] = "--settings", as_json[] = "--json";
    char *argv[] = {name, settings, json ? as_json : NULL, NULL};

    return by_cli_become("banyan-perf", argv);
}

struct info_arguments {
    bool settings, json;
};

static const struct by_option rows[] = {
    {BY_ROW_FLAG('c', "config", BY_OPTION_AT(struct info_arguments, settings),
                 "print every BANYAN_* setting: value, source, meaning")},
    {BY_ROW_FLAG(0, "json", BY_OPTION_AT(struct info_arguments, json), "print one JSON object")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan info",
    .usage = "banyan info [-c] [--json]",
    .about = "Prints version, build, and what this machine offers: instruction sets, hugepages, AF_XDP, "
             "namespaces.",
    .rows = rows};

int by_command_info(int argc, char **argv)
{
    struct info_arguments arguments = {0};
    struct facts facts;
    int status = by_options_read(&command_line, &arguments, &argc, argv);

    if (status >= 0)
        return status;
    if (arguments.settings)
        return print_settings(arguments.json);
    gather(&facts);
    if (arguments.json)
        print_json(&facts);
    else
        print_text(&facts);
    return BY_EXIT_DONE;
}
