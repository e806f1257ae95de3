/* Communicators of MPI; see comms.h. */
#include "host-driver/plugin/mpi/comms.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host-driver/plugin/mpi/flight.h"
#include "host-driver/plugin/mpi/kept.h"
#include "host-driver/plugin/mpi/near.h"
#include "host-driver/plugin/mpi/requested.h"
#include "host-driver/plugin/mpi/sequencer.h"
#include "host-driver/plugin/mpi/served.h"
#include "host-driver/plugin/mpi/timing.h"

/* Open MPI repeats the calls with which it makes a communicator, whatever they return: so many that
 * fail alike, one after another, end the program. */
#define FAILURES_MAX 10000

/* Blocking calls of a refused communicator until its job is requested again; twice as many after
 * each further refusal. A request takes as long as some hundred calls. */
#define PATIENCE 1000u

static struct {
    enum by_shim_state state; /* of all; 0: the ranks have not agreed */
    int rank, size;           /* of MPI_COMM_WORLD */
    uint32_t log, after;
    uint64_t least;
    int controlled;            /* every rank has a controller */
    int separates;             /* every rank recognizes MPI's own calls */
    int ordered;               /* persistent calls start in one order, with all others */
    int has_refused;           /* this process has printed a refusal */
    MPI_Comm silent;           /* carries no messages */
    int making;                /* `silent` is being created */
    int has_twin;              /* the program has created another communicator of all ranks */
    struct by_mpi_facts first; /* of rank 0: where the sequencer listens */
    uint64_t *space;           /* by rank of MPI_COMM_WORLD, as in the facts */
} self;

void by_shim_out_of_memory(const char *what)
{
    fprintf(stderr, "banyan: MPI: no memory for %s\n", what);
    PMPI_Abort(MPI_COMM_WORLD, 3);
}

/* ---- joining and leaving ---- */

void by_shim_idle(void)
{
    MPI_Status status;
    int found;

    /* A probe without a match is the portable way to let MPI progress messages that others wait
     * for. */
    PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, self.silent, &found, &status);
}

/* MPI_Finalize deletes the attributes of MPI_COMM_SELF first. */
static int finalize(MPI_Comm comm, int key, void *value, void *extra)
{
    char text[BY_MPI_TEXT_MAX];

    (void)comm;
    (void)key;
    (void)value;
    (void)extra;
    by_mpi_tally(text, sizeof(text));
    if (self.rank == 0 && self.log > 0)
        fprintf(stderr, "banyan: MPI: %s\n", text);
    self.state = BY_SHIM_OFF;
    by_shim_requested_end();
    by_mpi_sequencer_close(by_shim_idle);
    by_mpi_land();
    by_mpi_part();
    free(self.space);
    self.space = NULL;
    return MPI_SUCCESS;
}

static void call_at_finalize(void)
{
    int key;

    if (PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, finalize, &key, NULL) == MPI_SUCCESS)
        PMPI_Comm_set_attr(MPI_COMM_SELF, key, NULL);
}

typedef int judge_fn(const struct by_mpi_facts *all, uint32_t count, char text[BY_MPI_TEXT_MAX]);

/* One exchange of facts, and the decision. */
static int agree(const struct by_shim_gather *on, judge_fn *judge, const struct by_mpi_facts *mine,
                 char text[BY_MPI_TEXT_MAX])
{
    struct by_mpi_facts *all = calloc((size_t)self.size, sizeof(*all));
    int verdict;

    if (self.space == NULL)
        self.space = calloc((size_t)self.size, sizeof(*self.space));
    if (all == NULL || self.space == NULL) {
        free(all);
        by_shim_out_of_memory("the settings of the ranks");
        return 0;
    }
    if (on->gather(on, mine, all, (int)sizeof(*mine)) != MPI_SUCCESS) {
        free(all);
        snprintf(text, BY_MPI_TEXT_MAX, "not offloaded: MPI could not exchange the settings of the ranks");
        return 0;
    }
    verdict = judge(all, (uint32_t)self.size, text);
    self.least = all[0].least;
    self.log = all[0].log;
    self.after = all[0].after;
    self.ordered = (int)all[0].ordered;
    self.first = all[0];
    self.controlled = self.separates = 1;
    for (int rank = 0; rank < self.size; rank++) {
        self.controlled &= (int)all[rank].controlled;
        self.separates &= (int)all[rank].separates;
        self.space[rank] = all[rank].space;
    }
    free(all);
    return verdict;
}

