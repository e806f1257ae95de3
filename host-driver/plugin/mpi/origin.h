/*
 * Which calls of a library are its own: those that one of its functions makes as part of another
 * one, apart from those that its user has made. Independent of MPI. Any thread.
 */
#ifndef BY_PLUGIN_MPI_ORIGIN_H
#define BY_PLUGIN_MPI_ORIGIN_H

/*
 * Whether the code at `caller` is in the shared object that contains `of`, but in none of its
 * public functions whose names include `name`, in any case of letters: 1 or 0. -1: the loader does
 * not report the function at `of`. One address has one name.
 */
int by_mpi_is_apart(const void *of, const void *caller, const char *name);

#endif
