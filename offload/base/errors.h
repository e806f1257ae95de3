/*
 * The list of all errors that banyan's code can return: the code, the symbolic name for programs,
 * and a sentence for users. 0 is success; errors are negative. A message to a user adds the object,
 * the limit and the remedy to the sentence.
 */
#ifndef BY_BASE_ERRORS_H
#define BY_BASE_ERRORS_H

/* X(NAME, value, "sentence") */
#define BY_ERROR_LIST(X)                                                                                     \
    X(EINVAL, -1, "an argument is out of its range")                                                         \
    X(ENOMEM, -2, "the memory given is too small")                                                           \
    X(ELIMIT, -3, "a limit is exceeded")                                                                     \
    X(EFORMAT, -4, "the data do not have the expected format")                                               \
    X(ECHECKSUM, -5, "a checksum does not match")                                                            \
    X(EVERSION, -6, "the version is not supported")                                                          \
    X(ENOENT, -7, "the object does not exist")                                                               \
    X(EEXIST, -8, "the object exists already")                                                               \
    X(EBUSY, -9, "the object is in use")                                                                     \
    X(EAGAIN, -10, "the object is not ready; try again")                                                     \
    X(ETIMEDOUT, -11, "no progress within the time limit")                                                   \
    X(EMISMATCH, -12, "the ranks are in different calls")                                                    \
    X(EUNSUPPORTED, -13, "this combination is not supported")                                                \
    X(EPERM, -14, "the operation is not permitted")                                                          \
    X(EIO, -15, "input or output failed")                                                                    \
    X(ESTATE, -16, "the call is not valid in this state")                                                    \
    X(EABORTED, -17, "the operation was aborted")                                                            \
    X(ERANGE, -18, "a number cannot be represented")

enum by_error {
    BY_OK = 0,
#define X(name, value, text) BY_##name = (value),
    BY_ERROR_LIST(X)
#undef X
};

/* Returns the sentence for `error`; never NULL. Static memory; any thread. */
const char *by_error_text(int error);
/* Returns the symbolic name of `error` ("EINVAL"); never NULL. Static memory; any thread. */
const char *by_error_name(int error);

#endif
