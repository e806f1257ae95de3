/* Settings: their sources, refused values, and messages about unknown settings. */
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host-driver/error.h"
#include "host-driver/settings.h"
#include "tests/unit/host-driver/rig.h"

#define SECURE "secure"

static struct by_settings settings;
static const char *programs; /* the folder of this program */

/* Loads the settings and captures the library's stderr in `said`. */
static int load(char *said, size_t bytes)
{
    FILE *caught = tmpfile();
    int before = dup(2);
    int error;
    size_t got;

    assert_non_null(caught);
    fflush(stderr);
    dup2(fileno(caught), 2);
    error = by_settings_load(&settings);
    fflush(stderr);
    dup2(before, 2);
    close(before);
    rewind(caught);
    got = fread(said, 1, bytes - 1, caught);
    said[got] = 0;
    fclose(caught);
    return error;
}

static void defaults_hold_where_nothing_is_set(void **state)
{
    char said[512];
    double seconds;

    (void)state;
    assert_int_equal(load(said, sizeof(said)), 0);
    assert_string_equal(said, "");
    assert_string_equal(settings.value[BY_SETTING_TRANSPORT], "auto");
    assert_string_equal(settings.origin[BY_SETTING_TRANSPORT], "default");
    assert_int_equal(by_settings_decimal(&settings, BY_SETTING_TIMEOUT, 100, &seconds), 0);
    assert_true(seconds == 10);
}

static void the_environment_wins_over_the_file_and_the_file_over_the_default(void **state)
{
    char home[] = "/tmp/banyan-home-XXXXXX";
    char path[64], said[512];
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof(path), "%s/.banyan.conf", home);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "# a comment\n\n  BANYAN_JOB = 7 \nBANYAN_TIMEOUT=3\n");
    fclose(file);
    setenv("HOME", home, 1);
    rig_set("BANYAN_TIMEOUT", "4.5");
    assert_int_equal(load(said, sizeof(said)), 0);
    assert_string_equal(settings.value[BY_SETTING_JOB], "7");
    assert_string_equal(settings.origin[BY_SETTING_JOB], path);
    assert_string_equal(settings.value[BY_SETTING_TIMEOUT], "4.5");
    assert_string_equal(settings.origin[BY_SETTING_TIMEOUT], "environment");
    rig_set("BANYAN_TIMEOUT", NULL);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "BANYAN_JOB 7\n");
    fclose(file);
    assert_int_equal(load(said, sizeof(said)), BY_EINVAL);
    assert_non_null(strstr(by_fail_text(), ".banyan.conf:1: expected KEY=VALUE"));
    unlink(path);
    rmdir(home);
    setenv("HOME", "/nonexistent", 1);
}

static void an_unknown_setting_is_named_with_its_nearest_match(void **state)
{
    static const struct {
        const char *name, *nearest;
    } cases[] = {{"BANYAN_TRANSPROT", "BANYAN_TRANSPORT?"},
                 {"BANYAN_TIMEOUTS", "BANYAN_TIMEOUT?"},
                 {"BANYAN_REODER", "BANYAN_REORDER?"},
                 {"BANYAN_TABEL", "BANYAN_TABLE?"}};
    char said[1024];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig_set(cases[i].name, "1");
        assert_int_equal(load(said, sizeof(said)), 0);
        rig_set(cases[i].name, NULL);
        assert_non_null(strstr(said, cases[i].name));
        assert_non_null(strstr(said, cases[i].nearest));
    }
}

static void a_name_without_end_is_cut_and_a_value_without_end_refused(void **state)
{
    char name[400], value[3000], said[1024];

    (void)state;
    memset(name, 'X', sizeof(name));
    memcpy(name, "BANYAN_", 7);
    name[sizeof(name) - 1] = 0;
    rig_set(name, "1");
    assert_int_equal(load(said, sizeof(said)), 0);
    rig_set(name, NULL);
    assert_non_null(strstr(said, "unknown BANYAN_XXXX"));
    memset(value, 'v', sizeof(value));
    value[sizeof(value) - 1] = 0;
    rig_set("BANYAN_TABLE", value);
    assert_int_equal(load(said, sizeof(said)), BY_EINVAL);
    rig_set("BANYAN_TABLE", NULL);
    assert_non_null(strstr(by_fail_text(), "BANYAN_TABLE from environment has 2999 bytes"));
}

