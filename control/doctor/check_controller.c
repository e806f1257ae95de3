/* The check of banyand: that it answers, and what its status says. See doctor.h. */
#include <jansson.h>
#include <stdlib.h>

#include "control/controller/http.h"
#include "control/doctor/doctor.h"

#define TIMEOUT_MS 3000u

void by_check_controller(struct by_doctor *doctor)
{
    struct by_problem problem = {0};
    json_error_t fault;
    json_t *root;
    char *text = NULL;
    int status = 0;

    if (doctor->controller == NULL)
        return;
    if (by_http_ask(doctor->controller, "GET", "/v1/status", NULL, TIMEOUT_MS, &status, &text, &problem) !=
        0) {
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, doctor->controller,
                      "start banyand, or correct --controller", "%.300s", problem.text);
        return;
    }
    root = json_loads(text, 0, &fault);
    if (status != 200 || root == NULL)
        by_report_add(&doctor->report, BY_GRADE_TROUBLE, doctor->controller,
                      "is it banyand that listens there?", "GET /v1/status: %d, %s", status,
                      root ? "JSON" : fault.text);
    else
        by_report_add(&doctor->report, BY_GRADE_OK, doctor->controller, NULL, "answers");
    json_decref(root);
    free(text);
}
