/* Requests to banyand's HTTP. See ask.h. */
#include "tests/unit/control/service/daemon/ask.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "control/service/controller/http.h"

#define PATIENCE_MS 10000

char *ask_http(const char *address, const char *method, const char *path, const char *body, int wanted)
{
    struct by_problem problem = {0};
    char *reply = NULL;
    int status = 0;

    if (by_http_ask(address, method, path, body, PATIENCE_MS, &status, &reply, &problem) != 0)
        fail_msg("%s %s %s: %s", address, method, path, problem.text);
    if (status != wanted)
        fail_msg("%s %s %s: %d instead of %d: %s", address, method, path, status, wanted, reply);
    return reply;
}
