/*
 * A virtual machine room for the world test: time, fibers in place of threads, processes that can
 * be killed at any call, descriptors (sockets, epoll, eventfd, timerfd, signalfd, poll), and disks
 * that lose what was not synced. The linker passes the calls of the programs under test to it
 * (module.mk, --wrap). One thread of the system runs everything, and one seed determines it.
 *
 * A killed process is not abandoned, because its memory must be freed: its calls fail from then on,
 * have no effect, and never wait, until its main function has returned (vm_process.zombie).
 */
#ifndef BY_TESTS_WORLD_VM_H
#define BY_TESTS_WORLD_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offload/base/prng.h"

#define VM_NEVER UINT64_MAX
#define VM_MS    UINT64_C(1000000)
#define VM_S     UINT64_C(1000000000)

struct vm_fiber;
struct vm_process;
struct vm_stream;

/* ---- the run (sched.c) ---- */

struct vm {
    struct by_prng prng;
    uint64_t now_ns;
    int64_t wall_ns; /* time since 1970 minus now_ns: jumps */
    uint64_t calls;  /* of all programs */
    uint64_t hash;   /* of the trace */
    int verbose;     /* prints the trace */
    bool failed;     /* an invariant was violated */
    bool trial;      /* vm_violate only counts in `failures`: not yet */
    uint32_t failures;
    char violation[600];
};

extern struct vm vm;

/* Starts and ends a run. */
void vm_open(uint64_t seed, int verbose);
void vm_close(void);
/* Returns a number below `below`. */
uint32_t vm_draw(uint32_t below);
/* Adds a line to the trace. */
void vm_trace(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Records the violation of an invariant; the run ends soon. */
void vm_violate(const char *format, ...) __attribute__((format(printf, 1, 2)));

typedef void vm_event_fn(void *context, uint64_t number);
/* Calls a function at a time. */
void vm_at(uint64_t at_ns, vm_event_fn *call, void *context, uint64_t number);
/* The same with memory that is freed afterwards. */
void vm_at_with(uint64_t at_ns, vm_event_fn *call, void *memory);
/* Runs events and fibers until a time, or a violation. */
void vm_run(uint64_t until_ns);

/* ---- processes and fibers (sched.c) ---- */

struct vm_process {
    const char *name;
    bool zombie, done;
    uint64_t kill_in;  /* calls left until it is killed; 0: not planned */
    uint64_t skew_ns;  /* what the clock of a zombie is ahead */
    uint64_t patience; /* calls of a zombie */
    void (*main)(void *context);
    void *context;
    void (*killed)(void *context); /* called when it is killed; or NULL */
    struct vm_fiber *fibers;
    int signal_fd;
    int signals; /* pending SIGTERMs */
};

/* Starts a process; the caller owns the struct, whose other fields are zero. */
void vm_process_start(struct vm_process *process, const char *name, void (*main)(void *), void *context);
void vm_process_kill(struct vm_process *process);
void vm_process_signal(struct vm_process *process);
/* The process that runs now, or NULL. */
struct vm_process *vm_self(void);
/* Counts a call of the process that runs; kills it if its time has come. Returns whether it is a
 * zombie. */
bool vm_call(void);
/* Blocks the fiber until vm_wake or a time, of vm_time. */
void vm_block(uint64_t until_ns);
void vm_wake(struct vm_fiber *fiber);
struct vm_fiber *vm_fiber(void);
/* The time since the run began, of the process that runs. */
uint64_t vm_time(void);

/* Ends this process of the system; in a fiber, `_exit` ends only its virtual process. */
_Noreturn void __real__exit(int status);

/* ---- descriptors (net.c) ---- */

/* The path of messages between two machines. */
struct vm_link {
    uint64_t latency_ns;
    uint64_t silent_until_ns; /* nothing arrives before */
};

/* A server without fibers: a switch. */
struct vm_server {
    char path[64];
    bool listens;
    struct vm_link *link; /* to its clients */
    void (*opened)(void *context, struct vm_stream *stream);
    void (*input)(void *context, struct vm_stream *stream, const uint8_t *bytes, size_t count);
    void (*closed)(void *context, struct vm_stream *stream);
    void *context;
};

void vm_server_add(struct vm_server *server);
/* Ends all its connections, as the end of its process does. */
void vm_server_reset(struct vm_server *server);
void vm_stream_send(struct vm_stream *stream, const uint8_t *bytes, size_t count);
/* Ends a connection; `reset`: the other end gets an error instead of the end of the stream. */
void vm_stream_close(struct vm_stream *stream, bool reset);
/* The server's data of a stream. */
void **vm_stream_data(struct vm_stream *stream);
/* Ends all connections over a path between machines. */
void vm_link_cut(const struct vm_link *link);
/* The path from a process to the server of the programs under test (the hosts' one). */
void vm_process_link(struct vm_process *process, struct vm_link *link);
/* A descriptor that is readable while *count > 0; vm_ready_changed after a change. */
int vm_ready_open(const uint32_t *count);
void vm_ready_changed(int fd);
void vm_ready_close(int fd);
void vm_net_open(void);
void vm_net_close(void);
void vm_net_killed(struct vm_process *process);

/* ---- disks (disk.c) ---- */

struct vm_disk_faults {
    uint32_t write_error, full, sync_error, sync_slow; /* per 1000 calls */
    uint64_t slow_ns;
};

extern struct vm_disk_faults vm_disk;

/* Makes the disk the file system of SQLite, once, and resets its random numbers. */
void vm_disk_start(void);
void vm_disk_open(void);
void vm_disk_close(void);
void vm_disk_killed(struct vm_process *process);
/* Power fails: what was not synced may be lost, or half written. */
void vm_disk_power(void);

#endif
