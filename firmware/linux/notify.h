/* Tells systemd how the service is (sd_notify(3)'s protocol: a datagram to $NOTIFY_SOCKET). Nothing
 * happens elsewhere. Any thread. */
#ifndef BY_FIRMWARE_LINUX_NOTIFY_H
#define BY_FIRMWARE_LINUX_NOTIFY_H

/* "READY=1", "STOPPING=1". */
void by_notify(const char *state);

#endif
