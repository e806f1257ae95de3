/* Reads the member "proof" of a plan file into a claim; proof.c checks it. See checker.h. */
#include <stdlib.h>
#include <string.h>

#include "control/base/alloc.h"
#include "control/base/json.h"
#include "control/verify/checker.h"

/* The most cuts of a proof (count). */
#define CUTS_MAX 65536u

static bool read_node(struct by_claim *claim, struct by_json *json, const struct by_names *names,
                      uint32_t *node)
{
    const char *text = "(not a string)";
    size_t bytes = strlen(text);
    int64_t index = -1;

    if (by_json_peek(json) == '"' && by_json_string(json, &text, &bytes))
        index = by_names_find(names, text, bytes);
    if (index < 0)
        return by_claim_violate(claim, "the proof names '%.*s', which is not a node of the topology",
                                bytes > 60 ? 60 : (int)bytes, text);
    *node = (uint32_t)index;
    return true;
}

static bool read_parts(struct by_claim *claim, struct by_json *json, const struct by_names *names)
{
    claim->proof = BY_CLAIM_PROOF_PARTS;
    claim->part = by_alloc(claim->topology->node_count, sizeof(*claim->part));
    for (bool first = true; by_json_element(json, &first);) {
        claim->part_count++;
        for (bool start = true; by_json_element(json, &start);) {
            uint32_t node = 0;

            if (!read_node(claim, json, names, &node))
                return false;
            if (claim->part[node])
                return by_claim_violate(claim, "node %s appears twice in the parts of the proof",
                                        by_claim_name(claim, node));
            claim->part[node] = claim->part_count;
        }
    }
    return true;
}

/* Reads an integer, or its digits in a string; 0 if it is neither. */
static int64_t read_digits(struct by_json *json)
{
    const char *text = "";
    size_t bytes = 0;
    char digits[24] = "";
    int64_t number = 0;

    if (by_json_peek(json) == '"') {
        if (by_json_string(json, &text, &bytes) && bytes < sizeof(digits) - 5)
            memcpy(digits, text, bytes);
        return strtoll(digits, NULL, 10);
    }
    if (!by_json_integer(json, &number))
        by_json_skip(json);
    return number;
}

/* ["from", "to", price]. */
static bool read_price(struct by_claim *claim, struct by_json *json, const struct by_names *names,
                       struct by_claim_price *price)
{
    uint32_t index = 0;

    for (bool first = true; by_json_element(json, &first); index++) {
        if (index >= 2)
            price->price = read_digits(json);
        else if (!read_node(claim, json, names, index ? &price->to : &price->from))
            return false;
    }
    return (index == 3 && price->price > 0) ||
           by_claim_violate(claim, "a price of the proof is not [\"node\", \"node\", digits]");
}

static bool read_prices(struct by_claim *claim, struct by_json *json, const struct by_names *names)
{
    uint32_t room = 0;

    claim->proof = BY_CLAIM_PROOF_PRICES;
    for (bool first = true; by_json_element(json, &first);) {
        BY_GROW(claim->prices, claim->price_count, room);
        claim->prices[claim->price_count] = /* NOLINT(clang-analyzer-core.NullDereference): BY_GROW sets it */
            (struct by_claim_price){0, 0, 0};
        if (!read_price(claim, json, names, &claim->prices[claim->price_count++]))
            return false;
    }
    return true;
}

/* [weight, "node", ...]. */
static bool read_cut(struct by_claim *claim, struct by_json *json, const struct by_names *names,
                     struct by_claim_cut *cut)
{
    uint32_t index = 0;

    cut->inside = by_alloc(claim->topology->node_count, sizeof(*cut->inside));
    for (bool first = true; by_json_element(json, &first); index++) {
        uint32_t node = 0;

        if (index == 0) {
            cut->weight = read_digits(json);
            continue;
        }
        if (!read_node(claim, json, names, &node))
            return false;
        cut->inside[node] = true;
    }
    return cut->weight > 0 || by_claim_violate(claim, "a cut of the proof is not [digits, \"node\", ...]");
}

static bool read_cuts(struct by_claim *claim, struct by_json *json, const struct by_names *names, bool up)
{
    claim->proof = BY_CLAIM_PROOF_CUTS;
    for (bool first = true; by_json_element(json, &first);) {
        if (claim->cut_count == CUTS_MAX)
            return by_claim_violate(claim, "the proof has more than %u cuts", CUTS_MAX);
        BY_GROW(claim->cuts, claim->cut_count, claim->cut_room);
        claim->cuts[claim->cut_count] = (struct by_claim_cut){.up = up};
        if (!read_cut(claim, json, names, &claim->cuts[claim->cut_count++]))
            return false;
    }
    return true;
}

bool by_claim_read_proof(struct by_claim *claim, struct by_json *json, const struct by_names *names)
{
    const char *key;
    size_t bytes;
    bool right = by_json_peek(json) == '{';

    for (bool first = true; right && by_json_member(json, &first, &key, &bytes);) {
        bool up = by_json_is(key, bytes, "up");

        if (claim->prices && (up || by_json_is(key, bytes, "down")))
            right = read_cuts(claim, json, names, up);
        else if (claim->proof)
            right = false;
        else if (by_json_is(key, bytes, "parts"))
            right = read_parts(claim, json, names);
        else
            right = by_json_is(key, bytes, "prices") && read_prices(claim, json, names);
    }
    if (right && claim->proof)
        return true;
    return claim->reason[0] ? false
                            : by_claim_violate(claim, "the proof is not an object of parts or of prices");
}