/* Creates a communicator with MPI_COMM_WORLD's ranks but without its attributes: MPI_Comm_dup would
 * run the user's copy functions. */
static int make_silent(void)
{
    MPI_Group all;
    int made;

    if (PMPI_Comm_group(MPI_COMM_WORLD, &all) != MPI_SUCCESS)
        return 0;
    self.making = 1;
    made = PMPI_Comm_create(MPI_COMM_WORLD, all, &self.silent) == MPI_SUCCESS;
    self.making = 0;
    PMPI_Group_free(&all);
    return made;
}

/* Lets the ranks of a host find each other, while they join. */
static int gather_places(void *context, const void *mine, void *all, size_t bytes)
{
    const struct by_shim_gather *on = context;

    return on->gather(on, mine, all, (int)bytes) == MPI_SUCCESS ? 0 : -1;
}

/* Whether ranks share a host, and so may have communicators there. */
static int has_neighbours(void)
{
    for (int rank = 1; rank < self.size; rank++)
        for (int other = 0; other < rank; other++)
            if (self.space[rank] != 0 && self.space[rank] == self.space[other])
                return 1;
    return 0;
}

/* No rank opens a socket before all ranks have a place; then all ranks join, and the first
 * operation shows whether the switches accept them. */
static int enter(const struct by_shim_gather *on, char text[BY_MPI_TEXT_MAX], char timed[BY_MPI_TEXT_MAX])
{
    const struct banyan_bootstrap places = {.size = sizeof(places),
                                            .rank = (uint32_t)self.rank,
                                            .rank_count = (uint32_t)self.size,
                                            .context = (void *)(uintptr_t)on,
                                            .allgather = gather_places};
    struct by_mpi_facts mine;

    by_mpi_prepare(&mine, &places);
    mine.separates = on->is_own >= 0;
    if (self.rank == 0 && mine.controlled && mine.status == 0) {
        mine.status = by_mpi_sequencer_open(&mine);
        if (mine.status != 0)
            snprintf(mine.text, sizeof(mine.text), "%s", banyan_last_error());
    }
    if (!agree(on, by_mpi_seat, &mine, text))
        return 0;
    /* without it, communicators of one host whose calls do not wait stay with MPI */
    if (self.rank == 0 && !mine.controlled && has_neighbours() && by_mpi_sequencer_open(&mine) != 0)
        mine.door[0] = 0;
    by_mpi_join(&mine);
    if (!agree(on, by_mpi_agree, &mine, text))
        return 0;
    if (!make_silent()) {
        snprintf(text, BY_MPI_TEXT_MAX, "not offloaded: MPI could not create a communicator");
        return 0;
    }
    by_mpi_enter(&mine, by_shim_idle);
    if (!agree(on, by_mpi_agree, &mine, text))
        return 0;
    if (!mine.timed || !(mine.serves >> BANYAN_ALLTOALL & 1))
        return 1;
    if (!by_shim_time(on, &mine, timed)) {
        snprintf(text, BY_MPI_TEXT_MAX, "not offloaded: MPI could not time its collectives");
        return 0;
    }
    return agree(on, by_mpi_agree, &mine, text);
}

static void start(const struct by_shim_gather *on)
{
    char text[BY_MPI_TEXT_MAX] = "", timed[BY_MPI_TEXT_MAX] = "";

    PMPI_Comm_rank(MPI_COMM_WORLD, &self.rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &self.size);
    self.state = BY_SHIM_OFF;
    if (enter(on, text, timed))
        self.state = BY_SHIM_ON;
    if (self.rank == 0 && self.log > 0)
        fprintf(stderr, "banyan: MPI: %s\n", text);
    if (self.rank == 0 && self.log > 0 && self.state == BY_SHIM_ON && timed[0] != 0)
        fprintf(stderr, "banyan: MPI: all-to-all, scatter and gather, %s\n", timed);
    if (self.state == BY_SHIM_OFF) {
        by_mpi_sequencer_close(by_shim_idle);
        by_mpi_land();
        by_mpi_part();
    }
    call_at_finalize();
}

void by_shim_join(const struct by_shim_gather *on)
{
    if (self.state == 0)
        start(on);
}

/* ---- one communicator ---- */

void by_shim_twin(void)
{
    if (!self.making)
        self.has_twin = 1;
}

