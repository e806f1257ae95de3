/*
 * The interface between libbanyan and its plugin for DPDK (libbanyan-dpdk.so.0, host-driver/plugin/
 * dpdk), which is loaded when a communicator uses the transport dpdk. Only the plugin links with
 * DPDK. Both are built from one tree: a plugin of another version, or with other structs, is
 * refused.
 */
#ifndef BY_HOST_DPDK_PLUGIN_H
#define BY_HOST_DPDK_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#include "host-driver/transport.h"

#define BY_DPDK_PLUGIN_FILE   "libbanyan-dpdk.so.0"
#define BY_DPDK_PLUGIN_SYMBOL "by_dpdk_plugin"

struct by_dpdk_plugin {
    /* first, and always at the same place: of the program version, such as "0.1.0" */
    char version[16];
    uint32_t transport_bytes; /* sizes of the structs that cross the interface */
    uint32_t settings_bytes;
    /* Opens all ports of the image, or none. 0, or a BY_E* with its reason in `text`. On success
     * `text` holds a note for the user, or is empty. Any thread. */
    int (*open)(const struct by_transport_config *config, struct by_transport **transport, char *text,
                size_t text_bytes);
};

#endif
