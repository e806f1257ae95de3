/*
 * A scenario: a fabric, jobs, runs of hosts, and faults, all drawn from a seed. Then everything is
 * repaired, and after a while the invariants of a quiet fabric must hold (check_quiet), and every
 * job that exists must carry traffic. Invariants that hold at all times are checked where they
 * could break: two tables of one generation (switches.c), wrong sums and hanging operations
 * (hosts.c).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/service/daemon/jobs.h"
#include "firmware/agent/limit.h"
#include "tests/world/world.h"

/* The end of the faults, and how long a repaired fabric may take until it is quiet. */
#define FAULTS_NS (6 * VM_S)
#define REPAIR_NS (3 * VM_S)
#define QUIET_NS  (10 * VM_S)
/* How long a run of a few operations may take on a sound fabric. */
#define RUN_NS (8 * VM_S)

struct world world;

/* Hosts h*, switches x*; a link for each pair of letters after the colon. */
static const struct {
    uint32_t hosts, switches;
    const char *links;
} shapes[] = {
    {2, 1, "h0-x0 h1-x0"},
    {3, 1, "h0-x0 h1-x0 h2-x0"},
    {2, 2, "h0-x0 x0-x1 x1-h1"},
    {2, 2, "h0-x0 h0-x1 h1-x0 h1-x1"},
    {3, 2, "h0-x0 h0-x1 h1-x0 h1-x1 h2-x0 h2-x1"},
    {4, 4, "h0-x0 h1-x0 h2-x1 h3-x1 x0-x2 x0-x3 x1-x2 x1-x3"},
};

/* ---- the fabric ---- */

static void make_json(const char *links, uint32_t hosts, uint32_t switches)
{
    size_t used = (size_t)snprintf(world.json, sizeof(world.json),
                                   "{\"name\": \"world\", \"unit\": \"Gbit/s\", \"nodes\": [");

    for (uint32_t i = 0; i < hosts + switches; i++)
        used += (size_t)snprintf(
            world.json + used, sizeof(world.json) - used,
            i < hosts
                ? "%s{\"name\": \"h%u\", \"kind\": \"compute\"}"
                : "%s{\"name\": \"x%u\", \"kind\": \"switch\", \"multicast\": true, \"aggregate\": true}",
            i > 0 ? ", " : "", i < hosts ? i : i - hosts);
    used += (size_t)snprintf(world.json + used, sizeof(world.json) - used, "], \"links\": [");
    for (const char *at = links; *at != 0; at += at[5] == ' ' ? 6 : 5)
        used += (size_t)snprintf(world.json + used, sizeof(world.json) - used,
                                 "%s{\"between\": [\"%.2s\", \"%.2s\"], \"bandwidth\": 10}",
                                 at > links ? ", " : "", at, at + 3);
    snprintf(world.json + used, sizeof(world.json) - used, "]}");
}

static void open_world(uint64_t seed)
{
    static const uint32_t heartbeats[] = {100, 250, 500};
    uint32_t shape = vm_draw(sizeof(shapes) / sizeof(shapes[0]));
    struct by_problem problem = {0};

    memset(&world, 0, sizeof(world));
    world.requests_fd = -1;
    make_json(shapes[shape].links, shapes[shape].hosts, shapes[shape].switches);
    if (by_topology_parse(world.json, strlen(world.json), &world.topology, &problem) != 0 ||
        by_address_map_make(world.topology, &world.map, &problem) != 0) {
        fprintf(stderr, "world: %s\n", problem.text);
        abort();
    }
    world.slot_count = 64u << vm_draw(2);
    world.stall_ns = 3 * VM_S + vm_draw(4) * VM_S;
    snprintf(world.options.heartbeat, sizeof(world.options.heartbeat), "%u", heartbeats[vm_draw(3)]);
    snprintf(world.options.keyed, sizeof(world.options.keyed), "--keyed=%s",
             vm_draw(4) > 0 ? "header" : "payload");
    snprintf(world.options.lose, sizeof(world.options.lose), "%u", vm_draw(3) > 0 ? 0 : 1 + vm_draw(100));
    snprintf(world.options.renew, sizeof(world.options.renew), "%u",
             vm_draw(4) > 0 ? 1u << 31 : 10 + vm_draw(60));
    /* of the seed alone, so that all else is as without standbys */
    snprintf(world.options.standby, sizeof(world.options.standby), "%u",
             (unsigned)(seed * 0x9e3779b97f4a7c15u >> 32) % (BY_STANDBYS_MAX + 1));
    for (uint32_t i = 0; i < world.topology->node_count; i++) {
        const struct by_node *node = &world.topology->nodes[i];

        world.switch_of[i] = world.host_of[i] = -1;
        if (node->compute) {
            struct world_host *host = &world.hosts[world.host_count];

            world.host_of[i] = (int32_t)world.host_count;
            *host = (struct world_host){
                .node = i, .number = world.host_count++, .name = node->name, .ready_fd = -1};
            host->link.latency_ns = 50000;
            vm_process_link(&host->process, &host->link);
        } else {
            struct world_switch *device = &world.switches[world.switch_count];

            world.switch_of[i] = (int32_t)world.switch_count;
            *device = (struct world_switch){.node = i, .number = world.switch_count++, .name = node->name};
            world_switch_open(device);
        }
    }
    for (uint32_t i = 0; i < WORLD_JOBS_MAX; i++)
        world.jobs[i].job = (uint16_t)(i + 1);
}

