/* Options that name switches. See target.h. Single-threaded. */
#include "control/cli/target.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/cli/cli.h"
#include "control/fabric/site.h"
#include "control/service/controller/target.h"

int by_cli_target(const char *text, by_cli_target_fn *add, void *context)
{
    const char *address;
    size_t length = by_target_split(text, &address);
    struct by_problem problem = {0};

    if (length == 0)
        return by_cli_fail(BY_EXIT_USAGE, "--to %s: " BY_TARGET_FORM, text);
    if (by_target_check(address, &problem) != 0)
        return by_cli_fail(BY_EXIT_USAGE, "--to %.100s: %s", text, problem.text);
    add(context, text, length, address);
    return 0;
}

/* What by_cli_target_site collects. */
struct target_site {
    const char *path;
    by_cli_target_fn *add;
    void *context;
    unsigned count;
    int status;
};

static void add_site(void *object, const char *name, const char *address)
{
    struct target_site *site = object;
    struct by_problem problem = {0};

    if (site->status == 0 && by_target_check(address, &problem) != 0)
        site->status = by_cli_fail(BY_EXIT_USAGE, "--site %s: node '%s': %s", site->path, name, problem.text);
    if (site->status == 0)
        site->add(site->context, name, strlen(name), address);
    site->count++;
}

int by_cli_target_site(const char *path, bool needed, by_cli_target_fn *add, void *context)
{
    struct target_site site = {.path = path, .add = add, .context = context};
    struct by_problem problem = {0};

    if (by_site_controls(path, add_site, &site, &problem) != 0)
        return by_cli_refuse(path, &problem);
    if (needed && site.status == 0 && site.count == 0)
        return by_cli_fail(BY_EXIT_USAGE,
                           "--site %s: no node has a control channel: add \"nodes\": [{\"name\": \"leaf0\", "
                           "\"control\": \"tls:10.0.0.5:46248\"}]",
                           path);
    return site.status;
}

static int is_socket(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);

    return length > 5 && strcmp(entry->d_name + length - 5, ".sock") == 0;
}

int by_cli_target_folder(const char *folder, by_cli_target_fn *add, void *context)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_socket, alphasort);
    char address[4200];

    if (count < 0)
        return by_cli_fail(BY_EXIT_USAGE, "--sockets %s: %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        snprintf(address, sizeof(address), "unix:%.3900s/%.255s", folder, entries[i]->d_name);
        add(context, entries[i]->d_name, strlen(entries[i]->d_name) - 5, address);
        free(entries[i]);
    }
    free(entries);
    return count > 0 ? 0 : by_cli_fail(BY_EXIT_USAGE, "--sockets %s: no *.sock in this folder", folder);
}