static void a_number_out_of_range_is_refused_with_its_name_and_range(void **state)
{
    static const struct {
        const char *name, *value;
        enum by_setting which;
        int accepted;
    } cases[] = {
        {"BANYAN_LOSS", "0.5", BY_SETTING_LOSS, 1},  {"BANYAN_LOSS", "1", BY_SETTING_LOSS, 1},
        {"BANYAN_LOSS", "1.01", BY_SETTING_LOSS, 0}, {"BANYAN_LOSS", "-0.1", BY_SETTING_LOSS, 0},
        {"BANYAN_LOSS", "nan", BY_SETTING_LOSS, 0},  {"BANYAN_LOSS", "", BY_SETTING_LOSS, 0},
        {"BANYAN_LOSS", "1%", BY_SETTING_LOSS, 0},   {"BANYAN_DUP", "inf", BY_SETTING_DUP, 0},
    };
    char said[512];
    double value;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig_set(cases[i].name, cases[i].value);
        assert_int_equal(load(said, sizeof(said)), cases[i].accepted ? 0 : BY_EINVAL);
        rig_set(cases[i].name, NULL);
        assert_int_equal(by_settings_decimal(&settings, cases[i].which, 1, &value),
                         cases[i].accepted ? 0 : BY_EINVAL);
        if (!cases[i].accepted)
            assert_non_null(strstr(by_fail_text(), cases[i].name));
    }
}

static void whole_numbers_take_no_sign_no_fraction_and_no_rest(void **state)
{
    static const struct {
        const char *value;
        int accepted;
    } cases[] = {{"0", 1},
                 {"1023", 1},
                 {"0x10", 1},
                 {"1024", 0},
                 {"-1", 0},
                 {"+1", 0},
                 {"1.5", 0},
                 {"7x", 0},
                 {"", 0},
                 {" 1", 0},
                 {"99999999999999999999", 0}};
    char said[512];
    uint64_t value;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig_set("BANYAN_JOB", cases[i].value);
        assert_int_equal(load(said, sizeof(said)), cases[i].accepted ? 0 : BY_EINVAL);
        rig_set("BANYAN_JOB", NULL);
        assert_int_equal(by_settings_number(&settings, BY_SETTING_JOB, 1023, &value),
                         cases[i].accepted ? 0 : BY_EINVAL);
    }
}

static void every_number_is_checked_when_settings_are_loaded(void **state)
{
    static const struct {
        const char *name, *good, *bad, *range;
    } cases[] = {{"BANYAN_TIMEOUT", "86400", "abc", "0 to 86400"},
                 {"BANYAN_TIMEOUT", "0.5", "86401", "0 to 86400"},
                 {"BANYAN_JOB", "1023", "1024", "0 to 1023"},
                 {"BANYAN_SMALL", "auto", "-1", "0 to 4294967295"},
                 {"BANYAN_ARENA", "1048576", "1048577", "0 to 1048576"},
                 {"BANYAN_LINGER", "60000", "60001", "0 to 60000"},
                 {"BANYAN_INFLIGHT", "4294967295", "4294967296", "0 to 4294967295"},
                 {"BANYAN_SPIN", "1000000", "1e3", "0 to 1000000"},
                 {"BANYAN_LOG", "2", "3", "0 to 2"},
                 {"BANYAN_LOG", "0", "loud", "0 to 2"},
                 {"BANYAN_GPU_CHUNK", "1", "4M", "0 to 1099511627776"},
                 {"BANYAN_MPI_LEAST", "4096", "4k", "0 to 9223372036854775807"},
                 {"BANYAN_MPI_AFTER", "0", "soon", "0 to 4294967295"},
                 {"BANYAN_SEED", "0", "18446744073709551616", "0 to 18446744073709551615"},
                 {"BANYAN_LOSS", "1", "2", "0 to 1"},
                 {"BANYAN_DUP", "0.5", "x", "0 to 1"},
                 {"BANYAN_REORDER", "0", "", "0 to 1"}};
    char said[512];

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        rig_set(cases[i].name, cases[i].good);
        assert_int_equal(load(said, sizeof(said)), 0);
        rig_set(cases[i].name, cases[i].bad);
        assert_int_equal(load(said, sizeof(said)), BY_EINVAL);
        rig_set(cases[i].name, NULL);
        assert_non_null(strstr(by_fail_text(), cases[i].name));
        assert_non_null(strstr(by_fail_text(), cases[i].bad));
        assert_non_null(strstr(by_fail_text(), cases[i].range));
    }
}

static void every_setting_can_be_listed(void **state)
{
    const char *name, *fallback, *help, *value, *origin;
    uint32_t count = 0;

    (void)state;
    rig_set("BANYAN_SEED", "77");
    for (; banyan_setting(count, &name, &fallback, &help, &value, &origin) == BANYAN_OK; count++) {
        bool given = strcmp(name, "BANYAN_SEED") == 0;

        assert_int_equal(strncmp(name, "BANYAN_", 7), 0);
        assert_true(help[0] != 0);
        assert_string_equal(value, given ? "77" : fallback);
        assert_string_equal(origin, given ? "environment" : "default");
    }
    rig_set("BANYAN_SEED", NULL);
    assert_int_equal(count, BY_SETTING_COUNT);
}

/* Runs `banyan-perf --settings OPTION`. Returns its exit status, and stdout and stderr together in
 * `said`, which must hold all of them: a program that writes on after the reader is gone dies. */
