/* Options that name switches. See target.h. Single-threaded. */
#include "control/cli/target.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/cli/cli.h"
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
