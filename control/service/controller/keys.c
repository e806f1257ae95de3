/* A certificate authority and its certificates. See keys.h; neighbour: control/cli/keys.c. */
#include "control/service/controller/keys.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/base/alloc.h"
#include "control/fabric/build.h"
#include "firmware/secure/tls.h"
#include "offload/base/errors.h"
#include "offload/base/limits.h"

#define PATH_BYTES     1200u
#define SECONDS_A_DAY  86400
#define SECONDS_BEFORE 300 /* tolerance for clocks: those of a lab differ by minutes */

struct by_authority {
    char folder[1000];
    X509 *certificate;
    EVP_PKEY *key;
};

/* Writes a certificate or a private key atomically. */
static int write_file(const char *path, X509 *certificate, EVP_PKEY *key, struct by_problem *problem)
{
    char made[PATH_BYTES + 8];
    FILE *file = NULL;
    int fd, done = 0;

    snprintf(made, sizeof(made), "%s.new", path);
    unlink(made);
    fd = open(made, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, key ? 0600 : 0644);
    if (fd >= 0)
        file = fdopen(fd, "w");
    if (file) {
        done = key ? PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL)
                   : PEM_write_X509(file, certificate);
        done = fflush(file) == 0 && fsync(fd) == 0 && done;
        done = fclose(file) == 0 && done;
    } else if (fd >= 0) {
        close(fd);
    }
    if (done && rename(made, path) == 0)
        return 0;
    by_problem_say(problem, BY_EIO, "%.300s: %s", path, strerror(errno));
    unlink(made);
    return BY_EIO;
}

static int add_extension(X509 *certificate, X509 *issuer, int id, const char *value)
{
    X509V3_CTX context;
    X509_EXTENSION *extension;
    int done;

    X509V3_set_ctx_nodb(&context);
    X509V3_set_ctx(&context, issuer, certificate, NULL, NULL, 0);
    extension = X509V3_EXT_conf_nid(NULL, &context, id, value);
    done = extension != NULL && X509_add_ext(certificate, extension, -1);
    X509_EXTENSION_free(extension);
    return done;
}

static int set_serial(X509 *certificate)
{
    unsigned char bytes[16];
    BIGNUM *number = NULL;
    int done = 0;

    if (RAND_bytes(bytes, sizeof(bytes)) == 1) {
        bytes[0] &= 0x7f; /* positive: RFC 5280, section 4.1.2.2 */
        number = BN_bin2bn(bytes, sizeof(bytes), NULL);
        done = number != NULL && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)) != NULL;
    }
    BN_free(number);
    return done;
}

/* Makes a certificate for `key`, self-signed where `issuer` is NULL. NULL without memory. */
static X509 *make_certificate(EVP_PKEY *key, const char *name, uint32_t days,
                              const struct by_authority *issuer, enum by_keys_role role)
{
    static const char *const uses[] = {[BY_KEYS_SWITCH] = BY_TLS_USE_SWITCH,
                                       [BY_KEYS_CONTROLLER] = BY_TLS_USE_CONTROLLER,
                                       [BY_KEYS_HOST] = BY_TLS_USE_HOST};
    X509 *certificate = X509_new();
    X509_NAME *subject = certificate ? X509_get_subject_name(certificate) : NULL;
    char alternative[BY_NAME_MAX + 8];
    int done =
        certificate != NULL && X509_set_version(certificate, X509_VERSION_3) && set_serial(certificate) &&
        X509_gmtime_adj(X509_getm_notBefore(certificate), -SECONDS_BEFORE) &&
        X509_gmtime_adj(X509_getm_notAfter(certificate), (long)days * SECONDS_A_DAY) &&
        X509_set_pubkey(certificate, key) &&
        X509_NAME_add_entry_by_txt(subject, "O", MBSTRING_UTF8, (const unsigned char *)"banyan", -1, -1, 0) &&
        X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0);

    snprintf(alternative, sizeof(alternative), "DNS:%s", name);
    if (done && issuer == NULL)
        done = X509_set_issuer_name(certificate, subject) &&
               add_extension(certificate, certificate, NID_basic_constraints, "critical,CA:TRUE,pathlen:0") &&
               add_extension(certificate, certificate, NID_key_usage, "critical,keyCertSign") &&
               add_extension(certificate, certificate, NID_subject_key_identifier, "hash");
    else if (done)
        done = X509_set_issuer_name(certificate, X509_get_subject_name(issuer->certificate)) &&
               add_extension(certificate, issuer->certificate, NID_basic_constraints, "critical,CA:FALSE") &&
               add_extension(certificate, issuer->certificate, NID_key_usage, "critical,digitalSignature") &&
               add_extension(certificate, issuer->certificate, NID_ext_key_usage, uses[role]) &&
               add_extension(certificate, issuer->certificate, NID_subject_alt_name, alternative);
    if (done && X509_sign(certificate, issuer ? issuer->key : key, EVP_sha256()) > 0)
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* Reads both files of an authority. Returns BY_ENOENT when neither exists. */
static int read_authority(struct by_authority *authority, const char *certificate, const char *key,
                          struct by_problem *problem)
{
    FILE *file = fopen(certificate, "re"), *secret = NULL;
    int number = errno, error = 0;

