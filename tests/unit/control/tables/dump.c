/* What users read of tables: the whole text and the whole JSON of images with relays, IPv6, keys, a
 * share and names, written out and checked by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "control/tables/dump.h"
#include "offload/wire/seal.h"
#include "offload/wire/types.h"
#include "tests/unit/control/tables/bench.h"

enum { H3 = 3, SW1 = 5, X0 = 6 };

/* 16 hexadecimal digits, a hash or a cookie, are written as '#'. */
static const char text_of_h3[] =
    "host h3: node 3, cookie #, 32 slots, payload 1408\n"
    "  hash #, 1036 bytes\n"
    "  port 0 eth0: 198.18.0.12 02:62:c6:12:00:0c, mtu 1500, to sw1 198.18.0.13 02:62:c6:12:00:0d\n"
    "  job 2: generation 5, 4 ranks, 1 trees, hosts on UDP port 46248, rank 3\n"
    "  job 7: generation 1, 4 ranks, 1 trees, hosts on UDP port 46253, rank 3\n"
    "  entry job 7 tree 0: slots 0+32, window 32, payload 1408, 4 leaves, root; children: h3 by local at 198.18.0.12:46253 (rank 3), sw1 by port 0 at 198.18.0.13:46247\n"
    "  leaf job 2 tree 0: allreduce,barrier of all ranks, share 1, window 256, payload 1408, child 1 of sw1 by port 0 at 198.18.0.13:46247, modes fast,exact, queues mark\n"
    "  leaf job 7 tree 0: broadcast of rank 3, share 1, window 32, payload 1408, child 0 of h3 by local at 198.18.0.12:46253, modes fast,det,exact, queues mark\n"
    "  hop job 2 tree 0: h0 is child 0 of sw0\n"
    "  hop job 2 tree 0: h1 is child 1 of sw0\n"
    "  hop job 2 tree 0: h2 is child 0 of sw1\n"
    "  hop job 2 tree 0: h3 is child 1 of sw1\n"
    "  hop job 2 tree 0: sw0 is the root\n"
    "  hop job 2 tree 0: sw1 is child 2 of sw0, by way of x1 and others\n"
    "  hop job 2 tree 0: relay 2 from sw1 to sw0 is x0\n"
    "  hop job 7 tree 0: h0 is child 0 of sw0\n"
    "  hop job 7 tree 0: h1 is child 1 of sw0\n"
    "  hop job 7 tree 0: h2 is child 0 of sw1\n"
    "  hop job 7 tree 0: h3 is the root\n"
    "  hop job 7 tree 0: sw0 is child 1 of sw1, by way of x0 and others\n"
    "  hop job 7 tree 0: relay 2 from sw0 to sw1 is x1\n"
    "  hop job 7 tree 0: sw1 is child 1 of h3\n"
    "  name node 0: h0, rank 0\n"
    "  name node 1: h1, rank 1\n"
    "  name node 2: h2, rank 2\n"
    "  name node 3: h3, rank 3\n"
    "  name node 4: sw0\n"
    "  name node 5: sw1\n"
    "  name node 6: x0\n"
    "  name node 7: x1\n"
    "  key job 2: 15e91b68, tags cover header and payload\n"
    "  key job 7: 15e91b68, tags cover header and payload\n";
static const char text_of_sw1[] =
    "switch sw1: node 5, cookie #, 288 slots, payload 1408\n"
    "  hash #, 636 bytes\n"
    "  port 0 p0: 198.18.0.9 02:62:c6:12:00:09, mtu 1500, to node 7 198.18.0.8 02:62:c6:12:00:08, 10 GB/s in, 10 out\n"
    "  port 1 p1: fd00::2 ND, mtu 1500, to node 2 fd00::1 ND, 10 GB/s in, 10 out\n"
    "  port 2 p2: 198.18.0.13 02:62:c6:12:00:0d, mtu 1500, to node 3 198.18.0.12 02:62:c6:12:00:0c, 10 GB/s in, 10 out\n"
    "  job 2: generation 5, 4 ranks, 1 trees, hosts on UDP port 46248, a share of 0.25\n"
    "  job 7: generation 1, 4 ranks, 1 trees, hosts on UDP port 46253\n"
    "  entry job 2 tree 0: slots 0+256, window 256, payload 1408, 2 leaves, child 2 of node 4 by port 0 at 198.18.0.4:46247; children: node 2 by port 1 at fd00::1:46248 (rank 2), node 3 by port 2 at 198.18.0.12:46248 (rank 3)\n"
    "  entry job 7 tree 0: slots 256+32, window 32, payload 1408, 3 leaves, child 1 of node 3 by port 2 at 198.18.0.12:46253; children: node 2 by port 1 at fd00::1:46253 (rank 2), node 4 by port 0 at 198.18.0.4:46247\n"
    "  key job 2: 15e91b68, tags cover header and payload\n"
    "  key job 7: 15e91b68, tags cover header and payload\n";
