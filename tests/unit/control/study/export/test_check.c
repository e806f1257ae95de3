/* Wrong schedules are refused: a table of written schedules with the expected messages, and every
 * fault at every step of exported ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "offload/base/errors.h"
#include "tests/unit/control/study/export/make.h"

#define ALGO(collective, gpus, chunks)                                                                       \
    "<algo name=\"t\" proto=\"Simple\" nchannels=\"2\" nchunksperloop=\"" chunks "\" ngpus=\"" gpus          \
    "\" coll=\"" collective "\" inplace=\"0\" outofplace=\"1\" minBytes=\"0\" maxBytes=\"9\">"
#define GPU(id, i, o, s)          "<gpu id=\"" id "\" i_chunks=\"" i "\" o_chunks=\"" o "\" s_chunks=\"" s "\">"
#define TB(id, send, recv)        "<tb id=\"" id "\" send=\"" send "\" recv=\"" recv "\" chan=\"0\">"
#define WAIT(depid, deps, hasdep) " depid=\"" depid "\" deps=\"" deps "\" hasdep=\"" hasdep "\"/>"
#define FREE                      WAIT("-1", "-1", "0")
#define STEP(s, type, src, srcoff, dst, dstoff, wait)                                                        \
    "<step s=\"" s "\" type=\"" type "\" srcbuf=\"" src "\" srcoff=\"" srcoff "\" dstbuf=\"" dst             \
    "\" dstoff=\"" dstoff "\" cnt=\"1\"" wait

/* Two GPUs that exchange their shards; the inner parts vary. */
#define PAIR(first, second)                                                                                  \
    ALGO("allgather", "2", "2")                                                                              \
    GPU("0", "1", "2", "1") first "</gpu>" GPU("1", "1", "2", "1") second "</gpu></algo>"
#define COPY0 TB("0", "-1", "-1") STEP("0", "cpy", "i", "0", "o", "0", FREE) "</tb>"
#define COPY1 TB("0", "-1", "-1") STEP("0", "cpy", "i", "0", "o", "1", FREE) "</tb>"
#define SEND0 TB("1", "1", "-1") STEP("0", "s", "i", "0", "o", "0", FREE) "</tb>"
#define SEND1 TB("1", "0", "-1") STEP("0", "s", "i", "0", "o", "1", FREE) "</tb>"
#define RECV0 TB("2", "-1", "1") STEP("0", "r", "i", "0", "o", "1", FREE) "</tb>"
#define RECV1 TB("2", "-1", "0") STEP("0", "r", "i", "0", "o", "0", FREE) "</tb>"

/* Three GPUs that each wait for the previous one: none begins. */
#define WAITING(id, to, from, own)                                                                           \
    GPU(id, "1", "3", "0")                                                                                   \
    TB("0", to, from)                                                                                        \
    STEP("0", "r", "i", "0", "o", from, FREE) STEP("1", "s", "i", "0", "o", own, FREE) "</tb></gpu>"

static int check(const char *text, struct by_problem *problem)
{
    struct by_check_report report;

    *problem = (struct by_problem){0};
    return by_check_text(text, strlen(text), NULL, 1, &report, problem);
}

