/* Requests to etcd over HTTP, with libcurl. See etcd.h. */
#include "control/service/daemon/etcd.h"

#include <curl/curl.h>
#include <netdb.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "control/service/controller/dial.h"
#include "firmware/secure/hostport.h"
#include "offload/base/errors.h"

#define FORM "use etcd:http://HOST:PORT,http://HOST:PORT...[/NAME], or https://"
/* Maximum size of an answer (bytes): one part of the state, as text. */
#define REPLY_BYTES_MAX (16u << 20)
#define NAME_MAX_BYTES  64u

struct by_etcd {
    CURL *curl;
    struct curl_slist *headers;
    const char *keys;
    uint32_t count, last; /* `last`: the member that answered last */
    char members[BY_ETCD_MEMBERS_MAX][300];
    char name[NAME_MAX_BYTES + 1];
    char cluster[32]; /* identifier of the cluster; "" before the first answer */
    bool exposed;
};

struct answer {
    char *bytes;
    size_t count;
};

/* ---- addresses ---- */

static bool is_loopback(const struct by_hostport *at)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    bool loopback;

    if (getaddrinfo(at->host, at->port, &hints, &found) != 0)
        return strcmp(at->host, "localhost") == 0;
    loopback = by_hostport_is_loopback(found->ai_addr);
    freeaddrinfo(found);
    return loopback;
}

static bool is_name(const char *text)
{
    return text[0] != 0 && strlen(text) <= NAME_MAX_BYTES &&
           text[strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")] == 0;
}

/* Reads one URL, and the name after the last one. */
static int read_member(struct by_etcd *etcd, const char *url, bool last, struct by_problem *problem)
{
    bool plain = strncmp(url, "http://", 7) == 0;
    const char *host = url + (plain ? 7 : 8);
    size_t length = strcspn(host, "/");
    struct by_hostport at;

    if ((!plain && strncmp(url, "https://", 8) != 0) || by_hostport_read(host, length, &at) != 0 ||
        at.host[0] == 0)
        return by_problem_say(problem, BY_EINVAL, "'%.100s' is no address of a member of etcd: " FORM, url);
    if (host[length] != 0 && (!last || !is_name(host + length + 1)))
        return by_problem_say(problem, BY_EINVAL,
                              "'%.100s': after the last address may follow /NAME, of at most %u letters, "
                              "digits, '.', '_' and '-'",
                              url, NAME_MAX_BYTES);
    if (etcd->count == BY_ETCD_MEMBERS_MAX)
        return by_problem_say(problem, BY_EINVAL, "more than %u members of etcd: name some of them",
                              BY_ETCD_MEMBERS_MAX);
    if (!plain && etcd->keys == NULL)
        return by_problem_say(problem, BY_EINVAL,
                              "'%.100s' requires keys: name the folder of ca.pem, cert.pem and key.pem with "
                              "--store-keys",
                              url);
    if (host[length] != 0)
        snprintf(etcd->name, sizeof(etcd->name), "%s", host + length + 1);
    etcd->exposed |= plain && !is_loopback(&at);
    snprintf(etcd->members[etcd->count++], sizeof(etcd->members[0]), "%.*s", (int)(host - url + (long)length),
             url);
    return 0;
}

static int read_members(struct by_etcd *etcd, const char *text, struct by_problem *problem)
{
    char copy[BY_ETCD_TEXT_MAX], *rest = NULL, *url;
    int error = 0;

    if (strncmp(text, "etcd:", 5) != 0 || text[5] == 0)
        return by_problem_say(problem, BY_EINVAL, "'%.100s' is no store: " FORM, text);
    if ((size_t)snprintf(copy, sizeof(copy), "%s", text + 5) >= sizeof(copy))
        return by_problem_say(problem, BY_EINVAL, "the addresses have more than %zu bytes", sizeof(copy) - 1);
    url = strtok_r(copy, ",", &rest);
    while (url != NULL && error == 0) {
        char *next = strtok_r(NULL, ",", &rest);

        error = read_member(etcd, url, next == NULL, problem);
        url = next;
    }
    return error == 0 && etcd->count == 0 ? by_problem_say(problem, BY_EINVAL, "no address: " FORM) : error;
}

/* ---- requests ---- */

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct answer *answer = context;

    (void)size; /* 1 */
    if (answer->count + count > REPLY_BYTES_MAX)
        return 0;
    answer->bytes = by_realloc(answer->bytes, answer->count + count + 1, 1);
    memcpy(answer->bytes + answer->count, bytes, count);
    answer->count += count;
    answer->bytes[answer->count] = 0;
    return count;
}

