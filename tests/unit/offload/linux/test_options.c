/* The parser of command lines: what it accepts, what it refuses and how, and its help text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "offload/linux/options.h"

#define ARGUMENTS_MAX 32

static const char *const colours[] = {"?", "red", "green", "blue"};

struct sample {
    bool quick, modes[4];
    uint16_t port;
    uint32_t window, chunk, loss, file_count;
    uint64_t bytes, wait_ns;
    double seconds;
    unsigned colour, balance;
    const char *name, *cover, *loss_text, *files[2];
    int keyed;
    char **rest;
    int rest_count;
    char operands[32];
};

static int even(void *object, const char *value, struct by_option_why *why)
{
    (void)value;
    return ((struct sample *)object)->chunk % 2 == 0 ? 0 : by_option_refuse(why, "it must be even");
}

static int environment(void *object, const char *value, struct by_option_why *why)
{
    (void)object;
    (void)value;
    (void)why;
    fputs("sample: no such place\n", stderr);
    return 3;
}

static int add_operand(void *object, const char *value, struct by_option_why *why)
{
    struct sample *sample = object;

    if (strcmp(value, "bad") == 0)
        return by_option_refuse(why, "it is bad");
    strncat(sample->operands, sample->quick ? "Q" : "-", 2);
    return 0;
}

#define AT(member) BY_OPTION_AT(struct sample, member)

static const struct by_option rows[] = {
    {BY_ROW_FLAG('q', "quick", AT(quick), "be quick")},
    {BY_ROW_TEXT('n', "name", "NAME", AT(name), "call it NAME"), .once = true},
    {BY_ROW_HEADING("Numbers:")},
    {BY_ROW_NUMBER('p', "port", "PORT", AT(port), 1, 65535, "use port PORT, %r (default 80)")},
    {BY_ROW_NUMBER(0, "window", "W", AT(window), 1, 4096, "keep W chunks: %r"), .power = true,
     .zero = "auto"},
    {BY_ROW_NUMBER(0, "chunk", "N", AT(chunk), 0, 100, "send chunks of N bytes"), .call = even},
    {BY_ROW_SIZE('b', "bytes", "SIZE", AT(bytes), 0, UINT64_C(1) << 40, "send SIZE bytes, %r")},
    {BY_ROW_NUMBER(0, "wait", "US", AT(wait_ns), 0, 10, "wait US microseconds"), .scale = 1000},
    {BY_ROW_DECIMAL(0, "seconds", "S", AT(seconds), 60, "end after S seconds")},
    {BY_ROW_CHANCE(0, "loss", "P", AT(loss), "lose packets"), .text = AT(loss_text)},
    {BY_ROW_HEADING("Words:")},
    {BY_ROW_CHOICE(0, "colour", "COLOUR", AT(colour), 1, 3, "paint it %l"), .words = colours},
    {BY_ROW_CHOICE(0, "balance", "COLOUR", AT(balance), 1, 3, "balance"), .words = colours, .optional = true},
    {BY_ROW_LIST('m', "modes", "LIST", AT(modes), 1, 3, "run all, or some of %l"), .words = colours},
    {BY_ROW_TEXT(0, "keyed", "COVER", AT(cover), "add tags"), .value = AT(keyed), .optional = true},
    {BY_ROW_TEXT(0, "file", "FILE", AT(files), "read FILE"), .count = AT(file_count)},
    {BY_ROW_CALL(0, "place", "P", environment, "go there")},
    {BY_ROW_NOTE("red", "the colour of roses")},
    {0}};

static const struct by_options sample_options = {
    .program = "sample",
    .usage = "sample FILE... [options]\nsample --place P",
    .about = "Does something with every file that it is given, at length, so that this paragraph has to be "
             "broken into lines.",
    .epilog = "Exit status: 0.",
    .version = "sample 1.0",
    .rows = rows,
    .least = 1,
    .most = 2,
    .operands = "a file"};

/* The output of the last run on stdout and stderr. */
static char said[2][8192];