static void wrong_schedules_are_refused_with_their_reason(void **state)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {PAIR(COPY0 SEND0 RECV0, COPY1 SEND1 RECV1), NULL},
        /* dropped */
        {PAIR(COPY0 SEND0 RECV0, COPY1 TB("1", "0", "-1") "</tb>" RECV1), "never sent"},
        {PAIR(COPY0 SEND0 RECV0, COPY1 SEND1), "never received"},
        {PAIR(TB("0", "-1", "-1") "</tb>" SEND0 RECV0, COPY1 SEND1 RECV1), "never been written"},
        /* duplicated */
        {PAIR(COPY0 TB("1", "1", "-1") STEP("0", "s", "i", "0", "o", "0", FREE)
                  STEP("1", "s", "i", "0", "o", "0", FREE) "</tb>" RECV0,
              COPY1 SEND1 TB("2", "-1", "0") STEP("0", "r", "i", "0", "o", "0", FREE)
                  STEP("1", "r", "i", "0", "o", "0", FREE) "</tb>"),
         "again"},
        {PAIR(COPY0 TB("1", "1", "-1") STEP("0", "s", "i", "0", "o", "0", FREE)
                  STEP("1", "s", "i", "0", "o", "0", FREE) "</tb>" RECV0,
              COPY1 SEND1 RECV1),
         "never received"},
        {PAIR(COPY0 COPY0 SEND0 RECV0, COPY1 SEND1 RECV1), "thread block 0 of GPU 0 appears twice"},
        /* wrong buffer or place */
        {PAIR(COPY0 SEND0 TB("2", "-1", "1") STEP("0", "r", "i", "0", "s", "0", FREE) "</tb>",
              COPY1 SEND1 RECV1),
         "never been written"},
        {PAIR(COPY0 SEND0 TB("2", "-1", "1") STEP("0", "r", "i", "0", "i", "0", FREE) "</tb>",
              COPY1 SEND1 RECV1),
         "writes to its input"},
        {PAIR(COPY0 SEND0 TB("2", "-1", "1") STEP("0", "r", "i", "0", "o", "2", FREE) "</tb>",
              COPY1 SEND1 RECV1),
         "output buffer of GPU 0, which has 2"},
        {PAIR(COPY0 TB("1", "1", "-1") STEP("0", "s", "s", "0", "o", "0", FREE) "</tb>" RECV0,
              COPY1 SEND1 RECV1),
         "has not been written"},
        {PAIR(TB("0", "-1", "-1") STEP("0", "cpy", "i", "0", "o", "1", FREE) "</tb>" SEND0 TB("2", "-1", "1")
                  STEP("0", "r", "i", "0", "o", "0", FREE) "</tb>",
              COPY1 SEND1 RECV1),
         "holds chunk 1"},
        /* order: the copy, and the send of the copied data */
        {PAIR(COPY0 TB("1", "1", "-1") STEP("0", "s", "o", "0", "o", "0", FREE) "</tb>" RECV0,
              COPY1 SEND1 RECV1),
         "their order is undefined"},
        {PAIR(TB("0", "-1", "-1") STEP("0", "cpy", "i", "0", "o", "0", WAIT("-1", "-1", "1")) "</tb>" TB(
                  "1", "1", "-1") STEP("0", "s", "o", "0", "o", "0", WAIT("0", "0", "0")) "</tb>" RECV0,
              COPY1 SEND1 RECV1),
         NULL},
        {PAIR(COPY0 TB("1", "1", "-1") STEP("0", "s", "o", "0", "o", "0", WAIT("0", "0", "0")) "</tb>" RECV0,
              COPY1 SEND1 RECV1),
         "does not signal"},
        {PAIR(COPY0 TB("1", "1", "-1") STEP("0", "s", "o", "0", "o", "0", WAIT("0", "1", "0")) "</tb>" RECV0,
              COPY1 SEND1 RECV1),
         "which does not exist"},
        /* cycles */
        {PAIR(COPY0 TB("1", "1", "-1") STEP("0", "s", "i", "0", "o", "0", WAIT("2", "0", "1")) "</tb>" TB(
                  "2", "-1", "1") STEP("0", "r", "i", "0", "o", "1", WAIT("1", "0", "1")) "</tb>",
              COPY1 SEND1 RECV1),
         "cyclic wait of 2 thread blocks: GPU 0 thread block 1 step 0, which waits for GPU 0 thread block 2 "
         "step 0"},
        {ALGO("allgather", "3", "3") WAITING("0", "1", "2", "0") WAITING("1", "2", "0", "1")
             WAITING("2", "0", "1", "2") "</algo>",
         "cyclic wait of 3 thread blocks"},
        /* sums */
        {ALGO("allreduce", "2", "1") GPU("0", "1", "1", "1") TB("0", "1", "-1")
             STEP("0", "s", "i", "0", "o", "0", FREE) "</tb>" TB("1", "-1", "1")
                 STEP("0", "rrc", "i", "0", "o", "0", FREE) "</tb></gpu>" GPU("1", "1", "1", "1")
                     TB("0", "0", "-1") STEP("0", "s", "i", "0", "o", "0", FREE) "</tb>" TB("1", "-1", "0")
                         STEP("0", "rrc", "i", "0", "o", "0", FREE) "</tb></gpu></algo>",
         NULL},
        {ALGO("allreduce", "2", "1") GPU("0", "1", "1", "1") TB("0", "1", "-1")
             STEP("0", "s", "i", "0", "o", "0", FREE) STEP("1", "s", "i", "0", "o", "0",
                                                           FREE) "</tb>" TB("1", "-1", "1")
                 STEP("0", "rrc", "i", "0", "o", "0", FREE) "</tb></gpu>" GPU("1", "1", "1", "1")
                     TB("0", "0", "-1") STEP("0", "s", "i", "0", "o", "0", FREE) "</tb>" TB("1", "-1", "0")
                         STEP("0", "rrc", "i", "0", "o", "0", FREE)
                             STEP("1", "rrc", "o", "0", "o", "0", FREE) "</tb></gpu></algo>",
         "adds the contribution of GPU 0 to chunk 0 twice"},
        {ALGO("allreduce", "2", "2") GPU("0", "2", "2", "0") TB("0", "1", "-1")
             STEP("0", "s", "i", "0", "o", "0", FREE) "</tb></gpu>" GPU("1", "2", "2", "0") TB("0", "-1", "0")
                 STEP("0", "rrc", "i", "1", "o", "1", FREE) "</tb></gpu></algo>",
         "adds chunk 0 to chunk 1"},
        /* what the runtime would ignore, or what would block it */
        {"<algo name=\"t\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"1\" "
         "coll=\"allreduce\" "
         "inplace=\"1\"></algo>",
         "silently ignore the file"},
        {"<algo name=\"t\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"1\" "
         "coll=\"allreduce\" "
         "inplace=\"0\" outofplace=\"0\" minBytes=\"0\" maxBytes=\"9\"></algo>",
         "never use"},
        {"<algo name=\"t\" proto=\"Simple\" nchannels=\"1\" nchunksperloop=\"1\" ngpus=\"1\" "
         "coll=\"allreduce\" "
         "minBytes=\"9\" maxBytes=\"8\"></algo>",
         "no size fits"},
        {ALGO("alltoall", "2", "2") "</algo>", "coll is 'alltoall'"},
        {ALGO("allgather", "2", "3") "</algo>", "not a multiple"},
        {ALGO("allgather", "3", "3") GPU("0", "1", "3", "0") "</gpu></algo>", "ngpus is 3, but 1"},
        {ALGO("allgather", "1", "1") GPU("0", "1", "1", "0") TB("1", "-1", "-1") "</tb></gpu></algo>",
         "no thread block 0"},
        {ALGO("allgather", "1", "1") GPU("0", "1", "1", "0") TB("0", "-1", "-1")
             STEP("1", "cpy", "i", "0", "o", "0", FREE) "</tb></gpu></algo>",
         "without gaps"},
        {ALGO("allgather", "1", "1") GPU("0", "1", "1", "0") TB("0", "-1", "-1")
             STEP("0", "s", "i", "0", "o", "0", FREE) "</tb></gpu></algo>",
         "no peer to send to"},
        {ALGO("allgather", "2", "2") GPU("0", "1", "2", "0") TB("0", "1", "-1") "</tb>" TB(
             "1", "1", "-1") "</tb></gpu>" GPU("1", "1", "2", "0") "</gpu></algo>",
         "share a connection"},
        {ALGO("allgather", "2", "2") GPU("0", "1", "2", "0") TB("0", "0", "-1") "</tb></gpu></algo>",
         "its own GPU as a peer"},
        {ALGO("allgather", "1", "1") GPU("0", "1", "1", "0") TB("0", "-1", "-1")
             STEP("0", "fly", "i", "0", "o", "0", FREE) "</tb></gpu></algo>",
         "type is 'fly'"},
        {ALGO("allgather", "1", "1") "<tb/></algo>", "does not belong here"},
        {"<graph/>", "begins with <graph>"},
        {"<algo", "not valid XML"},
        {"", "not valid XML"},
        {"<!DOCTYPE a [<!ENTITY b \"bbbbbbbb\"><!ENTITY c \"&b;&b;&b;&b;\">]><algo name=\"&c;\"/>",
         "document type"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_problem problem;
        int error = check(rows[i].text, &problem);

        if (!rows[i].reason) {
            if (error)
                fail_msg("row %zu is right, but: %s", i, problem.text);
            continue;
        }
        if (error == 0 || !strstr(problem.text, rows[i].reason))
            fail_msg("row %zu: '%s' instead of '%s'", i, error ? problem.text : "(right)", rows[i].reason);
    }
}

