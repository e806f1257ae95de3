/* Sessions under a pre-shared key; see psk.h. Pure; any thread. */
#include "firmware/secure/psk.h"

#include "offload/base/bytes.h"
#include "offload/base/errors.h"

/* The first bytes of bodies. */
#define KIND_OPEN    0x42594b31u /* "BYK1" */
#define KIND_WELCOME 0x42594b32u
#define KIND_SEALED  0x42594b33u
#define KIND_MASK    0xffffff00u

enum direction { TO_SWITCH = 1, TO_CONTROLLER = 2 };

static int digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

int by_psk_key_read(struct by_siphash_key *key, const char *text)
{
    uint8_t bytes[BY_SIPHASH_KEY_BYTES] = {0};
    unsigned i;

    for (i = 0; i < BY_PSK_DIGITS; i++) {
        int value = digit(text[i]);

        if (value < 0)
            return BY_EFORMAT;
        bytes[i / 2] = (uint8_t)(bytes[i / 2] << 4 | value);
    }
    for (; text[i]; i++)
        if (text[i] != '\n' && text[i] != '\r' && text[i] != ' ')
            return BY_EFORMAT;
    by_siphash_key_read(key, bytes);
    return 0;
}

/* Derives the key of one direction. */
static void derive(const struct by_siphash_key *from, enum direction direction, const uint8_t *controller,
                   const uint8_t *device, struct by_siphash_key *key)
{
    uint8_t what[8 + 2 * BY_PSK_NONCE_BYTES] = {(uint8_t)direction};

    by_copy(what + 8, controller, BY_PSK_NONCE_BYTES);
    by_copy(what + 8 + BY_PSK_NONCE_BYTES, device, BY_PSK_NONCE_BYTES);
    key->k0 = by_siphash(from, what, sizeof what);
    what[1] = 1;
    key->k1 = by_siphash(from, what, sizeof what);
}

/* Writes the tag behind `bytes` bytes of a body. */
static void put_tag(const struct by_siphash_key *key, uint8_t *body, size_t bytes)
{
    by_put64(body + bytes, by_siphash(key, body, bytes));
}

/* Returns whether the tag behind `bytes` bytes of a body is right. The difference passes through a
 * register that is opaque to the compiler, so the result is one comparison of a word, whose time
 * does not depend on where the tags differ. */
static bool has_tag(const struct by_siphash_key *key, const uint8_t *body, size_t bytes)
{
    uint64_t difference = by_get64(body + bytes) ^ by_siphash(key, body, bytes);

    __asm__("" : "+r"(difference));
    return difference == 0;
}

bool by_psk_is_open(const uint8_t *body, size_t bytes)
{
    return bytes == BY_PSK_OPEN_BYTES && by_get32(body) == KIND_OPEN;
}

void by_psk_open(uint8_t *body, const uint8_t nonce[BY_PSK_NONCE_BYTES])
{
    by_put32(body, KIND_OPEN);
    by_copy(body + 4, nonce, BY_PSK_NONCE_BYTES);
}

void by_psk_welcome(struct by_psk *psk, const struct by_siphash_key *key, const uint8_t *open,
                    const uint8_t nonce[BY_PSK_NONCE_BYTES], uint8_t *body)
{
    *psk = (struct by_psk){.is_open = true};
    derive(key, TO_SWITCH, open + 4, nonce, &psk->in);
    derive(key, TO_CONTROLLER, open + 4, nonce, &psk->out);
    by_put32(body, KIND_WELCOME);
    by_copy(body + 4, nonce, BY_PSK_NONCE_BYTES);
    put_tag(&psk->out, body, BY_PSK_WELCOME_BYTES - BY_PSK_TAG_BYTES);
}

enum by_psk_fault by_psk_accept(struct by_psk *psk, const struct by_siphash_key *key,
                                const uint8_t nonce[BY_PSK_NONCE_BYTES], const uint8_t *body, size_t bytes)
{
    struct by_psk made = {.is_open = true};

    *psk = (struct by_psk){0};
    if (bytes < 4 || (by_get32(body) & KIND_MASK) != (KIND_WELCOME & KIND_MASK))
        return BY_PSK_PLAIN;
    if (bytes != BY_PSK_WELCOME_BYTES || by_get32(body) != KIND_WELCOME)
        return BY_PSK_CUT;
    derive(key, TO_SWITCH, nonce, body + 4, &made.out);
    derive(key, TO_CONTROLLER, nonce, body + 4, &made.in);
    if (!has_tag(&made.in, body, BY_PSK_WELCOME_BYTES - BY_PSK_TAG_BYTES))
        return BY_PSK_FORGED;
    *psk = made;
    return BY_PSK_FINE;
}

size_t by_psk_seal(struct by_psk *psk, uint8_t *body, size_t bytes)
{
    by_put32(body, KIND_SEALED);
    by_put64(body + 4, psk->out_next++);
    put_tag(&psk->out, body, BY_PSK_HEAD_BYTES + bytes);
    return BY_PSK_BYTES + bytes;
}

static enum by_psk_fault check(const struct by_psk *psk, const uint8_t *body, size_t bytes)
{
    if (bytes < 4 || (by_get32(body) & KIND_MASK) != (KIND_SEALED & KIND_MASK))
        return BY_PSK_PLAIN;
    if (bytes < BY_PSK_BYTES || by_get32(body) != KIND_SEALED)
        return BY_PSK_CUT;
    if (!psk->is_open)
        return BY_PSK_CLOSED;
    if (!has_tag(&psk->in, body, bytes - BY_PSK_TAG_BYTES))
        return BY_PSK_FORGED;
    return by_get64(body + 4) == psk->in_next ? BY_PSK_FINE : BY_PSK_STALE;
}

enum by_psk_fault by_psk_unseal(struct by_psk *psk, const uint8_t *body, size_t bytes)
{
    enum by_psk_fault fault = check(psk, body, bytes);

    if (fault == BY_PSK_FINE)
        psk->in_next++;
    else
        *psk = (struct by_psk){0};
    return fault;
}