static void end_process(struct vm_process *process)
{
    vm_process_kill(process);
    vm.failed = false;
    vm_run(vm.now_ns);
}

static void close_world(void)
{
    bool failed = vm.failed;

    if (world.runs)
        end_process(&world.banyand);
    for (uint32_t i = 0; i < world.host_count; i++)
        if (world.hosts[i].run != NULL)
            end_process(&world.hosts[i].process);
    vm.failed = failed;
    for (uint32_t i = 0; i < world.switch_count; i++)
        world_switch_die(&world.switches[i]);
    by_address_map_free(&world.map);
    by_topology_free(world.topology);
    world_claims_reset();
}

/* ---- jobs and runs ---- */

static void draw_members(struct world_job *job)
{
    job->members_drawn++;
    job->rank_count = 0;
    for (uint32_t i = 0; i < world.host_count; i++) {
        job->members[i] = world.host_count == 2 || vm_draw(4) > 0;
        job->rank_count += job->members[i];
    }
    for (uint32_t i = 0; job->rank_count < 2; i++) {
        job->rank_count += !job->members[i];
        job->members[i] = true;
    }
}

static void on_user(void *context, uint64_t number)
{
    struct world_job *job = &world.jobs[number];

    (void)context;
    if (job->state == WORLD_NONE || job->state == WORLD_ENDED) {
        draw_members(job);
        world_request(job, true);
    } else if (job->state == WORLD_EXISTS && vm_draw(3) == 0) {
        world_request(job, false);
    } else if (job->state == WORLD_UNKNOWN) {
        world_request(job, false);
    }
}

/* Starts the hosts of a job that are idle. */
static void start_hosts(const struct world_job *job, uint32_t ops)
{
    static uint32_t turn;
    uint32_t rank = 0;

    for (uint32_t i = 0; i < world.host_count; i++)
        if (job->members[i] && world.hosts[i].run != NULL)
            return;
    turn = (uint32_t)by_prng_next(&vm.prng);
    for (uint32_t i = 0; i < world.host_count; i++) {
        if (!job->members[i])
            continue;
        world_host_start(&world.hosts[i], job->job, ops, turn);
        world.hosts[i].rank = rank++;
        world.hosts[i].rank_count = job->rank_count;
        world.hosts[i].members_drawn = job->members_drawn;
    }
}

static void on_hosts(void *context, uint64_t number)
{
    const struct world_job *job = &world.jobs[number];

    (void)context;
    if (job->state == WORLD_EXISTS)
        start_hosts(job, 1 + vm_draw(12));
}

/* ---- faults ---- */

static void on_banyand(void *context, uint64_t number)
{
    (void)context;
    if (world.runs)
        return;
    world_banyand_start();
    /* While it starts, queries the switches, settles a push. */
    if (number == 0 && vm.now_ns < FAULTS_NS && vm_draw(6) == 0) {
        world.banyand.kill_in = 1 + vm_draw(1500);
        vm_at(vm.now_ns + VM_S + vm_draw(1000) * VM_MS, on_banyand, NULL, 0);
    }
}

