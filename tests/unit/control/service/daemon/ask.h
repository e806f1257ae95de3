/* Requests to banyand's HTTP. Any thread. */
#ifndef BY_TEST_SERVICE_DAEMON_ASK_H
#define BY_TEST_SERVICE_DAEMON_ASK_H

/* Sends a request to an address as in by_http_ask, with a body or NULL. Returns the answer, which
 * the caller frees; fails the test if its status is not `wanted`, or after 10 s. */
char *ask_http(const char *address, const char *method, const char *path, const char *body, int wanted);

#endif
