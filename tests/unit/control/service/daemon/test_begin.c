/* The command line and the files with which banyand does not start: its exit status, and the line
 * that names the fault and the remedy. Nothing of it runs. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "control/service/daemon/daemon.h"
#include "tests/unit/control/service/daemon/printed.h"
#include "tests/unit/control/tables/bench.h"

static char folder[64], file[96];

static void write_fabric(const char *nodes, const char *links)
{
    struct by_topology *topology = bench_topology(nodes, links);
    FILE *stream = fopen(file, "w");

    assert_non_null(stream);
    by_topology_write(topology, stream);
    fclose(stream);
    by_topology_free(topology);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "/tmp/by-test-begin-XXXXXX");
    assert_non_null(mkdtemp(folder));
    snprintf(file, sizeof(file), "%s/fabric.json", folder);
    write_fabric("x0* h0 h1 x01*", "h0-x0 x0-x01 x01-h1");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(file);
    return rmdir(folder);
}

/* Starts banyand with these further arguments (NULL-terminated). Requires the status and a part of
 * what it prints, unless that is NULL. */
static void begins(int status, const char *part, const char *const *more)
{
    char *argv[24] = {(char *)"banyand", (char *)"--http", (char *)"off", (char *)"--socket", (char *)"off"};
    char text[4096];
    int argc = 5, got;
    mode_t mask = umask(022), after;

    for (; *more != NULL; more++)
        argv[argc++] = (char *)(uintptr_t)*more;
    printed_begin();
    got = by_daemon_main(argc, argv);
    printed_end(text, sizeof(text));
    after = umask(mask);
    assert_int_equal(after, 022); /* it is as before */
    if (got != status || (part != NULL && strstr(text, part) == NULL))
        fail_msg("status %d: %s", got, text);
}

#define LIST(...)                                                                                            \
    (const char *const[])                                                                                    \
    {                                                                                                        \
        __VA_ARGS__, NULL                                                                                    \
    }

static void each_switch_has_an_address(void **state)
{
    char text[400], longest[300];

    (void)state;
    snprintf(text, sizeof(text),
             "banyand: %s: no address for switch x0: add --to x0=ADDR, or its \"control\" to the site\n",
             file);
    begins(2, text, LIST(file, "--to", "x01=unix:a")); /* whose name begins with the other's */
    snprintf(text, sizeof(text), "banyand: %s: no address for switch x01: ", file);
    begins(2, text, LIST(file, "--to", "x0=unix:a"));
    snprintf(text, sizeof(text), "banyand: --to x1=unix:c: no switch 'x1' in %s\n", file);
    begins(2, text, LIST(file, "--sockets", "/run", "--to", "x1=unix:c"));
    snprintf(text, sizeof(text), "banyand: --to h0=unix:c: no switch 'h0' in %s\n", file);
    begins(2, text, LIST(file, "--to", "x0=unix:a", "--to", "x01=unix:b", "--to", "h0=unix:c"));
    memset(longest, 'a', sizeof(longest)); /* unix:aaa.../x0.sock */
    longest[243] = 0;
    begins(2, "banyand: the address of switch x0 has 256 characters; the limit is 255\n",
           LIST(file, "--sockets", longest));
    longest[242] = 0;
    begins(2, "banyand: the address of switch x01 has 256 characters; the limit is 255\n",
           LIST(file, "--sockets", longest));
    begins(2, "banyand: the address of switch x01 has 256 characters; the limit is 255\n",
           LIST(file, "--to", "x0=unix:a", "--sockets", longest)); /* --to precedes it */
}