static const char text_of_x0[] =
    "switch x0: node 6, cookie #, 0 slots, payload 1408\n"
    "  hash #, 392 bytes\n"
    "  port 0 p0: 198.18.0.5 02:62:c6:12:00:05, mtu 1500, to node 4 198.18.0.4 02:62:c6:12:00:04, 10 GB/s in, 10 out\n"
    "  port 1 p1: 198.18.0.6 02:62:c6:12:00:06, mtu 1500, to node 7 198.18.0.7 02:62:c6:12:00:07, 10 GB/s in, 10 out\n"
    "  job 2: generation 5, 4 ranks, 1 trees, hosts on UDP port 46248, a share of 0.25\n"
    "  job 7: generation 1, 4 ranks, 1 trees, hosts on UDP port 46253\n"
    "  relay job 2 tree 0: from 198.18.0.4 to 198.18.0.9 by port 1, received on port 0\n"
    "  relay job 2 tree 0: from 198.18.0.9 to 198.18.0.4 by port 0, received on port 1\n"
    "  relay job 7 tree 0: from 198.18.0.4 to 198.18.0.9 by port 1, received on port 0\n"
    "  relay job 7 tree 0: from 198.18.0.9 to 198.18.0.4 by port 0, received on port 1\n";
/* clang-format off */
static const char json_of_h3[] =
    "{\"name\":\"h3\",\"node\":3,\"kind\":\"host\",\"hash\":\"#\",\"cookie\":\"#\",\"bytes\":1036,\"slot_c"
    "ount\":32,\"payload_max\":1408,\"ports\":[{\"name\":\"eth0\",\"own_ip\":\"198.18.0.12\",\"peer"
    "_ip\":\"198.18.0.13\",\"peer_node\":5,\"mtu\":1500,\"vlan\":0,\"rate_in\":0,\"rate_out\":0}],"
    "\"jobs\":[{\"job\":2,\"gen\":5,\"rank_count\":4,\"rank\":3,\"tree_count\":1,\"udp_port\":46248"
    ",\"share\":0.0},{\"job\":7,\"gen\":1,\"rank_count\":4,\"rank\":3,\"tree_count\":1,\"udp_port\""
    ":46253,\"share\":0.0}],\"entries\":[{\"job\":7,\"tree\":0,\"parent\":null,\"children\":[{\"po"
    "rt\":\"local\",\"node\":3,\"ip\":\"198.18.0.12\",\"udp_port\":46253,\"rank\":3},{\"port\":0,\"no"
    "de\":5,\"ip\":\"198.18.0.13\",\"udp_port\":46247,\"rank\":null}],\"window\":32,\"slot_base\":"
    "0,\"payload_max\":1408,\"nleaf\":4,\"depth\":1,\"joined\":false}],\"leaves\":[{\"job\":2,\"tr"
    "ee\":0,\"half\":null,\"collectives\":[\"allreduce\",\"barrier\"],\"rounds\":false,\"owner\":null,\"share\":1,\""
    "window\":256,\"payload_max\":1408,\"parent\":{\"node\":5,\"port\":0,\"ip\":\"198.18.0.13\",\"u"
    "dp_port\":46247,\"child\":1},\"able\":{\"modes\":[\"fast\",\"exact\"],\"ops\":[\"sum\",\"prod\",\""
    "min\",\"max\",\"band\",\"bor\",\"bxor\"],\"dtypes\":[\"i8\",\"u8\",\"i32\",\"u32\",\"i64\",\"u64\",\"f16"
    "\",\"bf16\",\"f32\",\"f64\"],\"marks\":true}},{\"job\":7,\"tree\":0,\"half\":null,\"collectives\":[\"broadcast\""
    "],\"rounds\":false,\"owner\":3,\"share\":1,\"window\":32,\"payload_max\":1408,\"parent\":{\"node\":3,\"port\":\""
    "local\",\"ip\":\"198.18.0.12\",\"udp_port\":46253,\"child\":0},\"able\":{\"modes\":[\"fast\",\"d"
    "et\",\"exact\"],\"ops\":[\"sum\",\"prod\",\"min\",\"max\",\"band\",\"bor\",\"bxor\"],\"dtypes\":[\"i8\""
    ",\"u8\",\"i32\",\"u32\",\"i64\",\"u64\",\"f16\",\"bf16\",\"f32\",\"f64\"],\"marks\":true}}],\"relays\":[],\"names\":["
    "{\"node\":0,\"name\":\"h0\",\"rank\":0},{\"node\":1,\"name\":\"h1\",\"rank\":1},{\"node\":2,\"name\""
    ":\"h2\",\"rank\":2},{\"node\":3,\"name\":\"h3\",\"rank\":3},{\"node\":4,\"name\":\"sw0\",\"rank\":nu"
    "ll},{\"node\":5,\"name\":\"sw1\",\"rank\":null},{\"node\":6,\"name\":\"x0\",\"rank\":null},{\"nod"
    "e\":7,\"name\":\"x1\",\"rank\":null}],\"keys\":[{\"job\":2,\"id\":\"15e91b68\",\"cover\":\"payload"
    "\"},{\"job\":7,\"id\":\"15e91b68\",\"cover\":\"payload\"}]}";