struct by_shim_comm *by_shim_comm_new(enum by_shim_kind kind, int rank, int size)
{
    struct by_shim_comm *comm = calloc(1, sizeof(*comm));

    if (comm == NULL) {
        by_shim_out_of_memory("a communicator");
        return NULL;
    }
    *comm = (struct by_shim_comm){.kind = kind, .state = BY_SHIM_NEW, .rank = rank, .size = size};
    if (size < 2) {
        comm->state = BY_SHIM_OFF;
        comm->reason = BY_MPI_WITHIN;
    }
    if (kind == BY_SHIM_TWIN)
        by_shim_twin();
    return comm;
}

void by_shim_comm_free(struct by_shim_comm *comm)
{
    if (comm == NULL)
        return;
    by_shim_requested_forget(comm);
    /* MPI_Finalize has left all lanes */
    if (comm->state == BY_SHIM_ON && self.state == BY_SHIM_ON)
        by_mpi_lane_close(comm->lane);
    if (self.state == BY_SHIM_ON)
        by_shim_served_leave(comm);
    free(comm->member);
    free(comm->counts);
    free(comm);
}

/* Whether its calls go over the job of MPI_COMM_WORLD. */
static int shares(const struct by_shim_comm *comm)
{
    int level = MPI_THREAD_MULTIPLE;

    if (comm->kind == BY_SHIM_WORLD)
        return 1;
    /* with threads the calls of two communicators have no common order */
    return comm->kind == BY_SHIM_TWIN && !self.controlled && PMPI_Query_thread(&level) == MPI_SUCCESS &&
           level != MPI_THREAD_MULTIPLE;
}

int by_shim_left(const struct by_shim_comm *comm, enum by_mpi_reason reason)
{
    by_mpi_leave_to_mpi(comm != NULL && comm->is_own ? BY_MPI_OWN : reason);
    return 0;
}

static int use(struct by_shim_comm *comm, struct by_mpi_lane *lane)
{
    if (comm->counts == NULL)
        comm->counts = calloc(4 * (size_t)comm->size, sizeof(*comm->counts));
    if (comm->counts == NULL) {
        by_shim_out_of_memory("the counts of ranks");
        return 0;
    }
    comm->lane = lane;
    return 1;
}

static int is_near(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    if (comm->is_near != 0)
        return comm->is_near > 0;
    if (comm->kind != BY_SHIM_INTER)
        comm->member = by_shim_members(on->comm, comm->size);
    comm->is_near = by_shim_are_near(comm->member, comm->size, self.space) ? 1 : -1;
    return comm->is_near > 0;
}

/* The communicator stays with MPI, for the reason that all its ranks have; is_now: they may notice
 * this in different calls. */
static int refuse(struct by_shim_comm *comm, int is_now, int status, const char *text)
{
    comm->state = BY_SHIM_OFF;
    comm->is_settled = !is_now;
    comm->waits = 0;
    comm->patience = comm->patience == 0               ? PATIENCE
                     : comm->patience < UINT32_MAX / 2 ? 2 * comm->patience
                                                       : UINT32_MAX;
    comm->reason = status == BANYAN_EUNSUPPORTED ? BY_MPI_WITHIN : BY_MPI_REFUSED;
    if (comm->rank == 0 && self.log > 0 && !self.has_refused) {
        self.has_refused = 1;
        fprintf(stderr, "banyan: MPI: a communicator of %d ranks is not offloaded: %s\n", comm->size, text);
    }
    return by_shim_left(comm, comm->reason);
}

static int take_off(struct by_shim_comm *comm, struct by_mpi_lane *lane)
{
    by_mpi_lane_open(lane);
    comm->state = BY_SHIM_ON;
    return use(comm, lane);
}

static struct banyan_bootstrap ranks_of(const struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    return (struct banyan_bootstrap){.size = sizeof(struct banyan_bootstrap),
                                     .rank = (uint32_t)comm->rank,
                                     .rank_count = (uint32_t)comm->size,
                                     .context = (void *)(uintptr_t)on,
                                     .allgather = gather_places};
}

/* Creates the job of a communicator; collective over it. */
static int branch(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    const struct banyan_bootstrap ranks = ranks_of(comm, on);
    struct by_mpi_lane *lane = by_shim_lane_new(comm);
    char text[BY_MPI_TEXT_MAX] = "";
    int status;

    if (lane == NULL)
        return 0;
    status = by_mpi_branch(&ranks, lane, text);
    if (status == BANYAN_OK) {
        struct by_mpi_served *served = by_shim_served(comm);

        if (served != NULL)
            served->jobs++;
        return take_off(comm, lane);
    }
    by_mpi_lane_free(lane);
    return refuse(comm, 0, status, text);
}

