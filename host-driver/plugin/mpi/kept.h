/*
 * Lanes of communicators that MPI has freed, whose jobs wait for a communicator of the same ranks
 * in the same order. Ranks may free a communicator at different times, so they compare the numbers
 * of the lanes that each of them has. A list without a lock: flight.c calls it under its own. The
 * functions *_served_* are for one thread at a time. Independent of MPI.
 */
#ifndef BY_PLUGIN_MPI_KEPT_H
#define BY_PLUGIN_MPI_KEPT_H

#include "host-driver/plugin/mpi/core.h"

#define BY_MPI_KEPT_MAX  8u                   /* lanes of a process */
#define BY_MPI_KEPT_NS   UINT64_C(5000000000) /* then a lane gives its slots back */
#define BY_MPI_OFFER_MAX 4u                   /* lanes that a communicator can choose from */

/* The lanes that a rank has for a communicator, by their numbers, ascending; 0: none. All ranks
 * exchange it. */
struct by_mpi_offer {
    uint64_t id[BY_MPI_OFFER_MAX];
    uint64_t alive; /* communicators of the same ranks */
};

/* Frees a lane that is not open and has left its communicator, or NULL. */
void by_mpi_lane_free(struct by_mpi_lane *lane);

/* Adds a lane. */
void by_mpi_kept_put(struct by_mpi_lane *lane, uint64_t now_ns);
/* Takes out the oldest lane if there are more than BY_MPI_KEPT_MAX, or if it has been here for
 * BY_MPI_KEPT_NS, or if `any`; NULL: none. */
struct by_mpi_lane *by_mpi_kept_oldest(uint64_t now_ns, int any);
/* Takes out the lanes of these ranks in this order, those with the least numbers, for an offer.
 * Returns how many. */
uint32_t by_mpi_kept_take(const uint32_t *member, uint32_t size, struct by_mpi_lane *lane[BY_MPI_OFFER_MAX]);
/* Whether there are any. */
int by_mpi_kept_any(void);
/* Forgets all lanes, and what by_mpi_served_of has returned. */
void by_mpi_kept_clear(void);

/* What the communicators of the same ranks in the same order have done so far. `calls` and `jobs`
 * are alike on all these ranks if they call their communicators in one order. */
struct by_mpi_served {
    uint64_t key[2];
    uint32_t calls; /* blocking ones that MPI has executed before a communicator had a job */
    uint32_t jobs;  /* opened for these ranks by blocking calls */
    uint32_t alive; /* communicators that have been called and not freed */
    uint32_t freed; /* after calls */
};

/* Finds that of these ranks, and adds it if there is none; NULL: no memory. Valid until
 * by_mpi_kept_clear. */
struct by_mpi_served *by_mpi_served_of(const uint32_t *member, uint32_t size);

/* Returns the least number that all ranks offer; 0: there is none. *few: each has at most
 * BY_MPI_OFFER_MAX communicators of these ranks. */
uint64_t by_mpi_offer_choose(const struct by_mpi_offer *all, uint32_t count, int *few);

#endif
