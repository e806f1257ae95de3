/*
 * The load of all trees on every link. Weights are converted to a common denominator. The load of
 * each path is added up first, then that of each link: a plan has millions of edges, but far fewer
 * paths. Sums that fit 64 bits use machine integers, all others GMP integers. See checker.h.
 */
#include "control/base/alloc.h"
#include "control/verify/checker.h"

/* Sums of weights, in 1 / denominator of the unit: small where all of them fit, else large. */
struct loads {
    struct by_checker *checker;
    mpz_t denominator;
    bool fits;
    uint32_t path_count, link_count;
    int64_t *path[2]; /* by path: carried down, up */
    int64_t *link;    /* by pair of nodes */
    mpz_t *large_path[2];
    mpz_t *large_link;
};

static mpz_t *new_numbers(size_t count)
{
    mpz_t *numbers = by_alloc(count, sizeof(*numbers));

    for (size_t i = 0; i < count; i++)
        mpz_init(numbers[i]);
    return numbers;
}

static void free_numbers(mpz_t *numbers, size_t count)
{
    for (size_t i = 0; i < count && numbers; i++)
        mpz_clear(numbers[i]);
    free(numbers);
}

static void scaled_weight(const struct loads *loads, const struct by_claim_tree *tree, mpz_t result)
{
    mpz_divexact(result, loads->denominator, mpq_denref(tree->weight));
    mpz_mul(result, result, mpq_numref(tree->weight));
}

/* Chooses the size of the numbers. A link carries at most the sum of all weights times the number
 * of times that a tree can pass it. */
static void loads_make(struct loads *loads, struct by_checker *checker)
{
    const struct by_claim *claim = checker->claim;
    mpz_t sum, weight;

    *loads = (struct loads){
        .checker = checker, .path_count = claim->path_count, .link_count = checker->links->count};
    mpz_init_set_ui(loads->denominator, 1);
    mpz_inits(sum, weight, NULL);
    for (uint32_t i = 0; i < claim->tree_count; i++)
        mpz_lcm(loads->denominator, loads->denominator, mpq_denref(claim->trees[i].weight));
    for (uint32_t i = 0; i < claim->tree_count; i++) {
        scaled_weight(loads, &claim->trees[i], weight);
        mpz_add(sum, sum, weight);
    }
    mpz_mul_ui(sum, sum, 2ul * checker->node_count);
    if (claim->rotation_count > 0) /* loads of alike links are added up */
        mpz_mul_ui(sum, sum, checker->node_count);
    loads->fits = mpz_sizeinbase(sum, 2) <= 62;
    mpz_clears(sum, weight, NULL);
    if (loads->fits) {
        loads->path[0] = by_alloc(loads->path_count, sizeof(*loads->path[0]));
        loads->path[1] = by_alloc(loads->path_count, sizeof(*loads->path[1]));
        loads->link = by_alloc(loads->link_count, sizeof(*loads->link));
    } else {
        loads->large_path[0] = new_numbers(loads->path_count);
        loads->large_path[1] = new_numbers(loads->path_count);
        loads->large_link = new_numbers(loads->link_count);
    }
}

static void loads_free(struct loads *loads)
{
    mpz_clear(loads->denominator);
    free(loads->path[0]);
    free(loads->path[1]);
    free(loads->link);
    free_numbers(loads->large_path[0], loads->path_count);
    free_numbers(loads->large_path[1], loads->path_count);
    free_numbers(loads->large_link, loads->link_count);
}

static void add_tree(struct loads *loads, const struct by_claim_tree *tree)
{
    const uint32_t *edges = loads->checker->claim->edges + tree->first_edge;
    int64_t small;
    mpz_t weight;

    mpz_init(weight);
    scaled_weight(loads, tree, weight);
    small = mpz_get_si(weight);
    for (int way = 0; way < 2; way++) {
        if (way == 0 ? !by_claim_carries_down(tree) : !by_claim_carries_up(tree))
            continue;
        if (loads->fits)
            for (uint32_t i = 0; i < tree->edge_count; i++)
                loads->path[way][edges[i]] += small;
        else
            for (uint32_t i = 0; i < tree->edge_count; i++)
                mpz_add(loads->large_path[way][edges[i]], loads->large_path[way][edges[i]], weight);
    }
    mpz_clear(weight);
}