/* Decides in a blocking call of a communicator without a job, in its first one alone, whether it
 * continues with that of a freed one of the same ranks, which all of them have, or gets its own at
 * once, because others of these ranks have had enough calls in MPI for one more. Collective over
 * the communicator. Returns whether it has one. */
static int begin_early(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    const struct banyan_bootstrap ranks = ranks_of(comm, on);
    struct by_mpi_served *served = by_shim_served(comm);
    struct by_mpi_lane *lane;
    int few, has_paid;

    if (served == NULL)
        return 0;
    has_paid = served->calls / (served->jobs + 1) >= self.after;
    served->calls++;
    if (comm->has_compared || (served->jobs == 0 && !has_paid))
        return 0;
    comm->has_compared = 1;
    lane = by_shim_lane_new(comm);
    /* while none has been freed, more may have been made that have not been called */
    if (lane != NULL && by_mpi_revive(&ranks, lane, served->freed > 0 ? served->alive : UINT32_MAX, &few))
        return take_off(comm, lane);
    by_mpi_lane_free(lane);
    return lane != NULL && has_paid && few && branch(comm, on);
}

/* ---- a job that is requested by calls that must not wait for other ranks (requested.h) */

/* Rank 0 gives the communicator a number, in the same call as all its ranks. */
static int announce(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    if (by_shim_requested_announce(comm, on))
        return by_shim_left(comm, BY_MPI_FIRST);
    return refuse(comm, on->is_now, BANYAN_EIO, "MPI could not broadcast its number");
}

/* Decides for a call while the job is requested. */
static int await_job(struct by_shim_comm *comm, int is_now)
{
    char text[BY_MPI_TEXT_MAX] = "";
    int status;

    switch (by_shim_requested_call(comm, is_now, &status, text)) {
    case BY_MPI_WAY_MPI:
        return by_shim_left(comm, BY_MPI_FIRST);
    case BY_MPI_WAY_LANE:
        comm->state = BY_SHIM_ON;
        return use(comm, comm->lane);
    case BY_MPI_WAY_NEVER:
        break;
    }
    return refuse(comm, is_now, status, text);
}

/* Whether the job of a refused communicator is requested again in this call, as at all its ranks:
 * they count their blocking calls, from the first one that all begin after the refusal. */
static int is_due(struct by_shim_comm *comm, int is_now)
{
    if (comm->size < 2 || comm->is_near > 0 || is_now || comm->is_own)
        return 0;
    if (!comm->is_settled) {
        comm->is_settled = 1;
        return 0;
    }
    return ++comm->waits >= comm->patience;
}

/* Decides for a communicator with a job of its own. */
static int own_ready(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    if (comm->kind == BY_SHIM_INTER || (!is_near(comm, on) && !self.controlled))
        return by_shim_left(comm, BY_MPI_COMMUNICATOR);
    if (comm->state == BY_SHIM_ON)
        return 1;
    if (comm->state == BY_SHIM_OFF)
        return is_due(comm, on->is_now) ? branch(comm, on) : by_shim_left(comm, comm->reason);
    if (comm->is_own && comm->number == NULL && comm->opening == NULL)
        return by_shim_left(comm, BY_MPI_FIRST);
    if (!on->is_now && comm->number == NULL && comm->opening == NULL) {
        if (begin_early(comm, on))
            return 1;
        if (comm->state == BY_SHIM_OFF)
            return 0;
    }
    if (comm->number != NULL)
        by_shim_requested_begin(comm, &self.first, on->is_now);
    if (comm->opening != NULL)
        return await_job(comm, on->is_now);
    if (++comm->calls <= self.after || comm->number != NULL)
        return by_shim_left(comm, BY_MPI_FIRST);
    if (!on->is_now)
        return branch(comm, on);
    return self.first.door[0] != 0 ? announce(comm, on) : by_shim_left(comm, BY_MPI_FIRST);
}

/* Notes whether MPI itself makes the call, if all ranks can recognize this. */
static void mark_own(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    comm->is_own = self.separates && on->is_own > 0;
}

