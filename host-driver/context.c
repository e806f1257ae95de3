/* Contexts: settings and a table image. Threads: see comm.h. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host-driver/comm.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"

void banyan_config_init(struct banyan_config *config)
{
    if (config == NULL)
        return;
    memset(config, 0, sizeof(*config));
    config->size = sizeof(*config);
}

static int take_transport(struct banyan_context *context, const char *wanted)
{
    if (strcmp(wanted, "auto") != 0 && strcmp(wanted, "afxdp") != 0 && strcmp(wanted, "udp") != 0 &&
        strcmp(wanted, "dpdk") != 0 && strcmp(wanted, "shm") != 0)
        return by_fail(BY_EINVAL,
                       "transport '%s' is unknown; set BANYAN_TRANSPORT to auto, afxdp, udp, dpdk or shm",
                       wanted);
    memcpy(context->transport, wanted, strlen(wanted) + 1);
    return 0;
}

static int take_mode(struct banyan_context *context, const char *wanted)
{
    context->mode = (uint8_t)by_mode_from_name(wanted);
    if (context->mode == 0)
        return by_fail(BY_EINVAL, "mode '%s' is unknown; set BANYAN_MODE to fast, det or exact", wanted);
    return 0;
}

static int take_settings(struct banyan_context *context, const struct banyan_config *config)
{
    const char *transport = context->settings.value[BY_SETTING_TRANSPORT];
    double seconds;
    int error;

    if (config->transport != NULL)
        transport = config->transport;
    if (strcmp(context->settings.value[BY_SETTING_OFFLOAD], "auto") != 0 &&
        strcmp(context->settings.value[BY_SETTING_OFFLOAD], "off") != 0)
        return by_fail(BY_EINVAL, "BANYAN_OFFLOAD is '%s' (%s); use auto or off",
                       context->settings.value[BY_SETTING_OFFLOAD],
                       context->settings.origin[BY_SETTING_OFFLOAD]);
    error = take_transport(context, transport);
    if (error == 0)
        error = take_mode(context,
                          config->mode != NULL ? config->mode : context->settings.value[BY_SETTING_MODE]);
    if (error == 0)
        error = by_settings_decimal(&context->settings, BY_SETTING_TIMEOUT, BY_SETTING_TIMEOUT_MAX, &seconds);
    if (error != 0)
        return error;
    context->stall_ns = config->timeout_ms > 0 ? config->timeout_ms * 1000000u : (uint64_t)(seconds * 1e9);
    if (context->stall_ns == 0)
        return by_fail(BY_EINVAL, "BANYAN_TIMEOUT is 0; use a number of seconds above 0, up to %g",
                       BY_SETTING_TIMEOUT_MAX);
    error = by_settings_decimal(&context->settings, BY_SETTING_WAIT, BY_SETTING_WAIT_MAX, &seconds);
    if (error != 0)
        return error;
    context->absent_ns = (uint64_t)(seconds * 1e9);
    if (context->absent_ns < context->stall_ns)
        context->absent_ns = context->stall_ns;
    return 0;
}

/* If the path is a folder, uses the image in it with this host's name. */
static int image_path(const char *path, char found[PATH_MAX])
{
    char host[HOST_NAME_MAX + 1] = "";
    struct stat status;

    if (stat(path, &status) != 0 || !S_ISDIR(status.st_mode)) {
        if ((size_t)snprintf(found, PATH_MAX, "%s", path) >= PATH_MAX)
            return by_fail(BY_EINVAL, "BANYAN_TABLE: the path is too long; the limit is %d bytes", PATH_MAX);
        return 0;
    }
    if (gethostname(host, sizeof(host) - 1) != 0)
        return by_fail(BY_EIO, "this host has no name: %s; set BANYAN_TABLE to its NODE.table",
                       strerror(errno));
    host[strcspn(host, ".")] = 0;
    if ((size_t)snprintf(found, PATH_MAX, "%s/%s.table", path, host) >= PATH_MAX)
        return by_fail(BY_EINVAL, "BANYAN_TABLE: the path is too long; the limit is %d bytes", PATH_MAX);
    if (access(found, F_OK) != 0)
        return by_fail(BY_ENOENT, "%s: no table %s.table for this host; set BANYAN_TABLE to its NODE.table",
                       path, host);
    return 0;
}

/* Without a table: only the host's own name and the bootstrap. */
static int take_no_image(struct banyan_context *context, int off)
{
    if (context->bootstrap.source == BY_SOURCE_NONE || context->bootstrap.places_only) {
        char tried[200];

        by_bootstrap_tried(tried, sizeof(tried));
        return by_fail(
            BY_EINVAL,
            "%s; set %sRANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT for collectives between hosts, or start "
            "the program with mpirun; %s",
            off ? "BANYAN_OFFLOAD is off, and no setting states where ranks meet" : "BANYAN_TABLE is not set",
            off ? "" : "BANYAN_TABLE to this host's NODE.table, or ", tried);
    }
    if (gethostname(context->header.name, sizeof(context->header.name) - 1) != 0)
        snprintf(context->header.name, sizeof(context->header.name), "this host");
    return 0;
}

