/*
 * Raises the generation of a folder of table images, so that a new run starts with new tables. Any
 * thread.
 */
#ifndef BY_TABLES_RENEW_H
#define BY_TABLES_RENEW_H

#include <stdint.h>

#include "control/fabric/topology.h"

/*
 * Raises the generation of every job in the images `folder`/`files[count]` (NAME.table, each
 * checked). Rewrites the images and, where it exists, NAME.txt. All images are read before the
 * first is written; each is replaced atomically.
 *
 * The new generation of a job is one more than its highest generation in any image, and 1 after
 * 65535. So images that disagree, for example after a failed write, agree again. A keyed job gets a
 * new key, which it has in no other generation.
 *
 * Returns 0; BY_EIO for a file error (images replaced so far stay replaced; calling it again
 * repairs the folder); or the error of by_image_check. `problem` names the file.
 */
int by_renew(const char *folder, const char *const *files, uint32_t count, struct by_problem *problem);

#endif
