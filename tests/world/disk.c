/* A disk: what was written is in a cache, and durable once it was synced. It is the file system of
 * SQLite (a VFS) and of the calls of state_folder.c. See vm.h. */
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/world/vm.h"
#include "tests/world/vm_inside.h"

#define ROOT       "/w/"
#define FILES_MAX  8
#define SECTOR     512u
#define SHM_BYTES  32768u
#define REGION_MAX 8

/* A write that is not synced; bytes 0: the file was cut to `at`. */
struct vm_write {
    size_t at, bytes;
};

struct vm_file {
    char path[96]; /* "": free, or without a name */
    uint8_t *bytes;
    size_t size, room;
    uint8_t *safe; /* what is durable */
    size_t safe_size, safe_room;
    struct vm_write *writes;
    uint32_t write_count, write_room;
    bool listed; /* its entry in the folder is durable */
    const struct vm_process *lock;
};

struct vm_handle {
    sqlite3_file base;
    struct vm_file *file;
    struct vm_process *process;
    bool syncs_folder, is_temporary;
    uint8_t *regions[REGION_MAX];
};

struct vm_disk_faults vm_disk;

static struct vm_file files[FILES_MAX];
static bool has_folder;

static void *must(void *memory)
{
    if (memory == NULL)
        abort();
    return memory;
}

static struct vm_file *find(const char *path)
{
    for (unsigned i = 0; i < FILES_MAX; i++)
        if (files[i].path[0] != 0 && strcmp(files[i].path, path) == 0)
            return &files[i];
    return NULL;
}

static struct vm_file *create(const char *path)
{
    for (unsigned i = 0; i < FILES_MAX; i++)
        if (files[i].path[0] == 0) {
            snprintf(files[i].path, sizeof(files[i].path), "%s", path);
            return &files[i];
        }
    abort();
}

static void erase(struct vm_file *file)
{
    free(file->bytes);
    free(file->safe);
    free(file->writes);
    *file = (struct vm_file){0};
}

static void put(uint8_t **bytes, size_t *size, size_t *room, size_t at, const void *from, size_t count)
{
    if (at + count > *room) {
        size_t more = 2 * (at + count) + 4096;

        *bytes = must(realloc(*bytes, more));
        memset(*bytes + *room, 0, more - *room);
        *room = more;
    }
    if (at > *size)
        memset(*bytes + *size, 0, at - *size);
    if (count > 0)
        memcpy(*bytes + at, from, count);
    if (at + count > *size)
        *size = at + count;
}

static void record(struct vm_file *file, size_t at, size_t bytes)
{
    if (file->write_count == file->write_room) {
        file->write_room = 2 * file->write_room + 64;
        file->writes = must(realloc(file->writes, file->write_room * sizeof(*file->writes)));
    }
    file->writes[file->write_count++] = (struct vm_write){at, bytes};
}

static void cut(struct vm_file *file, size_t size)
{
    put(&file->bytes, &file->size, &file->room, size, NULL, 0);
    file->size = size;
    record(file, size, 0);
}

/* Makes one write durable; the cache may be shorter by now. */
static void apply(struct vm_file *file, const struct vm_write *one, bool torn)
{
    size_t end = one->at + one->bytes < file->size ? one->at + one->bytes : file->size;

    if (one->bytes == 0) {
        put(&file->safe, &file->safe_size, &file->safe_room, one->at, NULL, 0);
        file->safe_size = one->at;
        return;
    }
    for (size_t at = one->at; at < end;) {
        size_t next = (at / SECTOR + 1) * SECTOR < end ? (at / SECTOR + 1) * SECTOR : end;

        if (!torn || vm_draw(2) == 0)
            put(&file->safe, &file->safe_size, &file->safe_room, at, file->bytes + at, next - at);
        at = next;
    }
}

static void sync_file(struct vm_file *file)
{
    for (uint32_t i = 0; i < file->write_count; i++)
        apply(file, &file->writes[i], false);
    file->write_count = 0;
    if (file->safe_size > file->size)
        file->safe_size = file->size;
}

/* A sync that failed: the system forgets which writes it has not made durable. */
static void forget_writes(struct vm_file *file)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < file->write_count; i++) {
        uint32_t luck = vm_draw(3);

        if (luck == 0)
            apply(file, &file->writes[i], true);
        else if (luck == 1)
            file->writes[kept++] = file->writes[i];
    }
    file->write_count = kept;
}