/* ---- every fault at every step ---- */

enum check_fault {
    DROP,
    REPEAT,
    NO_DEPENDENCE,
    SOURCE,
    TARGET,
    SOURCE_AT,
    TARGET_AT,
    COUNT,
    TYPE,
    PEER,
    CHUNKS,
    FAULTS
};

/* Returns the text with another value of an attribute of a line. */
static char *replace(const char *text, const char *line, const char *attribute, const char *value)
{
    char key[20], *made;
    const char *at, *end;
    size_t bytes = strlen(text) + strlen(value) + 1;

    snprintf(key, sizeof(key), " %s=\"", attribute);
    at = strstr(line, key);
    if (!at || at > strchr(line, '\n'))
        return NULL;
    at += strlen(key);
    end = strchr(at, '"');
    made = malloc(bytes);
    assert_non_null(made);
    snprintf(made, bytes, "%.*s%s%s", (int)(at - text), text, value, end);
    return made;
}

static long number(const char *line, const char *attribute)
{
    char key[20];
    const char *at;

    snprintf(key, sizeof(key), " %s=\"", attribute);
    at = strstr(line, key);
    assert_non_null(at);
    return strtol(at + strlen(key), NULL, 10);
}

static char *with_number(const char *text, const char *line, const char *attribute, long value)
{
    char digits[24];

    snprintf(digits, sizeof(digits), "%ld", value);
    return replace(text, line, attribute, digits);
}