/* The table comes from the controller when the communicator opens; until then only the name is
 * set. */
static void take_name(struct banyan_context *context)
{
    const char *name = context->settings.value[BY_SETTING_NODE];
    char host[HOST_NAME_MAX + 1] = "";

    if (name[0] == 0 && gethostname(host, sizeof(host) - 1) == 0) {
        host[strcspn(host, ".")] = 0;
        name = host;
    }
    snprintf(context->header.name, sizeof(context->header.name), "%.*s", (int)BY_NAME_MAX,
             name[0] != 0 ? name : "this-host");
}

static int take_image(struct banyan_context *context, const struct banyan_config *config)
{
    const char *path = config->table != NULL ? config->table : context->settings.value[BY_SETTING_TABLE];
    int off = strcmp(context->settings.value[BY_SETTING_OFFLOAD], "off") == 0;
    char file[PATH_MAX];
    int error;

    if (config->fabric != NULL) {
        if (config->host == NULL)
            return by_fail(BY_EINVAL, "config.host is NULL; with a fabric it must name the host (see "
                                      "banyan_fabric_host)");
        context->fabric = config->fabric;
        context->node = by_fabric_host(config->fabric, config->host);
        if (context->node == NULL)
            return BY_ENOENT;
        context->image = by_fabric_image(context->node, &context->image_bytes);
    } else {
        error = by_bootstrap_find(&context->bootstrap, &context->settings, config);
        if (path[0] == 0 && by_member_wanted(context)) {
            take_name(context);
            if (error != 0)
                context->bootstrap.source = BY_SOURCE_NONE;
            return 0;
        }
        if (off || path[0] == 0)
            return error != 0 ? error : take_no_image(context, off);
        /* with a table, RANK and the other variables may be meant for another program */
        if (error != 0) {
            bool asked = config->bootstrap != NULL || config->launcher != NULL ||
                         strcmp(context->settings.value[BY_SETTING_BOOTSTRAP], "auto") != 0;

            if (asked)
                return error;
            context->bootstrap.source = BY_SOURCE_NONE;
        }
        error = image_path(path, file);
        if (error == 0)
            error = by_host_image_read(file, &context->image_owned, &context->image_bytes);
        if (error != 0)
            return error;
        context->image = context->image_owned;
    }
    by_image_header(context->image, &context->header);
    if (context->header.kind != BY_NODE_HOST)
        return by_fail(BY_EINVAL, "%s is the table of switch %s, not of a host", path, context->header.name);
    return 0;
}

banyan_status_t banyan_init(const struct banyan_config *config, struct banyan_context **out)
{
    struct banyan_config given;
    struct banyan_context *context;
    int error;

    if (out == NULL)
        return by_fail(BY_EINVAL, "banyan_init: context is NULL");
    banyan_config_init(&given);
    if (config != NULL) {
        if (config->size != sizeof(given))
            return by_fail(
                BY_EVERSION,
                "banyan_init: config.size is %zu, this library expects %zu; call banyan_config_init",
                config->size, sizeof(given));
        given = *config;
    }
    context = calloc(1, sizeof(*context));
    if (context == NULL)
        return by_fail(BY_ENOMEM, "no memory for a context: %zu bytes", sizeof(*context));
    atomic_init(&context->comm_count, 0);
    atomic_init(&context->meeting_count, 0);
    error = by_settings_load(&context->settings);
    if (error == 0)
        error = take_settings(context, &given);
    by_bootstrap_init(&context->bootstrap);
    if (error == 0)
        error = take_image(context, &given);
    if (error != 0) {
        by_bootstrap_close(&context->bootstrap);
        free(context->image_owned);
        free(context);
        return (banyan_status_t)error;
    }
    context->magic = BY_CONTEXT_MAGIC;
    *out = context;
    return BANYAN_OK;
}

banyan_status_t banyan_finalize(struct banyan_context *context)
{
    unsigned count;

    if (context == NULL || context->magic != BY_CONTEXT_MAGIC)
        return by_fail(BY_EINVAL, "banyan_finalize: %s",
                       context == NULL ? "context is NULL" : "context is not a context");
    count = atomic_load(&context->comm_count);
    if (count > 0)
        return by_fail(BY_EBUSY, "banyan_finalize: %u communicators exist; destroy them first", count);
    context->magic = 0;
    by_bootstrap_close(&context->bootstrap);
    free(context->image_owned);
    free(context);
    return BANYAN_OK;
}
