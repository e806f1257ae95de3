/* Selects a transport and reports the choice. */
#include "host-driver/transport.h"

#include <stdio.h>
#include <string.h>

#include "host-driver/error.h"

int by_transport_open(const struct by_transport_config *config, const char *wanted,
                      struct by_transport **transport)
{
    char why[sizeof((*transport)->note)];
    int error;

    if (strcmp(wanted, "shm") == 0)
        return by_shm_open(config, transport);
    if (strcmp(wanted, "udp") == 0)
        return by_udp_open(config, transport);
    if (strcmp(wanted, "dpdk") == 0)
        return by_dpdk_open(config, transport);
    if (strcmp(wanted, "auto") == 0 && strcmp(config->settings->value[BY_SETTING_RING], "off") != 0 &&
        by_udp_single_frames(config)) {
        struct by_transport_config rings = *config;

        rings.rings = true;
        if (by_udp_open(&rings, transport) == 0)
            return 0;
    }
    error = by_afxdp_open(config, transport);
    if (error == 0 || strcmp(wanted, "afxdp") == 0)
        return error;
    snprintf(why, sizeof(why), "afxdp does not work here: %.150s", by_fail_text());
    if (!config->quiet)
        fprintf(stderr, "banyan: transport udp, because %s\n", why);
    error = by_udp_open(config, transport);
    if (error == 0)
        memcpy((*transport)->note, why, sizeof(why));
    return error;
}
