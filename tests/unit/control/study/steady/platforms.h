/* The platforms in the figures of LMR ("Optimizing the steady-state throughput of scatter and
 * reduce operations on heterogeneous platforms"). */
#ifndef TESTS_STEADY_PLATFORMS_H
#define TESTS_STEADY_PLATFORMS_H

/* Figure 2: link costs 1, 1, 2/3, 4/3, 4/3. */
#define PLATFORM_2                                                                                           \
    "{\"name\": \"figure 2\", \"nodes\": [{\"name\": \"s\", \"kind\": \"compute\"},"                         \
    "{\"name\": \"a\", \"kind\": \"compute\"}, {\"name\": \"b\", \"kind\": \"compute\"},"                    \
    "{\"name\": \"p0\", \"kind\": \"compute\"}, {\"name\": \"p1\", \"kind\": \"compute\"}],"                 \
    "\"links\": [{\"from\": \"s\", \"to\": \"a\", \"bandwidth\": 1},"                                        \
    "{\"from\": \"s\", \"to\": \"b\", \"bandwidth\": 1},"                                                    \
    "{\"from\": \"a\", \"to\": \"p0\", \"bandwidth\": \"3/2\"},"                                             \
    "{\"from\": \"b\", \"to\": \"p0\", \"bandwidth\": \"3/4\"},"                                             \
    "{\"from\": \"b\", \"to\": \"p1\", \"bandwidth\": \"3/4\"}]}"

/* Figure 6: all costs 1, a task takes 1, two of them at node 0. */
#define PLATFORM_6                                                                                           \
    "{\"name\": \"figure 6\", \"nodes\": [{\"name\": \"0\", \"kind\": \"compute\", \"task_time\": 0.5},"     \
    "{\"name\": \"1\", \"kind\": \"compute\", \"task_time\": 1},"                                            \
    "{\"name\": \"2\", \"kind\": \"compute\", \"task_time\": 1}],"                                           \
    "\"links\": [{\"between\": [\"0\", \"1\"], \"bandwidth\": 1},"                                           \
    "{\"between\": [\"0\", \"2\"], \"bandwidth\": 1},"                                                       \
    "{\"between\": [\"1\", \"2\"], \"bandwidth\": 1}]}"

#endif