/* Runs `options` on the words; stdout and stderr go to said[]. */
static int run(const struct by_options *options, struct sample *sample, int count, const char *const *words)
{
    static char *argv[ARGUMENTS_MAX + 2];
    FILE *const streams[] = {stdout, stderr};
    FILE *files[2];
    int saved[2], argc = count + 1, status;

    argv[0] = (char *)(uintptr_t) "/usr/bin/sampler";
    for (int i = 0; i < count; i++)
        argv[i + 1] = (char *)(uintptr_t)words[i];
    argv[argc] = NULL;
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        files[i] = tmpfile();
        assert_non_null(files[i]);
        saved[i] = dup(fileno(streams[i]));
        dup2(fileno(files[i]), fileno(streams[i]));
    }
    *sample = (struct sample){0};
    status = by_options_read(options, sample, &argc, argv);
    sample->rest = argv + 1;
    sample->rest_count = argc - 1;
    for (int i = 0; i < 2; i++) {
        fflush(streams[i]);
        dup2(saved[i], fileno(streams[i]));
        close(saved[i]);
        rewind(files[i]);
        said[i][fread(said[i], 1, sizeof(said[i]) - 1, files[i])] = 0;
        fclose(files[i]);
    }
    return status;
}

/* Runs the sample on a line of words separated by blanks. */
static int parse(struct sample *sample, const char *line)
{
    static char copy[512];
    const char *words[ARGUMENTS_MAX];
    int count = 0;

    snprintf(copy, sizeof(copy), "%s", line);
    for (char *word = strtok(copy, " "); word != NULL && count < ARGUMENTS_MAX; word = strtok(NULL, " "))
        words[count++] = word;
    return run(&sample_options, sample, count, words);
}

static void values_are_stored_by_their_kind(void **state)
{
    struct sample sample;

    (void)state;
    assert_int_equal(parse(&sample, "-q --name=x -p80 --window 64 --chunk 8 -b 2kb --wait 3 --seconds 1.5 "
                                    "--loss .25 --colour blue a"),
                     -1);
    assert_true(sample.quick);
    assert_string_equal(sample.name, "x");
    assert_int_equal(sample.port, 80);
    assert_int_equal(sample.window, 64);
    assert_int_equal(sample.chunk, 8);
    assert_int_equal(sample.bytes, 2048);
    assert_int_equal(sample.wait_ns, 3000);
    assert_true(sample.seconds == 1.5);
    assert_int_equal(sample.loss, 0x40000000u);
    assert_string_equal(sample.loss_text, ".25");
    assert_int_equal(sample.colour, 3);
    assert_int_equal(parse(&sample, "a --window auto -m blue,red --file 1 --file 2 --balance --keyed"), -1);
    assert_int_equal(sample.window, 0);
    assert_true(sample.modes[1] && !sample.modes[2] && sample.modes[3] && !sample.modes[0]);
    assert_int_equal(sample.file_count, 2);
    assert_string_equal(sample.files[1], "2");
    assert_int_equal(sample.balance, 3);
    assert_int_equal(sample.keyed, 1);
    assert_null(sample.cover);
    assert_int_equal(parse(&sample, "-m all --keyed=payload --balance=red -qqp 9 a"), -1);
    assert_true(sample.modes[0] && sample.modes[1] && sample.modes[2] && sample.modes[3]);
    assert_string_equal(sample.cover, "payload");
    assert_int_equal(sample.balance, 1);
    assert_int_equal(sample.port, 9);
}

static void probabilities_may_have_an_exponent(void **state)
{
    static const struct {
        const char *line;
        uint32_t parts;
    } cases[] = {
        {"--loss 1e-3 a", 4294967},     {"--loss 0.001 a", 4294967},   {"--loss 25E-2 a", 0x40000000u},
        {"--loss 1.5e-1 a", 644245094}, {"--loss 1e-0 a", UINT32_MAX}, {"--loss 10e-1 a", UINT32_MAX},
        {"--loss 1e-5 a", 42949},       {"--loss 1e-99 a", 0},         {"--loss 0e-2 a", 0}};
    struct sample sample;

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(parse(&sample, cases[i].line), -1);
        assert_int_equal(sample.loss, cases[i].parts);
    }
}