static void kill_banyand(bool power)
{
    if (!world.runs)
        return;
    vm_process_kill(&world.banyand);
    if (power) {
        vm_trace("its machine loses power");
        vm_disk_power();
    }
}

static void on_switch(void *context, uint64_t number)
{
    (void)number;
    world_switch_start(context);
}

static void on_cable(void *context, uint64_t number)
{
    struct world_cable *cable = context;
    bool down = cable->down;

    (void)number;
    vm_trace("link %u is repaired", (unsigned)(cable - world.cables));
    *cable = (struct world_cable){0};
    if (down)
        world_carrier_changed((uint32_t)(cable - world.cables));
}

static void on_disk(void *context, uint64_t number)
{
    (void)context;
    (void)number;
    vm_trace("the disk is repaired");
    vm_disk = (struct vm_disk_faults){0};
}

static void fault_banyand(void)
{
    bool power = vm_draw(3) == 0;

    if (!world.runs || world.banyand.zombie)
        return;
    if (vm_draw(5) == 0) {
        vm_trace("banyand gets SIGTERM");
        vm_process_signal(&world.banyand);
    } else if (power) {
        kill_banyand(true);
    } else {
        /* between any two calls from now on; often during a push */
        world.banyand.kill_in = 1 + vm_draw(vm_draw(2) == 0 ? 40 : 600);
    }
    vm_at(vm.now_ns + VM_MS + vm_draw(2) * vm_draw(3000) * VM_MS + vm_draw(200) * VM_MS, on_banyand, NULL, 0);
}

static void fault_switch(void)
{
    struct world_switch *device = &world.switches[vm_draw(world.switch_count)];

    world_switch_die(device);
    vm_at(vm.now_ns + (vm_draw(2) == 0 ? vm_draw(200) * VM_MS : vm_draw(4000) * VM_MS), on_switch, device, 0);
}

static void fault_cable(void)
{
    static const uint32_t losses[] = {1000, 500, 100, 10};
    struct world_cable *cable = &world.cables[vm_draw(world.topology->link_count)];

    *cable = (struct world_cable){.down = vm_draw(2) == 0};
    if (!cable->down)
        cable->loss = losses[vm_draw(4)];
    vm_trace("link %u %s %u", (unsigned)(cable - world.cables), cable->down ? "has no carrier" : "loses",
             cable->loss);
    if (cable->down)
        world_carrier_changed((uint32_t)(cable - world.cables));
    vm_at(vm.now_ns + vm_draw(4000) * VM_MS, on_cable, cable, 0);
}

static void fault_line(void)
{
    uint32_t which = vm_draw(world.switch_count + world.host_count);
    struct vm_link *link = which < world.switch_count ? &world.switches[which].link
                                                      : &world.hosts[which - world.switch_count].link;

    if (vm_draw(2) == 0) {
        vm_trace("control line %u is cut", which);
        vm_link_cut(link);
    } else {
        link->silent_until_ns = vm.now_ns + vm_draw(3000) * VM_MS;
        vm_trace("control line %u is silent until %.3f", which, (double)link->silent_until_ns / 1e9);
    }
}

static void fault_disk(void)
{
    uint32_t kind = vm_draw(4), rate = vm_draw(2) == 0 ? 1000 : 30 + vm_draw(300);

    vm_trace("disk: fault %u, %u of 1000", kind, rate);
    vm_disk.write_error = kind == 0 ? rate : 0;
    vm_disk.full = kind == 1 ? rate : 0;
    vm_disk.sync_error = kind == 2 ? rate : 0;
    vm_disk.sync_slow = kind == 3 ? rate : 0;
    vm_disk.slow_ns = vm_draw(2000) * VM_MS;
    vm_at(vm.now_ns + vm_draw(3000) * VM_MS, on_disk, NULL, 0);
}

static void fault_clock(void)
{
    int64_t jump = (int64_t)vm_draw(7200) * (int64_t)VM_S;

    jump = vm_draw(2) == 0 ? jump : -jump;
    vm_trace("the clock jumps by %lld s", (long long)(jump / (int64_t)VM_S));
    vm.wall_ns += jump;
}

