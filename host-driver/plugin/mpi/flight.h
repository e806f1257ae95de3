/*
 * Calls that run, or wait for their turn, on the lanes of the plugin. Each lane posts them in
 * the order in which they start, which is the same on all its ranks; beyond libbanyan's limit of
 * running operations they queue. Any thread of the program may call these functions. While calls
 * are under way and the program does not enter MPI, a thread of the plugin moves their packets;
 * it calls no function of MPI. Neighbours: core.c creates the requests, work.c the buffers.
 */
#ifndef BY_PLUGIN_MPI_FLIGHT_H
#define BY_PLUGIN_MPI_FLIGHT_H

#include "host-driver/plugin/mpi/core.h"

enum by_mpi_stage { BY_MPI_IDLE = 1, BY_MPI_QUEUED, BY_MPI_RUNNING, BY_MPI_ENDED };

/* The caller's memory, which must not move while the call is under way. */
struct by_mpi_flight {
    struct by_mpi_lane *lane; /* set before by_mpi_open */
    struct by_mpi_call call;
    int is_own; /* of the plugin or of MPI itself, not counted as a call of the program */
    enum by_mpi_stage stage;
    int status; /* banyan_status_t, when it has ended */
    struct banyan_request *request;
    struct by_mpi_flight *next, *previous;
    char text[BY_MPI_TEXT_MAX]; /* of an error */
};

/* Adds a lane of by_mpi_branch, whose memory malloc has given: from now on its packets move. */
void by_mpi_lane_open(struct by_mpi_lane *lane);
/* Ends the lane, at once or when its last flight has been closed: keeps it for a communicator of
 * the same ranks (kept.h), or leaves its communicator and frees it. */
void by_mpi_lane_close(struct by_mpi_lane *lane);
/* Takes out the kept lanes of these ranks; returns how many. */
uint32_t by_mpi_lanes_borrow(const uint32_t *member, uint32_t size, struct by_mpi_lane **own);
/* Gives back all of them but that with the number `id`, if there is one, of which `lane` takes over
 * the communicator. */
void by_mpi_lanes_return(struct by_mpi_lane **own, uint32_t count, uint64_t id, struct by_mpi_lane *lane);
/* Leaves all kept lanes, so that they give back their slots; returns how many there were. */
uint32_t by_mpi_lanes_drop(void);
/* Describes the call to libbanyan, which copies its counts. 0, or a banyan_status_t and `text`. */
int by_mpi_open(struct by_mpi_flight *flight);
/* Starts an opened call, which is not under way, and returns without waiting. */
void by_mpi_start(struct by_mpi_flight *flight);
/* Runs an opened call to its end; calls `idle` now and then. Returns its status. */
int by_mpi_run(struct by_mpi_flight *flight, void (*idle)(void));
/* Moves packets of all calls. Waits only for a program that calls it again at once and whose calls
 * are slow, for 100 us at most. Returns how many calls it has ended. */
int by_mpi_progress(void);
/* Whether the call has ended. */
int by_mpi_has_ended(const struct by_mpi_flight *flight);
/* Releases what by_mpi_open created. The call is not under way. */
void by_mpi_close(struct by_mpi_flight *flight);
/* Runs the first operation of MPI_COMM_WORLD's lane, which detects tables left over from an earlier
 * run, and adds this lane. The result is in facts->status and text. */
void by_mpi_enter(struct by_mpi_facts *facts, void (*idle)(void));
/* Ends the thread, and leaves all communicators but that of MPI_COMM_WORLD. */
void by_mpi_land(void);

#endif