/* The site's address is for switches without --to and --sockets. */
static void a_site_may_have_the_addresses(void **state)
{
    static const char form[] =
        "{\"format\": \"banyan-site-1\", \"nodes\": [{\"name\": \"x0\", \"control\": \"tcp:a:1\"}, "
        "{\"name\": \"x01\", \"control\": \"%s\"}]}";
    char text[400], site[120];

    (void)state;
    snprintf(site, sizeof(site), "%s/site.json", folder);
    for (unsigned right = 0; right < 2; right++) {
        FILE *stream = fopen(site, "w");

        assert_non_null(stream);
        fprintf(stream, form, right ? "unix:b" : "nowhere");
        fclose(stream);
        snprintf(text, sizeof(text), "banyand: %s: switch x01: nowhere: not an address: ", site);
        begins(2, right ? "banyand: --job: " : text, LIST(file, "--site", site, "--job", "wrong"));
        begins(2, "banyand: --job: ", LIST(file, "--site", site, "--to", "x01=unix:c", "--job", "wrong"));
        begins(2, "banyand: --job: ", LIST(file, "--site", site, "--sockets", "/run", "--job", "wrong"));
    }
    unlink(site);
}

/* A longer name that begins with that of a switch is another one. */
static void a_switch_may_have_a_name_of_the_greatest_length(void **state)
{
#define LONGEST "x0.a.switc_.w_ose.name.is.as.long.as.t_ey.may.b"
    char text[300];

    (void)state;
    assert_int_equal(strlen(LONGEST), BY_NAME_MAX);
    write_fabric(LONGEST "* h0 h1", "h0-" LONGEST " " LONGEST "-h1");
    begins(2, "banyand: --job: ", LIST(file, "--to", LONGEST "=unix:a", "--job", "wrong"));
    snprintf(text, sizeof(text), "banyand: --to " LONGEST "0=unix:b: no switch '" LONGEST "0' in %s\n", file);
    begins(2, text, LIST(file, "--to", LONGEST "=unix:a", "--to", LONGEST "0=unix:b", "--job", "wrong"));
}

static void a_file_that_cannot_be_read_is_named_with_the_place(void **state)
{
    char text[400], missing[120];
    FILE *stream;

    (void)state;
    snprintf(missing, sizeof(missing), "%s/missing.json", folder);
    snprintf(text, sizeof(text), "banyand: %s: ", missing);
    begins(2, text, LIST(missing));
    begins(2, text, LIST(file, "--sockets", "/run", "--site", missing));
    stream = fopen(file, "w");
    assert_non_null(stream);
    fputs("{\n  \"nodes\": 3\n}\n", stream);
    fclose(stream);
    snprintf(text, sizeof(text), "banyand: %s:2:", file);
    begins(2, text, LIST(file, "--sockets", "/run"));
}

static void a_job_that_is_written_wrong_is_refused_before_anything_starts(void **state)
{
    (void)state;
    begins(2, "banyand: --job: job 'allreduce': write NUMBER=COLLECTIVES[:RANKS]",
           LIST(file, "--sockets", "/run", "--job", "1=allreduce", "--job", "allreduce"));
    begins(2, "no collective named 'allred'", LIST(file, "--sockets", "/run", "--job", "1=allred"));
}

static void a_store_that_cannot_be_opened_is_refused(void **state)
{
    char path[120], text[300];

    (void)state;
    snprintf(path, sizeof(path), "%s/no/state", folder);
    snprintf(text, sizeof(text), "banyand: --state %s: cannot make the folder: ", path);
    begins(3, text, LIST(file, "--sockets", "/run", "--state", path));
    begins(2, "banyand: --store: ", LIST(file, "--sockets", "/run", "--store", "nothing"));
    begins(2, "banyand: --store: the state contains the keys of jobs, which http:// would expose: ",
           LIST(file, "--sockets", "/run", "--keyed", "--store", "etcd:http://192.0.2.1:1"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(each_switch_has_an_address, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_site_may_have_the_addresses, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_switch_may_have_a_name_of_the_greatest_length, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_file_that_cannot_be_read_is_named_with_the_place, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_job_that_is_written_wrong_is_refused_before_anything_starts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_store_that_cannot_be_opened_is_refused, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
