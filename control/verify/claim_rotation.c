/* Reads the member "rotations" of a plan file into a claim; rotation.c checks them. See
 * checker.h. */
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/verify/checker.h"

/* Reads a cycle: each node moves to the next, the last one to the first. */
static bool read_cycle(struct by_claim *claim, struct by_json *json, const struct by_names *names,
                       uint32_t *next, bool *seen)
{
    uint32_t first = UINT32_MAX, before = 0;

    if (by_json_peek(json) != '[')
        return by_claim_violate(claim, "a cycle of a rotation is not an array of node names");
    for (bool start = true; by_json_element(json, &start);) {
        const char *text;
        uint32_t node = 0;
        int shown;

        if (!by_names_read(names, json, &node, &text, &shown))
            return by_claim_violate(claim, "a rotation names '%.*s', which is not a node of the topology",
                                    shown, text);
        if (seen[node])
            return by_claim_violate(claim, "node %s appears twice in a rotation", by_claim_name(claim, node));
        seen[node] = true;
        if (first == UINT32_MAX)
            first = node;
        else
            next[before] = node;
        next[before = node] = first;
    }
    return !json->failed;
}

static bool read_rotation(struct by_claim *claim, struct by_json *json, const struct by_names *names,
                          uint32_t *next, uint32_t *order)
{
    uint32_t n = claim->topology->node_count;
    bool *seen = by_alloc(n, sizeof(*seen)), right = true, cycles = false;
    const char *key;
    size_t bytes;
    int64_t number = 0;

    for (uint32_t i = 0; i < n; i++)
        next[i] = i;
    if (by_json_peek(json) != '{')
        right = by_claim_violate(claim, "a rotation is not an object");
    for (bool first = true; right && by_json_member(json, &first, &key, &bytes);) {
        if (by_json_is(key, bytes, "order") && number == 0) {
            right = (by_json_integer(json, &number) && number > 0 && number <= UINT32_MAX) ||
                    by_claim_violate(claim, "the order of a rotation is not a positive integer");
        } else if (by_json_is(key, bytes, "cycles") && !cycles && by_json_peek(json) == '[') {
            cycles = true;
            for (bool start = true; right && by_json_element(json, &start);)
                right = read_cycle(claim, json, names, next, seen);
        } else {
            right = by_claim_violate(claim, "a rotation has a member other than \"order\" and \"cycles\", or "
                                            "one of the wrong kind");
        }
    }
    free(seen);
    *order = (uint32_t)number;
    return right && !json->failed &&
           ((number > 0 && cycles) ||
            by_claim_violate(claim, "a rotation must have \"order\" and \"cycles\""));
}

bool by_claim_read_rotations(struct by_claim *claim, struct by_json *json, const struct by_names *names,
                             struct by_claim_arrays *arrays)
{
    bool right = true;

    if (by_json_peek(json) != '[')
        return by_claim_violate(claim, "\"rotations\" is not an array");
    claim->rotations = by_alloc(BY_CLAIM_ROTATIONS_MAX, sizeof(*claim->rotations));
    for (bool first = true; right && by_json_element(json, &first);) {
        uint32_t *next;

        if (arrays->rotation_count == BY_CLAIM_ROTATIONS_MAX)
            return by_claim_violate(claim, "the plan has more than %u rotations", BY_CLAIM_ROTATIONS_MAX);
        next = arrays->rotations[arrays->rotation_count++] =
            by_alloc(claim->topology->node_count, sizeof(*next));
        claim->rotations[claim->rotation_count].next = next;
        right = read_rotation(claim, json, names, next, &claim->rotations[claim->rotation_count].order);
        claim->rotation_count++;
    }
    return right && (claim->rotation_count > 0 || by_claim_violate(claim, "\"rotations\" is empty"));
}
