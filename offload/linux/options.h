/*
 * The reader of command lines that all programs share: a program declares its options in one table,
 * from which this unit parses the arguments, checks the values and prints --help. A fault is one
 * line on stderr that begins with the program's name. Start-up only; no global state.
 */
#ifndef BY_LINUX_OPTIONS_H
#define BY_LINUX_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit status of a program after a fault of its command line. */
#define BY_OPTIONS_USAGE 2
/* Most rows of a table (count). */
#define BY_OPTIONS_MAX 64u

enum by_option_kind {
    BY_OPTION_FLAG = 1, /* stores `least`, or 1 if that is 0 */
    BY_OPTION_TEXT,     /* any text */
    BY_OPTION_NUMBER,   /* a whole number */
    BY_OPTION_SIZE,     /* bytes; K, M and G are binary, and may be followed by B */
    BY_OPTION_DECIMAL,  /* a double above 0, at most `most` */
    BY_OPTION_CHANCE,   /* a probability: parts of 2^32, rounded down; 1 is UINT32_MAX */
    BY_OPTION_CHOICE,   /* a word; stores its number */
    BY_OPTION_LIST,     /* words with commas between, or all; sets elements of a bool array */
    BY_OPTION_HEADING,  /* no option: `help` is a line of --help above the rows that follow */
    BY_OPTION_NOTE      /* no option: `argument` and `help` are a line in the layout of a row */
};

/* A member of the caller's structure. Without bytes: none. */
struct by_option_field {
    size_t at, bytes;
};
#define BY_OPTION_AT(type, member)                                                                           \
    {                                                                                                        \
        offsetof(type, member), sizeof(((type *)0)->member)                                                  \
    }
#define BY_OPTION_NONE                                                                                       \
    {                                                                                                        \
        0, 0                                                                                                 \
    }

/* Why a value is refused: the text after "--option is 'value'; ". */
struct by_option_why {
    char text[400];
};

/*
 * Takes or checks a value; NULL if an optional one is missing. Returns 0; -1 with the reason
 * (by_option_refuse); or an exit status after it printed an error itself.
 */
typedef int by_option_fn(void *object, const char *value, struct by_option_why *why);

/* Sets the reason. Returns -1. */
int by_option_refuse(struct by_option_why *why, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Reads a probability in decimal notation, such as 0.01 or 1e-2, as parts of 2^32, rounded down; 1
 * is UINT32_MAX. Returns 0, or -1 with the reason. */
int by_option_chance(const char *text, uint64_t *parts, struct by_option_why *why);

struct by_option {
    const char *name; /* without dashes */
    char letter;      /* 0: none */
    enum by_option_kind kind;
    struct by_option_field value; /* a bool, an integer or a double; LIST: bool[most + 1] */
    struct by_option_field text;  /* const char *: the argument as it was given */
    struct by_option_field count; /* the option may be repeated: `text` is an array, this its length */
    bool optional;        /* the argument may be missing: --name[=ARGUMENT]; TEXT stores 1 as its value,
                             CHOICE its last word */
    bool once;            /* may be given once only */
    bool power;           /* NUMBER: a power of two */
    const char *zero;     /* NUMBER: the word for 0 */
    uint32_t scale;       /* NUMBER: multiplies what is stored; 0 is 1 */
    uint64_t least, most; /* limits of the value; of a word: the first and the last number */
    /* The word of a number, from a function or an array. */
    const char *(*word)(unsigned number);
    const char *const *words;
    by_option_fn *call;   /* takes the value after the checks of its kind, or NULL */
    const char *argument; /* its name in --help, such as FILE */
    const char *help;     /* %r stands for the limits, %l for the words */
};

/* What the braces of a row hold, to which further members may be added, such as `.once = true`.
 * `field` is BY_OPTION_AT, or BY_OPTION_NONE. */
#define BY_ROW_(row_letter, row_name, row_kind, row_argument, row_help)                                      \
    .name = (row_name), .letter = (row_letter), .kind = BY_OPTION_##row_kind, .argument = (row_argument),    \
    .help = (row_help)
#define BY_ROW_FLAG(letter, name, field, help) BY_ROW_(letter, name, FLAG, NULL, help), .value = field
#define BY_ROW_TEXT(letter, name, argument, field, help)                                                     \
    BY_ROW_(letter, name, TEXT, argument, help), .text = field
#define BY_ROW_CALL(letter, name, argument, function, help)                                                  \
    BY_ROW_(letter, name, TEXT, argument, help), .call = (function)
#define BY_ROW_NUMBER(letter, name, argument, field, low, high, help)                                        \
    BY_ROW_(letter, name, NUMBER, argument, help), .value = field, .least = (low), .most = (high)
#define BY_ROW_SIZE(letter, name, argument, field, low, high, help)                                          \
    BY_ROW_(letter, name, SIZE, argument, help), .value = field, .least = (low), .most = (high)
#define BY_ROW_DECIMAL(letter, name, argument, field, high, help)                                            \
    BY_ROW_(letter, name, DECIMAL, argument, help), .value = field, .most = (high)
#define BY_ROW_CHANCE(letter, name, argument, field, help)                                                   \
    BY_ROW_(letter, name, CHANCE, argument, help), .value = field
#define BY_ROW_CHOICE(letter, name, argument, field, low, high, help)                                        \
    BY_ROW_(letter, name, CHOICE, argument, help), .value = field, .least = (low), .most = (high)
#define BY_ROW_LIST(letter, name, argument, field, low, high, help)                                          \
    BY_ROW_(letter, name, LIST, argument, help), .value = field, .least = (low), .most = (high)
#define BY_ROW_HEADING(help)     BY_ROW_(0, NULL, HEADING, NULL, help)
#define BY_ROW_NOTE(label, help) BY_ROW_(0, NULL, NOTE, label, help)

struct by_options {
    const char *program;          /* begins each message; NULL: argv[0] without its folders */
    const char *usage;            /* lines without "usage: " */
    const char *about, *epilog;   /* paragraphs, or NULL */
    const char *version;          /* printed by --version, or NULL */
    const struct by_option *rows; /* the last is {0} */
    unsigned least, most;         /* operands (count) */
    const char *operands;         /* what to give if operands are missing, such as "a topology file" */
    by_option_fn *operand;        /* takes each operand where it stands among the options, or NULL */
    bool stops;                   /* the first operand ends the options */
    bool rest;                    /* what follows "--" is not counted as operands */
};

/*
 * Reads a command line into `object`. Options and operands may alternate; a long name may be
 * shortened while it is unique. Returns -1 to continue, with the operands in argv[1] to
 * argv[*argc - 1]; else the exit status: 0 after --help or --version, BY_OPTIONS_USAGE after it
 * printed a fault.
 */
int by_options_read(const struct by_options *options, void *object, int *argc, char **argv);

/*
 * Checks a value by the kind and the limits of a row, and stores it: of an operand, for example.
 * NULL: the option has no argument. Returns 0, or -1 with the reason.
 */
int by_option_value(const struct by_option *row, void *object, const char *value, struct by_option_why *why);

/* The word of a set that resembles a text most: "did you mean". `best` is NULL if none does. */
struct by_option_guess {
    const char *typed, *best;
    unsigned distance;
};
void by_option_guess_add(struct by_option_guess *guess, const char *word);

#endif
