/* Queries the path of an operation before anything is sent: from the context alone, and then from
 * the communicator, which decides the same way. Run one process per rank, with BANYAN_TABLE set to
 * the rank's table image. */
#include <banyan/banyan.h>
#include <stdio.h>

static int failed(void)
{
    fprintf(stderr, "query: %s\n", banyan_last_error());
    return 1;
}

static void print(const struct banyan_query *query)
{
    static const char *const paths[] = {"?", "offloaded", "between hosts", "nowhere"};

    printf("rank %u of %u: %s: %s\n", query->rank, query->rank_count, paths[query->path], query->reason);
    if (query->path == BANYAN_TREES)
        printf("  %llu packets: %s\n", (unsigned long long)query->packet_count, query->trees);
}

int main(void)
{
    struct banyan_context *context;
    struct banyan_query query;
    struct banyan_comm *comm;

    if (banyan_init(NULL, &context) != BANYAN_OK)
        return failed();

    /* An allreduce, sum of f32, of a million elements, in job 0: the only one. */
    banyan_query_init(&query);
    query.count = 1000000;
    if (banyan_context_query(context, 0, &query) != BANYAN_OK)
        return failed();
    print(&query);

    if (banyan_comm_create(context, 0, &comm) != BANYAN_OK)
        return failed();
    if (banyan_comm_query(comm, &query) != BANYAN_OK)
        return failed();
    print(&query);
    /* Whether the table has trees for it at all, regardless of operator and size. */
    if (banyan_comm_serves(comm, BANYAN_ALLREDUCE, 0) != (query.path == BANYAN_TREES))
        return 1;

    if (banyan_comm_destroy(comm) != BANYAN_OK || banyan_finalize(context) != BANYAN_OK)
        return failed();
    return 0;
}