/* Whether a path carries anything in that direction. */
static bool carries(const struct loads *loads, int way, uint32_t path)
{
    return loads->fits ? loads->path[way][path] != 0 : mpz_sgn(loads->large_path[way][path]) != 0;
}

static void add_path(struct loads *loads, uint32_t path)
{
    const struct by_claim *claim = loads->checker->claim;

    for (int way = 0; way < 2; way++) {
        if (!carries(loads, way, path))
            continue;
        for (uint32_t i = claim->path_start[path] + 1; i < claim->path_start[path + 1]; i++) {
            uint32_t above = claim->path_nodes[i - 1], below = claim->path_nodes[i];
            uint32_t link = by_links_find(loads->checker->links, way ? below : above, way ? above : below);

            if (loads->fits)
                loads->link[link] += loads->path[way][path];
            else
                mpz_add(loads->large_link[link], loads->large_link[link], loads->large_path[way][path]);
        }
    }
}

/* Adds up the loads of links that rotations move to each other: at the first of them. Returns the
 * number of links there, by first link. */
static uint32_t *gather(struct loads *loads, const uint32_t *first)
{
    uint32_t *count = by_alloc(loads->link_count, sizeof(*count));

    for (uint32_t i = 0; i < loads->link_count; i++) {
        count[first[i]]++;
        if (first[i] != i && loads->fits)
            loads->link[first[i]] += loads->link[i];
        else if (first[i] != i)
            mpz_add(loads->large_link[first[i]], loads->large_link[first[i]], loads->large_link[i]);
    }
    return count;
}

/* Checks load * images / (denominator * links) <= capacity / scale, where the images of trees load
 * `links` links alike. */
static bool check_link(struct loads *loads, uint32_t link, uint32_t links_alike)
{
    struct by_checker *checker = loads->checker;
    const struct by_links *links = checker->links;
    bool right;
    mpz_t load, limit;

    if (loads->fits)
        mpz_init_set_si(load, loads->link[link]);
    else
        mpz_init_set(load, loads->large_link[link]);
    mpz_init_set_si(limit, links->capacity[link]);
    mpz_mul(limit, limit, loads->denominator);
    mpz_mul_ui(limit, limit, links_alike);
    mpz_mul_ui(load, load, (unsigned long)checker->topology->scale);
    mpz_mul_ui(load, load, (unsigned long)checker->images);
    right = mpz_cmp(load, limit) <= 0;
    if (!right) {
        char text[200];
        mpq_t carried, capacity;

        mpq_inits(carried, capacity, NULL);
        mpz_set(mpq_numref(carried), load);
        mpz_mul_ui(mpq_denref(carried), loads->denominator, (unsigned long)checker->topology->scale);
        mpz_mul_ui(mpq_denref(carried), mpq_denref(carried), links_alike);
        mpq_canonicalize(carried);
        mpq_set_si(capacity, links->capacity[link], (unsigned long)checker->topology->scale);
        mpq_canonicalize(capacity);
        gmp_snprintf(text, sizeof(text), "the link from %s to %s carries %Qd of %Qd %s",
                     by_claim_name(checker->claim, links->from[link]),
                     by_claim_name(checker->claim, links->to[link]), carried, capacity,
                     checker->topology->unit);
        by_claim_violate(checker->claim, "%s", text);
        mpq_clears(carried, capacity, NULL);
    }
    mpz_clears(load, limit, NULL);
    return right;
}

bool by_check_loads(struct by_checker *checker)
{
    uint32_t *first = NULL, *alike = NULL;
    struct loads loads;
    bool right = true;

    loads_make(&loads, checker);
    for (uint32_t i = 0; i < checker->claim->tree_count; i++)
        add_tree(&loads, &checker->claim->trees[i]);
    for (uint32_t i = 0; i < loads.path_count; i++)
        add_path(&loads, i);
    if (checker->claim->rotation_count > 0) {
        first = by_check_images_of_links(checker);
        alike = gather(&loads, first);
    }
    for (uint32_t i = 0; i < loads.link_count && right; i++)
        right = (first && first[i] != i) || check_link(&loads, i, alike ? alike[i] : 1);
    free(first);
    free(alike);
    loads_free(&loads);
    return right;
}
