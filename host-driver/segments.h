/*
 * Code shared by the UDP sockets: large buffers, and batches of packets of equal size that cross
 * the kernel as one datagram, whose segments the link cuts (udp(7): UDP_SEGMENT, UDP_GRO). Linux
 * only; any thread.
 */
#ifndef BY_HOST_SEGMENTS_H
#define BY_HOST_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define BY_SEGMENTS_MAX           64u    /* kernel limit per datagram (UDP_MAX_SEGMENTS) */
#define BY_SEGMENTS_DATAGRAM_MAX  65507u /* bytes of payload of a UDP datagram over IPv4 */
#define BY_SEGMENTS_CONTROL_BYTES 64u    /* of a message's control data, in both directions */

/* Makes the kernel cut a message into segments of `stride` bytes when it is sent. `control` has
 * BY_SEGMENTS_CONTROL_BYTES, aligned to 8, and must stay valid with the message. */
void by_segments_mark(struct msghdr *message, uint8_t *control, uint32_t stride);
/* Returns the size of each segment but the last of a received message, as the kernel reports it;
 * the whole message if it reports none. */
uint32_t by_segments_stride(struct msghdr *message, uint32_t bytes);
/* Whether a batch failed to send because the path does not support such batches: the segments
 * exceed the MTU (EINVAL, EMSGSIZE), the link computes no checksums (EIO), or segmentation is not
 * supported (EOPNOTSUPP). Other errors are temporary or due to the receiver; single packets would
 * fail as well. */
bool by_segments_refused(int why);
/* Enlarges a socket's buffers as far as the kernel permits; returns the effective size of the
 * receive buffer in bytes. */
uint32_t by_segments_buffers(int fd);

#endif
