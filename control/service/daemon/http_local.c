/* What holds for both doors. See http_local.h. */
#include "control/service/daemon/http_local.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "control/fabric/build.h"
#include "control/service/daemon/listen.h"
#include "control/service/daemon/say.h"
#include "offload/base/errors.h"

enum MHD_Result by_http_accept_local(void *context, const struct sockaddr *address, socklen_t bytes)
{
    const struct sockaddr_in *from = (const struct sockaddr_in *)(const void *)address;

    (void)context;
    if (address == NULL || bytes < sizeof(address->sa_family) || address->sa_family == AF_UNIX)
        return MHD_YES; /* the mode of the file controls access */
    return bytes >= sizeof(*from) && address->sa_family == AF_INET &&
                   ntohl(from->sin_addr.s_addr) >> 24 == 127
               ? MHD_YES
               : MHD_NO;
}

/* Web pages of other origins must not use the server: neither through a host name that resolves to
 * this machine (DNS rebinding), nor by requests to it. The page that this server sends may read. */
bool by_http_is_foreign(struct MHD_Connection *connection, bool reads)
{
    static const char *const names[] = {"localhost", "127.0.0.1"};
    const char *host = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_HOST);
    const char *origin = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ORIGIN);

    if (origin != NULL &&
        !(reads && host != NULL && strncmp(origin, "http://", 7) == 0 && strcmp(origin + 7, host) == 0))
        return true;
    for (size_t i = 0; host != NULL && i < sizeof(names) / sizeof(names[0]); i++) {
        size_t bytes = strlen(names[i]);

        if (strncmp(host, names[i], bytes) == 0 && (host[bytes] == 0 || host[bytes] == ':'))
            return false;
    }
    return host != NULL;
}

/* Headers of every answer. Browsers load nothing from elsewhere, run only the page's own files, and
 * give no answer to other sites. */
static const char *const headers[][2] = {
    {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
    {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
                                "connect-src 'self'; base-uri 'none'; form-action 'none'; "
                                "frame-ancestors 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin"},
    {"Cross-Origin-Resource-Policy", "same-origin"},
    {"Referrer-Policy", "no-referrer"},
    {"X-Content-Type-Options", "nosniff"},
};

enum MHD_Result by_http_queue(struct MHD_Connection *connection, unsigned status, const char *type,
                              const void *bytes, size_t size, enum MHD_ResponseMemoryMode mode,
                              const char *allow)
{
    struct MHD_Response *response = MHD_create_response_from_buffer(size, (void *)(uintptr_t)bytes, mode);
    enum MHD_Result result;

    if (response == NULL) {
        if (mode == MHD_RESPMEM_MUST_FREE)
            free((void *)(uintptr_t)bytes);
        return MHD_NO;
    }
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    for (size_t i = 0; i < sizeof(headers) / sizeof(headers[0]); i++)
        MHD_add_response_header(response, headers[i][0], headers[i][1]);
    if (allow != NULL)
        MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, allow);
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* Creates the folder of the default path, readable by others. If it cannot, opening the socket
 * fails. */
static void make_folder(const char *path)
{
    char folder[BY_HTTP_PATH_MAX];

    snprintf(folder, sizeof(folder), "%.*s", (int)(strrchr(path, '/') - path), path);
    if (mkdir(folder, 0755) == 0 && chmod(folder, 0755) != 0) /* the umask is narrower */
        by_daemon_say("%s: cannot open it to other users: %s", folder, strerror(errno));
}

int by_http_listen(const struct by_daemon_options *options, struct by_problem *problem)
{
    int fd, number;

    if (strcmp(options->socket, options->socket_default) == 0)
        make_folder(options->socket);
    fd = by_listen_unix(options->socket);
    number = errno;
    if (fd < 0)
        by_problem_say(problem, BY_EIO, "--socket %s: %s: %s", options->socket, strerror(number),
                       number == EADDRINUSE ? "another banyand listens there: choose another path"
                                            : "choose another path, or --socket off");
    return fd;
}

int by_http_no_port(const struct by_daemon_options *options, struct by_problem *problem)
{
    return by_problem_say(
        problem, BY_EIO,
        "--http %u: cannot listen on 127.0.0.1: %s; choose another port, or 0 for any free one",
        options->http_port, strerror(errno));
}
