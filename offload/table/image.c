/*
 * Reading and writing of table images. One reader and one writer for each kind of record are
 * generated from the field lists of layout.h, so they cannot disagree. check.c decides which images
 * may be read. Pure; any thread.
 */
#include "offload/base/bytes.h"
#include "offload/base/crc32c.h"
#include "offload/base/siphash.h"
#include "offload/table/layout.h"

#define GET_U8(field, at)   (out->field = p[at])
#define GET_LOW(field, at)  (out->field = p[at])
#define GET_HIGH(field, at) (out->field = (uint16_t)(out->field | p[at] << 8))
#define GET_U16(field, at)  (out->field = by_get16(p + (at)))
#define GET_U32(field, at)  (out->field = by_get32(p + (at)))
#define GET_U64(field, at)  (out->field = by_get64(p + (at)))
#define GET_MAC(field, at)  by_copy(out->field, p + (at), 6)
#define GET_NAME(field, at) by_copy(out->field, p + (at), BY_IMAGE_NAME_BYTES)
#define GET_IPV6(field, at) by_copy(out->field, p + (at), 16)
#define GET_KEY(field, at)  by_copy(out->field, p + (at), 16)
#define PUT_U8(field, at)   (p[at] = in->field)
#define PUT_LOW(field, at)  (p[at] = (uint8_t)in->field)
#define PUT_HIGH(field, at) (p[at] = (uint8_t)(in->field >> 8))
#define PUT_U16(field, at)  by_put16(p + (at), in->field)
#define PUT_U32(field, at)  by_put32(p + (at), in->field)
#define PUT_U64(field, at)  by_put64(p + (at), in->field)
#define PUT_MAC(field, at)  by_copy(p + (at), in->field, 6)
#define PUT_NAME(field, at) put_name(p + (at), in->field)
#define PUT_IPV6(field, at) by_copy(p + (at), in->field, 16)
#define PUT_KEY(field, at)  by_copy(p + (at), in->field, 16)

#define GET(kind, field, at) GET_##kind(field, at);
#define PUT(kind, field, at) PUT_##kind(field, at);

#define X(name, value, bytes)                                                                                \
    BY_STATIC_ASSERT((bytes) <= UINT8_MAX && (bytes) % 4 == 0, "records are small and whole words");
BY_SECTION_LIST(X)
#undef X

#define X(name, value, bytes) [value] = (bytes),
static const uint8_t record_bytes[BY_SECTION_COUNT] = {BY_SECTION_LIST(X)};
#undef X

#define SIZE(kind, field, at) +BY_IMAGE_SIZE_##kind
#define X(NAME, noun)         [BY_SECTION_##NAME] = 0 BY_IMAGE_##NAME##_FIELDS(SIZE),
static const uint8_t record_used[BY_SECTION_COUNT] = {BY_IMAGE_RECORD_LIST(X)};
#undef X

uint32_t by_image_record_bytes(unsigned section)
{
    return record_bytes[section];
}

uint32_t by_image_record_used(unsigned section)
{
    return record_used[section];
}

size_t by_image_offset(const uint32_t count[BY_SECTION_COUNT], unsigned section, uint32_t index)
{
    size_t at = BY_IMAGE_HEADER_BYTES;

    for (unsigned s = 0; s < section; s++)
        at += (size_t)count[s] * record_bytes[s];
    return at + (size_t)index * record_bytes[section];
}

/* Writes the characters of `name` and fills up with zeros, so that equal names are equal bytes. */
static void put_name(uint8_t *p, const char *name)
{
    unsigned i = 0;

    for (; i < BY_NAME_MAX && name[i] != 0; i++)
        p[i] = (uint8_t)name[i];
    for (; i < BY_IMAGE_NAME_BYTES; i++)
        p[i] = 0;
}

static void read_counts(const uint8_t *image, uint32_t count[BY_SECTION_COUNT])
{
    for (unsigned s = 0; s < BY_SECTION_COUNT; s++)
        count[s] = by_get32(image + by_image_count_at(s));
}

static size_t locate(const uint8_t *image, unsigned section, uint32_t index)
{
    uint32_t count[BY_SECTION_COUNT];

    read_counts(image, count);
    BY_ASSERT(index < count[section]);
    return by_image_offset(count, section, index);
}

void by_image_header(const uint8_t *image, struct by_image_header *out)
{
    const uint8_t *p = image;

    BY_IMAGE_HEADER_FIELDS(GET)
    read_counts(image, out->count);
}

void by_image_put_header(uint8_t *image, const struct by_image_header *in)
{
    uint8_t *p = image;

    by_zero(image, BY_IMAGE_HEADER_BYTES);
    by_put32(p + BY_IMAGE_AT_MAGIC, BY_IMAGE_MAGIC);
    by_put16(p + BY_IMAGE_AT_VERSION, BY_IMAGE_VERSION);
    by_put16(p + BY_IMAGE_AT_HEADER_BYTES, BY_IMAGE_HEADER_BYTES);
    BY_IMAGE_HEADER_FIELDS(PUT)
    for (unsigned s = 0; s < BY_SECTION_COUNT; s++)
        by_put32(p + by_image_count_at(s), in->count[s]);
}

