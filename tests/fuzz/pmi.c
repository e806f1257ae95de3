/* Lines of PMI-1 and texts of places, of arbitrary bytes: parsing stays inside them, and accepts
 * only strictly valid ones. */
#include <string.h>

#include "host-driver/bootstrap/bootstrap.h"
#include "tests/fuzz/input.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char line[BY_PMI_LINE_MAX + 1], text[BY_PLACE_TEXT] = "", again[BY_PLACE_TEXT];
    struct by_pmi_line fields;
    struct by_bootstrap_place place;

    if (size > BY_PMI_LINE_MAX)
        return 0;
    memcpy(line, data, size);
    if (by_pmi_parse(line, size, &fields) == 0) {
        FUZZ_CHECK(fields.count > 0 && fields.count <= BY_PMI_FIELDS && strcmp(fields.key[0], "cmd") == 0);
        for (uint32_t i = 0; i < fields.count; i++) {
            FUZZ_CHECK(fields.value[i] > line && fields.value[i] <= line + size);
            for (const char *c = fields.value[i]; *c != 0; c++)
                FUZZ_CHECK(*c > ' ' && *c <= '~');
        }
    }
    memcpy(text, data, size < sizeof(text) ? size : sizeof(text) - 1);
    if (by_place_read(text, &place) == 0) {
        uint32_t ip[BY_PLACE_MAX + 1];

        by_place_write(&place, again);
        FUZZ_CHECK(strcmp(text, again) == 0);
        FUZZ_CHECK(by_place_order(&place, &place, ip) <= BY_PLACE_MAX + 1);
    }
    return 0;
}