static const char json_of_sw1[] =
    "{\"name\":\"sw1\",\"node\":5,\"kind\":\"switch\",\"hash\":\"#\",\"cookie\":\"#\",\"bytes\":636,\"slot"
    "_count\":288,\"payload_max\":1408,\"ports\":[{\"name\":\"p0\",\"own_ip\":\"198.18.0.9\",\"peer"
    "_ip\":\"198.18.0.8\",\"peer_node\":7,\"mtu\":1500,\"vlan\":0,\"rate_in\":10000000000,\"rate_"
    "out\":10000000000},{\"name\":\"p1\",\"own_ip\":\"fd00::2\",\"peer_ip\":\"fd00::1\",\"peer_node"
    "\":2,\"mtu\":1500,\"vlan\":0,\"rate_in\":10000000000,\"rate_out\":10000000000},{\"name\":\"p"
    "2\",\"own_ip\":\"198.18.0.13\",\"peer_ip\":\"198.18.0.12\",\"peer_node\":3,\"mtu\":1500,\"vlan"
    "\":0,\"rate_in\":10000000000,\"rate_out\":10000000000}],\"jobs\":[{\"job\":2,\"gen\":5,\"ran"
    "k_count\":4,\"rank\":null,\"tree_count\":1,\"udp_port\":46248,\"share\":0.25},{\"job\":7,\"g"
    "en\":1,\"rank_count\":4,\"rank\":null,\"tree_count\":1,\"udp_port\":46253,\"share\":0.0}],\""
    "entries\":[{\"job\":2,\"tree\":0,\"parent\":{\"node\":4,\"port\":0,\"ip\":\"198.18.0.4\",\"udp_p"
    "ort\":46247,\"child\":2},\"children\":[{\"port\":1,\"node\":2,\"ip\":\"fd00::1\",\"udp_port\":4"
    "6248,\"rank\":2},{\"port\":2,\"node\":3,\"ip\":\"198.18.0.12\",\"udp_port\":46248,\"rank\":3}]"
    ",\"window\":256,\"slot_base\":0,\"payload_max\":1408,\"nleaf\":2,\"depth\":1,\"joined\":fals"
    "e},{\"job\":7,\"tree\":0,\"parent\":{\"node\":3,\"port\":2,\"ip\":\"198.18.0.12\",\"udp_port\":4"
    "6253,\"child\":1},\"children\":[{\"port\":1,\"node\":2,\"ip\":\"fd00::1\",\"udp_port\":46253,\""
    "rank\":2},{\"port\":0,\"node\":4,\"ip\":\"198.18.0.4\",\"udp_port\":46247,\"rank\":null}],\"wi"
    "ndow\":32,\"slot_base\":256,\"payload_max\":1408,\"nleaf\":3,\"depth\":1,\"joined\":false}]"
    ",\"leaves\":[],\"relays\":[],\"names\":[],\"keys\":[{\"job\":2,\"id\":\"15e91b68\",\"cover\":\"pa"
    "yload\"},{\"job\":7,\"id\":\"15e91b68\",\"cover\":\"payload\"}]}";
