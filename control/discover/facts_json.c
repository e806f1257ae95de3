/* The facts of a node as JSON; see facts.h. Single-threaded. */
#include <ctype.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "control/base/json.h"
#include "control/discover/facts.h"
#include "offload/base/errors.h"

#define FORMAT "banyan-facts-1"

static void set_text(json_t *object, const char *key, const char *text)
{
    if (text[0] != 0)
        json_object_set_new(object, key, json_string(text));
}

static void set_number(json_t *object, const char *key, uint32_t number)
{
    if (number != 0)
        json_object_set_new(object, key, json_integer(number));
}

static void set_mac(json_t *object, bool has_mac, const uint8_t mac[6])
{
    char text[BY_MAC_TEXT_BYTES];

    if (has_mac)
        json_object_set_new(object, "mac", json_string(by_mac_write(mac, text)));
}

static json_t *neighbour_json(const struct by_facts_neighbour *neighbour)
{
    json_t *object = json_object();

    set_text(object, "node", neighbour->node);
    set_text(object, "port", neighbour->port);
    set_text(object, "description", neighbour->description);
    set_mac(object, neighbour->has_mac, neighbour->mac);
    json_object_set_new(object, "forwards", json_boolean(neighbour->forwards));
    return object;
}

static json_t *interface_json(const struct by_facts_interface *interface)
{
    json_t *object = json_object(), *neighbours = json_array();

    set_text(object, "name", interface->name);
    json_object_set_new(object, "kernel", json_boolean(interface->is_kernel));
    json_object_set_new(object, "down", json_boolean(interface->is_down));
    set_mac(object, interface->has_mac, interface->mac);
    set_number(object, "mtu", interface->mtu);
    set_number(object, "speed", interface->speed_mbps);
    set_text(object, "addresses", interface->addresses);
    set_text(object, "driver", interface->driver);
    set_text(object, "bus", interface->bus);
    if (interface->numa > 0)
        json_object_set_new(object, "numa", json_integer(interface->numa - 1));
    set_number(object, "queues", interface->queues);
    set_text(object, "features", interface->features);
    for (uint32_t i = 0; i < interface->neighbour_count; i++)
        json_array_append_new(neighbours, neighbour_json(&interface->neighbours[i]));
    json_object_set_new(object, "neighbours", neighbours);
    return object;
}

/* One line for each interface, so that the files can be compared by eye. */
void by_facts_write(const struct by_facts *facts, FILE *stream)
{
    fprintf(stream, "{\"format\": \"" FORMAT "\", \"node\": \"%s\", \"listened\": %s,\n \"interfaces\": [",
            facts->node, facts->without_lldp ? "false" : "true");
    for (uint32_t i = 0; i < facts->interface_count; i++) {
        json_t *object = interface_json(&facts->interfaces[i]);

        fprintf(stream, "%s\n  ", i > 0 ? "," : "");
        json_dumpf(object, stream, JSON_PRESERVE_ORDER);
        json_decref(object);
    }
    fputs("\n ]}\n", stream);
}

/* ---- reading ---- */

struct facts_reader {
    const char *source;
    const char *where; /* the interface that is read, or "" */
    struct by_problem *problem;
    int error; /* the first */
};

static void refuse(struct facts_reader *reader, const char *key, const char *what)
{
    if (reader->error == 0)
        reader->error = by_problem_say(reader->problem, BY_EFORMAT, "%s%s%.40s%s: \"%s\" must be %s",
                                       reader->source, reader->where[0] ? ": interface '" : "", reader->where,
                                       reader->where[0] ? "'" : "", key, what);
}

/* A name reaches messages, file names and site files: printable ASCII without blanks, quotes and
 * backslashes. */
static bool is_name(const char *text)
{
    for (const char *c = text; *c; c++)
        if (*c <= ' ' || *c > '~' || *c == '"' || *c == '\\')
            return false;
    return text[0] != 0;
}

/* Takes a text of at most `room` - 1 bytes. */
static void take_text(struct facts_reader *reader, const json_t *object, const char *key, bool needed,
                      bool name, char *text, size_t room)
{
    const json_t *value = json_object_get(object, key);
    const char *string = json_string_value(value);

    text[0] = 0;
    if (value == NULL && !needed)
        return;
    if (string == NULL || strlen(string) >= room || (name && !is_name(string))) {
        char what[80];

        snprintf(what, sizeof(what), "a text of %s to %zu printable characters", name ? "1" : "0", room - 1);
        refuse(reader, key, what);
        return;
    }
    for (size_t i = 0; string[i]; i++) {
        text[i] = string[i] >= ' ' && string[i] <= '~' ? string[i] : '?';
        text[i + 1] = 0;
    }
}

static uint32_t take_number(struct facts_reader *reader, const json_t *object, const char *key, uint32_t most)
{
    const json_t *value = json_object_get(object, key);
    json_int_t number = json_integer_value(value);
    char what[48];

    if (value == NULL)
        return 0;
    if (json_is_integer(value) && number >= 0 && number <= most)
        return (uint32_t)number;
    snprintf(what, sizeof(what), "a number from 0 to %u", most);
    refuse(reader, key, what);
    return 0;
}

