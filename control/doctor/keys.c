/* The certificates of a folder of keys: whether they can be used at all, and for how long. By OpenSSL 3.
 * Single-threaded. */
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <time.h>

#include "control/doctor/doctor.h"
#include "secure/tls.h"

static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm parts;

    return time != NULL && ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

/* Narrows the time in which all certificates are valid. */
static X509 *take(const char *folder, const char *name, struct by_key_facts *facts)
{
    char path[1200];
    X509 *certificate = NULL;
    FILE *file;

    snprintf(path, sizeof(path), "%.1000s/%s", folder, name);
    file = fopen(path, "re");
    if (file != NULL) {
        certificate = PEM_read_X509(file, NULL, NULL, NULL);
        fclose(file);
    }
    if (certificate != NULL) {
        int64_t from = seconds_of(X509_get0_notBefore(certificate)),
                until = seconds_of(X509_get0_notAfter(certificate));

        if (from > facts->from_s)
            facts->from_s = from;
        if (facts->until_s == 0 || until < facts->until_s)
            facts->until_s = until;
    }
    return certificate;
}

void by_key_facts_read(const char *folder, struct by_key_facts *facts)
{
    struct by_tls_identity *identity = NULL;
    char text[BY_TLS_TEXT_MAX];
    X509 *authority, *own;

    *facts = (struct by_key_facts){.folder = folder};
    if (by_tls_identity_open(folder, BY_TLS_CONTROLLER, &identity, text) != 0) {
        snprintf(facts->fault, sizeof(facts->fault), "%s", text);
        return;
    }
    by_tls_identity_close(identity);
    authority = take(folder, "ca.pem", facts);
    own = take(folder, "cert.pem", facts);
    if (authority != NULL && own != NULL && X509_verify(own, X509_get0_pubkey(authority)) != 1)
        snprintf(facts->fault, sizeof(facts->fault), "cert.pem is not by the authority of ca.pem");
    X509_free(authority);
    X509_free(own);
}