static const char json_of_x0[] =
    "{\"name\":\"x0\",\"node\":6,\"kind\":\"switch\",\"hash\":\"#\",\"cookie\":\"#\",\"bytes\":392,\"slot_"
    "count\":0,\"payload_max\":1408,\"ports\":[{\"name\":\"p0\",\"own_ip\":\"198.18.0.5\",\"peer_ip"
    "\":\"198.18.0.4\",\"peer_node\":4,\"mtu\":1500,\"vlan\":0,\"rate_in\":10000000000,\"rate_out"
    "\":10000000000},{\"name\":\"p1\",\"own_ip\":\"198.18.0.6\",\"peer_ip\":\"198.18.0.7\",\"peer_n"
    "ode\":7,\"mtu\":1500,\"vlan\":0,\"rate_in\":10000000000,\"rate_out\":10000000000}],\"jobs\""
    ":[{\"job\":2,\"gen\":5,\"rank_count\":4,\"rank\":null,\"tree_count\":1,\"udp_port\":46248,\"s"
    "hare\":0.25},{\"job\":7,\"gen\":1,\"rank_count\":4,\"rank\":null,\"tree_count\":1,\"udp_port"
    "\":46253,\"share\":0.0}],\"entries\":[],\"leaves\":[],\"relays\":[{\"job\":2,\"tree\":0,\"src_"
    "ip\":\"198.18.0.4\",\"dst_ip\":\"198.18.0.9\",\"port\":1,\"from\":0},{\"job\":2,\"tree\":0,\"src"
    "_ip\":\"198.18.0.9\",\"dst_ip\":\"198.18.0.4\",\"port\":0,\"from\":1},{\"job\":7,\"tree\":0,\"sr"
    "c_ip\":\"198.18.0.4\",\"dst_ip\":\"198.18.0.9\",\"port\":1,\"from\":0},{\"job\":7,\"tree\":0,\"s"
    "rc_ip\":\"198.18.0.9\",\"dst_ip\":\"198.18.0.4\",\"port\":0,\"from\":1}],\"names\":[],\"keys\":"
    "[]}";
/* clang-format on */

/* h0 and h1 below sw0, and h2 (by IPv6) and h3 below sw1, with the relays x0 and x1 between; an
 * allreduce with a share, and a broadcast of h3. `window` is that of the broadcast. */
static struct bench_images images_of(uint32_t window)
{
    static const char site[] =
        "{\"format\": \"banyan-site-1\", \"links\": [{\"between\": [\"h2\", \"sw1\"], \"ends\": "
        "[{\"address\": \"fd00::1\"}, {\"address\": \"fd00::2\"}]}]}";
    static const char *const sums[] = {"10 sw0: sw0>h0 sw0>h1 sw0>x0>x1>sw1 sw1>h2 sw1>h3", NULL};
    static const char *const copies[] = {"10 h3: h3>sw1 sw1>h2 sw1>x1>x0>sw0 sw0>h0 sw0>h1", NULL};
    static const uint8_t secret[BY_SIPHASH_KEY_BYTES] = "0123456789abcde";
    struct by_topology *topology =
        bench_topology("h0 h1 h2 h3 sw0* sw1* x0 x1", "h0-sw0 h1-sw0 sw0-x0 x0-x1 x1-sw1 h2-sw1 h3-sw1");
    struct by_plan *plans[2] = {bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, sums),
                                bench_plan(topology, BY_COLLECTIVE_BROADCAST, "h3", copies)};
    struct by_lower_job jobs[2] = {{.job = 2, .gen = 5, .share = BY_SHARE_ONE / 4},
                                   {.job = 7, .gen = 1, .window = window}};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    struct bench_images images;

    for (unsigned i = 0; i < 2; i++) {
        jobs[i].plan_count = 1;
        jobs[i].plans = (const struct by_plan *const *)&plans[i];
        jobs[i].secret = secret;
    }
    if (by_site_parse(site, strlen(site), topology, &problem) != 0 ||
        by_lower(topology, jobs, 2, &(struct by_lower_options){.cover = BY_COVER_PAYLOAD}, &lowering,
                 &problem) != 0)
        fail_msg("%s", problem.text);
    images = bench_images(lowering);
    by_lowering_free(lowering);
    for (unsigned i = 0; i < 2; i++)
        bench_plan_free(plans[i]);
    by_topology_free(topology);
    return images;
}

