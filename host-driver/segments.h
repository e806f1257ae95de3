/*
 * What UDP sockets of ours share: large buffers, and packets of one size that cross the kernel as
 * one datagram, a train of segments, which the link cuts (udp(7): UDP_SEGMENT, UDP_GRO). Linux
 * alone; any thread.
 */
#ifndef BY_HOST_SEGMENTS_H
#define BY_HOST_SEGMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define BY_SEGMENTS_MAX           64u    /* that the kernel takes in one datagram (UDP_MAX_SEGMENTS) */
#define BY_SEGMENTS_DATAGRAM_MAX  65507u /* bytes of payload of a UDP datagram over IPv4 */
#define BY_SEGMENTS_CONTROL_BYTES 64u    /* of a message's control data, in both directions */

/* Tells the kernel to cut a message that is to be sent into segments of `stride` bytes; `control`
 * is BY_SEGMENTS_CONTROL_BYTES, aligned to 8, and stays with the message. */
void by_segments_mark(struct msghdr *message, uint8_t *control, uint32_t stride);
/* Bytes of each segment but the last of a message that was received: as the kernel says, or all of
 * it. */
uint32_t by_segments_stride(struct msghdr *message, uint32_t bytes);
/* Whether sending a train has failed because trains like it cannot go that way: the segments do not
 * fit the MTU (EINVAL, EMSGSIZE), or the link makes no checksums (EIO), or there are none
 * (EOPNOTSUPP). All else is of the moment, or of the receiver, and single packets would not fare
 * better. */
bool by_segments_refused(int why);
/* Makes a socket's buffers as large as the kernel gives them; returns the bytes that count for
 * receiving. */
uint32_t by_segments_buffers(int fd);

#endif