static void options_and_operands_may_alternate(void **state)
{
    struct sample sample;
    struct by_options options = sample_options;
    const char *const program[] = {"-q", "run", "-q", "--name", "x"};
    const char *const rest[] = {"one", "-q", "--", "--name", "-", "x"};

    (void)state;
    assert_int_equal(parse(&sample, "a --quick -"), -1);
    assert_int_equal(sample.rest_count, 2);
    assert_string_equal(sample.rest[0], "a");
    assert_string_equal(sample.rest[1], "-");
    assert_null(sample.rest[2]);
    assert_int_equal(parse(&sample, "a -- --quick"), -1);
    assert_false(sample.quick);
    assert_string_equal(sample.rest[1], "--quick");
    options.stops = true;
    options.most = 9;
    assert_int_equal(run(&options, &sample, 5, program), -1);
    assert_true(sample.quick);
    assert_null(sample.name);
    assert_int_equal(sample.rest_count, 4);
    options = sample_options;
    options.rest = true;
    options.most = 1;
    assert_int_equal(run(&options, &sample, 6, rest), -1);
    assert_int_equal(sample.rest_count, 4);
    assert_string_equal(sample.rest[1], "--name");
    assert_string_equal(sample.rest[3], "x");
    options = sample_options;
    options.operand = add_operand;
    assert_int_equal(run(&options, &sample, 3, (const char *const[]){"a", "-q", "b"}), -1);
    assert_string_equal(sample.operands, "-Q");
}

static void a_long_name_may_be_shortened_while_it_is_unique(void **state)
{
    struct sample sample;

    (void)state;
    assert_int_equal(parse(&sample, "--qui --by 7 a"), -1);
    assert_true(sample.quick);
    assert_int_equal(sample.bytes, 7);
    assert_int_equal(parse(&sample, "--b 7 a"), 2);
    assert_string_equal(said[1], "sample: --b is short for both --bytes and --balance; `sample --help` lists "
                                 "the options\n");
}

static void a_fault_is_one_line_with_the_remedy(void **state)
{
    static const struct {
        const char *line, *text;
    } cases[] = {
        {"--colur red a", "unknown option --colur; did you mean --colour? `sample --help` lists"},
        {"--zebra a", "unknown option --zebra; `sample --help` lists the options"},
        {"-z a", "unknown option -z; `sample --help` lists the options"},
        {"a --port", "--port requires a value, PORT; `sample --help` lists the options"},
        {"a -p", "-p requires a value, PORT; `sample --help` lists the options"},
        {"a --quick=1", "--quick accepts no value: remove '1';"},
        {"", "give a file; `sample --help` lists the options"},
        {"a b c", "'c' is one argument too many; `sample --help` lists the options"},
        {"-p 0 a", "-p is '0'; it must be a whole number from 1 to 65535"},
        {"--port 65536 a", "--port is '65536'; it must be a whole number from 1 to 65535"},
        {"--port 4x a", "--port is '4x'"},
        {"--port -1 a", "--port is '-1'"},
        {"--port= a", "--port is ''"},
        {"--port 18446744073709551617 a", "--port is '18446744073709551617'"},
        {"--window 3 a", "--window is '3'; it must be a power of two up to 4096, or auto"},
        {"--window 0 a", "--window is '0'"},
        {"--chunk 7 a", "--chunk is '7'; it must be even"},
        {"-b 4T a", "-b is '4T'; it must be bytes from 0 to 1024G, where K, M and G are binary"},
        {"-b 1025G a", "-b is '1025G'"},
        {"-b K a", "-b is 'K'"},
        {"-b 99999999999G a", "-b is '99999999999G'"},
        {"--seconds 0 a", "--seconds is '0'; it must be a number above 0 and up to 60"},
        {"--seconds 61 a", "--seconds is '61'"},
        {"--seconds 0x10 a", "--seconds is '0x10'"},
        {"--seconds nan a", "--seconds is 'nan'"},
        {"--loss 1.01 a", "--loss is '1.01'; it must be a probability from 0 to 1, such as 0.01 or 1e-2"},
        {"--loss . a", "--loss is '.'"},
        {"--loss 11e-1 a", "--loss is '11e-1'"},
        {"--loss 1e-3x a", "--loss is '1e-3x'"},
        {"--loss 1e- a", "--loss is '1e-'"},
        {"--loss 1e3 a", "--loss is '1e3'"},
        {"--loss e-3 a", "--loss is 'e-3'"},
        {"--loss 0.1.2 a", "--loss is '0.1.2'"},
        {"--colour gren a", "--colour is 'gren'; it must be red, green or blue; did you mean green?"},
        {"--colour ? a", "--colour is '?'; it must be red, green or blue\n"},
        {"--colour all a", "--colour is 'all'"},
        {"-m red,bleu a",
         "-m is 'red,bleu'; 'bleu' is unknown; it must be all, red, green or blue; did you mean blue?"},
        {"-m red,,blue a", "-m is 'red,,blue'; '' is unknown; it must be all, red, green or blue"},
        {"-m red, a", "-m is 'red,'"},
        {"-n a -n b c", "-n is given twice, the second time with 'b'; give it once"},
        {"--file 1 --file 2 --file 3 a", "--file '3': this option may be used at most 2 times"},
    };
    struct sample sample;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        if (parse(&sample, cases[i].line) != 2 || strncmp(said[1], "sample: ", 8) != 0 ||
            strstr(said[1], cases[i].text) == NULL || strchr(said[1], '\n') != strrchr(said[1], '\n') ||
            said[0][0] != 0)
            fail_msg("'%s': %s", cases[i].line, said[1]);
    }
    assert_int_equal(run(&sample_options, &sample, 2, (const char *const[]){"--port", "1\n2"}), 2);
    assert_string_equal(said[1], "sample: --port is '1?2'; it must be a whole number from 1 to 65535\n");
    assert_int_equal(parse(&sample, "--place x a"), 3);
    assert_string_equal(said[1], "sample: no such place\n");
}