/* Returns the text without the line, or with it twice, and with the later steps of its thread block
 * renumbered. */
static char *splice(const char *text, const char *line, unsigned copies)
{
    size_t bytes = strlen(text) * 2 + 1, before = (size_t)(line - text);
    const char *end = strchr(line, '\n') + 1;
    char *made = malloc(bytes), *at;
    long s = number(line, "s");

    assert_non_null(made);
    at = made + snprintf(made, bytes, "%.*s", (int)before, text);
    for (unsigned i = 0; i < copies; i++)
        at += snprintf(at, bytes - (size_t)(at - made), "%.*s", (int)(end - line), line);
    snprintf(at, bytes - (size_t)(at - made), "%s", end);
    at = made + before;
    while (at && strncmp(at, "      <step", 11) == 0) {
        size_t offset = (size_t)(at - made);
        char *again = with_number(made, at, "s", s++);

        free(made);
        made = again;
        at = strchr(made + offset, '\n') + 1;
    }
    return made;
}

static char *spoil_type(const char *text, const char *line, const char *type)
{
    static const char *const swaps[][2] = {{"s", "cpy"}, {"r", "rrc"}, {"rrc", "r"}, {"cpy", "nop"}};

    for (size_t i = 0; i < sizeof(swaps) / sizeof(swaps[0]); i++)
        if (strcmp(type, swaps[i][0]) == 0)
            return replace(text, line, "type", swaps[i][1]);
    return NULL;
}

/* Returns the text with the fault at the line, or NULL if it would not be a fault there. */
static char *spoil_step(const char *text, const char *line, enum check_fault fault)
{
    char type[8] = "", buffer[2] = "";
    bool reads, writes;
    const char *key;

    sscanf(strstr(line, "type=\"") + 6, "%7[a-z]", type);
    reads = strcmp(type, "r") != 0;
    writes = strcmp(type, "s") != 0;
    switch (fault) {
    case DROP:
        return splice(text, line, 0);
    case REPEAT:
        return splice(text, line, 2);
    case NO_DEPENDENCE:
        return number(line, "depid") < 0 ? NULL : with_number(text, line, "depid", -1);
    case SOURCE:
    case TARGET:
        if (fault == SOURCE ? !reads : !writes)
            return NULL;
        key = fault == SOURCE ? "srcbuf" : "dstbuf";
        buffer[0] = strstr(line, key)[8] == 'o' ? 'i' : 'o';
        return replace(text, line, key, buffer);
    case SOURCE_AT:
        return reads ? with_number(text, line, "srcoff", number(line, "srcoff") + 1) : NULL;
    case TARGET_AT:
        return writes ? with_number(text, line, "dstoff", number(line, "dstoff") + 1) : NULL;
    case COUNT:
        return with_number(text, line, "cnt", number(line, "cnt") + 1);
    case TYPE:
        return spoil_type(text, line, type);
    case PEER:
    case CHUNKS:
    case FAULTS:
    default:
        return NULL;
    }
}

