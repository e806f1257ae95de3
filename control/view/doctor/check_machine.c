/* Checks of this machine: the facts of machine.h, and the keys. Pure except for the report. */
#include <inttypes.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "control/view/doctor/doctor.h"

/* CAP_BPF, which older kernel headers lack. */
#define CAP_BPF_BIT 39
/* Limit of locked memory that is enough for AF_XDP and rings without a privilege (bytes). */
#define MEMLOCK_WANTED (64u << 20)
/* Buffer size that UDP sockets request (host-driver/udp.c; bytes). */
#define BUFFER_WANTED (8u << 20)
/* A clock before this time was never set: 2024-01-01. */
#define CLOCK_LEAST_S 1704067200
/* Certificates that expire within this time are reported (s). */
#define KEYS_SOON_S (30 * 86400)

static bool may(const struct by_doctor_machine *machine, unsigned capability)
{
    return machine->capabilities >> capability & 1;
}

void by_check_rights(struct by_doctor *doctor)
{
    const struct by_doctor_machine *machine = &doctor->machine;
    bool raw = may(machine, CAP_NET_RAW), admin = may(machine, CAP_NET_ADMIN),
         bpf = may(machine, CAP_BPF_BIT) || may(machine, CAP_SYS_ADMIN);

    if (raw && admin && bpf)
        by_report_add(&doctor->report, BY_GRADE_OK, "", NULL,
                      "raw sockets and programs in the kernel are allowed");
    else
        by_report_add(&doctor->report, BY_GRADE_ADVICE, "",
                      "run as root, or: setcap cap_net_raw,cap_net_admin,cap_bpf+ep PROGRAM",
                      "this user lacks%s%s%s: switches and AF_XDP cannot start, hosts use UDP sockets",
                      raw ? "" : " CAP_NET_RAW", admin ? "" : " CAP_NET_ADMIN", bpf ? "" : " CAP_BPF");
}

void by_check_kernel(struct by_doctor *doctor)
{
    const struct by_doctor_machine *machine = &doctor->machine;
    struct by_report *report = &doctor->report;
    bool has_tcx = machine->kernel_major > 6 || (machine->kernel_major == 6 && machine->kernel_minor >= 6);

    if (!machine->has_af_xdp && may(machine, CAP_NET_RAW))
        by_report_add(report, BY_GRADE_ADVICE, "", "use a kernel with CONFIG_XDP_SOCKETS",
                      "the kernel has no AF_XDP sockets: frames use slower paths");
    if (!machine->has_btf)
        by_report_add(report, BY_GRADE_ADVICE, "", "use a kernel with CONFIG_DEBUG_INFO_BTF",
                      "/sys/kernel/btf/vmlinux is missing: programs for XDP may not load");
    if (machine->jit == 0)
        by_report_add(report, BY_GRADE_ADVICE, "", "sysctl net.core.bpf_jit_enable=1",
                      "the kernel interprets programs instead of compiling them");
    if (!has_tcx)
        by_report_add(report, doctor->rings ? BY_GRADE_TROUBLE : BY_GRADE_ADVICE, "",
                      "use Linux 6.6 or later, or BANYAN_RING=off and another --driver",
                      "Linux %u.%u has no tcx: frames cannot be taken out of rings", machine->kernel_major,
                      machine->kernel_minor);
    if (machine->has_btf && machine->jit != 0 && has_tcx &&
        (machine->has_af_xdp || !may(machine, CAP_NET_RAW)))
        by_report_add(report, BY_GRADE_OK, "", NULL, "Linux %u.%u has the required features",
                      machine->kernel_major, machine->kernel_minor);
}

void by_check_hugepages(struct by_doctor *doctor)
{
    const struct by_doctor_machine *machine = &doctor->machine;

    if (machine->hugepages == 0 || machine->hugepages == BY_UNKNOWN)
        by_report_add(&doctor->report, BY_GRADE_ADVICE, "", "sysctl vm.nr_hugepages=256",
                      "none are reserved: switches run without them, and slower with NICs");
    else if (machine->hugepages_free == 0)
        by_report_add(&doctor->report, BY_GRADE_ADVICE, "", "sysctl vm.nr_hugepages=N with a larger N",
                      "all %" PRIu64 " are in use: another switch runs without them", machine->hugepages);
    else
        by_report_add(&doctor->report, BY_GRADE_OK, "", NULL,
                      "%" PRIu64 " of %" PRIu64 " free, %" PRIu64 " KiB each", machine->hugepages_free,
                      machine->hugepages, machine->hugepage_kib);
}

void by_check_memlock(struct by_doctor *doctor)
{
    const struct by_doctor_machine *machine = &doctor->machine;

    if (machine->memlock >= MEMLOCK_WANTED || may(machine, CAP_IPC_LOCK))
        by_report_add(&doctor->report, BY_GRADE_OK, "", NULL, "enough memory may be locked");
    else
        by_report_add(&doctor->report, BY_GRADE_ADVICE, "",
                      "ulimit -l unlimited, or LimitMEMLOCK=infinity in the service",
                      "%" PRIu64 " KiB may be locked; AF_XDP and rings need %u", machine->memlock >> 10,
                      MEMLOCK_WANTED >> 10);
}

