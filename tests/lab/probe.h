/* The parts of switch-probe: control channel (probe_control.c) links (probe_link.c) and packets
 * (probe_packet.c). */
#ifndef BY_TESTS_LAB_PROBE_H
#define BY_TESTS_LAB_PROBE_H

#include "tests/unit/firmware/client.h"
#include "tests/unit/firmware/star.h"

/* Control channel: address is "unix:PATH" or "tcp:A.B.C.D:PORT". Each returns an exit status. */
int probe_push(const char *address, const char *path, size_t piece);
int probe_counters(const char *address);
/* All counters of a switch, or exit. */
void probe_read_counters(const char *address, by_Response *response);
/* The value of one, or exit. */
uint64_t probe_counter(const by_Response *response, const char *name);

/* A connection to the switch, and the next answer on it; or exit. */
int probe_dial(const char *address);
void probe_answer(int fd, by_Response *response);

/* What a switch must withstand (probe_burden.c). */
/* Opens so many connections and prints what the last one is told. */
int probe_crowd(const char *address, unsigned clients);
/* Sends requests without a pause until one is refused, and prints why. */
int probe_haste(const char *address);
/* Holds one thread of a process, and no other, for so many seconds or until the process has ended.
 */
int probe_hold(int thread, unsigned seconds);

/* Raw sockets, one for each host (probe_link.c). Frames that came as a train are handed out one by
 * one. */
#define PROBE_FRAME_MAX 10000u
int probe_socket(const char *interface);
void probe_links_open(int hosts, char **interfaces);
void probe_link_send(int host, const uint8_t *frame, size_t bytes);
/* The next frame that comes to `host` within `wait_ms`, at most PROBE_FRAME_MAX bytes; 0 when none
 * does. */
size_t probe_link_receive(int host, uint8_t *frame, int wait_ms);

/* Hosts of a star. */
/* `seq` is that of the next chunk. */
int probe_star(int hosts, uint32_t chunks, uint16_t count, uint32_t seq, char **interfaces);
int probe_malformed(const char *address, int hosts, uint32_t seq, char **interfaces);
/* Load for `seconds`, beginning with chunk `seq`. */
int probe_flood(int hosts, unsigned seconds, uint32_t window, uint16_t count, uint32_t seq,
                char **interfaces);
/* Load that makes the switch replicate one host's chunks to all; prints the results that it sent
 * each second.
 */
int probe_replicate(int hosts, unsigned seconds, uint32_t window, uint16_t count, char **interfaces);
/* Sends frames of `bytes` as fast as it can. */
int probe_blast(unsigned seconds, size_t bytes, const char *interface);

#endif
