/* Determines the MPI implementation of a program. Reads files and the environment, changes nothing.
 * One thread. */
#ifndef BY_RUN_FIND_H
#define BY_RUN_FIND_H

enum by_run_mpi { BY_RUN_UNKNOWN, BY_RUN_OPENMPI, BY_RUN_MPICH };

/* The path of `program`, as the shell would find it, without links; NULL when there is none. To be
 * freed. */
char *by_run_locate(const char *program);

/*
 * Returns the MPI of the program at `path`: that of the launcher that started this process, else
 * that of the libraries that it links with, else the one that its name implies. `*why` is set to a
 * phrase that names the evidence; static memory.
 */
enum by_run_mpi by_run_mpi_of(const char *path, const char **why);

#endif
