/*
 * The lab's state on disk: a folder for each lab with a state file, which records everything before
 * it is created. A lab that is killed leaves the file behind, and `banyan lab down` or the next run
 * undoes it. Processes are identified by PID and start time, so a later process with the same PID
 * is never ended.
 */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "control/lab/lab.h"

#define STOP_MS 3000

static void base_folder(char path[LAB_PATH])
{
    const char *runtime = getenv("XDG_RUNTIME_DIR");

    if (geteuid() == 0)
        snprintf(path, LAB_PATH, "/run/banyan");
    else if (runtime != NULL && runtime[0] == '/' && strlen(runtime) < 200)
        snprintf(path, LAB_PATH, "%s/banyan", runtime);
    else
        snprintf(path, LAB_PATH, "/tmp/banyan-%u", (unsigned)geteuid());
}

unsigned long long lab_state_started(pid_t pid)
{
    unsigned long long started = 0;
    char path[64], text[1024], *at;
    FILE *stream;
    size_t bytes;

    snprintf(path, sizeof(path), "/proc/%ld/stat", (long)pid);
    stream = fopen(path, "r");
    if (stream == NULL)
        return 0;
    bytes = fread(text, 1, sizeof(text) - 1, stream);
    fclose(stream);
    text[bytes] = 0;
    /*
     * Field 22. Fields are counted after the name, which may contain any character and ends at the
     * last parenthesis. A zombie counts as ended.
     */
    at = strrchr(text, ')');
    if (at == NULL || at[1] == 0 || at[2] == 'Z')
        return 0;
    at += 2;
    for (int field = 3; field < 22 && at != NULL; field++) {
        at = strchr(at, ' ');
        if (at != NULL)
            at++;
    }
    if (at != NULL)
        started = strtoull(at, NULL, 10);
    return started;
}

int lab_state_note(struct lab *lab, const char *format, ...)
{
    char path[LAB_PATH + 16];
    va_list arguments;
    FILE *stream;

    snprintf(path, sizeof(path), "%s/state", lab->folder);
    stream = fopen(path, "ae");
    if (stream == NULL)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
    va_start(arguments, format);
    vfprintf(stream, format, arguments);
    va_end(arguments);
    fputc('\n', stream);
    return fclose(stream) == 0 ? 0 : by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: %s", path, strerror(errno));
}

int lab_state_open(struct lab *lab)
{
    char base[LAB_PATH];

    base_folder(base);
    if (mkdir(base, 0755) != 0 && errno != EEXIST)
        return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: cannot make the folder: %s", base, strerror(errno));
    /*
     * The PID of a running process is unique, but a dead process with the same PID may have left a
     * folder; then a suffix is added.
     */
    for (unsigned attempt = 0; attempt < 100; attempt++) {
        snprintf(lab->id, sizeof(lab->id), attempt ? "%ld.%u" : "%ld", (long)getpid(), attempt);
        snprintf(lab->folder, sizeof(lab->folder), "%.400s/lab-%s", base, lab->id);
        if (mkdir(lab->folder, 0755) == 0) {
            lab->has_folder = true;
            return lab_state_note(lab, "owner %ld %llu %s", (long)getpid(), lab_state_started(getpid()),
                                  lab->options.topology);
        }
        if (errno != EEXIST)
            break;
    }
    return by_cli_fail(BY_EXIT_ENVIRONMENT, "%s: cannot make the folder: %s", lab->folder, strerror(errno));
}