    if (file || number == ENOENT) {
        secret = fopen(key, "re");
        if (!secret)
            number = errno;
    }
    if (!file && !secret && number == ENOENT)
        return BY_ENOENT;
    if (!file || !secret)
        error = by_problem_say(problem, number == EACCES ? BY_EIO : BY_EFORMAT,
                               "%.300s: %s: an authority is two files, ca.pem and ca.key; use another folder",
                               file ? key : certificate, strerror(number));
    if (file)
        authority->certificate = PEM_read_X509(file, NULL, NULL, NULL);
    if (secret)
        authority->key = PEM_read_PrivateKey(secret, NULL, NULL, NULL);
    if (!error && (!authority->certificate || !authority->key ||
                   X509_check_private_key(authority->certificate, authority->key) != 1))
        error = by_problem_say(
            problem, BY_EFORMAT,
            "%.300s: the certificate does not belong to ca.key beside it: use another folder", certificate);
    if (file)
        fclose(file);
    if (secret)
        fclose(secret);
    return error;
}

static int make_authority(struct by_authority *authority, const char *certificate, const char *key,
                          uint32_t days, struct by_problem *problem)
{
    int error;

    if (mkdir(authority->folder, 0755) != 0 && errno != EEXIST)
        return by_problem_say(problem, BY_EIO, "%.300s: %s", authority->folder, strerror(errno));
    authority->key = EVP_EC_gen("P-256");
    if (authority->key)
        authority->certificate = make_certificate(authority->key, "banyan authority", days, NULL, 0);
    if (!authority->certificate)
        return by_problem_say(problem, BY_ENOMEM,
                              "cannot make an authority: OpenSSL has no memory or no randomness");
    error = write_file(key, NULL, authority->key, problem);
    if (!error)
        error = write_file(certificate, authority->certificate, NULL, problem);
    return error;
}

int by_authority_open(const char *folder, uint32_t days, struct by_authority **out, bool *made,
                      struct by_problem *problem)
{
    struct by_authority *authority = by_alloc(1, sizeof(*authority));
    char certificate[PATH_BYTES], key[PATH_BYTES];
    int error;

    *made = false;
    if (strlen(folder) >= sizeof(authority->folder)) {
        free(authority);
        return by_problem_say(problem, BY_EINVAL, "%.100s...: a folder's path has at most %zu characters",
                              folder, sizeof(authority->folder) - 1);
    }
    snprintf(authority->folder, sizeof(authority->folder), "%s", folder);
    snprintf(certificate, sizeof(certificate), "%s/ca.pem", folder);
    snprintf(key, sizeof(key), "%s/ca.key", folder);
    error = read_authority(authority, certificate, key, problem);
    if (error == BY_ENOENT) {
        error = make_authority(authority, certificate, key, days, problem);
        *made = !error;
    }
    if (error) {
        ERR_clear_error();
        by_authority_close(authority);
        return error;
    }
    *out = authority;
    return 0;
}

void by_authority_close(struct by_authority *authority)
{
    if (!authority)
        return;
    X509_free(authority->certificate);
    EVP_PKEY_free(authority->key);
    free(authority);
}

static bool is_name(const char *name)
{
    size_t length = strlen(name);

    if (length == 0 || length > BY_NAME_MAX || name[0] == '.')
        return false;
    for (size_t i = 0; i < length; i++)
        if (!isalnum((unsigned char)name[i]) && strchr(".-_", name[i]) == NULL)
            return false;
    return true;
}

int by_authority_issue(struct by_authority *authority, const char *name, enum by_keys_role role,
                       uint32_t days, bool renew, struct by_problem *problem)
{
    char folder[PATH_BYTES - 20], path[PATH_BYTES];
    EVP_PKEY *key;
    X509 *certificate;
    int error;

    if (!is_name(name))
        return by_problem_say(
            problem, BY_EINVAL,
            "'%.60s' is not a valid name for keys: use 1 to %u letters, digits, '.', '-' and '_', not "
            "beginning with '.'",
            name, BY_NAME_MAX);
    snprintf(folder, sizeof(folder), "%s/%s", authority->folder, name);
    snprintf(path, sizeof(path), "%s/key.pem", folder);
    if (!renew && access(path, F_OK) == 0)
        return by_problem_say(problem, BY_EEXIST, "%.300s: it exists already: --renew replaces it", path);
    if (mkdir(folder, 0755) != 0 && errno != EEXIST)
        return by_problem_say(problem, BY_EIO, "%.300s: %s", folder, strerror(errno));
    key = EVP_EC_gen("P-256");
    certificate = key ? make_certificate(key, name, days, authority, role) : NULL;
    error = certificate ? write_file(path, NULL, key, problem)
                        : by_problem_say(problem, BY_ENOMEM,
                                         "cannot make a certificate: OpenSSL has no memory or no randomness");
    snprintf(path, sizeof(path), "%s/cert.pem", folder);
    if (!error)
        error = write_file(path, certificate, NULL, problem);
    snprintf(path, sizeof(path), "%s/ca.pem", folder);
    if (!error)
        error = write_file(path, authority->certificate, NULL, problem);
    if (error)
        ERR_clear_error();
    X509_free(certificate);
    EVP_PKEY_free(key);
    return error;
}