static void set_keys(struct by_etcd *etcd)
{
    char path[600];

    if (etcd->keys == NULL)
        return;
    snprintf(path, sizeof(path), "%.500s/ca.pem", etcd->keys);
    curl_easy_setopt(etcd->curl, CURLOPT_CAINFO, path);
    snprintf(path, sizeof(path), "%.500s/cert.pem", etcd->keys);
    curl_easy_setopt(etcd->curl, CURLOPT_SSLCERT, path);
    snprintf(path, sizeof(path), "%.500s/key.pem", etcd->keys);
    curl_easy_setopt(etcd->curl, CURLOPT_SSLKEY, path);
}

int by_etcd_open(const char *text, const char *keys, struct by_etcd **result, struct by_problem *problem)
{
    struct by_etcd *etcd = by_alloc(1, sizeof(*etcd));
    int error;

    etcd->keys = keys;
    snprintf(etcd->name, sizeof(etcd->name), "default");
    error = read_members(etcd, text, problem);
    if (error == 0 &&
        (curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK || (etcd->curl = curl_easy_init()) == NULL))
        error = by_problem_say(problem, BY_EIO, "libcurl cannot start");
    if (error != 0) {
        by_etcd_close(etcd);
        return error;
    }
    etcd->headers = curl_slist_append(NULL, "Content-Type: application/json");
    etcd->headers = curl_slist_append(etcd->headers, "Expect:"); /* large bodies are sent at once */
    curl_easy_setopt(etcd->curl, CURLOPT_HTTPHEADER, etcd->headers);
    curl_easy_setopt(etcd->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(etcd->curl, CURLOPT_PROXY, "");
    curl_easy_setopt(etcd->curl, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(etcd->curl, CURLOPT_WRITEFUNCTION, take_answer);
    set_keys(etcd);
    *result = etcd;
    return 0;
}

void by_etcd_close(struct by_etcd *etcd)
{
    if (etcd == NULL)
        return;
    if (etcd->curl != NULL)
        curl_easy_cleanup(etcd->curl);
    curl_slist_free_all(etcd->headers);
    free(etcd);
}

bool by_etcd_is_exposed(const struct by_etcd *etcd)
{
    return etcd->exposed;
}

/* Members of different clusters would keep different states. */
static int check_cluster(struct by_etcd *etcd, const char *member, const json_t *reply,
                         struct by_problem *problem)
{
    const json_t *header = json_object_get(reply, "header"), *result = json_object_get(reply, "result");
    const char *id;

    if (header == NULL) /* of a stream */
        header = json_object_get(result, "header");
    id = json_string_value(json_object_get(header, "cluster_id"));
    if (id == NULL)
        return 0;
    if (etcd->cluster[0] == 0)
        snprintf(etcd->cluster, sizeof(etcd->cluster), "%s", id);
    if (strcmp(etcd->cluster, id) == 0)
        return 0;
    return by_problem_say(problem, BY_EMISMATCH,
                          "%s belongs to another cluster of etcd (%s) than the other members (%s): name "
                          "members of one cluster",
                          member, id, etcd->cluster);
}

/* Sends the body to one member. */
static int ask_member(struct by_etcd *etcd, const char *member, const char *path, const char *body,
                      uint32_t timeout_ms, json_t **reply, struct by_problem *problem)
{
    char url[400], reason[CURL_ERROR_SIZE] = "";
    struct answer answer = {0};
    const char *text;
    CURLcode code;
    int error = 0;

    snprintf(url, sizeof(url), "%s%s", member, path);
    curl_easy_setopt(etcd->curl, CURLOPT_URL, url);
    curl_easy_setopt(etcd->curl, CURLOPT_POSTFIELDS, body);
    curl_easy_setopt(etcd->curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    curl_easy_setopt(etcd->curl, CURLOPT_WRITEDATA, &answer);
    curl_easy_setopt(etcd->curl, CURLOPT_ERRORBUFFER, reason);
    code = curl_easy_perform(etcd->curl);
    curl_easy_setopt(etcd->curl, CURLOPT_ERRORBUFFER, NULL);
    *reply = code == CURLE_OK ? json_loadb(answer.bytes != NULL ? answer.bytes : "", answer.count,
                                           JSON_DISABLE_EOF_CHECK, NULL)
                              : NULL;
    text = json_string_value(json_object_get(*reply, "error"));
    if (code != CURLE_OK)
        error = by_problem_say(problem, BY_EIO, "%s: %.200s", member,
                               reason[0] != 0 ? reason : curl_easy_strerror(code));
    else if (*reply == NULL)
        error = by_problem_say(problem, BY_EIO, "%s does not answer as etcd 3.4 or later does", member);
    else if (json_object_get(*reply, "error") != NULL)
        error = by_problem_say(problem, BY_EIO, "%s: %.200s", member, text != NULL ? text : "an error");
    else
        error = check_cluster(etcd, member, *reply, problem);
    free(answer.bytes);
    if (error != 0) {
        json_decref(*reply);
        *reply = NULL;
    }
    return error;
}

/* Reports the error of the last member that was asked. */
static int complain(const struct by_etcd *etcd, int error, const struct by_problem *why,
                    struct by_problem *problem)
{
    if (error == BY_EIO)
        return by_problem_say(problem, BY_EIO,
                              "no member of etcd serves the request (%u asked; %.180s): check that most of "
                              "its members run, reach each other and have space",
                              etcd->count, why->text);
    if (error != 0)
        *problem = *why;
    return error;
}

int by_etcd_ask(struct by_etcd *etcd, const char *path, json_t *request, uint32_t timeout_ms, json_t **reply,
                struct by_problem *problem)
{
    int64_t end_ms = by_dial_now_ms() + timeout_ms;
    char *body = json_dumps(request, JSON_COMPACT);
    struct by_problem why = {0};
    int error = BY_EIO;

    json_decref(request);
    *reply = NULL;
    for (uint32_t i = 0; i < etcd->count && error == BY_EIO; i++) {
        uint32_t at = (etcd->last + i) % etcd->count;
        int64_t left_ms = end_ms - by_dial_now_ms();

        if (left_ms <= 0)
            break;
        error = ask_member(etcd, etcd->members[at], path, body, (uint32_t)left_ms / (etcd->count - i) + 1,
                           reply, &why);
        if (error == 0)
            etcd->last = at;
    }
    free(body);
    return complain(etcd, error, &why, problem);
}

int by_etcd_survey(struct by_etcd *etcd, struct by_problem *problem)
{
    json_t *request = json_pack("{s:o,s:b}", "key", by_etcd_key(etcd, "leader"), "serializable", 1);
    char *body = json_dumps(request, JSON_COMPACT);
    struct by_problem why = {0};
    int error = BY_EIO;

    json_decref(request);
    for (uint32_t i = 0; i < etcd->count; i++) {
        json_t *reply;
        int result = ask_member(etcd, etcd->members[i], "/v3/kv/range", body, BY_ETCD_ASK_MS / etcd->count,
                                &reply, &why);

        json_decref(reply);
        if (result == BY_EIO)
            continue;
        error = result;
        if (result != 0)
            break;
    }
    free(body);
    return complain(etcd, error, &why, problem);
}

/* ---- values ---- */

json_t *by_etcd_bytes(const void *bytes, size_t size)
{
    unsigned char *text = by_alloc(4 * ((size + 2) / 3) + 1, 1);
    json_t *value;

    EVP_EncodeBlock(text, bytes, (int)size);
    value = json_string((const char *)text);
    free(text);
    return value;
}

uint8_t *by_etcd_take_bytes(const json_t *value, size_t *size)
{
    const char *text = json_string_value(value);
    size_t length = text != NULL ? strlen(text) : 0;
    uint8_t *bytes;
    int count;

    if (length == 0)
        return NULL;
    bytes = by_alloc(length, 1);
    count = EVP_DecodeBlock(bytes, (const unsigned char *)text, (int)length);
    if (count < 0) {
        free(bytes);
        return NULL;
    }
    *size = (size_t)count - (text[length - 1] == '=') - (length > 1 && text[length - 2] == '=');
    return bytes;
}

json_t *by_etcd_key(const struct by_etcd *etcd, const char *name)
{
    char key[256];
    int length = snprintf(key, sizeof(key), "/banyan/%s/%.128s", etcd->name, name);

    return by_etcd_bytes(key, (size_t)length);
}

int64_t by_etcd_number(const json_t *object, const char *name)
{
    const char *text = json_string_value(json_object_get(object, name));

    return text != NULL ? strtoll(text, NULL, 10) : 0;
}

int by_etcd_get(struct by_etcd *etcd, const char *name, json_t **entry, struct by_problem *problem)
{
    json_t *reply;
    int error = by_etcd_ask(etcd, "/v3/kv/range", json_pack("{s:o}", "key", by_etcd_key(etcd, name)),
                            BY_ETCD_ASK_MS, &reply, problem);

    *entry = json_incref(json_array_get(json_object_get(reply, "kvs"), 0));
    json_decref(reply);
    return error;
}