/* The power of the whole site. */
static void fault_site(void)
{
    for (uint32_t i = 0; i < world.switch_count; i++) {
        world_switch_die(&world.switches[i]);
        vm_at(vm.now_ns + vm_draw(1000) * VM_MS, on_switch, &world.switches[i], 0);
    }
    kill_banyand(true);
    vm_at(vm.now_ns + vm_draw(1500) * VM_MS, on_banyand, NULL, 0);
}

static void fault_host(void)
{
    world_host_kill(&world.hosts[vm_draw(world.host_count)]);
}

static void on_fault(void *context, uint64_t number)
{
    static void (*const faults[])(void) = {fault_banyand, fault_banyand, fault_banyand, fault_switch,
                                           fault_switch,  fault_cable,   fault_line,    fault_disk,
                                           fault_disk,    fault_clock,   fault_host,    fault_site};

    (void)context;
    faults[number % (sizeof(faults) / sizeof(faults[0]))]();
}

static void draw_faults(void)
{
    uint32_t count = 1 + vm_draw(8);

    for (uint32_t i = 0; i < count; i++)
        vm_at(500 * VM_MS + vm_draw((uint32_t)((FAULTS_NS - VM_S) / VM_MS)) * VM_MS, on_fault, NULL,
              vm_draw(12));
    for (uint32_t i = 0; i < 2 + vm_draw(5); i++)
        vm_at(1200 * VM_MS + vm_draw(4500) * VM_MS, on_user, NULL, vm_draw(WORLD_JOBS_MAX));
    for (uint32_t i = 0; i < vm_draw(4); i++)
        vm_at(1500 * VM_MS + vm_draw(4500) * VM_MS, on_hosts, NULL, vm_draw(WORLD_JOBS_MAX));
}

static void repair(void)
{
    vm_trace("everything is repaired");
    vm_disk = (struct vm_disk_faults){0};
    world.banyand.kill_in = 0;
    for (uint32_t i = 0; i < world.topology->link_count; i++)
        world.cables[i] = (struct world_cable){0};
    for (uint32_t i = 0; i < world.switch_count; i++) {
        world.switches[i].link.silent_until_ns = 0;
        world_switch_start(&world.switches[i]);
    }
    for (uint32_t i = 0; i < world.host_count; i++)
        world.hosts[i].link.silent_until_ns = 0;
    /* It may be ending, and start again later. */
    for (unsigned i = 0; i < 4; i++)
        vm_at(vm.now_ns + i * VM_S, on_banyand, NULL, 1);
}

/* ---- what must hold in a quiet fabric ---- */

static void check_job(const struct world_job *known)
{
    const struct by_job *job = by_jobs_find(world.daemon, known->job);

    if (known->state == WORLD_EXISTS && job == NULL)
        vm_violate("job %u was acknowledged, and is lost", known->job);
    if (known->state == WORLD_ENDED && job != NULL)
        vm_violate("the end of job %u was acknowledged, and it is there again", known->job);
}

/* Returns the slots of a job and its standbys at a switch. */
static uint64_t slots_of(const struct by_job_tables *tables, uint32_t node)
{
    uint64_t slots = tables->need[node].slots;

    for (uint32_t i = 0; i < tables->standby_count; i++)
        slots += tables->standbys[i]->need[node].slots;
    return slots;
}

/* banyand's tables, and its account of slots, are those of the switch. */
static void check_switch(const struct world_switch *device)
{
    const struct by_daemon_switch *known = by_switch_find(world.daemon, device->node);
    uint64_t slots = 0;
    size_t bytes = 0;
    const uint8_t *image = by_engine_image(device->engine, &bytes);

    if (known->state != BY_SWITCH_UP) {
        vm_violate("%s is up, and banyand does not see it: %s", device->name, known->text);
        return;
    }
    if (known->image.bytes == NULL)
        return; /* it never had a job */
    if (image == NULL || by_image_hash(image, bytes) != known->image.hash) {
        vm_violate("%s has table %016llx instead of %016llx", device->name,
                   image != NULL ? (unsigned long long)by_image_hash(image, bytes) : 0ull,
                   (unsigned long long)known->image.hash);
        return;
    }
    for (uint32_t i = 0; i < world.daemon->job_count; i++)
        if (world.daemon->jobs[i]->tables != NULL && world.daemon->jobs[i]->state != BY_JOB_FAILED)
            slots += slots_of(world.daemon->jobs[i]->tables, device->node);
    if (slots != by_use_slots(image))
        vm_violate("%s has entries with %u slots, and banyand counts %llu", device->name, by_use_slots(image),
                   (unsigned long long)slots);
}

