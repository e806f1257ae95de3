/*
 * Settings: /etc/banyan.conf, then ~/.banyan.conf, then the environment; later sources override
 * earlier ones. Read once per context. No other thread may change the environment during loading;
 * loaded settings are constant.
 */
#ifndef BY_HOST_SETTINGS_H
#define BY_HOST_SETTINGS_H

#include <stdint.h>

#include "host-driver/settings.inc.h"

#define X(name, fallback, help) BY_SETTING_##name,
enum by_setting { BY_SETTING_LIST(X) BY_SETTING_COUNT };
#undef X

/* Upper limits, checked when settings are loaded. */
#define BY_SETTING_TIMEOUT_MAX 86400.0             /* seconds: a day */
#define BY_SETTING_WAIT_MAX    31536000.0          /* seconds: a year */
#define BY_SETTING_SPIN_MAX    1000000u            /* polls */
#define BY_SETTING_LINGER_MAX  60000u              /* milliseconds */
#define BY_SETTING_ARENA_MAX   ((uint64_t)1 << 20) /* MiB */

/* of a value with its terminating zero; longer values are refused */
#define BY_SETTING_BYTES_MAX 1024u

struct by_settings {
    char value[BY_SETTING_COUNT][BY_SETTING_BYTES_MAX];
    char origin[BY_SETTING_COUNT][64]; /* "default", "environment", or a file's path (truncated) */
};

/* Loads all settings and validates every number. Warns on stderr about each unknown BANYAN_* and
 * names the nearest match. 0 or an error with its text. */
int by_settings_load(struct by_settings *settings);

/* Returns a setting as an integer; error texts name the setting, its value and the range. */
int by_settings_number(const struct by_settings *settings, enum by_setting which, uint64_t max,
                       uint64_t *value);
/* Returns a setting as a decimal number (seconds or a probability), 0 <= value <= max. */
int by_settings_decimal(const struct by_settings *settings, enum by_setting which, double max, double *value);

#endif
