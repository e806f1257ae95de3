/*
 * banyan-run: starts a program with the plugin for its MPI; it only changes the environment. It is
 * placed before the launcher (banyan-run mpirun -n 4 a.out) or before the program (mpirun -n 4
 * banyan-run a.out), and then executes it.
 */
#include <errno.h>
#include <libgen.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host-driver/tools/run/find.h"
#include "offload/linux/options.h"
#include "offload/linux/output.h"

enum { EXIT_USAGE = BY_OPTIONS_USAGE, EXIT_ENVIRONMENT = 3 };

struct run_options {
    enum by_run_mpi mpi;
    const char *table;
    bool verbose;
};

static const char *const mpi_words[] = {"?", "openmpi", "mpich"};

#define AT(member) BY_OPTION_AT(struct run_options, member)

static const struct by_option rows[] = {
    {BY_ROW_CHOICE(0, "mpi", "MPI", AT(mpi), BY_RUN_OPENMPI, BY_RUN_MPICH,
                   "the MPI of the program, %l, if it cannot be detected (scripts)"),
     .words = mpi_words},
    {BY_ROW_TEXT(0, "table", "PATH", AT(table),
                 "set BANYAN_TABLE: the host's table, or a folder with HOSTNAME.table")},
    {BY_ROW_FLAG('v', "verbose", AT(verbose), "print the variables that are set")},
    {0}};

static const struct by_options command_line = {
    .program = "banyan-run",
    .usage = "banyan-run [options] [--] program [argument...]",
    .about = "Starts an MPI program, or its launcher, with collectives that the network computes.",
    .epilog = "banyan-run(1) is the manual.",
    .version = "banyan-run " BY_VERSION,
    .rows = rows,
    .least = 1,
    .most = UINT_MAX,
    .operands = "a program",
    .stops = true};

/* Returns PREFIX/lib/banyan for PREFIX/bin/banyan-run, or reports what is missing. */
static int plugin_path(const char *name, char found[PATH_MAX])
{
    char self[PATH_MAX] = "", path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

    if (length < 0 ||
        (size_t)snprintf(path, sizeof(path), "%s/../lib/banyan/%s", dirname(self), name) >= sizeof(path) ||
        realpath(path, found) == NULL) {
        fprintf(stderr, "banyan-run: the plugin %s cannot be found: %s; build it with `make mpi`\n", path,
                strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    return 0;
}

static int set(const struct run_options *options, const char *name, const char *value)
{
    if (setenv(name, value, 1) != 0) {
        fprintf(stderr, "banyan-run: %s cannot be set: %s\n", name, strerror(errno));
        return EXIT_ENVIRONMENT;
    }
    if (options->verbose)
        fprintf(stderr, "banyan-run: %s=%s\n", name, value);
    return 0;
}

/* Puts a path before a list in the environment: Open MPI stops at the first folder that is not
 * there. */
static int set_list(const struct run_options *options, const char *name, const char *path,
                    const char *fallback)
{
    const char *before = getenv(name);
    char *list;
    int status;

    if (before == NULL || before[0] == 0)
        before = fallback;
    if (asprintf(&list, "%s%s%s", path, before[0] != 0 ? ":" : "", before) < 0) {
        fprintf(stderr, "banyan-run: no memory for %s\n", name);
        return EXIT_ENVIRONMENT;
    }
    status = set(options, name, list);
    free(list);
    return status;
}

static int prepare(const struct run_options *options, enum by_run_mpi mpi)
{
    char plugin[PATH_MAX], table[PATH_MAX];
    int status = 0;

    if (options->table != NULL) {
        /* Ranks may start in another folder. */
        status =
            set(options, "BANYAN_TABLE", realpath(options->table, table) != NULL ? table : options->table);
        if (status != 0)
            return status;
    }
    if (mpi == BY_RUN_OPENMPI) {
        status = plugin_path("openmpi", plugin);
        return status != 0 ? status
                           : set_list(options, "OMPI_MCA_mca_base_component_path", plugin,
                                      "SYSTEM_DEFAULT:USER_DEFAULT");
    }
    status = plugin_path("libbanyan-mpich.so", plugin);
    return status != 0 ? status : set_list(options, "LD_PRELOAD", plugin, "");
}

static int start(int argc, char **argv)
{
    struct run_options options = {0};
    int status = by_options_read(&command_line, &options, &argc, argv);
    const char *why = "--mpi";
    enum by_run_mpi mpi;
    char *path;

    if (status >= 0)
        return status;
    path = by_run_locate(argv[1]);
    if (path == NULL) {
        fprintf(stderr, "banyan-run: cannot find the program %s: %s\n", argv[1],
                strerror(errno != 0 ? errno : ENOENT));
        return EXIT_USAGE;
    }
    mpi = options.mpi != BY_RUN_UNKNOWN ? options.mpi : by_run_mpi_of(path, &why);
    free(path);
    if (mpi == BY_RUN_UNKNOWN) {
        fprintf(stderr,
                "banyan-run: cannot detect the MPI of %s from its libraries or name; use --mpi openmpi or "
                "--mpi mpich\n",
                argv[1]);
        return EXIT_USAGE;
    }
    if (options.verbose)
        fprintf(stderr, "banyan-run: %s uses %s, according to %s\n", argv[1],
                mpi == BY_RUN_OPENMPI ? "Open MPI" : "MPICH", why);
    status = prepare(&options, mpi);
    if (status != 0)
        return status;
    execvp(argv[1], argv + 1);
    fprintf(stderr, "banyan-run: %s: %s\n", argv[1], strerror(errno));
    return EXIT_ENVIRONMENT;
}

int main(int argc, char **argv)
{
    return by_output_end(start(argc, argv));
}
