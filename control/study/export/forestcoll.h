/*
 * ForestColl's tree XML: data read from a file, and its check. Private to export/. One thread for
 * each object.
 */
#ifndef BY_STUDY_EXPORT_FORESTCOLL_H
#define BY_STUDY_EXPORT_FORESTCOLL_H

#include "control/fabric/build.h"
#include "control/study/export/check.h"

struct by_xml_element;
struct by_forestcoll;

struct by_forestcoll *by_forestcoll_new(void);
void by_forestcoll_free(struct by_forestcoll *forest);
/* Start handler for by_xml_*. */
int by_forestcoll_start(struct by_forestcoll *forest, const struct by_xml_element *element,
                        struct by_problem *problem);
/* Checks everything that was read. Arguments and errors are those of by_check_file. */
int by_forestcoll_check(struct by_forestcoll *forest, const struct by_topology *topology,
                        struct by_check_report *report, struct by_problem *problem);

#endif
