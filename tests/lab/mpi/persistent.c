/*
 * Persistent collectives, all of them: each alone for some rounds with fresh data, then all started
 * at once and completed by every function of MPI that completes requests, beside messages. Types
 * are freed after the calls are made. A plain MPI program without any call of banyan, in which all
 * ranks start in one order. Rank 0 prints a verdict on each check. Exit 1 if a value is wrong.
 */
#include <stdlib.h>
#include <string.h>

#include "tests/lab/mpi/verdict.h"

#ifdef OPEN_MPI
#include <mpi-ext.h>
#define INIT(name) MPIX_##name##_init
#else
#define INIT(name) MPI_##name##_init
#endif

#define RANKS 64
#define MOST  3000 /* elements of a share */

enum persistent_call {
    ALLREDUCE,
    REDUCE,
    REDUCE_SCATTER_BLOCK,
    REDUCE_SCATTER,
    BCAST,
    ALLGATHER,
    ALLGATHERV,
    BARRIER,
    ALLTOALL,
    ALLTOALLV,
    ALLTOALLW,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    CALLS
};

static const char *const name_of[] = {"allreduce",      "reduce",    "reduce-scatter of equal blocks",
                                      "reduce-scatter", "bcast",     "allgather",
                                      "allgatherv",     "barrier",   "alltoall",
                                      "alltoallv",      "alltoallw", "gather",
                                      "gatherv",        "scatter",   "scatterv"};

static int *send[CALLS], *recv[CALLS];
static int counts[RANKS], places[RANKS], bytes[RANKS];
static MPI_Datatype types[RANKS];
static MPI_Request request[CALLS + 2];
static int count, root;

static int value_of(int from, int to, int index, int round)
{
    return ((from * 64 + to) * 10007 + index) * 31 + round;
}

/* Share `to` of this rank's data. */
static void fill(int call, int round)
{
    for (int to = 0; to < size; to++)
        for (int i = 0; i < count; i++)
            send[call][to * count + i] = value_of(rank, to, i, round);
    memset(recv[call], 0xff, sizeof(int) * (size_t)(size * count));
    if (call == BCAST && rank == root)
        memcpy(recv[call], send[call], sizeof(int) * (size_t)count);
}

static int sum_of(int to, int index, int round)
{
    int sum = 0;

    for (int from = 0; from < size; from++)
        sum = (int)((unsigned)sum + (unsigned)value_of(from, to, index, round));
    return sum;
}

static int check(int call, int round)
{
    const int *at = recv[call];
    int wrong = 0;

    for (int i = 0; i < count; i++) {
        switch (call) {
        case ALLREDUCE:
            wrong += at[i] != sum_of(0, i, round);
            break;
        case REDUCE:
            wrong += rank == root && at[i] != sum_of(0, i, round);
            break;
        case REDUCE_SCATTER_BLOCK:
        case REDUCE_SCATTER:
            wrong += at[i] != sum_of(rank, i, round);
            break;
        case BCAST:
            wrong += at[i] != value_of(root, 0, i, round);
            break;
        case SCATTER:
        case SCATTERV:
            wrong += at[i] != value_of(root, rank, i, round);
            break;
        case BARRIER:
            break;
        default:
            for (int from = 0; from < size; from++) {
                int to = call == ALLGATHER || call == ALLGATHERV ? 0 : call >= GATHER ? 0 : rank;

                if (call < GATHER || rank == root)
                    wrong += at[from * count + i] != value_of(from, to, i, round);
            }
        }
    }
    return wrong;
}

static void make_all(void)
{
    MPI_Datatype type;
    MPI_Comm all = MPI_COMM_WORLD;
    MPI_Info none = MPI_INFO_NULL;

    MPI_Type_contiguous(1, MPI_INT, &type);
    MPI_Type_commit(&type);
    for (int r = 0; r < size; r++) {
        counts[r] = count;
        places[r] = r * count;
        bytes[r] = r * count * (int)sizeof(int);
        types[r] = r % 2 ? type : MPI_INT;
    }
#define BUFFERS(call) send[call], recv[call]
    INIT(Allreduce)(BUFFERS(ALLREDUCE), count, MPI_INT, MPI_SUM, all, none, &request[ALLREDUCE]);
    INIT(Reduce)(BUFFERS(REDUCE), count, MPI_INT, MPI_SUM, root, all, none, &request[REDUCE]);
    INIT(Reduce_scatter_block)
    (BUFFERS(REDUCE_SCATTER_BLOCK), count, MPI_INT, MPI_SUM, all, none, &request[REDUCE_SCATTER_BLOCK]);
    INIT(Reduce_scatter)
    (BUFFERS(REDUCE_SCATTER), counts, MPI_INT, MPI_SUM, all, none, &request[REDUCE_SCATTER]);
    INIT(Bcast)(recv[BCAST], count, type, root, all, none, &request[BCAST]);
    INIT(Allgather)
    (send[ALLGATHER], count, MPI_INT, recv[ALLGATHER], count, type, all, none, &request[ALLGATHER]);
    INIT(Allgatherv)
    (send[ALLGATHERV], count, type, recv[ALLGATHERV], counts, places, MPI_INT, all, none,
     &request[ALLGATHERV]);
    INIT(Barrier)(all, none, &request[BARRIER]);
    INIT(Alltoall)
    (send[ALLTOALL], count, MPI_INT, recv[ALLTOALL], count, type, all, none, &request[ALLTOALL]);
    INIT(Alltoallv)
    (send[ALLTOALLV], counts, places, type, recv[ALLTOALLV], counts, places, MPI_INT, all, none,
     &request[ALLTOALLV]);
    INIT(Alltoallw)
    (send[ALLTOALLW], counts, bytes, types, recv[ALLTOALLW], counts, bytes, types, all, none,
     &request[ALLTOALLW]);
    INIT(Gather)(send[GATHER], count, type, recv[GATHER], count, MPI_INT, root, all, none, &request[GATHER]);
    INIT(Gatherv)
    (send[GATHERV], count, MPI_INT, recv[GATHERV], counts, places, MPI_INT, root, all, none,
     &request[GATHERV]);
    INIT(Scatter)
    (send[SCATTER], count, MPI_INT, recv[SCATTER], count, type, root, all, none, &request[SCATTER]);
    INIT(Scatterv)
    (send[SCATTERV], counts, places, MPI_INT, recv[SCATTERV], count, type, root, all, none,
     &request[SCATTERV]);
    MPI_Type_free(&type);
}