static char *spoil(const char *text, const char *line, enum check_fault fault)
{
    bool step = strncmp(line, "      <step", 11) == 0, block = strncmp(line, "    <tb", 7) == 0;

    if (step)
        return spoil_step(text, line, fault);
    if (block && fault == PEER && number(line, "send") >= 0)
        return with_number(text, line, "send", number(line, "send") == 0 ? 1 : 0);
    if (block && fault == PEER && number(line, "recv") >= 0)
        return with_number(text, line, "recv", number(line, "recv") == 0 ? 1 : 0);
    if (strncmp(line, "  <gpu", 6) == 0 && fault == CHUNKS && number(line, "o_chunks") > 0)
        return with_number(text, line, "o_chunks", number(line, "o_chunks") - 1);
    return NULL;
}

static void every_fault_at_every_step_is_found(void **state)
{
    static const struct {
        const char *fabric, *parameters[3];
        enum by_algorithm algorithm;
        unsigned collective;
    } rows[] = {{"star", {"4", "10"}, BY_ALGORITHM_FOREST, BY_COLLECTIVE_ALLGATHER},
                {"ring", {"5", "10"}, BY_ALGORITHM_FOREST, BY_COLLECTIVE_REDUCE_SCATTER},
                {"ring", {"4", "10"}, BY_ALGORITHM_FOREST, BY_COLLECTIVE_ALLREDUCE},
                {"star", {"4", "10"}, BY_ALGORITHM_RING, BY_COLLECTIVE_ALLREDUCE},
                {"star", {"6", "10"}, BY_ALGORITHM_DOUBLE_BINARY, BY_COLLECTIVE_ALLREDUCE},
                {"star", {"6", "10"}, BY_ALGORITHM_DOUBLE_BINARY, BY_COLLECTIVE_BROADCAST},
                {"star", {"6", "10"}, BY_ALGORITHM_DOUBLE_BINARY, BY_COLLECTIVE_REDUCE}};
    unsigned found[FAULTS] = {0}, harmless = 0;

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(rows[0]); r++) {
        struct by_topology *topology = rig_preset_list(rows[r].fabric, "none", rows[r].parameters);
        struct by_plan *plan = make_plan(topology, rows[r].algorithm, rows[r].collective);
        struct by_problem problem = {0};
        char *text = make_export(plan, topology, "msccl", &problem);

        assert_non_null(text);
        for (const char *line = text; *line; line = strchr(line, '\n') + 1)
            for (int fault = 0; fault < FAULTS; fault++) {
                char *wrong = spoil(text, line, (enum check_fault)fault);

                if (!wrong)
                    continue;
                if (check(wrong, &problem) != 0)
                    found[fault]++;
                else if (fault == NO_DEPENDENCE) /* other dependences may imply it */
                    harmless++;
                else
                    fail_msg("row %zu, fault %d was not found: %.*s", r, fault, (int)strcspn(line, "\n"),
                             line);
                free(wrong);
            }
        free(text);
        by_plan_free(plan);
        by_topology_free(topology);
    }
    for (int fault = 0; fault < FAULTS; fault++) {
        print_message("fault %d found %u times\n", fault, found[fault]);
        assert_true(found[fault] > 0);
    }
    print_message("%u dependences were implied by others\n", harmless);
    assert_true(found[NO_DEPENDENCE] > harmless);
}

/* ---- forests ---- */

#define FOREST(trees) "<Algo nchunkspernode=\"1\" nchunks=\"2\">" trees "</Algo>"
#define TREE(root, index, chunks, height, sends)                                                             \
    "<tree root=\"" root "\" index=\"" index "\" nchunks=\"" chunks "\" height=\"" height "\">" sends        \
    "</tree>"