static bool take_flag(struct facts_reader *reader, const json_t *object, const char *key, bool usual)
{
    const json_t *value = json_object_get(object, key);

    if (value == NULL)
        return usual;
    if (!json_is_boolean(value))
        refuse(reader, key, "true or false");
    return json_is_true(value);
}

static bool take_mac(struct facts_reader *reader, const json_t *object, uint8_t mac[6])
{
    const json_t *value = json_object_get(object, "mac");

    if (value == NULL)
        return false;
    if (json_is_string(value) && by_mac_read(json_string_value(value), mac))
        return true;
    refuse(reader, "mac", "a MAC address such as 02:42:ac:11:00:02");
    return false;
}

static void take_neighbour(struct facts_reader *reader, const json_t *object,
                           struct by_facts_interface *interface)
{
    struct by_facts_neighbour neighbour = {.has_mac = false};

    if (!json_is_object(object)) {
        refuse(reader, "neighbours", "an array of objects");
        return;
    }
    take_text(reader, object, "node", true, true, neighbour.node, sizeof(neighbour.node));
    take_text(reader, object, "port", true, true, neighbour.port, sizeof(neighbour.port));
    take_text(reader, object, "description", false, false, neighbour.description,
              sizeof(neighbour.description));
    neighbour.has_mac = take_mac(reader, object, neighbour.mac);
    neighbour.forwards = take_flag(reader, object, "forwards", false);
    by_facts_hear(interface, &neighbour);
}

static void take_interface(struct facts_reader *reader, const json_t *object, struct by_facts *facts)
{
    char name[BY_NAME_MAX + 1];
    struct by_facts_interface *interface;
    const json_t *neighbours = json_object_get(object, "neighbours");

    if (!json_is_object(object)) {
        refuse(reader, "interfaces", "an array of objects");
        return;
    }
    take_text(reader, object, "name", true, true, name, sizeof(name));
    if (reader->error == 0 && by_facts_find(facts, name) != UINT32_MAX)
        refuse(reader, "interfaces", "an array in which each name appears once");
    interface = by_facts_interface(facts, name);
    reader->where = name;
    interface->is_kernel = take_flag(reader, object, "kernel", true);
    interface->is_down = take_flag(reader, object, "down", false);
    interface->has_mac = take_mac(reader, object, interface->mac);
    interface->mtu = take_number(reader, object, "mtu", 65535);
    interface->speed_mbps = take_number(reader, object, "speed", 1000000000);
    interface->queues = take_number(reader, object, "queues", 65535);
    if (json_object_get(object, "numa") != NULL)
        interface->numa = 1 + take_number(reader, object, "numa", 65535);
    take_text(reader, object, "driver", false, false, interface->driver, sizeof(interface->driver));
    take_text(reader, object, "bus", false, false, interface->bus, sizeof(interface->bus));
    take_text(reader, object, "features", false, false, interface->features, sizeof(interface->features));
    take_text(reader, object, "addresses", false, false, interface->addresses, sizeof(interface->addresses));
    if (neighbours != NULL && !json_is_array(neighbours))
        refuse(reader, "neighbours", "an array");
    for (size_t i = 0; i < json_array_size(neighbours); i++)
        take_neighbour(reader, json_array_get(neighbours, i), interface);
    reader->where = "";
}

int by_facts_parse(struct by_facts_list *list, const char *source, const char *json, size_t bytes,
                   struct by_problem *problem)
{
    struct facts_reader reader = {.source = source, .where = "", .problem = problem};
    json_error_t mistake;
    json_t *root = json_loadb(json, bytes, 0, &mistake);
    const json_t *interfaces = json_object_get(root, "interfaces");
    const char *format = json_string_value(json_object_get(root, "format"));
    char node[BY_NAME_MAX + 1];
    struct by_facts *facts;

    if (root == NULL)
        return by_problem_set(problem, BY_EFORMAT, (struct by_place){mistake.line, mistake.column},
                              "not valid JSON: %s", mistake.text);
    if (format == NULL || strcmp(format, FORMAT) != 0)
        refuse(&reader, "format", FORMAT ": is it the output of `banyan discover --local`?");
    take_text(&reader, root, "node", true, true, node, sizeof(node));
    if (strchr(node, '/') != NULL)
        refuse(&reader, "node", "a name without '/'");
    if (!json_is_array(interfaces) || json_array_size(interfaces) > BY_FACTS_INTERFACES_MAX)
        refuse(&reader, "interfaces", "an array of at most 4096 objects");
    if (reader.error == 0) {
        facts = by_facts_add(list, node, source);
        facts->without_lldp = !take_flag(&reader, root, "listened", true);
        for (size_t i = 0; i < json_array_size(interfaces) && reader.error == 0; i++)
            take_interface(&reader, json_array_get(interfaces, i), facts);
    }
    json_decref(root);
    return reader.error;
}

int by_facts_read(struct by_facts_list *list, const char *path, struct by_problem *problem)
{
    char *text = NULL;
    size_t bytes = 0;
    int error = by_text_read(path, BY_FACTS_BYTES_MAX, &text, &bytes, problem);

    if (error == 0)
        error = by_facts_parse(list, path, text, bytes, problem);
    free(text);
    return error;
}