void by_check_buffers(struct by_doctor *doctor)
{
    const struct by_doctor_machine *machine = &doctor->machine;
    uint64_t least = machine->rmem_max < machine->wmem_max ? machine->rmem_max : machine->wmem_max;

    if (least >= BUFFER_WANTED || may(machine, CAP_NET_ADMIN))
        by_report_add(&doctor->report, BY_GRADE_OK, "", NULL, "sockets get the buffers that they request");
    else
        by_report_add(&doctor->report, BY_GRADE_ADVICE, "",
                      "sysctl net.core.rmem_max=8388608 net.core.wmem_max=8388608",
                      "net.core.rmem_max is %" PRIu64 ", wmem_max %" PRIu64
                      ": UDP sockets request %u, and lose frames with less",
                      machine->rmem_max, machine->wmem_max, BUFFER_WANTED);
}

void by_check_cores(struct by_doctor *doctor)
{
    const struct by_doctor_machine *machine = &doctor->machine;

    if (machine->processes > machine->cores)
        by_report_add(&doctor->report, BY_GRADE_ADVICE, "",
                      "run fewer ranks on this machine, or switches elsewhere",
                      "%" PRIu64 " processes of banyan share %" PRIu64
                      " processors: waiting for another process costs a time slice",
                      machine->processes, machine->cores);
    else
        by_report_add(&doctor->report, BY_GRADE_OK, "", NULL,
                      "%" PRIu64 " processors, %" PRIu64 " processes of banyan", machine->cores,
                      machine->processes);
}

static const char *day(int64_t unix_s, char text[32])
{
    time_t second = (time_t)unix_s;
    struct tm parts;

    if (gmtime_r(&second, &parts) == NULL || strftime(text, 32, "%F %T UTC", &parts) == 0)
        text[0] = 0;
    return text;
}

void by_check_clock(struct by_doctor *doctor)
{
    const struct by_doctor_machine *machine = &doctor->machine;
    char text[32];

    if (machine->unix_s < CLOCK_LEAST_S)
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, "", "set it, or run a time service such as chrony",
                      "it shows %s: certificates will appear not yet valid", day(machine->unix_s, text));
    else if (!machine->is_synchronized)
        by_report_add(&doctor->report, BY_GRADE_ADVICE, "", "run a time service such as chrony",
                      "no time service maintains it: certificates and the logs of several machines depend "
                      "on it");
    else
        by_report_add(&doctor->report, BY_GRADE_OK, "", NULL, "%s, maintained by a time service",
                      day(machine->unix_s, text));
}

void by_check_versions(struct by_doctor *doctor)
{
    for (uint32_t i = 0; i < doctor->machine.program_count; i++) {
        const struct by_doctor_program *program = &doctor->machine.programs[i];

        if (program->version[0] == 0)
            by_report_add(&doctor->report, BY_GRADE_ADVICE, program->path, "build and install it again",
                          "reports no version: it is older than the versions that do");
        else if (strcmp(program->version, BY_VERSION) != 0)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, program->path,
                          "install all files of one version, and remove those of others", "is %s; this is %s",
                          program->version, BY_VERSION);
        else
            by_report_add(&doctor->report, BY_GRADE_OK, program->path, NULL, "is %s", program->version);
    }
}

/* Checks that the keys are those of a host, which the controller that it joins will accept. */
static bool check_host(struct by_doctor *doctor)
{
    const struct by_key_facts *keys = &doctor->keys;
    const char *node = doctor->node;
    char remedy[160];

    if (doctor->joins == NULL || strncmp(doctor->joins, "tls:", 4) != 0)
        return true;
    snprintf(remedy, sizeof(remedy), "banyan keys DIR --host %.47s; BANYAN_KEYS=DIR/%.47s", node, node);
    if (keys->folder == NULL)
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, "BANYAN_KEYS", remedy,
                      "is not set, but BANYAN_CONTROLLER is %.200s", doctor->joins);
    else if (strcmp(keys->role, "host") != 0)
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, keys->folder, remedy,
                      "these are keys of a %s: %.200s requires those of a host", keys->role, doctor->joins);
    else if (strcmp(keys->name, node) != 0)
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, keys->folder, remedy,
                      "these are keys of %s, but this host is %s there (BANYAN_NODE)", keys->name, node);
    else
        return true;
    return false;
}

void by_check_keys(struct by_doctor *doctor)
{
    const struct by_key_facts *keys = &doctor->keys;
    int64_t now = doctor->machine.unix_s;
    struct by_report *report = &doctor->report;
    char text[32], renew[160];

    if (keys->folder == NULL) {
        check_host(doctor);
        return;
    }
    snprintf(renew, sizeof(renew), "banyan keys DIR --%s %s --renew",
             keys->role[0] != 0 ? keys->role : "controller", keys->name[0] != 0 ? keys->name : "NAME");
    if (keys->fault[0])
        by_report_add(report, BY_GRADE_TROUBLE, keys->folder, "make keys with `banyan keys`", "%s",
                      keys->fault);
    else if (keys->until_s != 0 && now > keys->until_s)
        by_report_add(report, BY_GRADE_TROUBLE, keys->folder, renew, "a certificate expired at %s",
                      day(keys->until_s, text));
    else if (now < keys->from_s)
        by_report_add(report, BY_GRADE_TROUBLE, keys->folder, "set this machine's clock",
                      "a certificate is not valid before %s, and our clock is behind that",
                      day(keys->from_s, text));
    else if (!check_host(doctor))
        return;
    else if (keys->until_s != 0 && keys->until_s - now < KEYS_SOON_S)
        by_report_add(report, BY_GRADE_ADVICE, keys->folder, renew, "a certificate expires in %d days",
                      (int)((keys->until_s - now) / 86400));
    else
        by_report_add(report, BY_GRADE_OK, keys->folder, NULL, "of %s %s, valid until %s", keys->role,
                      keys->name, day(keys->until_s, text));
}
