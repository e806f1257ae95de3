/* What a switch must withstand: many clients, clients that ask without a pause, and a loop that
 * hangs (one thread of the process is held by ptrace(2); the others go on). */
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/lab/probe.h"

/* Requests that are on their way at a time, and in all at most (count). */
#define AHEAD    64u
#define REQUESTS 20000u

int probe_crowd(const char *address, unsigned clients)
{
    static by_Request request;
    static by_Response response;
    uint8_t frame[CLIENT_FRAME_MAX];

    for (unsigned i = 0; i < clients; i++) {
        int fd = probe_dial(address);

        /* Who says nothing makes room for others; and nobody reads it where there is none. */
        client_request(&request, by_Request_hello_tag);
        if (send(fd, frame, client_frame(&request, frame), MSG_NOSIGNAL) < 0)
            perror("switch-probe: send");
        probe_answer(fd, &response);
    }
    printf("%d %s\n", (int)response.error, response.text);
    return 0;
}

int probe_haste(const char *address)
{
    static by_Request request;
    static by_Response response;
    uint8_t frame[CLIENT_FRAME_MAX];
    unsigned sent = 0, answered = 0;
    int fd = probe_dial(address);

    while (answered < REQUESTS && response.error == 0) {
        for (; sent < answered + AHEAD; sent++) {
            client_request(&request, by_Request_waiting_tag);
            if (send(fd, frame, client_frame(&request, frame), MSG_NOSIGNAL) < 0) {
                perror("switch-probe: send");
                return 1;
            }
        }
        probe_answer(fd, &response);
        answered++;
    }
    printf("request %u: %s\n", answered, response.text);
    close(fd);
    return response.error != 0 ? 0 : 1;
}

int probe_hold(int thread, unsigned seconds)
{
    int status;

    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0 || ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0) {
        perror("switch-probe: ptrace");
        return 1;
    }
    for (unsigned i = 0; i < 10 * seconds; i++) {
        if (waitpid(thread, &status, __WALL | WNOHANG) == thread && !WIFSTOPPED(status))
            return 0;
        usleep(100000);
    }
    return 0;
}