void vm_disk_power(void)
{
    for (unsigned i = 0; i < FILES_MAX; i++) {
        struct vm_file *file = &files[i];

        if (file->path[0] == 0)
            continue;
        if (!file->listed && vm_draw(2) == 0) {
            erase(file);
            continue;
        }
        for (uint32_t w = 0; w < file->write_count; w++) {
            uint32_t luck = vm_draw(3);

            if (luck > 0)
                apply(file, &file->writes[w], luck == 1);
        }
        file->write_count = 0;
        file->listed = true;
        put(&file->bytes, &file->size, &file->room, 0, file->safe, file->safe_size);
        file->size = file->safe_size;
    }
}

void vm_disk_killed(struct vm_process *process)
{
    for (unsigned i = 0; i < FILES_MAX; i++)
        if (files[i].lock == process)
            files[i].lock = NULL;
}

void vm_disk_open(void)
{
    vm_disk = (struct vm_disk_faults){0};
    has_folder = false;
}

void vm_disk_close(void)
{
    for (unsigned i = 0; i < FILES_MAX; i++)
        erase(&files[i]);
}

static bool strikes(uint32_t per_thousand)
{
    return per_thousand > 0 && vm_draw(1000) < per_thousand;
}

/* ---- SQLite ---- */

static struct vm_handle *handle_of(sqlite3_file *base)
{
    return (struct vm_handle *)base;
}

static bool is_dead(const struct vm_handle *handle)
{
    vm_call();
    return handle->process != NULL && handle->process->zombie;
}

static int file_close(sqlite3_file *base)
{
    struct vm_handle *handle = handle_of(base);

    for (unsigned i = 0; i < REGION_MAX; i++)
        free(handle->regions[i]);
    if (handle->is_temporary) {
        erase(handle->file);
        free(handle->file);
    }
    return SQLITE_OK;
}

static int file_read(sqlite3_file *base, void *to, int count, sqlite3_int64 at)
{
    struct vm_file *file = handle_of(base)->file;
    size_t have = (size_t)at < file->size ? file->size - (size_t)at : 0;

    if (is_dead(handle_of(base)))
        return SQLITE_IOERR_READ;
    if (have > (size_t)count)
        have = (size_t)count;
    if (have > 0)
        memcpy(to, file->bytes + at, have);
    if (have == (size_t)count)
        return SQLITE_OK;
    memset((uint8_t *)to + have, 0, (size_t)count - have);
    return SQLITE_IOERR_SHORT_READ;
}

static int file_write(sqlite3_file *base, const void *from, int count, sqlite3_int64 at)
{
    struct vm_handle *handle = handle_of(base);
    struct vm_file *file = handle->file;

    if (is_dead(handle))
        return SQLITE_IOERR_WRITE;
    if (!handle->is_temporary && strikes(vm_disk.write_error)) {
        vm_trace("disk: a write fails");
        return SQLITE_IOERR_WRITE;
    }
    if (!handle->is_temporary && strikes(vm_disk.full)) {
        vm_trace("disk: full");
        return SQLITE_FULL;
    }
    put(&file->bytes, &file->size, &file->room, (size_t)at, from, (size_t)count);
    record(file, (size_t)at, (size_t)count);
    return SQLITE_OK;
}

static int file_truncate(sqlite3_file *base, sqlite3_int64 size)
{
    if (is_dead(handle_of(base)))
        return SQLITE_IOERR_TRUNCATE;
    cut(handle_of(base)->file, (size_t)size);
    return SQLITE_OK;
}

static int file_sync(sqlite3_file *base, int flags)
{
    struct vm_handle *handle = handle_of(base);

    (void)flags;
    if (is_dead(handle))
        return SQLITE_IOERR_FSYNC;
    if (vm_fiber() != NULL)
        vm_block(vm_time() + 200000 + (strikes(vm_disk.sync_slow) ? vm_disk.slow_ns : vm_draw(4000000)));
    if (is_dead(handle))
        return SQLITE_IOERR_FSYNC;
    if (strikes(vm_disk.sync_error)) {
        vm_trace("disk: a sync fails");
        forget_writes(handle->file);
        return SQLITE_IOERR_FSYNC;
    }
    sync_file(handle->file);
    if (handle->syncs_folder)
        for (unsigned i = 0; i < FILES_MAX; i++)
            files[i].listed = true;
    return SQLITE_OK;
}

static int file_size(sqlite3_file *base, sqlite3_int64 *size)
{
    *size = (sqlite3_int64)handle_of(base)->file->size;
    return is_dead(handle_of(base)) ? SQLITE_IOERR_FSTAT : SQLITE_OK;
}

