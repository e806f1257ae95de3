/* Manufacturing tight sets. See tighten.h. */
#include "control/plan/tighten.h"

#include "control/topology/alloc.h"

void by_clusters_free(struct by_clusters *clusters)
{
    free(clusters->start);
    free(clusters->nodes);
    *clusters = (struct by_clusters){0};
}

void by_tighten(const struct by_mesh *net, int64_t *capacity, const int64_t *roots, const bool *member,
                const bool *compute, struct by_clusters *clusters)
{
    (void)net, (void)capacity, (void)roots, (void)member, (void)compute, (void)clusters;
}

void by_tighten_insert(struct by_nest *nest, const struct by_clusters *clusters)
{
    (void)nest, (void)clusters;
}