static void without_a_name_messages_begin_with_that_of_the_file(void **state)
{
    struct by_options options = sample_options;
    struct sample sample;

    (void)state;
    options.program = NULL;
    options.operand = add_operand;
    assert_int_equal(run(&options, &sample, 1, (const char *const[]){"bad"}), 2);
    assert_string_equal(said[1], "sampler: 'bad': it is bad\n");
}

static void help_lists_every_option_within_100_columns(void **state)
{
    static const char *const parts[] = {
        "usage: sample FILE... [options]\n       sample --place P\n\nDoes something",
        "  -q, --quick             be quick\n",
        "\nNumbers:\n  -p, --port PORT         use port PORT, 1 to 65535 (default 80)\n",
        "      --window W          keep W chunks: a power of two up to 4096\n",
        "  -b, --bytes SIZE        send SIZE bytes, 0 to 1024G\n",
        "      --colour COLOUR     paint it red, green or blue\n",
        "      --balance[=COLOUR]  balance\n",
        "  red                     the colour of roses\n",
        ("  -h, --help              print this help\n      --version           print the version\n"
         "\nNumbers:\n"),
        "\nExit status: 0.\n"};
    struct sample sample;

    (void)state;
    assert_int_equal(parse(&sample, "--port 1 -h --nothing"), 0);
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(said[0], parts[i]) == NULL)
            fail_msg("no '%s' in:\n%s", parts[i], said[0]);
    for (const char *line = said[0]; *line != 0; line += strcspn(line, "\n") + 1)
        assert_in_range(strcspn(line, "\n"), 0, 100);
    assert_string_equal(said[1], "");
    assert_int_equal(parse(&sample, "--version"), 0);
    assert_string_equal(said[0], "sample 1.0\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_stored_by_their_kind),
        cmocka_unit_test(probabilities_may_have_an_exponent),
        cmocka_unit_test(options_and_operands_may_alternate),
        cmocka_unit_test(a_long_name_may_be_shortened_while_it_is_unique),
        cmocka_unit_test(a_fault_is_one_line_with_the_remedy),
        cmocka_unit_test(without_a_name_messages_begin_with_that_of_the_file),
        cmocka_unit_test(help_lists_every_option_within_100_columns),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
