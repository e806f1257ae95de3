/* Implements device.h. */
#include "host-driver/plugin/dpdk/device.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "offload/base/errors.h"

/* Whether `text` has the form of `form`, where x is a hexadecimal digit. */
static bool has_form(const char *text, const char *form)
{
    for (; *form != 0; form++, text++)
        if (*form == 'x' ? !isxdigit((unsigned char)*text) : *text != *form)
            return false;
    return *text == 0;
}

/* Sets the device of a port; a PCI address may lack its domain. */
static int set_device(struct by_dpdk_device *device, const char *text, size_t bytes, char *why,
                      size_t why_bytes)
{
    char copy[BY_DPDK_DEVICE_BYTES];
    bool brief;

    if (bytes == 0 || bytes >= sizeof(copy) - sizeof("0000:")) {
        snprintf(why, why_bytes,
                 "BANYAN_DPDK_PORTS: a device has %zu characters; it needs 1 to %zu: an interface, a PCI "
                 "address, or a virtual device such as net_af_packet0,iface=eth0",
                 bytes, sizeof(copy) - sizeof("0000:") - 1);
        return BY_EINVAL;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = 0;
    brief = has_form(copy, "xx:xx.x");
    device->kind = brief || has_form(copy, "xxxx:xx:xx.x") ? BY_PORT_PCI
                   : strncmp(copy, "net_", 4) == 0         ? BY_PORT_VDEV
                                                           : BY_PORT_IFACE;
    if (device->kind == BY_PORT_IFACE && bytes > BY_NAME_MAX) {
        snprintf(why, why_bytes, "BANYAN_DPDK_PORTS: '%s' is no interface: a name has at most %u characters",
                 copy, BY_NAME_MAX);
        return BY_EINVAL;
    }
    snprintf(device->text, sizeof(device->text), "%s%.*s", brief ? "0000:" : "",
             (int)(sizeof(device->text) - sizeof("0000:")), copy);
    return 0;
}

/* Returns the port that the element names before its first '=', or -1. A virtual device has a comma
 * before that. */
static int64_t named_port(const char *element, size_t bytes, const struct by_image_port *ports,
                          uint32_t count)
{
    const char *equals = memchr(element, '=', bytes);
    size_t name_bytes = equals != NULL ? (size_t)(equals - element) : 0;

    for (uint32_t i = 0; equals != NULL && i < count; i++)
        if (strlen(ports[i].name) == name_bytes && memcmp(ports[i].name, element, name_bytes) == 0)
            return i;
    return -1;
}

/* Whether the element has the form PORT=DEVICE with an unknown port. */
static bool names_no_port(const char *element, size_t bytes)
{
    const char *equals = memchr(element, '=', bytes), *comma = memchr(element, ',', bytes);

    return equals != NULL && (comma == NULL || equals < comma);
}

static void list_ports(const struct by_image_port *ports, uint32_t count, char *text, size_t bytes)
{
    size_t used = 0;

    text[0] = 0;
    for (uint32_t i = 0; i < count && used + BY_NAME_MAX + 3 < bytes; i++)
        used += (size_t)snprintf(text + used, bytes - used, "%s%s", i > 0 ? ", " : "", ports[i].name);
}

int by_dpdk_devices_read(const char *list, const struct by_image_port *ports, uint32_t count,
                         struct by_dpdk_device *devices, char *why, size_t why_bytes)
{
    bool given[BY_PORTS_MAX] = {false};
    char existing[256];
    uint32_t next = 0;
    int error = 0;

    list_ports(ports, count, existing, sizeof(existing));
    while (error == 0 && *list != 0) {
        size_t bytes = strcspn(list, ";");
        const char *end = list + bytes;
        int64_t port = named_port(list, bytes, ports, count);

        if (port < 0 && names_no_port(list, bytes)) {
            snprintf(why, why_bytes, "BANYAN_DPDK_PORTS: '%.*s' names no port of the table, which has %s",
                     (int)bytes, list, existing);
            return BY_EINVAL;
        }
        if (port >= 0) {
            size_t skip = strlen(ports[port].name) + 1;

            list += skip;
            bytes -= skip;
        } else {
            port = next;
        }
        if (port >= count) {
            snprintf(why, why_bytes, "BANYAN_DPDK_PORTS has more devices than the table has ports: %u (%s)",
                     count, existing);
            return BY_EINVAL;
        }
        if (given[port]) {
            snprintf(why, why_bytes, "BANYAN_DPDK_PORTS gives port %s two devices", ports[port].name);
            return BY_EINVAL;
        }
        given[port] = true;
        error = set_device(&devices[port], list, bytes, why, why_bytes);
        next = (uint32_t)port + 1;
        list = *end == ';' ? end + 1 : end;
    }
    for (uint32_t i = 0; error == 0 && i < count; i++)
        if (!given[i])
            error = set_device(&devices[i], ports[i].name, strlen(ports[i].name), why, why_bytes);
    return error;
}

void by_dpdk_words(const char *line, char *text, size_t bytes)
{
    static const char *const words[][2] = {{"--iface ", ""},
                                           {"--pci ", ""},
                                           {"--vdev ", ""},
                                           {"--driver ", "BANYAN_DPDK_DRIVER="},
                                           {"--no-huge", "BANYAN_DPDK_OPTIONS=--no-huge"}};
    size_t used = 0;

    while (*line != 0 && used + 1 < bytes) {
        size_t word = 0, length;

        while (word < sizeof(words) / sizeof(words[0]) &&
               strncmp(line, words[word][0], strlen(words[word][0])) != 0)
            word++;
        if (word == sizeof(words) / sizeof(words[0])) {
            text[used++] = *line++;
            continue;
        }
        line += strlen(words[word][0]);
        length = strlen(words[word][1]);
        if (length > bytes - 1 - used)
            length = bytes - 1 - used;
        memcpy(text + used, words[word][1], length);
        used += length;
    }
    text[used] = 0;
}
