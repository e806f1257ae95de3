/*
 * The transport dpdk: loads its plugin, which has the port drivers of the switch. libbanyan itself
 * does not need DPDK. The plugin stays loaded until the process ends, because DPDK cannot be
 * started twice. Any thread.
 */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/address.h"
#include "host-driver/dpdk_plugin.h"
#include "host-driver/error.h"
#include "host-driver/image_file.h"
#include "host-driver/transport.h"

#define CANDIDATES_MAX 4u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct by_dpdk_plugin *loaded;

/* Lists the paths at which the plugin may be: beside this library, in lib/ beside the program's
 * folder, and where the linker searches. Returns their number. */
static uint32_t list_candidates(char path[CANDIDATES_MAX][PATH_MAX])
{
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    uint32_t count = 0;
    Dl_info self;

    if (dladdr((const void *)&loaded, &self) != 0 && self.dli_fname != NULL &&
        strchr(self.dli_fname, '/') != NULL) {
        char folder[PATH_MAX];

        snprintf(folder, sizeof(folder), "%s", self.dli_fname);
        snprintf(path[count++], PATH_MAX, "%.4000s/%s", dirname(folder), BY_DPDK_PLUGIN_FILE);
        /* of a plugin for MPI, in a folder of lib/ */
        snprintf(folder, sizeof(folder), "%s", self.dli_fname);
        snprintf(path[count++], PATH_MAX, "%.4000s/../%s", dirname(folder), BY_DPDK_PLUGIN_FILE);
    }
    if (length > 0) {
        program[length] = 0;
        snprintf(path[count++], PATH_MAX, "%.4000s/../lib/%s", dirname(program), BY_DPDK_PLUGIN_FILE);
    }
    snprintf(path[count++], PATH_MAX, "%s", BY_DPDK_PLUGIN_FILE);
    return count;
}

static int check(const struct by_dpdk_plugin *plugin, const char *path)
{
    if (plugin == NULL)
        return by_fail(BY_EVERSION, "transport dpdk: %s is not banyan's plugin for DPDK", path);
    if (strncmp(plugin->version, BY_VERSION, sizeof(plugin->version)) != 0 ||
        plugin->transport_bytes != sizeof(struct by_transport) ||
        plugin->settings_bytes != sizeof(struct by_settings))
        return by_fail(BY_EVERSION,
                       "transport dpdk: %s is of version %.16s and does not belong to this libbanyan, which "
                       "is of version %s: install both from one build",
                       path, plugin->version, BY_VERSION);
    loaded = plugin;
    return 0;
}

static int load_from(const char *path)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);

    if (library == NULL)
        return by_fail(
            BY_ENOENT,
            "transport dpdk: %s; it requires DPDK (Debian's package dpdk), and %s beside libbanyan "
            "or at BANYAN_DPDK_LIBRARY",
            dlerror(), BY_DPDK_PLUGIN_FILE);
    return check(dlsym(library, BY_DPDK_PLUGIN_SYMBOL), path);
}

/* Loads the plugin from `given`, or if that is empty from the first place that has the file. */
static int load(const char *given)
{
    char path[CANDIDATES_MAX][PATH_MAX];
    uint32_t count;

    if (loaded != NULL)
        return 0;
    if (given[0] != 0)
        return load_from(given);
    count = list_candidates(path);
    for (uint32_t i = 0; i + 1 < count; i++)
        if (access(path[i], F_OK) == 0)
            return load_from(path[i]);
    return load_from(path[count - 1]);
}

int by_dpdk_open(const struct by_transport_config *config, struct by_transport **transport)
{
    char text[BY_ERROR_TEXT_MAX] = "";
    int error = by_image_ports_check(config->image);

    if (error == 0)
        error = by_ipv6_refuse(config->image, "dpdk");
    if (error != 0)
        return error;
    pthread_mutex_lock(&lock);
    error = load(config->settings->value[BY_SETTING_DPDK_LIBRARY]);
    pthread_mutex_unlock(&lock);
    if (error != 0)
        return error;
    error = loaded->open(config, transport, text, sizeof(text));
    if (error != 0)
        return by_fail(error, "transport dpdk: %s", text);
    if (text[0] != 0 && config->settings->value[BY_SETTING_LOG][0] != '0')
        fprintf(stderr, "banyan: transport dpdk: %s\n", text);
    return 0;
}