#define HOP(from, to) "<send src=\"" from "\" dst=\"" to "\" path=\"" from "," to "\"/>"

static void wrong_forests_are_refused_with_their_reason(void **state)
{
    static const struct {
        const char *text, *reason;
    } rows[] = {
        {FOREST(TREE("a", "0", "1", "1", HOP("a", "b")) TREE("b", "0", "1", "1", HOP("b", "a"))), NULL},
        {FOREST(TREE("a", "0", "1", "1", HOP("a", "b"))), "carry 0 chunks of its shard"},
        {FOREST(TREE("a", "0", "1", "0", "") TREE("b", "0", "1", "1", HOP("b", "a"))),
         "never receives the data"},
        {FOREST(TREE("a", "0", "1", "1", HOP("a", "b") HOP("a", "b"))
                    TREE("b", "0", "1", "1", HOP("b", "a"))),
         "b receives the same data twice"},
        {FOREST(TREE("a", "0", "1", "1", HOP("a", "b") HOP("b", "a"))
                    TREE("b", "0", "1", "1", HOP("b", "a"))),
         "a receives the same data twice"},
        {FOREST(TREE("a", "0", "2", "1", HOP("a", "b")) TREE("b", "0", "1", "1", HOP("b", "a"))),
         "carry 2 chunks of its shard"},
        {FOREST(TREE("a", "0", "1", "2", HOP("a", "b")) TREE("b", "0", "1", "1", HOP("b", "a"))), "1 high"},
        {FOREST(TREE("a", "1", "1", "2", HOP("b", "c") HOP("c", "b"))), "cyclic wait of 2 nodes: "},
        {FOREST(TREE("a", "0", "1", "1", HOP("c", "b")) TREE("b", "0", "1", "1", HOP("b", "a"))),
         "c sends but never receives the data"},
        {FOREST(TREE("a", "0", "1", "1", "<send src=\"a\" dst=\"b\" path=\"a,c\"/>")), "does not lead"},
        {FOREST(TREE("a", "0", "1", "1", "<send src=\"a\" dst=\"b\"/>")), "does not lead"},
        {FOREST(TREE("a", "0", "1", "1", "<send src=\"a\"/>")), "no attribute dst"},
        {FOREST(""), "no trees"},
        {"<Algo nchunkspernode=\"1\" coll=\"broadcast\">" TREE("a", "0", "1", "1", HOP("a", "b"))
             TREE("b", "0", "1", "1", HOP("b", "a")) "</Algo>",
         "one root, the trees have 2"},
        {"<Algo nchunkspernode=\"1\" coll=\"barrier\"></Algo>", "coll is 'barrier'"},
        {"<Algo nchunkspernode=\"0\"/>", "from 1 to"},
        /* names as ForestColl's own generator writes them */
        {FOREST(TREE("(0, 'GPU', 0)", "0", "1", "1",
                     "<send src=\"(0, 'GPU', 0)\" dst=\"(1, 'GPU', 0)\" path=\"(0, 'GPU', 0),(-1, 'IB', "
                     "0),(1, 'GPU', "
                     "0)\"/>") TREE("(1, 'GPU', 0)", "0", "1", "1", HOP("(1, 'GPU', 0)", "(0, 'GPU', 0)"))),
         NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct by_problem problem;
        int error = check(rows[i].text, &problem);

        if (!rows[i].reason ? error != 0 : error == 0 || !strstr(problem.text, rows[i].reason))
            fail_msg("row %zu: '%s' instead of '%s'", i, error ? problem.text : "(right)",
                     rows[i].reason ? rows[i].reason : "(right)");
    }
}

static void paths_must_exist_on_the_topology(void **state)
{
    struct by_topology *topology = rig_preset("star", "none", "2", "10", NULL);
    static const struct {
        const char *path, *reason;
    } rows[] = {{"host0,switch0,host1", NULL},
                {"host0,host1", "no link between"},
                {"host0,spine,host1", "not a node of the topology"}};

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char text[600];
        struct by_check_report report;
        struct by_problem problem = {0};
        int error;

        snprintf(
            text, sizeof(text),
            "<Algo nchunkspernode=\"1\"><tree root=\"host0\" index=\"0\" nchunks=\"1\" height=\"1\"><send "
            "src=\"host0\" dst=\"host1\" path=\"%s\"/></tree><tree root=\"host1\" index=\"0\" nchunks=\"1\" "
            "height=\"1\"><send src=\"host1\" dst=\"host0\" path=\"host1,switch0,host0\"/></tree></Algo>",
            rows[i].path);
        error = by_check_text(text, strlen(text), topology, 1, &report, &problem);
        if (!rows[i].reason) {
            assert_int_equal(error, 0);
            rig_assert_fraction(report.rate, 20, 1);
        } else if (error == 0 || !strstr(problem.text, rows[i].reason)) {
            fail_msg("row %zu: %s", i, problem.text);
        }
    }
    by_topology_free(topology);
}

