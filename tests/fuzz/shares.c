/* Files of shares, and lists of ranks, of arbitrary bytes on a small fabric: refused with a text,
 * or integers without a common divisor that are written and read back unchanged. */
#define FABRIC                                                                                               \
    "{\"name\": \"f\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\"}, "                               \
    "{\"name\": \"b\", \"kind\": \"compute\"}, {\"name\": \"c\", \"kind\": \"compute\"}, "                   \
    "{\"name\": \"s\", \"kind\": \"switch\"}], \"links\": [{\"between\": [\"a\", \"s\"], "                   \
    "\"bandwidth\": 1}, {\"between\": [\"b\", \"s\"], \"bandwidth\": 1}, {\"between\": [\"c\", \"s\"], "     \
    "\"bandwidth\": 1}]}"
#include <stdio.h>

#include "control/base/fraction.h"
#include "control/fabric/members.h"
#include "control/plan/shares.h"
#include "tests/fuzz/input.h"

static void check_shares(const struct by_topology *topology, const bool *member, int64_t *shares)
{
    struct by_problem problem = {0};
    int64_t *again = NULL, divisor = 0;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);

    FUZZ_CHECK(out != NULL && by_shares_sum(shares, topology->node_count) > 0);
    by_shares_write(shares, topology, member, out);
    fclose(out);
    FUZZ_CHECK(by_shares_parse(text, bytes, topology, member, &again, &problem) == 0);
    for (uint32_t i = 0; i < topology->node_count; i++) {
        FUZZ_CHECK(shares[i] >= 0 && shares[i] == again[i]);
        FUZZ_CHECK(shares[i] == 0 || by_members_have(topology, member, i));
        divisor = by_gcd(divisor, shares[i]);
    }
    FUZZ_CHECK(divisor == 1);
    free(again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct by_topology *topology; /* the same for every input */
    static const bool two[] = {true, false, true, false};
    struct by_problem problem = {0};
    bool *member = NULL;

    if (topology == NULL)
        FUZZ_CHECK(by_topology_parse(FABRIC, sizeof(FABRIC) - 1, &topology, &problem) == 0);
    for (int part = 0; part < 2; part++) {
        int64_t *shares = NULL;

        if (by_shares_parse((const char *)data, size, topology, part ? two : NULL, &shares, &problem) == 0)
            check_shares(topology, part ? two : NULL, shares);
        else
            FUZZ_CHECK(shares == NULL && problem.text[0] != 0);
        free(shares);
    }
    if (by_members_parse((const char *)data, size, topology, &member, &problem) == 0)
        FUZZ_CHECK(by_members_count(topology, member) >= 2 && !member[3]);
    else
        FUZZ_CHECK(member == NULL && problem.text[0] != 0);
    free(member);
    return 0;
}
