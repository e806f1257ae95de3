/*
 * Options that commands share which compile plans into tables: windows, shares and keys.
 * Single-threaded.
 */
#ifndef BY_CLI_LOWERING_H
#define BY_CLI_LOWERING_H

#include "control/base/fraction.h"
#include "control/tables/lower.h"
#include "offload/linux/options.h"

/*
 * `--keyed`, `--keyed=COVER` and `--key-seed HEX`. If either option was given, by_cli_keyed()
 * applies them after all options are parsed. It returns 0, or an exit status after it printed an
 * error.
 */
struct by_cli_keys {
    bool keyed;
    const char *cover, *seed;
};
int by_cli_keyed(const struct by_cli_keys *keys, struct by_lower_options *options);

/* Parses a share of the links, above 0 and up to 1. Returns 0, or -1 with the reason. */
int by_cli_share(const char *text, struct by_fraction *share, struct by_option_why *why);

/* Rows of these options; AT is the table's BY_OPTION_AT. */
#define BY_CLI_KEYED_ROWS(keys)                                                                              \
    {BY_ROW_TEXT(0, "keyed", "COVER", AT(keys.cover),                                                        \
                 "let packets carry tags that only their job can make, of COVER: header (default) or "       \
                 "payload, which includes the header; tables then hold secrets, and only their owner can "   \
                 "read them (mode 0600)"),                                                                   \
     .value = AT(keys.keyed), .optional = true},                                                             \
    {                                                                                                        \
        BY_ROW_TEXT(0, "key-seed", "HEX", AT(keys.seed),                                                     \
                    "derive the keys from these 32 digits instead of random bytes, for tests")               \
    }
#define BY_CLI_SITE_ROW(member)                                                                              \
    {                                                                                                        \
        BY_ROW_TEXT(0, "site", "FILE", AT(member),                                                           \
                    "use the names and addresses of FILE, see banyan-site(5)")                               \
    }
#define BY_CLI_WINDOW_ROW(member, help)                                                                      \
    {                                                                                                        \
        BY_ROW_NUMBER(0, "window", "W", AT(member), 1, BY_WINDOW_MAX, help), .power = true                   \
    }

#endif
