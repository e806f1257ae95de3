/*
 * The control channel under a pre-shared key, for lines that cannot have TLS: both ends prove that
 * they know the key, and each message carries a tag and a number, so that nobody else's, and none a
 * second time, is taken. Nothing is encrypted. Sans-I/O: bodies of frames in, bodies of frames out;
 * the length in front of them is the channel's. Why 64 bits of tag are enough is said in
 * docs/decisions/0221. Neighbours: firmware/agent/guard.c is the switch's end,
 * control/service/controller/stream.c the controller's. Pure; a session belongs to one thread.
 *
 *   controller -> switch   open:    "BYK1", nonce of the controller (16)
 *   switch -> controller   welcome: "BYK2", nonce of the switch (16), tag (8)
 *   both ways              sealed:  "BYK3", number (8, from 0), message, tag (8)
 *
 * Each direction has a key of 128 bits, which SipHash-2-4 makes under the pre-shared one from the
 * direction and both nonces; a tag is SipHash-2-4, under its direction's key, of all bytes of the
 * body in front of it. Integers are big-endian. A message without "BYK" in front is plain: a switch
 * that refuses somebody says why in one.
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
/* In front of a sealed message (bytes), and in all around it. */
#define BY_PSK_HEAD_BYTES    12u
#define BY_PSK_BYTES         (BY_PSK_HEAD_BYTES + BY_PSK_TAG_BYTES)
#define BY_PSK_OPEN_BYTES    (4u + BY_PSK_NONCE_BYTES)
#define BY_PSK_WELCOME_BYTES (4u + BY_PSK_NONCE_BYTES + BY_PSK_TAG_BYTES)

/* Why a body is not taken. */
enum by_psk_fault {
    BY_PSK_FINE,
    BY_PSK_PLAIN,  /* it is not of this mode */
    BY_PSK_CUT,    /* it is too short or too long for what it says that it is */
    BY_PSK_CLOSED, /* there is no session, or not yet */
    BY_PSK_FORGED, /* its tag is not made with the key of this session and direction */
    BY_PSK_STALE,  /* rightly made, but not the next one: played again, or out of order */
};

/* A session. All zero: there is none. */
struct by_psk {
    struct by_siphash_key in, out;
    uint64_t in_next, out_next; /* numbers of the next messages */
    bool is_open;
};

/* Reads a key of BY_PSK_DIGITS hexadecimal digits; white space may follow. 0 or BY_EFORMAT. */
int by_psk_key_read(struct by_siphash_key *key, const char *text);

/* Whether a body asks for a session. */
bool by_psk_is_open(const uint8_t *body, size_t bytes);
/* The controller's first body, of BY_PSK_OPEN_BYTES. The nonce must be drawn at random for each
 * session. */
void by_psk_open(uint8_t *body, const uint8_t nonce[BY_PSK_NONCE_BYTES]);
/* The switch begins a session: takes an open body, writes the welcome, of BY_PSK_WELCOME_BYTES. The
 * nonce must be another one in each session under this key, over all lives of the switch; it need
 * not be secret. */
void by_psk_welcome(struct by_psk *psk, const struct by_siphash_key *key, const uint8_t *open,
                    const uint8_t nonce[BY_PSK_NONCE_BYTES], uint8_t *body);
/* The controller takes the welcome to the open body with `nonce`: the switch has the key. */
enum by_psk_fault by_psk_accept(struct by_psk *psk, const struct by_siphash_key *key,
                                const uint8_t nonce[BY_PSK_NONCE_BYTES], const uint8_t *body, size_t bytes);

/* Seals the message of `bytes` that lies at body + BY_PSK_HEAD_BYTES; there is room for the tag
 * behind it. Returns the bytes of the body. */
size_t by_psk_seal(struct by_psk *psk, uint8_t *body, size_t bytes);
/* Takes a sealed body. On BY_PSK_FINE the message is the bytes - BY_PSK_BYTES at body +
 * BY_PSK_HEAD_BYTES; after anything else the session is over. */
enum by_psk_fault by_psk_unseal(struct by_psk *psk, const uint8_t *body, size_t bytes);

#endif
