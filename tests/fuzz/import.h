/*
 * Shared by the fuzz targets of the importers: the input as up to three files, and the guarantees
 * of an importer for any contents.
 */
#ifndef TESTS_FUZZ_IMPORT_H
#define TESTS_FUZZ_IMPORT_H

#include "tests/fuzz/input.h"

/* Imports the input, once with and once without a default rate for links. The import must be
 * refused with a text, or give a fabric that can be written and read back. Files end at zero bytes
 * and are named 100, 101 and 102. */
int fuzz_import(const char *format, const uint8_t *data, size_t size);

#endif
