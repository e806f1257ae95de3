/* The log: lines on the board's UART, written synchronously (a PL011, polled), so that the last
 * line before a fault is complete. */
#ifndef BY_BAREMETAL_LOG_H
#define BY_BAREMETAL_LOG_H

#include "firmware/agent/text.h"

/* Maximum length of a line (bytes). */
#define BY_LOG_BYTES 240u

struct by_log {
    struct by_text text;
    char line[BY_LOG_BYTES];
};

void by_log_open(void);
/* Sets the name in front of each line; it must outlive the log. */
void by_log_name(const char *name);
/* Begins a line in the caller's memory; add to &log->text (by_text_add, ...), then end it. */
struct by_text *by_log_start(struct by_log *log);
void by_log_end(struct by_log *log);
/* Logs a line of one or two pieces; `more` may be NULL. */
void by_log_say(const char *text, const char *more);
/* Writes a text unchanged; may be called in a fault. */
void by_log_raw(const char *text);

#endif