/* A million lines of garbage, of nesting, of steps: the answer takes at most seconds. */
static void messages_and_their_longest_chain_are_counted(void **state)
{
    struct by_topology *topology = rig_preset("twobox", "none", "2", NULL);
    struct by_plan *plan = rig_plan(topology, BY_COLLECTIVE_ALLGATHER, -1, 0, false);
    struct by_export_options options = {.name = "test", .max_bytes = 1 << 30};
    char path[] = "/tmp/banyan-schedule-XXXXXX";
    FILE *file = fdopen(mkstemp(path), "w");
    struct by_check_report report;
    struct by_check_sends sends;
    struct by_problem problem = {0};
    uint64_t received[8] = {0};

    (void)state;
    assert_non_null(file);
    assert_int_equal(by_export_msccl(plan, topology, &options, file, &problem), 0);
    fclose(file);
    assert_int_equal(by_check_messages(path, topology, 1, &report, &sends, &problem), 0);
    for (uint32_t i = 0; i < sends.count; i++)
        received[sends.sends[i].to] += sends.sends[i].chunks;
    for (uint32_t r = 0; r < report.rank_count; r++) /* all but its own shard, each chunk once */
        assert_int_equal(received[r], report.chunk_count / report.rank_count * (report.rank_count - 1));
    assert_in_range(report.depth, 1, report.rank_count - 1);
    free(sends.sends);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs("<algo name=\"broken\"", file);
    fclose(file);
    assert_int_equal(by_check_messages(path, topology, 1, &report, &sends, &problem), BY_EFORMAT);
    assert_int_equal(sends.count, 0);
    unlink(path);
    by_plan_free(plan);
    by_topology_free(topology);
}

static void garbage_is_refused_in_bounded_time(void **state)
{
    static const char *const lines[] = {"<step s=\"0\">\n", "<a>\n", "<send src='a'/>\n", "garbage &\n",
                                        "<!-- -->\n"};
    static const char *const starts[] = {"", "<algo>", PAIR("", ""), "<Algo nchunkspernode=\"1\">", "<Algo"};
    clock_t begin = clock();

    (void)state;
    for (size_t s = 0; s < sizeof(starts) / sizeof(starts[0]); s++)
        for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
            size_t bytes = strlen(lines[i]), start = strlen(starts[s]);
            char *text = malloc(start + 1000000 * bytes + 1);
            struct by_problem problem;

            assert_non_null(text);
            memcpy(text, starts[s], start);
            for (size_t n = 0; n < 1000000; n++)
                memcpy(text + start + n * bytes, lines[i], bytes);
            text[start + 1000000 * bytes] = '\0';
            assert_int_not_equal(check(text, &problem), 0);
            assert_true(problem.text[0] != '\0');
            free(text);
        }
    assert_true((double)(clock() - begin) / CLOCKS_PER_SEC < 60);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(wrong_schedules_are_refused_with_their_reason),
        cmocka_unit_test(every_fault_at_every_step_is_found),
        cmocka_unit_test(wrong_forests_are_refused_with_their_reason),
        cmocka_unit_test(paths_must_exist_on_the_topology),
        cmocka_unit_test(messages_and_their_longest_chain_are_counted),
        cmocka_unit_test(garbage_is_refused_in_bounded_time),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
