/* Notifies systemd of the service's state (sd_notify(3)'s protocol: a datagram to $NOTIFY_SOCKET).
 * Has no effect without systemd. Any thread. */
#ifndef BY_LINUX_NOTIFY_H
#define BY_LINUX_NOTIFY_H

/* Sends a state such as "READY=1" or "STOPPING=1". */
void by_notify(const char *state);

#endif