/* Writes each 16 hexadecimal digits as one '#'. */
static void mask(char *text)
{
    char *to = text;

    for (const char *from = text; *from != 0;) {
        size_t digits = strspn(from, "0123456789abcdef");

        if (digits == 16) {
            *to++ = '#';
            from += digits;
        } else {
            digits += digits == 0;
            memmove(to, from, digits);
            to += digits;
            from += digits;
        }
    }
    *to = 0;
}

/* Returns the text of a node's image, which the caller frees. */
static char *text_of(const struct bench_images *images, uint32_t node)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);

    by_dump_text(images->bytes[node], images->size[node], stream);
    fclose(stream);
    return text;
}

/* The same of a job with this plan and share. Frees topology and plan. */
static char *text_of_plan(struct by_topology *topology, struct by_plan *plan, uint32_t share, uint32_t node)
{
    struct by_lower_job job = {
        .job = 1, .plan_count = 1, .plans = (const struct by_plan *const *)&plan, .share = share};
    struct by_lowering *lowering = NULL;
    struct by_problem problem = {0};
    struct bench_images images;
    char *text;

    if (by_lower(topology, &job, 1, &(struct by_lower_options){0}, &lowering, &problem) != 0)
        fail_msg("%s", problem.text);
    images = bench_images(lowering);
    text = text_of(&images, node);
    bench_images_free(&images);
    by_lowering_free(lowering);
    bench_plan_free(plan);
    by_topology_free(topology);
    return text;
}

static void check_text(const struct bench_images *images, uint32_t node, const char *expected)
{
    char *text = text_of(images, node);

    mask(text);
    assert_string_equal(text, expected);
    free(text);
}

static void check_json(const struct bench_images *images, uint32_t node, const char *expected)
{
    json_t *json = by_dump_json(images->bytes[node], images->size[node]);
    char *text = json_dumps(json, JSON_COMPACT);

    assert_non_null(text);
    mask(text);
    assert_string_equal(text, expected);
    free(text);
    json_decref(json);
}

static void the_text_has_each_record(void **state)
{
    struct bench_images images = images_of(32);

    (void)state;
    check_text(&images, H3, text_of_h3);
    check_text(&images, SW1, text_of_sw1);
    check_text(&images, X0, text_of_x0);
    bench_images_free(&images);
}

static void the_json_has_each_field(void **state)
{
    struct bench_images images = images_of(32);

    (void)state;
    check_json(&images, H3, json_of_h3);
    check_json(&images, SW1, json_of_sw1);
    check_json(&images, X0, json_of_x0);
    bench_images_free(&images);
}

/* A table of an older version does not state what its trees support. */
static void a_leaf_without_abilities_states_none(void **state)
{
    struct bench_images images = images_of(32);
    struct by_image_leaf leaf;
    json_t *json, *stated;
    char *text;

    (void)state;
    by_image_leaf(images.bytes[H3], 0, &leaf);
    leaf.modes = 0;
    by_image_put_leaf(images.bytes[H3], 0, &leaf);
    text = text_of(&images, H3);
    assert_non_null(strstr(text, "child 1 of sw1 by port 0 at 198.18.0.13:46247\n"));
    json = by_dump_json(images.bytes[H3], images.size[H3]);
    stated = json_array_get(json_object_get(json, "leaves"), 0);
    assert_true(json_is_null(json_object_get(stated, "able")));
    json_decref(json);
    free(text);
    bench_images_free(&images);
}

/* A hop through one relay names it, without "and others". */
static void a_hop_names_its_only_relay(void **state)
{
    static const char *const trees[] = {"10 sw0: sw0>h0 sw0>x0>h1", NULL};
    struct by_topology *topology = bench_topology("h0 h1 sw0* x0", "h0-sw0 sw0-x0 x0-h1");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_ALLREDUCE, NULL, trees);
    char *text = text_of_plan(topology, plan, 0, 0);

    (void)state;
    assert_non_null(strstr(text, "hop job 1 tree 0: h1 is child 1 of sw0, by way of x0\n"));
    assert_non_null(strstr(text, "hop job 1 tree 0: h0 is child 0 of sw0\n"));
    free(text);
}

