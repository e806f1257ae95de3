/* A plugin of another version, for test_dpdk.c: its transport must never be opened. */
#include <stdlib.h>

#include "host-driver/dpdk_plugin.h"

static int never(const struct by_transport_config *config, struct by_transport **transport, char *text,
                 size_t text_bytes)
{
    (void)config, (void)transport, (void)text, (void)text_bytes;
    abort();
}

extern const struct by_dpdk_plugin by_dpdk_plugin;
const struct by_dpdk_plugin by_dpdk_plugin = {.version = "99.7",
                                              .transport_bytes = sizeof(struct by_transport),
                                              .settings_bytes = sizeof(struct by_settings),
                                              .open = never};
