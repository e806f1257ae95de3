/* Lines that replaced parts of the daemon record, for a test to compare. One at a time. */
#ifndef BY_TEST_SERVICE_DAEMON_RECORD_H
#define BY_TEST_SERVICE_DAEMON_RECORD_H

/* Since the last check, a line each. */
extern char recorded[16384];

void record(const char *format, ...) __attribute__((format(printf, 1, 2)));
void record_clear(void);
/* Fails the test unless exactly `lines` have been recorded, and clears them. */
void record_expect(const char *lines);

#endif
