/*
 * A preloaded library that makes one call of a program fail: the FAIL_AT-th of a kind, counted from
 * 1. With FAIL_AT=0 none fails, and the number of calls is written to the file FAIL_COUNT at the
 * end. FAIL_OWN=1 counts the calls of the program's own code alone, not those of libraries;
 * FAIL_OWN=TEXT those of the libraries and programs whose file names contain TEXT. FAIL_AFTER=FILE
 * counts from the moment on at which the file exists. FAIL_STACKS=FILE writes there, at the end,
 * the numbers of the calls that were the first with their stack.
 *   FAIL_KIND=memory   malloc, calloc, realloc and strdup: no memory
 *   FAIL_KIND=eio      write, pwrite, fsync, fdatasync, ftruncate and rename of files: EIO
 *   FAIL_KIND=enospc   write and pwrite of files: ENOSPC
 *   FAIL_KIND=short    write and pwrite of files: half of the bytes
 *   FAIL_KIND=send     send, sendto, sendmsg, sendmmsg and write to sockets: ENOBUFS
 */
#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FRAMES     32
#define STACKS_MAX 65536 /* a power of two */

enum fail_kind { FAIL_NONE, FAIL_MEMORY, FAIL_EIO, FAIL_ENOSPC, FAIL_SHORT, FAIL_SEND };

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);
void *__libc_realloc(void *memory, size_t bytes);

static enum fail_kind kind;
static unsigned long at;
static atomic_ulong calls;
static uintptr_t own_begin, own_end; /* the program's code; 0: all calls count */
static const char *own_name;         /* part of the name of files whose calls count, or NULL */
static const char *_Atomic after;    /* calls count once this file exists; NULL: now */

static const char *stacks;                  /* file for the calls with new stacks, or NULL */
static atomic_ullong stack[STACKS_MAX];     /* hashes of those that were seen; 0: free */
static atomic_ulong first_call[STACKS_MAX]; /* the number of the first call of each */

/* The first object is the program. */
static int find_program(struct dl_phdr_info *info, size_t bytes, void *context)
{
    (void)bytes;
    (void)context;
    for (unsigned i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X) != 0) {
            own_begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            own_end = own_begin + info->dlpi_phdr[i].p_memsz;
        }
    return 1;
}

__attribute__((constructor)) static void begin(void)
{
    static const char *const names[] = {
        [FAIL_MEMORY] = "memory", [FAIL_EIO] = "eio",   [FAIL_ENOSPC] = "enospc",
        [FAIL_SHORT] = "short",   [FAIL_SEND] = "send",
    };
    const char *name = getenv("FAIL_KIND"), *number = getenv("FAIL_AT"), *own = getenv("FAIL_OWN");

    if (own != NULL && strcmp(own, "1") == 0)
        dl_iterate_phdr(find_program, NULL);
    else
        own_name = own;
    after = getenv("FAIL_AFTER");
    stacks = getenv("FAIL_STACKS");
    if (stacks != NULL) {
        void *frame;

        backtrace(&frame, 1); /* the first one loads a library */
    }
    at = number != NULL ? strtoul(number, NULL, 10) : 0;
    for (unsigned i = 1; name != NULL && i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(name, names[i]) == 0)
            kind = (enum fail_kind)i;
}

static void write_stacks(void)
{
    FILE *file = fopen(stacks, "w");

    if (file == NULL)
        return;
    for (size_t i = 0; i < STACKS_MAX; i++)
        if (first_call[i] != 0)
            fprintf(file, "%lu\n", first_call[i]);
    fclose(file);
}

__attribute__((destructor)) static void end(void)
{
    const char *path = getenv("FAIL_COUNT");
    unsigned long count = calls;
    FILE *file;

    kind = FAIL_NONE;
    if (stacks != NULL)
        write_stacks();
    file = path != NULL ? fopen(path, "w") : NULL;
    if (file == NULL)
        return;
    fprintf(file, "%lu\n", count);
    fclose(file);
}

/* Returns whether the calls of this code count. */
static bool is_own(const void *caller)
{
    uintptr_t from = (uintptr_t)caller;
    const char *base;
    Dl_info info;

    if (own_name == NULL)
        return own_end == 0 || (from >= own_begin && from < own_end);
    if (dladdr(caller, &info) == 0 || info.dli_fname == NULL)
        return false;
    base = strrchr(info.dli_fname, '/');
    return strstr(base != NULL ? base : info.dli_fname, own_name) != NULL;
}

static bool is_time(void)
{
    int error = errno;

    if (after != NULL && access(after, F_OK) == 0)
        after = NULL;
    errno = error;
    return after == NULL;
}

/* Notes the number of a call if its stack is new. */
static void note_stack(unsigned long number)
{
    unsigned long long hash = 14695981039346656037u;
    void *frames[FRAMES];
    int count = backtrace(frames, FRAMES);

    for (int i = 2; i < count; i++) /* without this function and its caller */
        hash = (hash ^ (uintptr_t)frames[i]) * 1099511628211u;
    for (size_t i = 0, place = (size_t)(hash >> 40); i < STACKS_MAX; i++, place++) {
        unsigned long long there = 0;

        if (atomic_compare_exchange_strong(&stack[place % STACKS_MAX], &there, hash | 1))
            first_call[place % STACKS_MAX] = number;
        if (there == 0 || there == (hash | 1))
            return;
    }
}