int by_shim_ready(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    if (comm == NULL)
        return by_shim_left(comm, BY_MPI_COMMUNICATOR);
    if (comm->kind == BY_SHIM_WORLD || comm->kind == BY_SHIM_TWIN)
        by_shim_join(on);
    mark_own(comm, on);
    if (self.making)
        return 0; /* a call of the plugin, by way of MPI */
    if (self.state != BY_SHIM_ON)
        return by_shim_left(comm, BY_MPI_OFF);
    if (shares(comm))
        return use(comm, by_mpi_world());
    return own_ready(comm, on);
}

/* The agreement would wait for ranks that may be waiting for what this rank does after its call. */
int by_shim_ready_now(struct by_shim_comm *comm, const struct by_shim_gather *on)
{
    if (self.making)
        return 0;
    if (comm == NULL)
        return by_shim_left(comm, BY_MPI_COMMUNICATOR);
    mark_own(comm, on);
    if (self.state == 0)
        return by_shim_left(comm, BY_MPI_EARLY);
    if (self.state != BY_SHIM_ON)
        return by_shim_left(comm, BY_MPI_OFF);
    if (!shares(comm))
        return own_ready(comm, on);
    if (self.has_twin && !self.controlled)
        return by_shim_left(comm, BY_MPI_ORDER);
    return use(comm, by_mpi_world());
}

int by_shim_persists(const struct by_shim_comm *comm)
{
    if (!self.ordered && !self.making)
        by_shim_pass(comm, BY_MPI_PERSISTENT);
    return self.ordered;
}

void by_shim_pass(const struct by_shim_comm *comm, enum by_mpi_reason reason)
{
    if (self.state == BY_SHIM_ON &&
        (comm == NULL ||
         (!shares(comm) && (comm->kind == BY_SHIM_INTER || (!self.controlled && comm->is_near <= 0)))))
        reason = BY_MPI_COMMUNICATOR;
    by_mpi_leave_to_mpi(self.state == BY_SHIM_ON ? reason : BY_MPI_OFF);
}

int by_shim_exchanges(struct by_shim_comm *comm, const struct by_shim_gather *on,
                      banyan_collective_t collective)
{
    enum by_mpi_reason reason = collective == BANYAN_ALLTOALL ? BY_MPI_ALL_TO_ALL : BY_MPI_TO_OR_FROM_ROOT;
    int connected = by_mpi_world()->serves >> collective & 1; /* the ranks of all hosts */

    if (self.making)
        return 0;
    if (comm != NULL)
        mark_own(comm, on);
    if (self.state == BY_SHIM_ON && comm != NULL && shares(comm)) {
        if (connected && (!on->is_now || !self.has_twin || self.controlled))
            return use(comm, by_mpi_world());
        if (connected)
            reason = BY_MPI_ORDER;
    } else if (self.state == BY_SHIM_ON && comm != NULL && comm->kind != BY_SHIM_INTER &&
               (is_near(comm, on) || (connected && self.controlled))) {
        if (!own_ready(comm, on))
            return 0;
        if (comm->lane->serves >> collective & 1)
            return 1;
    }
    by_shim_pass(comm, reason);
    return 0;
}

uint64_t by_shim_least(void)
{
    return self.least;
}

int by_shim_code(const char *reason)
{
    static int class = MPI_ERR_LASTCODE, code = MPI_ERR_OTHER;
    static unsigned repeats; /* of the last text */
    static char last[MPI_MAX_ERROR_STRING];
    char text[MPI_MAX_ERROR_STRING];

    snprintf(text, sizeof(text), "banyan: %s", reason);
    if (strcmp(text, last) == 0) {
        if (++repeats < FAILURES_MAX)
            return code;
        fprintf(stderr, "%s (MPI rank %d): %u calls in a row; the program ends\n", text, self.rank, repeats);
        PMPI_Abort(MPI_COMM_WORLD, code);
    }
    memcpy(last, text, sizeof(last));
    repeats = 0;
    code = MPI_ERR_OTHER;
    if (self.log > 0)
        fprintf(stderr, "%s (MPI rank %d)\n", text, self.rank);
    if (class == MPI_ERR_LASTCODE && PMPI_Add_error_class(&class) != MPI_SUCCESS)
        return MPI_ERR_OTHER;
    if (PMPI_Add_error_code(class, &code) == MPI_SUCCESS)
        PMPI_Add_error_string(code, text);
    return code;
}
