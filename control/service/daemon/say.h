/* Log lines of banyand, on stderr. Any thread. */
#ifndef BY_SERVICE_DAEMON_SAY_H
#define BY_SERVICE_DAEMON_SAY_H

/* Prints a line "banyand: TIME TEXT". */
void by_daemon_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
