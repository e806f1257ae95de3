/* Implements keys.h. */
#include "tests/unit/firmware/secure/keys.h"

#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define DAYS 30u

static char folder[64];

void keys_open(void)
{
    snprintf(folder, sizeof folder, "/tmp/banyan-keys-XXXXXX");
    assert_non_null(mkdtemp(folder));
}

static int remove_one(const char *path, const struct stat *status, int type, struct FTW *walk)
{
    (void)status;
    (void)type;
    (void)walk;
    return remove(path);
}

void keys_close(void)
{
    assert_int_equal(nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void keys_issue(const char *authority, const char *name, enum by_keys_role role, uint32_t days)
{
    struct by_problem problem = {0};
    struct by_authority *opened;
    char path[KEYS_PATH];
    bool made;

    if (by_authority_open(keys_path(authority, path), DAYS, &opened, &made, &problem) != 0 ||
        by_authority_issue(opened, name, role, days, false, &problem) != 0)
        fail_msg("%s", problem.text);
    by_authority_close(opened);
}

const char *keys_path(const char *rest, char path[KEYS_PATH])
{
    snprintf(path, KEYS_PATH, "%s%s%.60s", folder, rest[0] != 0 ? "/" : "", rest);
    return path;
}