/* A port of a link of one direction has one rate, in a job with a share; that of a link in a VLAN
 * has its number too. */
static void a_port_of_one_direction_has_one_rate(void **state)
{
    static const char *const trees[] = {"10 h0: h0>x0>x1>h1", NULL};
    static const char *const ports[] = {
        "to node 2 198.18.0.2 02:62:c6:12:00:02, 10 GB/s in, 0 out\n",
        "to node 1 198.18.0.5 02:62:c6:12:00:05, VLAN 7, 10 GB/s in, 10 out\n",
        "to node 4 198.18.0.7 02:62:c6:12:00:07, 0 GB/s in, 10 out\n"};
    static const char site[] = "{\"format\": \"banyan-site-1\", \"links\": [{\"between\": [\"h1\", \"x1\"], "
                               "\"vlan\": 7}]}";
    struct by_topology *topology = bench_topology("h0 h1 x0 x1 x2", "h0-x0 x0>x1 x1-h1 x1>x2 x2>x0");
    struct by_plan *plan = bench_plan(topology, BY_COLLECTIVE_BROADCAST, "h0", trees);
    struct by_problem problem = {0};
    char *text;

    (void)state;
    if (by_site_parse(site, strlen(site), topology, &problem) != 0)
        fail_msg("%s", problem.text);
    text = text_of_plan(topology, plan, BY_SHARE_ONE / 2, 3);
    for (size_t i = 0; i < sizeof(ports) / sizeof(ports[0]); i++)
        if (strstr(text, ports[i]) == NULL)
            fail_msg("'%s' is not in %s", ports[i], text);
    free(text);
}

/* The lines that differ, and nothing of those that do not, whichever image has more of them. */
static void a_difference_has_the_lines_of_one_image_only(void **state)
{
    struct bench_images a = images_of(32), b = images_of(64);
    char *text = NULL;
    size_t bytes = 0;
    FILE *stream = open_memstream(&text, &bytes);
    uint32_t count = by_dump_diff(a.bytes[H3], b.bytes[H3], stream);

    (void)state;
    fclose(stream);
    mask(text);
    assert_string_equal(
        text,
        "- entry job 7 tree 0: slots 0+32, window 32, payload 1408, 4 leaves, root; children: h3 by local at "
        "198.18.0.12:46253 (rank 3), sw1 by port 0 at 198.18.0.13:46247\n"
        "+ entry job 7 tree 0: slots 0+64, window 64, payload 1408, 4 leaves, root; children: h3 by local at "
        "198.18.0.12:46253 (rank 3), sw1 by port 0 at 198.18.0.13:46247\n"
        "- host h3: node 3, cookie #, 32 slots, payload 1408\n"
        "+ host h3: node 3, cookie #, 64 slots, payload 1408\n"
        "- leaf job 7 tree 0: broadcast of rank 3, share 1, window 32, payload 1408, child 0 of h3 by local at "
        "198.18.0.12:46253, modes fast,det,exact, queues mark\n"
        "+ leaf job 7 tree 0: broadcast of rank 3, share 1, window 64, payload 1408, child 0 of h3 by local at "
        "198.18.0.12:46253, modes fast,det,exact, queues mark\n");
    assert_int_equal(count, 6);
    free(text);
    assert_int_equal(by_dump_diff(a.bytes[H3], a.bytes[H3], NULL), 0);
    /* All lines of the one and of the other: the first and the last differ too. */
    assert_int_equal(by_dump_diff(a.bytes[X0], a.bytes[H3], NULL), 9 + 31);
    assert_int_equal(by_dump_diff(a.bytes[H3], a.bytes[X0], NULL), 9 + 31);
    bench_images_free(&a);
    bench_images_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_has_each_record),
        cmocka_unit_test(the_json_has_each_field),
        cmocka_unit_test(a_hop_names_its_only_relay),
        cmocka_unit_test(a_port_of_one_direction_has_one_rate),
        cmocka_unit_test(a_difference_has_the_lines_of_one_image_only),
        cmocka_unit_test(a_leaf_without_abilities_states_none),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