/* Counts a call of this kind; returns whether it must fail. */
static bool fails(enum fail_kind of, const void *caller)
{
    unsigned long number;

    if (kind != of || !is_own(caller) || !is_time())
        return false;
    number = atomic_fetch_add(&calls, 1) + 1;
    if (stacks != NULL)
        note_stack(number);
    return number == at;
}

static bool is_a(int fd, mode_t type)
{
    struct stat status;

    return fstat(fd, &status) == 0 && (status.st_mode & S_IFMT) == type;
}

#define CALLER __builtin_return_address(0)

static void *no_memory(void)
{
    errno = ENOMEM;
    return NULL;
}

__attribute__((visibility("default"))) void *malloc(size_t bytes)
{
    return fails(FAIL_MEMORY, CALLER) ? no_memory() : __libc_malloc(bytes);
}

__attribute__((visibility("default"))) void *calloc(size_t count, size_t bytes)
{
    return fails(FAIL_MEMORY, CALLER) ? no_memory() : __libc_calloc(count, bytes);
}

__attribute__((visibility("default"))) void *realloc(void *memory, size_t bytes)
{
    return fails(FAIL_MEMORY, CALLER) ? no_memory() : __libc_realloc(memory, bytes);
}

__attribute__((visibility("default"))) char *strdup(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = fails(FAIL_MEMORY, CALLER) ? no_memory() : __libc_malloc(bytes);

    return copy != NULL ? memcpy(copy, text, bytes) : NULL;
}

/* Returns whether a write to `fd` fails, with errno; *bytes shrinks if it is to be short. */
static bool write_fails(int fd, size_t *bytes, const void *caller)
{
    if (kind == FAIL_SEND && is_a(fd, S_IFSOCK) && fails(FAIL_SEND, caller)) {
        errno = ENOBUFS;
        return true;
    }
    if (kind == FAIL_NONE || kind == FAIL_MEMORY || kind == FAIL_SEND || !is_a(fd, S_IFREG))
        return false;
    if (fails(FAIL_SHORT, caller)) {
        *bytes = (*bytes + 1) / 2;
        return false;
    }
    if (!fails(FAIL_EIO, caller) && !fails(FAIL_ENOSPC, caller))
        return false;
    errno = kind == FAIL_EIO ? EIO : ENOSPC;
    return true;
}

__attribute__((visibility("default"))) ssize_t write(int fd, const void *data, size_t bytes)
{
    return write_fails(fd, &bytes, CALLER) ? -1 : syscall(SYS_write, fd, data, bytes);
}

__attribute__((visibility("default"))) ssize_t pwrite64(int fd, const void *data, size_t bytes, off64_t from)
{
    return write_fails(fd, &bytes, CALLER) ? -1 : syscall(SYS_pwrite64, fd, data, bytes, from);
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *data, size_t bytes, off_t from)
{
    return write_fails(fd, &bytes, CALLER) ? -1 : syscall(SYS_pwrite64, fd, data, bytes, from);
}

static int error_of(int error)
{
    errno = error;
    return -1;
}

__attribute__((visibility("default"))) int fsync(int fd)
{
    return fails(FAIL_EIO, CALLER) ? error_of(EIO) : (int)syscall(SYS_fsync, fd);
}

__attribute__((visibility("default"))) int fdatasync(int fd)
{
    return fails(FAIL_EIO, CALLER) ? error_of(EIO) : (int)syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int ftruncate64(int fd, off64_t bytes)
{
    return fails(FAIL_EIO, CALLER) ? error_of(EIO) : (int)syscall(SYS_ftruncate, fd, bytes);
}

__attribute__((visibility("default"))) int rename(const char *from, const char *to)
{
    return fails(FAIL_EIO, CALLER) ? error_of(EIO) : (int)syscall(SYS_rename, from, to);
}

__attribute__((visibility("default"))) ssize_t sendto(int fd, const void *data, size_t bytes, int flags,
                                                      const struct sockaddr *to, socklen_t to_bytes)
{
    return fails(FAIL_SEND, CALLER) ? error_of(ENOBUFS)
                                    : syscall(SYS_sendto, fd, data, bytes, flags, to, to_bytes);
}

__attribute__((visibility("default"))) ssize_t send(int fd, const void *data, size_t bytes, int flags)
{
    return fails(FAIL_SEND, CALLER) ? error_of(ENOBUFS)
                                    : syscall(SYS_sendto, fd, data, bytes, flags, NULL, 0);
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message, int flags)
{
    return fails(FAIL_SEND, CALLER) ? error_of(ENOBUFS) : syscall(SYS_sendmsg, fd, message, flags);
}

__attribute__((visibility("default"))) int sendmmsg(int fd, struct mmsghdr *messages, unsigned count,
                                                    int flags)
{
    return fails(FAIL_SEND, CALLER) ? error_of(ENOBUFS)
                                    : (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}
