/* What is wrong with an input, and where: how readers of files and planners report a refusal. Any
 * thread. */
#ifndef BY_BASE_PROBLEM_H
#define BY_BASE_PROBLEM_H

/* What is wrong with a file, and where. `text` names the object, the limit and the remedy. */
struct by_problem {
    int line; /* 1-based, 0 when it concerns the whole file */
    int column;
    char text[400];
};

/* A place in a file. Zero: what is wrong has none, as in a fabric made by a preset. */
struct by_place {
    int line;
    int column;
};

/* Fills `problem`; returns `error`. */
int by_problem_set(struct by_problem *problem, int error, struct by_place place, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same for what has no place in a file. */
int by_problem_say(struct by_problem *problem, int error, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