static int file_lock(sqlite3_file *base, int level)
{
    (void)base;
    (void)level;
    return SQLITE_OK;
}

static int file_reserved(sqlite3_file *base, int *out)
{
    (void)base;
    *out = 0;
    return SQLITE_OK;
}

static int file_control(sqlite3_file *base, int operation, void *argument)
{
    (void)base;
    (void)operation;
    (void)argument;
    return SQLITE_NOTFOUND;
}

static int file_sector(sqlite3_file *base)
{
    (void)base;
    return 4096;
}

static int file_character(sqlite3_file *base)
{
    (void)base;
    return SQLITE_IOCAP_POWERSAFE_OVERWRITE; /* as SQLite assumes of disks */
}

static int shm_map(sqlite3_file *base, int region, int bytes, int extend, void volatile **out)
{
    struct vm_handle *handle = handle_of(base);

    *out = NULL;
    if (region >= REGION_MAX || (size_t)bytes > SHM_BYTES)
        return SQLITE_IOERR_SHMMAP;
    if (handle->regions[region] == NULL && extend)
        handle->regions[region] = must(calloc(1, SHM_BYTES));
    *out = handle->regions[region];
    return SQLITE_OK;
}

static int shm_lock(sqlite3_file *base, int offset, int n, int flags)
{
    (void)base;
    (void)offset;
    (void)n;
    (void)flags;
    return SQLITE_OK;
}

static void shm_barrier(sqlite3_file *base)
{
    (void)base;
}

static int shm_unmap(sqlite3_file *base, int remove)
{
    (void)remove;
    for (unsigned i = 0; i < REGION_MAX; i++) {
        free(handle_of(base)->regions[i]);
        handle_of(base)->regions[i] = NULL;
    }
    return SQLITE_OK;
}

static const sqlite3_io_methods methods = {.iVersion = 2,
                                           .xClose = file_close,
                                           .xRead = file_read,
                                           .xWrite = file_write,
                                           .xTruncate = file_truncate,
                                           .xSync = file_sync,
                                           .xFileSize = file_size,
                                           .xLock = file_lock,
                                           .xUnlock = file_lock,
                                           .xCheckReservedLock = file_reserved,
                                           .xFileControl = file_control,
                                           .xSectorSize = file_sector,
                                           .xDeviceCharacteristics = file_character,
                                           .xShmMap = shm_map,
                                           .xShmLock = shm_lock,
                                           .xShmBarrier = shm_barrier,
                                           .xShmUnmap = shm_unmap};

static int vfs_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *base, int flags, int *out)
{
    struct vm_handle *handle = handle_of(base);
    struct vm_file *file = path != NULL ? find(path) : must(calloc(1, sizeof(*file)));

    (void)vfs;
    *handle = (struct vm_handle){.process = vm_self(), .is_temporary = path == NULL};
    if (is_dead(handle) || (file == NULL && !(flags & SQLITE_OPEN_CREATE))) {
        if (path == NULL)
            free(file);
        return SQLITE_CANTOPEN;
    }
    handle->file = file != NULL ? file : create(path);
    handle->syncs_folder = flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL);
    handle->base.pMethods = &methods;
    if (out != NULL)
        *out = flags;
    return SQLITE_OK;
}

static int vfs_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    struct vm_file *file = find(path);

    (void)vfs;
    (void)sync;
    if (vm_call())
        return SQLITE_IOERR_DELETE;
    if (file == NULL)
        return SQLITE_IOERR_DELETE_NOENT;
    erase(file);
    return SQLITE_OK;
}

static int vfs_access(sqlite3_vfs *vfs, const char *path, int flags, int *out)
{
    const struct vm_file *file = find(path);

    (void)vfs;
    *out = file != NULL && (flags != SQLITE_ACCESS_EXISTS || file->size > 0);
    return SQLITE_OK;
}

static int vfs_path(sqlite3_vfs *vfs, const char *path, int room, char *out)
{
    (void)vfs;
    snprintf(out, (size_t)room, "%s", path);
    return SQLITE_OK;
}

static int vfs_random(sqlite3_vfs *vfs, int count, char *out)
{
    (void)vfs;
    for (int i = 0; i < count; i++)
        out[i] = (char)by_prng_next(&vm.prng);
    return count;
}

static int vfs_sleep(sqlite3_vfs *vfs, int microseconds)
{
    (void)vfs;
    if (vm_fiber() != NULL)
        vm_block(vm_time() + (uint64_t)microseconds * 1000);
    return microseconds;
}

