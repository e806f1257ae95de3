/*
 * Checks banyand: that it answers, and that its status shows no problems of switches, links and
 * jobs. See doctor.h.
 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/service/controller/http.h"
#include "control/view/doctor/doctor.h"

#define TIMEOUT_MS 3000u

void by_controller_read(struct by_doctor *doctor)
{
    int status = 0;

    if (doctor->controller == NULL ||
        by_http_ask(doctor->controller, "GET", "/v1/status", NULL, TIMEOUT_MS, &status, &doctor->status,
                    &doctor->no_status) != 0 ||
        status == 200)
        return;
    free(doctor->status);
    doctor->status = NULL;
    snprintf(doctor->no_status.text, sizeof(doctor->no_status.text), "GET /v1/status returns %d", status);
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static void judge_switches(struct by_report *report, const json_t *root)
{
    const json_t *row;
    size_t index;

    json_array_foreach(json_object_get(root, "switches"), index, row)
    {
        const char *name = text_of(row, "name"), *state = text_of(row, "state");

        if (strcmp(state, "up") != 0)
            by_report_add(report, BY_GRADE_TROUBLE, name, "restart it; the controller loads its table",
                          "is %s, as the controller reports: %.200s", state, text_of(row, "error"));
        else if (strcmp(text_of(row, "table"), text_of(row, "table_wanted")) != 0 &&
                 !json_is_true(json_object_get(root, "changing")))
            by_report_add(report, BY_GRADE_TROUBLE, name,
                          "let only one controller write, and do not push by hand",
                          "its table is not the one that the controller loaded");
    }
    json_array_foreach(json_object_get(root, "links_down"), index, row)
    {
        by_report_add(report, BY_GRADE_TROUBLE, text_of(row, "a"),
                      "check the cable, and the port at its other end", "its link to %.60s is down",
                      text_of(row, "b"));
    }
}

static void judge_jobs(struct by_report *report, const json_t *root)
{
    const json_t *row;
    size_t index;

    json_array_foreach(json_object_get(root, "jobs"), index, row)
    {
        if (strcmp(text_of(row, "state"), "failed") == 0)
            by_report_add(report, BY_GRADE_TROUBLE, text_of(row, "name"),
                          "remove the reported cause, or end the job (banyan job end)",
                          "the job has failed: %.240s", text_of(row, "text"));
    }
}

/*
 * Finds switches that another program, with a later election ID than the controller's, has taken
 * over.
 */
static void judge_writers(struct by_doctor *doctor, const json_t *root)
{
    uint64_t own = strtoull(text_of(root, "election_id"), NULL, 10);

    for (uint32_t i = 0; i < doctor->switch_count; i++) {
        const struct by_switch_facts *facts = &doctor->switches[i];

        if (facts->error == 0 && own != 0 && facts->hello.election_id > own)
            by_report_add(&doctor->report, BY_GRADE_TROUBLE, facts->name,
                          "end the other one, then restart banyand",
                          "a controller with a later election id (%" PRIu64
                          ") has taken it over from this controller (%" PRIu64 ")",
                          (uint64_t)facts->hello.election_id, own);
    }
}

void by_check_controller(struct by_doctor *doctor)
{
    struct by_report *report = &doctor->report;
    uint32_t before = report->count;
    json_error_t fault;
    json_t *root;

    if (doctor->controller == NULL)
        return;
    root = doctor->status ? json_loads(doctor->status, 0, &fault) : NULL;
    if (doctor->status == NULL) {
        by_report_add(report, BY_GRADE_TROUBLE, doctor->controller, "start banyand, or correct --controller",
                      "%.300s", doctor->no_status.text);
    } else if (!json_is_object(root)) {
        by_report_add(report, BY_GRADE_TROUBLE, doctor->controller, "check that banyand listens there",
                      "its status cannot be read: %s", root ? "not an object" : fault.text);
    } else {
        if (strcmp(text_of(root, "version"), BY_VERSION) != 0)
            by_report_add(report, BY_GRADE_TROUBLE, doctor->controller, "install one version on all machines",
                          "is banyand %.20s; this is " BY_VERSION, text_of(root, "version"));
        if (json_is_true(json_object_get(root, "follows")))
            by_report_add(report, BY_GRADE_ADVICE, doctor->controller,
                          "check the leader: run this on its machine, or add it to --controller",
                          "is a follower: %.200s", text_of(root, "text"));
        else if (json_is_false(json_object_get(root, "leads")))
            by_report_add(report, BY_GRADE_ADVICE, doctor->controller,
                          "wait for its switches, or check its log", "does not lead yet");
        judge_switches(report, root);
        judge_jobs(report, root);
        judge_writers(doctor, root);
        if (report->count == before)
            by_report_add(report, BY_GRADE_OK, doctor->controller, NULL,
                          "leads; its switches, links and jobs are healthy");
    }
    json_decref(root);
}
