/* Describes an error in an input and its position: readers of files and planners use it to report a
 * refusal. Any thread. */
#ifndef BY_BASE_PROBLEM_H
#define BY_BASE_PROBLEM_H

/* An error in a file, and its position. `text` names the object, the limit and the remedy. */
struct by_problem {
    int line; /* 1-based, 0 for the whole file */
    int column;
    char text[400];
};

/* A position in a file. Zero if there is none, as in a fabric made by a preset. */
struct by_place {
    int line;
    int column;
};

/* Fills `problem`; returns `error`. */
int by_problem_set(struct by_problem *problem, int error, struct by_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for an error without a position. */
int by_problem_say(struct by_problem *problem, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
