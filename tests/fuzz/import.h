/*
 * What the fuzz targets of the importers share: the input as up to three files, and what an
 * importer promises whatever they hold.
 */
#ifndef TESTS_FUZZ_IMPORT_H
#define TESTS_FUZZ_IMPORT_H

#include "tests/fuzz/input.h"

/* Imports the input, once with a rate for links that have none and once without: refused with a
 * text, or a fabric that can be written and read back. Files end at zero bytes and are called 100,
 * 101 and 102. */
int fuzz_import(const char *format, const uint8_t *data, size_t size);

#endif
