/*
 * Reads the certificates of a folder of keys: whether they are usable, and until when. Uses OpenSSL
 * 3. Single-threaded.
 */
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "control/view/doctor/doctor.h"
#include "firmware/secure/tls.h"

static int64_t seconds_of(const ASN1_TIME *time)
{
    struct tm parts;

    return time != NULL && ASN1_TIME_to_tm(time, &parts) == 1 ? (int64_t)timegm(&parts) : 0;
}

/* Reads a certificate, and narrows the period in which all certificates are valid. */
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

/* Reads the certificate's role and name. */
static void read_role(X509 *certificate, struct by_key_facts *facts)
{
    static const struct {
        const char *use, *role;
    } roles[] = {
        {BY_TLS_USE_SWITCH, "switch"}, {BY_TLS_USE_CONTROLLER, "controller"}, {BY_TLS_USE_HOST, "host"}};
    EXTENDED_KEY_USAGE *uses = X509_get_ext_d2i(certificate, NID_ext_key_usage, NULL, NULL);
    char text[80];

    for (int i = 0; i < sk_ASN1_OBJECT_num(uses); i++) {
        OBJ_obj2txt(text, sizeof(text), sk_ASN1_OBJECT_value(uses, i), 1);
        for (size_t j = 0; j < sizeof(roles) / sizeof(roles[0]); j++)
            if (strcmp(text, roles[j].use) == 0)
                facts->role = roles[j].role;
    }
    EXTENDED_KEY_USAGE_free(uses);
    if (X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, facts->name,
                                  sizeof(facts->name)) < 0)
        facts->name[0] = 0;
}

void by_key_facts_read(const char *folder, struct by_key_facts *facts)
{
    struct by_tls_identity *identity = NULL;
    char text[BY_TLS_TEXT_MAX];
    X509 *authority, *own;

    *facts = (struct by_key_facts){.folder = folder, .role = ""};
    if (by_tls_identity_open(folder, BY_TLS_CONTROLLER, &identity, text) != 0) {
        snprintf(facts->fault, sizeof(facts->fault), "%s", text);
        return;
    }
    by_tls_identity_close(identity);
    authority = take(folder, "ca.pem", facts);
    own = take(folder, "cert.pem", facts);
    if (authority != NULL && own != NULL && X509_verify(own, X509_get0_pubkey(authority)) != 1)
        snprintf(facts->fault, sizeof(facts->fault), "cert.pem is not by the authority of ca.pem");
    if (own != NULL)
        read_role(own, facts);
    X509_free(authority);
    X509_free(own);
}