static int vfs_time(sqlite3_vfs *vfs, double *days)
{
    (void)vfs;
    *days = 2440587.5 + ((double)vm.now_ns + (double)vm.wall_ns) / 86400e9;
    return SQLITE_OK;
}

static int vfs_error(sqlite3_vfs *vfs, int count, char *text)
{
    (void)vfs;
    (void)count;
    (void)text;
    return 0;
}

static sqlite3_vfs vfs = {.iVersion = 1,
                          .szOsFile = sizeof(struct vm_handle),
                          .mxPathname = 96,
                          .zName = "world",
                          .xOpen = vfs_open,
                          .xDelete = vfs_delete,
                          .xAccess = vfs_access,
                          .xFullPathname = vfs_path,
                          .xRandomness = vfs_random,
                          .xSleep = vfs_sleep,
                          .xCurrentTime = vfs_time,
                          .xGetLastError = vfs_error};

void vm_disk_start(void)
{
    static bool started;

    if (!started) {
        sqlite3_config(SQLITE_CONFIG_SINGLETHREAD);
        sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
        if (sqlite3_vfs_register(&vfs, 1) != SQLITE_OK)
            abort();
        started = true;
    }
    sqlite3_randomness(0, NULL); /* the next numbers come from this run */
}

/* ---- calls ---- */

int __wrap_open(const char *path, int flags, ...);
int __real_open(const char *path, int flags, ...);
int __wrap_stat(const char *path, struct stat *status);
int __real_stat(const char *path, struct stat *status);
int __wrap_lstat(const char *path, struct stat *status);
int __wrap_fstat(int fd, struct stat *status);
int __real_fstat(int fd, struct stat *status);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_chmod(const char *path, mode_t mode);
int __wrap_fchmod(int fd, mode_t mode);
int __wrap_unlink(const char *path);
int __wrap_flock(int fd, int operation);

static int fail(int number)
{
    errno = number;
    return -1;
}

int __wrap_open(const char *path, int flags, ...)
{
    struct vm_file *file = find(path);
    va_list arguments;
    mode_t mode;

    va_start(arguments, flags);
    mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    if (strncmp(path, ROOT, strlen(ROOT)) != 0)
        return __real_open(path, flags, mode);
    if (vm_call())
        return fail(EIO);
    if (file == NULL && !(flags & O_CREAT))
        return fail(ENOENT);
    return vm_fd_of_file(file != NULL ? file : create(path));
}

static void describe(struct stat *status, mode_t mode)
{
    *status = (struct stat){.st_mode = mode, .st_uid = geteuid()};
}

int __wrap_stat(const char *path, struct stat *status)
{
    if (strncmp(path, ROOT, strlen(ROOT)) != 0)
        return __real_stat(path, status);
    if (!has_folder)
        return fail(ENOENT);
    describe(status, S_IFDIR | 0700);
    return 0;
}

int __wrap_lstat(const char *path, struct stat *status)
{
    if (!vm_is_socket(path))
        return fail(ENOENT);
    describe(status, S_IFSOCK | 0600);
    return 0;
}

int __wrap_fstat(int fd, struct stat *status)
{
    if (vm_file_of_fd(fd) == NULL)
        return __real_fstat(fd, status);
    describe(status, S_IFREG | 0600);
    return 0;
}

int __wrap_mkdir(const char *path, mode_t mode)
{
    (void)path;
    (void)mode;
    if (vm_call())
        return fail(EIO);
    if (has_folder)
        return fail(EEXIST);
    has_folder = true;
    return 0;
}

int __wrap_chmod(const char *path, mode_t mode)
{
    (void)path;
    (void)mode;
    return 0;
}

int __wrap_fchmod(int fd, mode_t mode)
{
    (void)fd;
    (void)mode;
    return 0;
}

int __wrap_unlink(const char *path)
{
    if (!vm_call())
        vm_socket_unlink(path);
    return 0;
}

int __wrap_flock(int fd, int operation)
{
    struct vm_file *file = vm_file_of_fd(fd);

    (void)operation;
    if (vm_call() || file == NULL)
        return fail(EIO);
    if (file->lock != NULL && file->lock != vm_self())
        return fail(EWOULDBLOCK);
    file->lock = vm_self();
    return 0;
}

void vm_file_close(struct vm_file *file, const struct vm_process *process)
{
    if (file->lock == process && file->path[0] != 0)
        file->lock = NULL; /* only the lock file is locked, and opened once */
}
