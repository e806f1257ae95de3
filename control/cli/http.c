/* Requests to banyand, and error messages for its answers. See http.h. */
#include "control/cli/http.h"

#include <stdlib.h>
#include <string.h>

#include "control/cli/cli.h"
#include "control/service/controller/http.h"
#include "offload/base/errors.h"

int by_cli_ask(const char *address, const char *method, const char *path, const char *body, unsigned seconds,
               struct by_cli_answer *answer, struct by_problem *problem)
{
    char chosen[BY_HTTP_PATH_MAX];
    int error;

    *answer = (struct by_cli_answer){0};
    if (address == NULL)
        by_http_default(chosen);
    error = by_http_ask(address ? address : chosen, method, path, body, seconds * 1000, &answer->status,
                        &answer->body, problem);
    if (error == 0)
        answer->bytes = strlen(answer->body);
    return error;
}

int by_cli_ask_json(const char *address, const char *method, const char *path, const char *body,
                    unsigned seconds, json_t **object)
{
    struct by_cli_answer answer;
    struct by_problem problem = {0};
    const char *text;
    int error = by_cli_ask(address, method, path, body, seconds, &answer, &problem);
    int status = 0;

    *object = NULL;
    if (error != 0)
        return by_cli_fail(error == BY_EINVAL ? BY_EXIT_USAGE : BY_EXIT_ENVIRONMENT, "%s", problem.text);
    *object = json_loadb(answer.body, answer.bytes, 0, NULL);
    if (answer.status < 200 || answer.status >= 300) {
        text = json_string_value(json_object_get(*object, "error"));
        status = by_cli_fail(answer.status < 500 ? BY_EXIT_NO : BY_EXIT_ENVIRONMENT, "%s",
                             text != NULL ? text : "banyand refuses without a reason");
        if (answer.status == 400)
            status = BY_EXIT_USAGE;
    } else if (*object == NULL) {
        status = by_cli_fail(BY_EXIT_ENVIRONMENT, "banyand's answer is not JSON: check that banyand has this "
                                                  "version");
    }
    free(answer.body);
    if (status != 0) {
        json_decref(*object);
        *object = NULL;
    }
    return status;
}
