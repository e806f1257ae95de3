/* A new generation for a folder of table images, so that a run can begin on fresh tables. Any
 * thread. */
#ifndef BY_TABLES_RENEW_H
#define BY_TABLES_RENEW_H

#include <stdint.h>

#include "control/fabric/topology.h"

/*
 * Raises the generation of every job in the images `folder`/`files[count]` (NAME.table, each
 * checked), and writes them and, where there is one, NAME.txt anew. All images are read before the
 * first is written; each is replaced whole. A job gets one more than the highest generation that
 * any image has of it, and 1 after 65535, and a keyed job a new key, which it has with no other
 * generation: images that disagreed, as after a write that failed, agree again. 0; BY_EIO (a file;
 * what was replaced stays replaced, and a repetition sets it right), or what by_image_check
 * returns, with `problem` naming the file.
 */
int by_renew(const char *folder, const char *const *files, uint32_t count, struct by_problem *problem);

#endif
