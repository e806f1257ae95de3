/* Reads lldpctl's JSON; see lldp_json.h. Pure; any thread. */
#include "control/fabric/import/lldp_json.h"

#include <ctype.h>
#include <string.h>

/* json0 wraps every object in an array and every text in {"value": ...}. */
static const json_t *unwrap(const json_t *value)
{
    while (json_is_array(value) && json_array_size(value) > 0)
        value = json_array_get(value, 0);
    return value;
}

static const char *text_of(const json_t *value)
{
    value = unwrap(value);
    if (json_is_object(value))
        value = unwrap(json_object_get(value, "value"));
    return json_string_value(value);
}

static int compare_words(const char *a, const char *b)
{
    while (*a && tolower((unsigned char)*a) == tolower((unsigned char)*b)) {
        a++;
        b++;
    }
    return *a || *b;
}

/* Whether the chassis reports that it forwards: Bridge or Router, and enabled. */
static bool is_switch(const json_t *chassis)
{
    const json_t *list = json_object_get(chassis, "capability");
    size_t count = json_is_array(list) ? json_array_size(list) : list ? 1 : 0;

    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(list) ? json_array_get(list, i) : list;
        const char *type = json_string_value(json_object_get(one, "type"));

        if (type && (compare_words(type, "Bridge") == 0 || compare_words(type, "Router") == 0) &&
            json_is_true(json_object_get(one, "enabled")))
            return true;
    }
    return false;
}

/* Finds the chassis of a neighbour: {"NAME": {...}}, {"id": ...} if it has no name, or json0's
 * {"name": ...}. */
static const json_t *find_chassis(const json_t *chassis, const char **name)
{
    const char *key;
    json_t *value;

    chassis = unwrap(chassis);
    *name = text_of(json_object_get(chassis, "name"));
    if (*name || json_object_get(chassis, "id")) {
        if (!*name)
            *name = text_of(json_object_get(chassis, "id"));
        return chassis;
    }
    json_object_foreach((json_t *)chassis, key, value)
    {
        *name = key;
        return unwrap(value);
    }
    return NULL;
}

static struct by_lldp_sight read_sight(const char *interface, const json_t *value)
{
    struct by_lldp_sight sight = {.interface = interface};
    const json_t *chassis, *port;

    value = unwrap(value);
    chassis = find_chassis(json_object_get(value, "chassis"), &sight.node);
    port = unwrap(json_object_get(value, "port"));
    if (!chassis)
        sight.node = NULL;
    sight.forwards = is_switch(chassis);
    sight.port = text_of(json_object_get(port, "id"));
    sight.description = text_of(json_object_get(port, "descr"));
    sight.speed = text_of(json_object_get(unwrap(json_object_get(port, "auto-negotiation")), "current"));
    return sight;
}

bool by_lldp_json_is(const json_t *root)
{
    return json_is_object(unwrap(json_object_get(root, "lldp")));
}

/* "interface" is an object of one interface, an array of such objects, or json0's array of objects
 * with names. */
int by_lldp_json_each(const json_t *root, int (*take)(void *context, const struct by_lldp_sight *sight),
                      void *context)
{
    const json_t *interfaces = json_object_get(unwrap(json_object_get(root, "lldp")), "interface");
    size_t count = json_is_array(interfaces) ? json_array_size(interfaces) : 1;
    int error = 0;

    for (size_t i = 0; i < count && !error; i++) {
        const json_t *one = json_is_array(interfaces) ? json_array_get(interfaces, i) : interfaces;
        const char *name = json_string_value(json_object_get(one, "name")), *key;
        struct by_lldp_sight sight;
        json_t *value;

        if (name) {
            sight = read_sight(name, one);
            error = take(context, &sight);
            continue;
        }
        json_object_foreach((json_t *)one, key, value)
        {
            sight = read_sight(key, value);
            error = error ? error : take(context, &sight);
        }
    }
    return error;
}
