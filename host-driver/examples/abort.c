/* A signal ends an operation that the other ranks never join. Run one process per rank, with
 * BANYAN_TABLE set to the rank's table image. */
#include <banyan/banyan.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static struct banyan_comm *waiting;

static void on_alarm(int number)
{
    (void)number;
    banyan_abort(waiting); /* NOLINT(bugprone-signal-handler): banyan.h allows it */
}

static int failed(void)
{
    fprintf(stderr, "abort: %s\n", banyan_last_error());
    return 1;
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK || banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();

    struct banyan_request *request;

    waiting = comm;
    (void)signal(SIGALRM, on_alarm);
    if (banyan_comm_rank(comm) == 0) {
        if (banyan_barrier_init(comm, &request) != BANYAN_OK || banyan_post(request) != BANYAN_OK)
            return failed();
        (void)alarm(1);
        if (banyan_wait(request) != BANYAN_EABORTED)
            return failed();
        printf("rank 0: %s\n", banyan_last_error());
        if (banyan_comm_async_error(comm) != BANYAN_EABORTED)
            return failed();
    }

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
