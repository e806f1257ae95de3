/* Files of moves, made from the best schedule of an operation on a fabric. */
#ifndef TESTS_UNIT_HOST_SCHEDULE_MADE_H
#define TESTS_UNIT_HOST_SCHEDULE_MADE_H

#include "control/study/series/series.h"

/* Four hosts in a ring, with links of different speed: messages pass through other hosts. */
#define RING                                                                                                 \
    "{\"name\": \"ring\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\", \"task_time\": \"1/8\"},"     \
    "{\"name\": \"b\", \"kind\": \"compute\", \"task_time\": \"1/8\"},"                                      \
    "{\"name\": \"c\", \"kind\": \"compute\", \"task_time\": \"1/8\"},"                                      \
    "{\"name\": \"d\", \"kind\": \"compute\", \"task_time\": \"1/8\"}], \"links\": ["                        \
    "{\"between\": [\"a\", \"b\"], \"bandwidth\": 2}, {\"between\": [\"b\", \"c\"], \"bandwidth\": 1},"      \
    "{\"between\": [\"c\", \"d\"], \"bandwidth\": 3}, {\"between\": [\"d\", \"a\"], \"bandwidth\": 1}]}"

/* Five hosts and two switches: two paths between some hosts, and one host behind another. */
#define TWO_SWITCHES                                                                                         \
    "{\"name\": \"two\", \"nodes\": [{\"name\": \"a\", \"kind\": \"compute\", \"task_time\": \"1/8\"},"      \
    "{\"name\": \"s\", \"kind\": \"switch\"},"                                                               \
    "{\"name\": \"b\", \"kind\": \"compute\", \"task_time\": \"1/8\"},"                                      \
    "{\"name\": \"t\", \"kind\": \"switch\"},"                                                               \
    "{\"name\": \"c\", \"kind\": \"compute\", \"task_time\": \"1/8\"},"                                      \
    "{\"name\": \"d\", \"kind\": \"compute\", \"task_time\": \"1/8\"},"                                      \
    "{\"name\": \"e\", \"kind\": \"compute\", \"task_time\": \"1/8\"}], \"links\": ["                        \
    "{\"between\": [\"a\", \"s\"], \"bandwidth\": 2}, {\"between\": [\"a\", \"t\"], \"bandwidth\": 1},"      \
    "{\"between\": [\"b\", \"s\"], \"bandwidth\": 1}, {\"between\": [\"b\", \"t\"], \"bandwidth\": 2},"      \
    "{\"between\": [\"c\", \"s\"], \"bandwidth\": 2}, {\"between\": [\"c\", \"t\"], \"bandwidth\": 2},"      \
    "{\"between\": [\"d\", \"t\"], \"bandwidth\": 2}, {\"between\": [\"e\", \"d\"], \"bandwidth\": 1}]}"

/* What a file is made for. Ranks are the compute nodes in their order. */
struct made {
    const char *topology; /* as JSON */
    enum by_series_operation operation;
    enum by_series_ports ports;
    uint32_t rank;          /* of a scatter: its source; of a reduce: its target */
    bool is_gather;         /* of a gossip: only to `rank` */
    const unsigned *matrix; /* of an exchange: sizes by source and target, 0: no message */
};

/* Writes the file to a new temporary path, which is returned in `path`. The caller unlinks it. */
void made_file(const struct made *made, char path[64]);

#endif
