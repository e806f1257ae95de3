/* Reads the facts of this machine; see local.h. Single-threaded. */
#include "control/discover/local.h"

#include <fnmatch.h>
#include <jansson.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/fabric/import/lldp_json.h"
#include "offload/base/errors.h"
#include "offload/linux/device.h"

/* Longest output of lldpctl that is read (bytes). */
#define LLDPCTL_BYTES_MAX ((size_t)8 << 20)
#define PATTERN_BYTES     64u

/* Whether a name matches one of the patterns; `at` iterates over them. */
static bool next_pattern(const char **at, char pattern[PATTERN_BYTES])
{
    size_t length = strcspn(*at, ",");

    if (length == 0 && **at == 0)
        return false;
    snprintf(pattern, PATTERN_BYTES, "%.*s", (int)(length < PATTERN_BYTES ? length : PATTERN_BYTES - 1), *at);
    *at += length + ((*at)[length] == ',');
    return true;
}

static bool is_wanted(const char *patterns, const char *name)
{
    char pattern[PATTERN_BYTES];

    if (patterns == NULL)
        return true;
    while (next_pattern(&patterns, pattern))
        if (fnmatch(pattern, name, 0) == 0)
            return true;
    return false;
}

static void take_interface(struct by_facts *facts, const char *name, const struct by_device *device)
{
    static const uint8_t none[6];
    struct by_facts_interface *interface = by_facts_interface(facts, name);

    interface->is_down = !device->is_up || !device->has_carrier;
    interface->has_mac = memcmp(device->mac, none, sizeof(none)) != 0;
    memcpy(interface->mac, device->mac, sizeof(interface->mac));
    interface->mtu = device->mtu;
    interface->speed_mbps = device->speed_mbps;
    interface->queues = device->queues;
    interface->numa = device->numa;
    snprintf(interface->driver, sizeof(interface->driver), "%s", device->driver);
    snprintf(interface->bus, sizeof(interface->bus), "%s", device->bus);
    snprintf(interface->features, sizeof(interface->features), "%s", device->features);
    by_device_addresses(name, interface->addresses, sizeof(interface->addresses));
}

/* Finds a pattern that matches none of the interfaces. */
static int check_patterns(const struct by_facts *facts, const char *patterns,
                          const struct if_nameindex *names, struct by_problem *problem)
{
    char pattern[PATTERN_BYTES], existing[160] = "";
    size_t used = 0;

    while (patterns != NULL && next_pattern(&patterns, pattern)) {
        bool found = false;

        for (uint32_t i = 0; i < facts->interface_count && !found; i++)
            found = fnmatch(pattern, facts->interfaces[i].name, 0) == 0;
        if (found)
            continue;
        for (; names != NULL && names->if_index != 0; names++)
            if (used + strlen(names->if_name) + 3 < sizeof(existing))
                used += (size_t)snprintf(existing + used, sizeof(existing) - used, "%s%s",
                                         used > 0 ? ", " : "", names->if_name);
        return by_problem_say(problem, BY_ENOENT,
                              "--iface %s: no Ethernet interface has this name; this machine has %s", pattern,
                              existing);
    }
    return 0;
}

static int read_interfaces(struct by_facts *facts, const struct by_local_options *options,
                           struct by_problem *problem)
{
    struct if_nameindex *names = if_nameindex();
    int error;

    for (const struct if_nameindex *i = names;
         i != NULL && i->if_index != 0 && facts->interface_count < BY_FACTS_INTERFACES_MAX; i++) {
        struct by_device device;

        if (!is_wanted(options->ifaces, i->if_name))
            continue;
        by_device_read(i->if_name, &device);
        if (device.exists && device.is_ethernet)
            take_interface(facts, i->if_name, &device);
    }
    error = check_patterns(facts, options->ifaces, names, problem);
    if (names != NULL)
        if_freenameindex(names);
    return error;
}

static int take_sight(void *context, const struct by_lldp_sight *sight)
{
    struct by_facts *facts = context;
    struct by_facts_neighbour neighbour = {.forwards = sight->forwards};
    uint32_t index = by_facts_find(facts, sight->interface);

    by_facts_copy_name(neighbour.node, sight->node);
    by_facts_copy_name(neighbour.port, sight->port);
    by_facts_copy_name(neighbour.description, sight->description);
    neighbour.has_mac = by_mac_read(neighbour.port, neighbour.mac);
    if (index != UINT32_MAX && neighbour.node[0] != 0 && neighbour.port[0] != 0)
        by_facts_hear(&facts->interfaces[index], &neighbour);
    return 0;
}

int by_local_lldpctl(struct by_facts *facts, const char *json, size_t bytes, struct by_problem *problem)
{
    json_error_t mistake;
    json_t *root = json_loadb(json, bytes, 0, &mistake);
    int error = 0;

    if (root == NULL || !by_lldp_json_is(root))
        error = by_problem_say(problem, BY_EFORMAT,
                               "the output of `lldpctl -f json` is not what it should "
                               "be: its neighbours are not used");
    else
        error = by_lldp_json_each(root, take_sight, facts);
    json_decref(root);
    return error;
}

/* Asks lldpd, if it is installed and runs. */
static void ask_lldpd(struct by_facts *facts)
{
    FILE *stream = popen("lldpctl -f json 2>/dev/null", "r"); /* a fixed command; none installed: no output */
    char *text = by_alloc(LLDPCTL_BYTES_MAX, 1);
    size_t bytes = stream == NULL ? 0 : fread(text, 1, LLDPCTL_BYTES_MAX, stream);
    struct by_problem problem;

    if (stream != NULL && pclose(stream) == 0 && bytes > 0 &&
        by_local_lldpctl(facts, text, bytes, &problem) != 0)
        fprintf(stderr, "banyan: %s\n", problem.text);
    free(text);
}

int by_local_read(struct by_facts_list *list, const struct by_local_options *options,
                  struct by_problem *problem)
{
    struct by_facts *facts = by_facts_add(list, options->node, "this machine");
    int error = read_interfaces(facts, options, problem);

    if (error != 0)
        return error;
    if (options->listen_ms > 0) {
        error = by_hear(facts, options->listen_ms, problem);
        facts->without_lldp = error != 0;
    }
    ask_lldpd(facts);
    return error;
}