#define X(NAME, noun)                                                                                        \
    void by_image_##noun(const uint8_t *image, uint32_t index, struct by_image_##noun *out)                  \
    {                                                                                                        \
        const uint8_t *p = image + locate(image, BY_SECTION_##NAME, index);                                  \
                                                                                                             \
        BY_IMAGE_##NAME##_FIELDS(GET)                                                                        \
    }                                                                                                        \
    void by_image_put_##noun(uint8_t *image, uint32_t index, const struct by_image_##noun *in)               \
    {                                                                                                        \
        uint8_t *p = image + locate(image, BY_SECTION_##NAME, index);                                        \
                                                                                                             \
        by_zero(p, by_image_record_bytes(BY_SECTION_##NAME));                                                \
        BY_IMAGE_##NAME##_FIELDS(PUT)                                                                        \
    }
BY_IMAGE_RECORD_LIST(X)
#undef X

size_t by_image_bytes(const uint32_t count[BY_SECTION_COUNT])
{
    return by_image_offset(count, BY_SECTION_COUNT - 1, count[BY_SECTION_COUNT - 1]);
}

void by_image_seal(uint8_t *image)
{
    uint32_t count[BY_SECTION_COUNT];
    size_t bytes;
    uint32_t crc;

    read_counts(image, count);
    bytes = by_image_bytes(count);
    BY_ASSERT(bytes <= BY_IMAGE_BYTES_MAX);
    by_put16(image + BY_IMAGE_AT_VERSION,
             count[BY_SECTION_ADDRESS] > 0 ? BY_IMAGE_VERSION_IPV6 : BY_IMAGE_VERSION);
    by_put32(image + BY_IMAGE_AT_BYTES, (uint32_t)bytes);
    crc = by_crc32c(0, image, BY_IMAGE_AT_CRC);
    crc = by_crc32c(crc, image + BY_IMAGE_AT_CRC + 4, bytes - BY_IMAGE_AT_CRC - 4);
    by_put32(image + BY_IMAGE_AT_CRC, crc);
}

int by_image_job_is_standby(const uint8_t *image, uint32_t index)
{
    struct by_image_job job, before;

    if (index == 0)
        return 0;
    by_image_job(image, index - 1, &before);
    by_image_job(image, index, &job);
    return job.job == before.job;
}

int by_image_key_at(const uint8_t *image, uint16_t job, uint32_t place, struct by_image_key *out)
{
    struct by_image_header header;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_KEY]; i++) {
        by_image_key(image, i, out);
        if (out->job == job && out->place == place)
            return 1;
    }
    return 0;
}

int by_image_key_find(const uint8_t *image, uint16_t job, struct by_image_key *out)
{
    return by_image_key_at(image, job, 0, out);
}

static uint64_t id_of(const uint8_t bytes[BY_SIPHASH_KEY_BYTES])
{
    struct by_siphash_key key;

    by_siphash_key_read(&key, bytes);
    return by_siphash(&key, "banyan", 6);
}

uint64_t by_image_key_id(const struct by_image_key *key)
{
    return id_of(key->key);
}

/* Returns the size of the key section at the end of an image; 0 also for bytes that cannot be an
 * image. */
static size_t key_section_bytes(const uint8_t *image, size_t bytes)
{
    uint64_t keys;

    if (bytes < BY_IMAGE_HEADER_BYTES || by_get32(image + BY_IMAGE_AT_MAGIC) != BY_IMAGE_MAGIC)
        return 0;
    keys = (uint64_t)by_get32(image + by_image_count_at(BY_SECTION_KEY)) * record_bytes[BY_SECTION_KEY];
    return keys <= bytes - BY_IMAGE_HEADER_BYTES ? (size_t)keys : 0;
}

static __attribute__((noinline)) uint64_t stir(uint64_t hash, uint64_t word)
{
    hash = (hash ^ word) * 0xbf58476d1ce4e5b9u;
    return hash ^ hash >> 29;
}

BY_STATIC_ASSERT(BY_SECTION_KEY == BY_SECTION_COUNT - 1, "keys are an image's last bytes");
BY_STATIC_ASSERT(BY_IMAGE_AT_CRC == 12, "the low half of an image's second word");

uint64_t by_image_hash(const uint8_t *image, size_t bytes)
{
    uint64_t hash = bytes + 0x9e3779b97f4a7c15u;
    size_t end = bytes - key_section_bytes(image, bytes);

    for (size_t i = 0; i < end; i += 8) {
        uint64_t word = 0;

        if (end - i >= 8)
            word = by_get64(image + i);
        else
            for (size_t j = i; j < end; j++)
                word = word << 8 | image[j];
        if (i == 8 && end < bytes)
            word &= ~(uint64_t)UINT32_MAX; /* the CRC, which could reveal bits of keys */
        hash = stir(hash, word);
    }
    for (size_t i = end; i < bytes; i += record_bytes[BY_SECTION_KEY]) {
        hash = stir(hash, id_of(image + i));
        hash = stir(hash, by_get32(image + i + BY_SIPHASH_KEY_BYTES));
    }
    hash = (hash ^ (hash >> 32)) * 0x94d049bb133111ebu;
    return hash ^ (hash >> 31);
}
