/* Units of bandwidth by name. See unit.h. */
#include "control/fabric/unit.h"

#include <string.h>

#include "control/base/fraction.h"
#include "offload/base/errors.h"

#define KILO INT64_C(1000)
#define KIBI INT64_C(1024)

/* X(name, numerator, denominator): bytes a second. */
#define UNIT_LIST(X)                                                                                         \
    X("B/s", 1, 1)                                                                                           \
    X("kB/s", KILO, 1)                                                                                       \
    X("MB/s", KILO *KILO, 1)                                                                                 \
    X("GB/s", KILO *KILO *KILO, 1)                                                                           \
    X("TB/s", KILO *KILO *KILO *KILO, 1)                                                                     \
    X("KiB/s", KIBI, 1)                                                                                      \
    X("MiB/s", KIBI *KIBI, 1)                                                                                \
    X("GiB/s", KIBI *KIBI *KIBI, 1)                                                                          \
    X("TiB/s", KIBI *KIBI *KIBI *KIBI, 1)                                                                    \
    X("bit/s", 1, 8)                                                                                         \
    X("kbit/s", KILO / 8, 1)                                                                                 \
    X("Mbit/s", KILO *KILO / 8, 1)                                                                           \
    X("Gbit/s", KILO *KILO *KILO / 8, 1)                                                                     \
    X("Tbit/s", KILO *KILO *KILO *KILO / 8, 1)                                                               \
    X("b/s", 1, 8)                                                                                           \
    X("kb/s", KILO / 8, 1)                                                                                   \
    X("Mb/s", KILO *KILO / 8, 1)                                                                             \
    X("Gb/s", KILO *KILO *KILO / 8, 1)                                                                       \
    X("Tb/s", KILO *KILO *KILO *KILO / 8, 1)                                                                 \
    X("bps", 1, 8)                                                                                           \
    X("kbps", KILO / 8, 1)                                                                                   \
    X("Mbps", KILO *KILO / 8, 1)                                                                             \
    X("Gbps", KILO *KILO *KILO / 8, 1)                                                                       \
    X("Tbps", KILO *KILO *KILO *KILO / 8, 1)                                                                 \
    X("messages", 0, 1)

static const struct {
    const char *name;
    struct by_fraction bytes;
} units[] = {
#define X(name, num, den) {name, {num, den}},
    UNIT_LIST(X)
#undef X
};

/* Finds a unit by name; NULL if unknown. */
static const struct by_fraction *find(const char *unit)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(unit, units[i].name) == 0)
            return &units[i].bytes;
    return NULL;
}

bool by_unit_is_known(const char *unit)
{
    return find(unit) != NULL;
}

const char *by_unit_list(void)
{
#define X(name, num, den) ", " name
    static const char list[] = UNIT_LIST(X);
#undef X

    return list + 2;
}

bool by_unit_has_bytes(const char *unit)
{
    const struct by_fraction *bytes = find(unit);

    return bytes != NULL && bytes->num > 0;
}

int by_unit_bytes(const char *unit, struct by_fraction rate, struct by_fraction *bytes)
{
    return by_unit_has_bytes(unit) ? by_fraction_multiply(rate, *find(unit), bytes) : BY_EUNSUPPORTED;
}

int by_unit_gigabytes(const char *unit, struct by_fraction rate, struct by_fraction *gigabytes)
{
    int error = by_unit_bytes(unit, (struct by_fraction){1, 1}, gigabytes);

    if (!error)
        error = by_fraction_divide(*gigabytes, (struct by_fraction){KILO * KILO * KILO, 1}, gigabytes);
    return error ? error : by_fraction_multiply(rate, *gigabytes, gigabytes);
}

struct by_fraction by_unit_arc_bytes(const struct by_topology *topology, uint32_t arc)
{
    struct by_fraction rate;

    if (by_fraction_set(topology->arcs[arc].capacity, topology->scale, &rate) != 0 ||
        by_unit_bytes(topology->unit, rate, &rate) != 0)
        return (struct by_fraction){0, 1};
    return rate;
}