static void check_quiet(void)
{
    if (!world.runs || world.daemon == NULL || world.daemon->start != NULL) {
        vm_violate("banyand %s on a sound fabric: status %d", world.runs ? "does not lead" : "has ended",
                   world.status);
        return;
    }
    for (uint32_t i = 0; i < WORLD_JOBS_MAX; i++)
        check_job(&world.jobs[i]);
    for (uint32_t i = 0; i < world.switch_count; i++)
        check_switch(&world.switches[i]);
}

/* Waits until the fabric is quiet, or until it must be. */
static void await_quiet(uint64_t until_ns)
{
    uint32_t failures;

    do {
        vm_run(vm.now_ns + VM_S / 2);
        failures = vm.failures;
        vm.trial = true;
        check_quiet();
        vm.trial = false;
    } while (!vm.failed && vm.failures != failures && vm.now_ns < until_ns);
}

/* All hosts of a job run, and must get the right sums. Returns whether they did. */
static bool try_traffic(const struct world_job *job)
{
    uint64_t until = vm.now_ns + RUN_NS + world.stall_ns;
    bool busy = true, fine = true;

    start_hosts(job, 3);
    while (busy && !vm.failed && vm.now_ns < until) {
        vm_run(vm.now_ns + 100 * VM_MS);
        busy = false;
        for (uint32_t i = 0; i < world.host_count; i++)
            busy |= job->members[i] && world.hosts[i].run != NULL;
    }
    for (uint32_t i = 0; i < world.host_count; i++)
        fine &= !job->members[i] || (world.hosts[i].run == NULL && world.hosts[i].error == 0);
    return fine;
}

static void check_traffic(const struct world_job *known)
{
    const struct by_job *job = world.daemon != NULL ? by_jobs_find(world.daemon, known->job) : NULL;

    if (known->state != WORLD_EXISTS || vm.failed || job == NULL)
        return;
    if (!try_traffic(known) && !vm.failed && !try_traffic(known) && !vm.failed)
        for (uint32_t i = 0; i < world.host_count && !vm.failed; i++)
            if (known->members[i] && world.hosts[i].error != 0)
                vm_violate("job %u carries no traffic on a sound fabric: %s: %s", known->job,
                           world.hosts[i].name, world.hosts[i].text);
    if (!vm.failed)
        world.traffic++;
}

bool world_run(uint64_t seed, int verbose)
{
    bool fine;

    vm_open(seed, verbose);
    vm_disk_start();
    open_world(seed);
    for (uint32_t i = 0; i < world.switch_count; i++)
        world_switch_start(&world.switches[i]);
    world_banyand_start();
    vm_at(1100 * VM_MS, on_user, NULL, 0);
    vm_at(1600 * VM_MS, on_hosts, NULL, 0);
    draw_faults();
    vm_run(FAULTS_NS);
    if (!vm.failed)
        repair();
    vm_run(FAULTS_NS + REPAIR_NS);
    await_quiet(FAULTS_NS + QUIET_NS);
    for (uint32_t i = 0; i < world.host_count; i++)
        world_host_kill(&world.hosts[i]);
    vm_run(vm.now_ns + 3 * VM_S);
    if (!vm.failed)
        check_quiet();
    for (uint32_t i = 0; i < WORLD_JOBS_MAX && !vm.failed; i++)
        check_traffic(&world.jobs[i]);
    if (!vm.failed)
        await_quiet(vm.now_ns + 3 * VM_S);
    if (!vm.failed)
        check_quiet();
    fine = !vm.failed;
    close_world();
    vm_close();
    return fine;
}