/* Starts all calls and a message each way round a ring, and completes them. */
static int all_at_once(int way, int round)
{
    int wrong = 0, there = round, back = -1, flag = 0, index, done = 0, indices[CALLS + 2], some;
    int next = (rank + 1) % size, before = (rank + size - 1) % size;

    for (int call = 0; call < CALLS; call++)
        fill(call, round);
    MPI_Startall(CALLS, request);
    MPI_Irecv(&back, 1, MPI_INT, before, round, MPI_COMM_WORLD, &request[CALLS]);
    MPI_Isend(&there, 1, MPI_INT, next, round, MPI_COMM_WORLD, &request[CALLS + 1]);
    switch (way) {
    case 0:
        MPI_Waitall(CALLS + 2, request, MPI_STATUSES_IGNORE);
        break;
    case 1:
        while (!flag)
            MPI_Testall(CALLS + 2, request, &flag, MPI_STATUSES_IGNORE);
        break;
    case 2:
        for (; done < CALLS + 2; done++)
            MPI_Waitany(CALLS + 2, request, &index, MPI_STATUS_IGNORE);
        MPI_Waitany(CALLS + 2, request, &index, MPI_STATUS_IGNORE);
        wrong += index != MPI_UNDEFINED; /* none is active */
        break;
    case 3:
        for (; done < CALLS + 2; done += some)
            MPI_Waitsome(CALLS + 2, request, &some, indices, MPI_STATUSES_IGNORE);
        break;
    case 4:
        for (; done < CALLS + 2; done += some)
            MPI_Testsome(CALLS + 2, request, &some, indices, MPI_STATUSES_IGNORE);
        break;
    default:
        for (; done < CALLS + 2; done += flag)
            MPI_Testany(CALLS + 2, request, &index, &flag, MPI_STATUS_IGNORE);
        break;
    }
    for (int call = 0; call < CALLS; call++)
        wrong += check(call, round) + (request[call] == MPI_REQUEST_NULL);
    return wrong + (back != round);
}

int main(int argc, char **argv)
{
    int wrong, flag;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (size > RANKS)
        MPI_Abort(MPI_COMM_WORLD, 2);
    for (int call = 0; call < CALLS; call++) {
        send[call] = malloc(sizeof(int) * MOST * (size_t)size);
        recv[call] = malloc(sizeof(int) * MOST * (size_t)size);
    }
    for (int turn = 0; turn < 2; turn++) {
        count = turn == 0 ? 5 : MOST;
        root = turn == 0 ? 0 : size - 1;
        make_all();
        for (int call = 0; call < CALLS; call++) {
            wrong = 0;
            for (int round = 0; round < 3; round++) {
                fill(call, round);
                MPI_Start(&request[call]);
                flag = round == 1;
                while (flag == 1) {
                    MPI_Test(&request[call], &flag, MPI_STATUS_IGNORE);
                    flag = flag ? 2 : 1;
                }
                MPI_Wait(&request[call], MPI_STATUS_IGNORE); /* an inactive one returns at once */
                wrong += check(call, round) + (request[call] == MPI_REQUEST_NULL);
            }
            if (turn == 1)
                verdict(name_of[call], wrong);
            wrong_in_all += turn == 0 ? wrong : 0;
        }
        wrong = 0;
        for (int way = 0; way < 6; way++)
            wrong += all_at_once(way, 10 + way);
        verdict("all at once", wrong);
        for (int call = 0; call < CALLS; call++) {
            MPI_Request_free(&request[call]);
            wrong_in_all += request[call] != MPI_REQUEST_NULL;
        }
    }
    for (int call = 0; call < CALLS; call++) {
        free(send[call]);
        free(recv[call]);
    }
    MPI_Finalize();
    return wrong_in_all != 0;
}
