/* The files of the live page. See page.h; the build makes the table itself. */
#include "control/service/daemon/page.h"

#include <string.h>

const struct by_page_file *by_page_find(const char *path)
{
    for (const struct by_page_file *file = by_page_files; file->path != NULL; file++)
        if (strcmp(file->path, strcmp(path, "/") == 0 ? "/index.html" : path) == 0)
            return file;
    return NULL;
}
