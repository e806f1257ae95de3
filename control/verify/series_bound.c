/*
 * Computes the bound that prices prove. Every port, every processor and every link without ports
 * has one unit of time per unit of time. At prices for that time, an operation costs at least c,
 * however it is executed: messages of scatters and gossips use their cheapest path, a reduction the
 * cheapest way to move and combine values (series_reduction.c). Therefore throughput x c cannot
 * exceed the sum of all prices. See series.h.
 */
#include "control/study/series/rational.h"
#include "control/verify/series_inside.h"

static bool put_price(struct by_series_checker *checker, struct by_series_prices *prices,
                      const struct by_series_price *price)
{
    const struct by_series *series = checker->series;
    bool compute = checker->topology->nodes[price->node].compute;
    bool shares = series->ports == BY_SERIES_ONE_PORT || (series->ports == BY_SERIES_HOST_PORTS && compute);

    if (price->resource == BY_SERIES_LINK) {
        uint32_t link = by_links_find(checker->links, price->node, price->to);

        if (link == UINT32_MAX)
            return by_series_violate(checker, "a price is for a link that does not exist");
        mpq_add(prices->length[link], prices->length[link], price->price);
    } else if (price->resource == BY_SERIES_COMPUTES) {
        mpq_add(prices->computes[price->node], prices->computes[price->node], price->price);
    } else if (!shares) {
        return by_series_violate(checker, "a price is for a port of %s, whose links do not share one",
                                 checker->topology->nodes[price->node].name);
    } else {
        mpq_t *to = price->resource == BY_SERIES_SENDS ? prices->sends : prices->receives;

        mpq_add(to[price->node], to[price->node], price->price);
    }
    mpq_add(prices->sum, prices->sum, price->price);
    return true;
}

static bool prices_make(struct by_series_checker *checker, struct by_series_prices *prices)
{
    uint32_t n = checker->topology->node_count;
    bool right = true;
    mpq_t cost;

    prices->sends = by_rationals_new(n);
    prices->receives = by_rationals_new(n);
    prices->computes = by_rationals_new(n);
    prices->length = by_rationals_new(checker->links->count);
    mpq_inits(prices->sum, cost, NULL);
    for (uint32_t p = 0; p < checker->series->price_count && right; p++)
        right = put_price(checker, prices, &checker->series->prices[p]);
    for (uint32_t l = 0; l < checker->links->count; l++) {
        mpq_t *length = &prices->length[l];

        mpq_add(*length, *length, prices->sends[checker->links->from[l]]);
        mpq_add(*length, *length, prices->receives[checker->links->to[l]]);
        by_series_link_cost(checker, l, cost);
        mpq_mul(*length, *length, cost);
    }
    mpq_clear(cost);
    return right;
}

static void prices_free(struct by_series_prices *prices, uint32_t nodes, uint32_t links)
{
    by_rationals_free(prices->sends, nodes);
    by_rationals_free(prices->receives, nodes);
    by_rationals_free(prices->computes, nodes);
    by_rationals_free(prices->length, links);
    mpq_clear(prices->sum);
}

/* Costs of having something at each node; unknown nodes have no cost yet. */
struct costs {
    bool *known;
    mpq_t *cost;
};

/* Propagates known costs over links until no cost decreases; a transfer has size `size`. */
static void spread(const struct by_series_checker *checker, const struct by_series_prices *prices,
                   const mpq_t size, struct costs *costs)
{
    const struct by_links *links = checker->links;
    bool changed = true;
    mpq_t there;

    mpq_init(there);
    while (changed) {
        changed = false;
        for (uint32_t l = 0; l < links->count; l++) {
            uint32_t from = links->from[l], to = links->to[l];

            if (!costs->known[from])
                continue;
            mpq_mul(there, prices->length[l], size);
            mpq_add(there, there, costs->cost[from]);
            if (costs->known[to] && mpq_cmp(there, costs->cost[to]) >= 0)
                continue;
            mpq_set(costs->cost[to], there);
            costs->known[to] = changed = true;
        }
    }
    mpq_clear(there);
}

/* Prices scatters and gossips: the sum of cheapest paths. */
static bool price_pairs(struct by_series_checker *checker, const struct by_series_prices *prices, mpq_t total)
{
    const struct by_series *series = checker->series;
    uint32_t n = checker->topology->node_count, from = BY_SERIES_NONE;
    struct costs costs = {by_alloc(n, sizeof(bool)), by_rationals_new(n)};
    bool right = true;
    mpq_t one, cost;

    mpq_inits(one, cost, NULL);
    mpq_set_ui(one, 1, 1);
    for (uint32_t m = 0; m < series->message_count && right; m++) {
        const struct by_series_message *message = &series->messages[m];

        if (message->from != from) {
            from = message->from;
            memset(costs.known, 0, n * sizeof(bool));
            costs.known[from] = true;
            mpq_set_ui(costs.cost[from], 0, 1);
            spread(checker, prices, one, &costs);
        }
        right = costs.known[message->to] || by_series_violate(checker, "message %u cannot be delivered", m);
        mpq_mul(cost, costs.cost[message->to], message->size);
        mpq_add(total, total, cost);
    }
    mpq_clears(one, cost, NULL);
    by_rationals_free(costs.cost, n);
    free(costs.known);
    return right;
}

bool by_series_bound(struct by_series_checker *checker, mpq_t bound)
{
    struct by_series_prices prices;
    bool right = prices_make(checker, &prices);
    mpq_t total;

    mpq_init(total);
    right = right && (checker->series->operation == BY_SERIES_REDUCE
                          ? by_series_price_reduction(checker, &prices, total)
                          : price_pairs(checker, &prices, total));
    if (right && mpq_sgn(total) == 0)
        right = by_series_violate(checker, "at the prices of the file an operation costs nothing");
    if (right)
        mpq_div(bound, prices.sum, total);
    mpq_clear(total);
    prices_free(&prices, checker->topology->node_count, checker->links->count);
    return right;
}