static int run_settings(const char *option, char *said, size_t bytes)
{
    char command[512];
    FILE *pipe;
    size_t got;

    snprintf(command, sizeof(command), "%s/../bin/banyan-perf --settings %s 2>&1", programs, option);
    pipe = popen(command, "r");
    assert_non_null(pipe);
    got = fread(said, 1, bytes - 1, pipe);
    said[got] = 0;
    assert_true(got < bytes - 1);
    return WEXITSTATUS(pclose(pipe));
}

static void the_list_shows_where_each_value_comes_from_and_warns_of_unknown_ones(void **state)
{
    char home[] = "/tmp/banyan-home-XXXXXX";
    char path[64], said[32768];
    FILE *file;

    (void)state;
    assert_non_null(mkdtemp(home));
    snprintf(path, sizeof(path), "%s/.banyan.conf", home);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "BANYAN_JOB=7\nBANYAN_SPUN=3\n");
    fclose(file);
    setenv("HOME", home, 1);
    rig_set("BANYAN_TIMEOUT", "4.5");
    rig_set("BANYAN_TRANSPROT", "udp");
    assert_int_equal(run_settings("", said, sizeof(said)), 0);
    assert_non_null(strstr(said,
                           "environment sets BANYAN_TRANSPROT, which is unknown and ignored; did you mean "
                           "BANYAN_TRANSPORT?"));
    assert_non_null(strstr(said, ".banyan.conf sets BANYAN_SPUN"));
    assert_non_null(strstr(said, "did you mean BANYAN_SPIN?"));
    assert_non_null(strstr(said, "BANYAN_TIMEOUT       4.5        environment  seconds"));
    assert_non_null(strstr(said, "BANYAN_SPIN          0          default "));
    assert_non_null(strstr(said, "BANYAN_JOB           7          /tmp/banyan-home-"));
    assert_int_equal(run_settings("--json", said, sizeof(said)), 0);
    assert_non_null(
        strstr(said, "\"name\": \"BANYAN_TIMEOUT\", \"value\": \"4.5\", \"origin\": \"environment\""));
    rig_set("BANYAN_TIMEOUT", NULL);
    rig_set("BANYAN_TRANSPROT", NULL);
    file = fopen(path, "w");
    assert_non_null(file);
    fprintf(file, "BANYAN_JOB 7\n");
    fclose(file);
    assert_int_equal(run_settings("--json", said, sizeof(said)), 2);
    assert_non_null(strstr(said, ".banyan.conf:1: expected KEY=VALUE"));
    assert_null(strchr(said, '{'));
    unlink(path);
    rmdir(home);
    setenv("HOME", "/nonexistent", 1);
}

/* A copy of this program with the rights of another group must not load a library that its caller
 * names. */
static void a_program_with_more_rights_than_its_caller_ignores_the_environment(void **state)
{
    char folder[] = "banyan-settings-XXXXXX", command[256];
    int status;

    (void)state;
    if (geteuid() != 0)
        skip();                       /* only root can give a file to another group */
    assert_non_null(mkdtemp(folder)); /* not in /tmp, which may be mounted with nosuid */
    snprintf(command, sizeof(command), "cp /proc/%ld/exe %s/it && chgrp 1 %s/it && chmod 2755 %s/it",
             (long)getpid(), folder, folder, folder);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof(command), "BANYAN_CUDA_LIBRARY=/tmp/evil.so %s/it " SECURE, folder);
    status = system(command);
    snprintf(command, sizeof(command), "rm -r %s", folder);
    assert_int_equal(system(command), 0);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* The body of that copy. Returns 0 if the library is not the caller's. */
static int run_secure(void)
{
    if (getauxval(AT_SECURE) == 0)
        return 2;
    return by_settings_load(&settings) == 0 && settings.value[BY_SETTING_CUDA_LIBRARY][0] == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_hold_where_nothing_is_set),
        cmocka_unit_test(the_environment_wins_over_the_file_and_the_file_over_the_default),
        cmocka_unit_test(an_unknown_setting_is_named_with_its_nearest_match),
        cmocka_unit_test(a_name_without_end_is_cut_and_a_value_without_end_refused),
        cmocka_unit_test(a_number_out_of_range_is_refused_with_its_name_and_range),
        cmocka_unit_test(whole_numbers_take_no_sign_no_fraction_and_no_rest),
        cmocka_unit_test(every_number_is_checked_when_settings_are_loaded),
        cmocka_unit_test(a_program_with_more_rights_than_its_caller_ignores_the_environment),
        cmocka_unit_test(every_setting_can_be_listed),
        cmocka_unit_test(the_list_shows_where_each_value_comes_from_and_warns_of_unknown_ones),
    };

    if (argc > 1 && strcmp(argv[1], SECURE) == 0)
        return run_secure();
    programs = argc > 0 ? dirname(argv[0]) : ".";
    setenv("HOME", "/nonexistent", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
