/* Graphviz files of arbitrary bytes; see import.h. */
#include "tests/fuzz/import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    return fuzz_import("dot", data, size);
}
