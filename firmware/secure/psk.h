/*
 * The control channel under a pre-shared key, for lines that cannot have TLS. Both ends prove that
 * they have the key, and each message carries a tag and a number, so that forged and replayed
 * messages are refused. Nothing is encrypted. Without input or output: bodies of frames in, bodies
 * of frames out; the channel adds the length in front of them. docs/decisions/0221 explains why 64
 * bits of tag suffice. Neighbours: firmware/agent/guard.c is the switch's end,
 * control/service/controller/stream.c the controller's. Pure; a session belongs to one thread.
 *
 *   controller -> switch   open:    "BYK1", nonce of the controller (16)
 *   switch -> controller   welcome: "BYK2", nonce of the switch (16), tag (8)
 *   both ways              sealed:  "BYK3", number (8, from 0), message, tag (8)
 *
 * Each direction has a key of 128 bits, derived by SipHash-2-4 under the pre-shared key from the
 * direction and both nonces. A tag is the SipHash-2-4, under its direction's key, of all preceding
 * bytes of the body. Integers are big-endian. A message without "BYK" in front is plain: a switch
 * reports the reason of a refusal in a plain message.
 */
#ifndef BY_SECURE_PSK_H
#define BY_SECURE_PSK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "offload/base/siphash.h"

/* Digits of a key as text (count). */
#define BY_PSK_DIGITS      (2u * BY_SIPHASH_KEY_BYTES)
#define BY_PSK_NONCE_BYTES 16u
#define BY_PSK_TAG_BYTES   8u
/* Bytes in front of a sealed message, and all bytes around it. */
#define BY_PSK_HEAD_BYTES    12u
#define BY_PSK_BYTES         (BY_PSK_HEAD_BYTES + BY_PSK_TAG_BYTES)
#define BY_PSK_OPEN_BYTES    (4u + BY_PSK_NONCE_BYTES)
#define BY_PSK_WELCOME_BYTES (4u + BY_PSK_NONCE_BYTES + BY_PSK_TAG_BYTES)

/* The reason for refusing a body. */
enum by_psk_fault {
    BY_PSK_FINE,
    BY_PSK_PLAIN,  /* not a message of this mode */
    BY_PSK_CUT,    /* too short or too long for its type */
    BY_PSK_CLOSED, /* there is no session (yet) */
    BY_PSK_FORGED, /* its tag does not match the key of this session and direction */
    BY_PSK_STALE,  /* the tag is right, but the number is not the next one: replayed or reordered */
};

/* A session. All zero: no session. */
struct by_psk {
    struct by_siphash_key in, out;
    uint64_t in_next, out_next; /* numbers of the next messages */
    bool is_open;
};

/* Reads a key of BY_PSK_DIGITS hexadecimal digits; white space may follow. Returns 0 or
 * BY_EFORMAT. */
int by_psk_key_read(struct by_siphash_key *key, const char *text);

/* Returns whether a body requests a session. */
bool by_psk_is_open(const uint8_t *body, size_t bytes);
/* Writes the controller's first body, of BY_PSK_OPEN_BYTES bytes. The nonce must be random for each
 * session. */
void by_psk_open(uint8_t *body, const uint8_t nonce[BY_PSK_NONCE_BYTES]);
/* Begins a session at the switch: reads an open body and writes the welcome, of
 * BY_PSK_WELCOME_BYTES bytes. The nonce must be different in each session under this key, over all
 * restarts of the switch; it need not be secret. */
void by_psk_welcome(struct by_psk *psk, const struct by_siphash_key *key, const uint8_t *open,
                    const uint8_t nonce[BY_PSK_NONCE_BYTES], uint8_t *body);
/* Checks the welcome at the controller, in reply to the open body with `nonce`: shows that the
 * switch has the key. */
enum by_psk_fault by_psk_accept(struct by_psk *psk, const struct by_siphash_key *key,
                                const uint8_t nonce[BY_PSK_NONCE_BYTES], const uint8_t *body, size_t bytes);

/* Seals the message of `bytes` bytes at body + BY_PSK_HEAD_BYTES; there must be room for the tag
 * behind it. Returns the bytes of the body. */
size_t by_psk_seal(struct by_psk *psk, uint8_t *body, size_t bytes);
/* Checks a sealed body. On BY_PSK_FINE the message is the bytes - BY_PSK_BYTES at body +
 * BY_PSK_HEAD_BYTES; any other result ends the session. */
enum by_psk_fault by_psk_unseal(struct by_psk *psk, const uint8_t *body, size_t bytes);

#endif
