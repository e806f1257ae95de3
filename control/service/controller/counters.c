/* A switch's counters as JSON; see counters.h. */
#include "control/service/controller/counters.h"

#include "offload/base/limits.h"

json_t *by_counters_engine_json(const by_CountersReply *counters)
{
    json_t *engine = json_object();

    for (pb_size_t i = 0; i < counters->engine_count; i++)
        json_object_set_new(engine, counters->engine[i].name,
                            json_integer((json_int_t)counters->engine[i].value));
    return engine;
}

json_t *by_counters_shares_json(const by_CountersReply *counters)
{
    json_t *array = json_array();

    for (pb_size_t i = 0; i < counters->shares_count; i++) {
        const by_ShareCounters *share = &counters->shares[i];

        json_array_append_new(array, json_pack("{s:i, s:f, s:I, s:I, s:I, s:I}", "job", (int)share->job,
                                               "share", (double)share->share / BY_SHARE_ONE, "rx_bytes",
                                               (json_int_t)share->rx_bytes, "tx_bytes",
                                               (json_int_t)share->tx_bytes, "held", (json_int_t)share->held,
                                               "dropped", (json_int_t)share->dropped));
    }
    return array;
}