/* Removes a lab's folder: plain files and sockets, one level. */
static void remove_folder(const char *folder)
{
    DIR *dir = opendir(folder);

    if (dir == NULL)
        return;
    for (struct dirent *entry; (entry = readdir(dir)) != NULL;) {
        char path[LAB_PATH + 300];
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(dir);
    rmdir(folder);
}

void lab_state_close(struct lab *lab)
{
    char path[LAB_PATH + 16];

    if (!lab->has_folder)
        return;
    lab->has_folder = false;
    snprintf(path, sizeof(path), "%s/state", lab->folder);
    if (lab->options.keep)
        unlink(path);
    else
        remove_folder(lab->folder);
}

static void pause_ms(long ms)
{
    struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

/* Ends a process that is not a child of this one, if it is still the recorded process. */
static void end_process(pid_t pid, unsigned long long started)
{
    for (int waited = 0; lab_state_started(pid) == started; waited += 50) {
        kill(pid, waited == 0 ? SIGTERM : waited >= STOP_MS ? SIGKILL : 0);
        if (waited > 2 * STOP_MS)
            return;
        pause_ms(50);
    }
}

struct noted {
    pid_t owner;
    unsigned long long started;
    char topology[256];
    bool up;
};

static int read_owner(const char *folder, struct noted *noted)
{
    char path[LAB_PATH + 400], line[512];
    FILE *stream;
    long owner = 0;
    int found = 0;

    *noted = (struct noted){0};
    snprintf(path, sizeof(path), "%.800s/state", folder);
    stream = fopen(path, "r");
    if (stream == NULL)
        return 0;
    while (fgets(line, sizeof(line), stream) != NULL) {
        if (sscanf(line, "owner %ld %llu %255[^\n]", &owner, &noted->started, noted->topology) >= 2)
            found = 1;
        if (strcmp(line, "up\n") == 0)
            noted->up = true;
    }
    fclose(stream);
    noted->owner = (pid_t)owner;
    return found;
}

/* Undoes a lab according to its state file: processes, then namespaces, then the folder. */
static void undo(const char *folder)
{
    char path[LAB_PATH + 400], line[512], name[128];
    unsigned long long started;
    FILE *stream;
    long pid;

    snprintf(path, sizeof(path), "%.800s/state", folder);
    for (int pass = 0; pass < 2; pass++) {
        stream = fopen(path, "r");
        while (stream != NULL && fgets(line, sizeof(line), stream) != NULL) {
            if (pass == 0 && sscanf(line, "process %ld %llu", &pid, &started) == 2)
                end_process((pid_t)pid, started);
            if (pass == 1 && sscanf(line, "ns %127s", name) == 1)
                lab_net_delete(name);
        }
        if (stream != NULL)
            fclose(stream);
    }
    remove_folder(folder);
}

/* Whether `id` (an id or a topology file) selects this lab. */
static bool matches(const char *folder, const struct noted *noted, const char *id)
{
    const char *name = strrchr(folder, '/');

    return strcmp(noted->topology, id) == 0 || (name != NULL && strcmp(name + 5, id) == 0);
}

/* Undoes one lab if it is selected. Returns 1 if it was undone. */
static int sweep_one(const char *folder, const char *id, bool all, bool quiet)
{
    struct noted noted;
    bool alive;

    if (!read_owner(folder, &noted) || (id != NULL && !matches(folder, &noted, id)))
        return 0;
    alive = lab_state_started(noted.owner) == noted.started && noted.started != 0;
    if (alive) {
        if (!quiet)
            fprintf(stderr, "banyan: %s belongs to the running process %ld: end that instead\n", folder,
                    (long)noted.owner);
        return 0;
    }
    if (noted.up && id == NULL && !all) {
        if (!quiet)
            printf("%s (%s) is up: `banyan lab down %s` ends it\n", folder, noted.topology,
                   strrchr(folder, '/') + 5);
        return 0;
    }
    undo(folder);
    if (!quiet)
        printf("%s (%s) is removed\n", folder, noted.topology);
    return 1;
}

int lab_state_sweep(const char *id, bool all, bool quiet)
{
    char base[LAB_PATH], folder[LAB_PATH + 300];
    struct dirent **entries;
    int count, swept = 0;

    base_folder(base);
    count = scandir(base, &entries, NULL, alphasort);
    for (int i = 0; i < count; i++) {
        if (strncmp(entries[i]->d_name, "lab-", 4) == 0) {
            snprintf(folder, sizeof(folder), "%s/%s", base, entries[i]->d_name);
            swept += sweep_one(folder, id, all, quiet);
        }
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    return swept;
}
