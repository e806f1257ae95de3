/* Implements input.h. */
#include "tests/fuzz/input.h"

#include "offload/wire/seal.h"

void fuzz_fabric(struct fabric *fabric)
{
    memset(fabric, 0, sizeof(*fabric));
    fabric_leafspine(fabric, 1, 2, 2, 1000, 1000, 0);
    fabric->cover = fuzz_cover();
    for (uint16_t job = 1; job <= 2; job++) {
        int index = fabric_job_add(fabric, job, (uint16_t)(job + 6));

        for (int root = 0; root < 2; root++) {
            struct fabric_tree *tree = fabric_tree_add(fabric, index, root, 0, NULL);

            FUZZ_CHECK(tree != NULL);
            tree->window = FUZZ_WINDOW;
            tree->payload_max = FUZZ_PAYLOAD;
        }
    }
}

uint8_t fuzz_cover(void)
{
    const char *text = getenv("FUZZ_COVER");

    return text ? (uint8_t)(text[0] - '0') : BY_COVER_NONE;
}

void fuzz_encode(const uint8_t *image, struct by_header *header, uint8_t *packet, uint32_t bytes,
                 uint16_t from, int is_parent)
{
    struct by_siphash_key job, payload;
    struct by_image_header node;
    struct by_image_key record;
    struct by_hop_keys keys;

    if (!by_image_key_find(image, header->job, &record)) {
        by_header_encode(header, packet);
        return;
    }
    by_image_header(image, &node);
    by_siphash_key_read(&job, record.key);
    by_payload_key_make(&job, &payload);
    by_hop_keys_make(&job, from, node.node, !is_parent, &keys);
    header->flags |= BY_FLAG_KEYED;
    by_header_encode(header, packet);
    by_header_seal(
        packet, &keys.out,
        by_payload_digest(&payload, record.cover, header->type, packet + BY_WIRE_HEADER_BYTES, bytes));
}

void fuzz_header(struct input *input, struct by_header *header, uint32_t base_seq)
{
    static const uint8_t types[] = {BY_TYPE_CONTRIB, BY_TYPE_CONTRIB, BY_TYPE_GAP, BY_TYPE_RESULT,
                                    BY_TYPE_RESULT,  BY_TYPE_WAIT,    BY_TYPE_ERR, BY_TYPE_PROBE};
    uint32_t a = input_bytes(input, 4), b = input_bytes(input, 2);

    memset(header, 0, sizeof(*header));
    header->type = types[a & 7];
    header->flags = (uint8_t)(a >> 24);
    header->child = (a >> 3 & 7) == 7 ? BY_WIRE_CHILD_ALL : (uint8_t)(a >> 3 & 3);
    header->tree = (uint16_t)(a >> 6 & 3);
    header->job = (uint16_t)(1 + (a >> 8 & 1));
    header->gen = (uint16_t)(header->job + 6 + ((a >> 9 & 15) == 15));
    header->op = (uint8_t)(1 + (a >> 13 & 7));
    header->dtype = (uint8_t)(1 + (a >> 16 & 7));
    header->mode = (a >> 19 & 7) == 7 ? BY_MODE_DET : (a >> 19 & 7) == 6 ? BY_MODE_EXACT : BY_MODE_FAST;
    header->count = (uint16_t)(b & 31);
    header->nleaf = (uint16_t)(1 + (b >> 5 & 3));
    header->optag = b >> 7 & 1;
    header->witness = by_leaf_tag(header->job, header->child);
    header->seq = base_seq + (b >> 8 & 15);
    if ((b >> 12) == 15)
        header->seq = input_bytes(input, 4);
}
