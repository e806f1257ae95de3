/* Histograms of durations; see latency.h. Pure; any thread. */
#include "offload/wire/latency.h"

#include "offload/base/bytes.h"

/* The limit of the first class (ns), and the power of two between two limits. */
#define FIRST_NS 10000u
#define SHIFT    2u

uint64_t by_latency_limit_ns(uint32_t class_index)
{
    return class_index + 1 < BY_LATENCY_CLASSES ? (uint64_t)FIRST_NS << SHIFT * class_index : UINT64_MAX;
}

void by_latency_add(struct by_latency *latency, uint64_t bytes, uint64_t duration_ns)
{
    uint32_t i = 0;

    while (duration_ns > by_latency_limit_ns(i))
        i++;
    latency->operations++;
    latency->bytes += bytes;
    latency->duration_ns += duration_ns;
    latency->of_class[i]++;
}

void by_latency_add_since(struct by_latency *latency, const struct by_latency *before,
                          const struct by_latency *now)
{
    latency->operations += now->operations - before->operations;
    latency->bytes += now->bytes - before->bytes;
    latency->duration_ns += now->duration_ns - before->duration_ns;
    for (uint32_t i = 0; i < BY_LATENCY_CLASSES; i++)
        latency->of_class[i] += now->of_class[i] - before->of_class[i];
}

void by_latency_put(const struct by_latency *latency, uint8_t bytes[BY_LATENCY_BYTES])
{
    by_put64(bytes, latency->operations);
    by_put64(bytes + 8, latency->bytes);
    by_put64(bytes + 16, latency->duration_ns);
    for (uint32_t i = 0; i < BY_LATENCY_CLASSES; i++)
        by_put64(bytes + 24 + 8 * i, latency->of_class[i]);
}

void by_latency_get(const uint8_t bytes[BY_LATENCY_BYTES], struct by_latency *latency)
{
    latency->operations = by_get64(bytes);
    latency->bytes = by_get64(bytes + 8);
    latency->duration_ns = by_get64(bytes + 16);
    for (uint32_t i = 0; i < BY_LATENCY_CLASSES; i++)
        latency->of_class[i] = by_get64(bytes + 24 + 8 * i);
}
