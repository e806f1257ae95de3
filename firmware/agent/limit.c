/*
 * Computes which job uses how much of a switch. Jobs, entries and relays of an image ascend by job,
 * so one pass with cursors counts each job without memory. Only runs for refusals. Pure; any
 * thread.
 */
#include "firmware/agent/limit.h"

#include <stddef.h>

#include "offload/base/errors.h"
#include "offload/table/image.h"

static const char *const words[] = {
#define X(NAME, word, remedy) word,
    BY_RESOURCE_LIST(X)
#undef X
};
static const char *const remedies[] = {
#define X(NAME, word, remedy) remedy,
    BY_RESOURCE_LIST(X)
#undef X
};

/* A pass over the jobs of an image, which may be NULL. */
struct limit_walk {
    const uint8_t *image;
    struct by_image_header header;
    uint32_t job, entry, relay; /* records already counted */
};

/* One job: its number, its use, and the bytes of its records. */
struct limit_share {
    uint32_t job;
    struct by_use use;
    uint32_t bytes;
};

static void walk_start(struct limit_walk *walk, const uint8_t *image)
{
    *walk = (struct limit_walk){.image = image};
    if (image)
        by_image_header(image, &walk->header);
}

/* Returns the bytes of `count` records of a section. */
static uint32_t record_bytes(unsigned section, uint32_t count)
{
    static const uint8_t bytes[] = {
#define X(NAME, value, size) size,
        BY_SECTION_LIST(X)
#undef X
    };

    return bytes[section] * count;
}

static void count_entry(const struct by_image_entry *entry, struct limit_share *share)
{
    share->use.amount[BY_RESOURCE_ENTRIES]++;
    share->use.amount[BY_RESOURCE_SLOTS] += by_image_entry_slots(entry);
    if (share->use.amount[BY_RESOURCE_PAYLOAD] < entry->payload_max)
        share->use.amount[BY_RESOURCE_PAYLOAD] = entry->payload_max;
    share->bytes += record_bytes(BY_SECTION_ENTRY, 1) + record_bytes(BY_SECTION_CHILD, entry->child_count);
}

/* Reads the next job of the image; 0 after the last one. */
static int walk_next(struct limit_walk *walk, struct limit_share *share)
{
    struct by_image_job job;
    struct by_image_entry entry;
    struct by_image_relay relay;

    if (!walk->image || walk->job == walk->header.count[BY_SECTION_JOB])
        return 0;
    by_image_job(walk->image, walk->job++, &job);
    *share = (struct limit_share){.job = job.job, .bytes = record_bytes(BY_SECTION_JOB, 1)};
    for (; walk->entry < walk->header.count[BY_SECTION_ENTRY]; walk->entry++) {
        by_image_entry(walk->image, walk->entry, &entry);
        if (entry.job != job.job)
            break;
        count_entry(&entry, share);
    }
    for (; walk->relay < walk->header.count[BY_SECTION_RELAY]; walk->relay++) {
        by_image_relay(walk->image, walk->relay, &relay);
        if (relay.job != job.job)
            break;
        share->use.amount[BY_RESOURCE_RELAYS]++;
        share->bytes += record_bytes(BY_SECTION_RELAY, 1);
    }
    return 1;
}

void by_use_of_image(const uint8_t *image, struct by_use *use)
{
    struct by_image_header header;

    by_image_header(image, &header);
    use->amount[BY_RESOURCE_PORTS] = header.count[BY_SECTION_PORT];
    use->amount[BY_RESOURCE_PAYLOAD] = header.payload_max;
    use->amount[BY_RESOURCE_SLOTS] = header.slot_count;
    use->amount[BY_RESOURCE_ENTRIES] = header.count[BY_SECTION_ENTRY];
    use->amount[BY_RESOURCE_RELAYS] = header.count[BY_SECTION_RELAY];
}

uint32_t by_use_slots(const uint8_t *image)
{
    struct by_image_header header;
    struct by_image_entry entry;
    uint32_t slots = 0;

    by_image_header(image, &header);
    for (uint32_t i = 0; i < header.count[BY_SECTION_ENTRY]; i++) {
        by_image_entry(image, i, &entry);
        slots += by_image_entry_slots(&entry);
    }
    return slots;
}

/* The parts of a sentence about one resource. */
struct quarrel {
    struct limit_share wants; /* the job with the largest increase, in the new image */
    struct limit_share holds; /* the largest user among the others */
    uint32_t growth, total;
    int is_new; /* the job with the increase does not run yet */
};

/* Finds the job that needs more of `resource` than before, and the job that holds most of it. */
static void find_parties(const uint8_t *image, const uint8_t *active, unsigned resource,
                         struct quarrel *quarrel)
{
    struct limit_walk staged, running;
    struct limit_share now, before = {0};
    int more;

    *quarrel = (struct quarrel){.wants.job = UINT32_MAX, .holds.job = UINT32_MAX, .is_new = 1};
    walk_start(&staged, image);
    walk_start(&running, active);
    more = walk_next(&running, &before);
    while (walk_next(&staged, &now)) {
        uint32_t amount = now.use.amount[resource], had;

        while (more && before.job < now.job)
            more = walk_next(&running, &before);
        had = more && before.job == now.job ? before.use.amount[resource] : 0;
        quarrel->total += amount;
        if (amount > had && amount - had > quarrel->growth) {
            quarrel->growth = amount - had;
            quarrel->wants = now;
            quarrel->is_new = had == 0;
        }
    }
    walk_start(&staged, image);
    while (walk_next(&staged, &now))
        if (now.job != quarrel->wants.job && (quarrel->holds.job == UINT32_MAX ||
                                              now.use.amount[resource] > quarrel->holds.use.amount[resource]))
            quarrel->holds = now;
}

static void add_count(struct by_text *text, const char *before, uint64_t number, const char *after)
{
    by_text_add(text, before);
    by_text_number(text, number);
    by_text_add(text, after);
}

static void add_board(struct by_text *text, const char *board)
{
    by_text_add(text, board ? "this switch (board " : "this switch");
    by_text_add(text, board ? board : "");
    by_text_add(text, board ? ")" : "");
}

/* "64 would fit beside job 41, which holds 192" */
static void add_fit(struct by_text *text, const struct quarrel *quarrel, unsigned resource, uint32_t limit)
{
    uint32_t others = quarrel->total - quarrel->wants.use.amount[resource];
    uint32_t held = quarrel->holds.job != UINT32_MAX ? quarrel->holds.use.amount[resource] : 0;

    if (resource == BY_RESOURCE_PAYLOAD)
        return; /* each job may have that many */
    add_count(text, ", ", limit > others ? limit - others : 0, " would fit");
    if (held == 0)
        return;
    add_count(text, " beside job ", quarrel->holds.job, ", which holds ");
    by_text_number(text, held);
    if (held < others)
        add_count(text, " of the others' ", others, "");
}

static void explain(struct by_text *text, const uint8_t *image, const uint8_t *active, unsigned resource,
                    uint32_t wanted, uint32_t limit, const char *board)
{
    struct quarrel quarrel;

    by_text_add(text, words[resource]);
    add_count(text, ": the table requires ", wanted, ", ");
    add_board(text, board);
    add_count(text, " has ", limit, "");
    find_parties(image, active, resource, &quarrel);
    if (quarrel.wants.job != UINT32_MAX) {
        add_count(text, "; job ", quarrel.wants.job,
                  quarrel.is_new ? " requires " : ", which runs, requires ");
        by_text_number(text, quarrel.wants.use.amount[resource]);
        add_fit(text, &quarrel, resource, limit);
    }
    by_text_add(text, ": ");
    by_text_add(text, remedies[resource]);
}

int by_limit_explain(struct by_text *text, const uint8_t *image, const uint8_t *active,
                     const struct by_use *limits, const char *board)
{
    struct by_use use;

    by_use_of_image(image, &use);
    for (unsigned i = 0; i < BY_RESOURCE_COUNT; i++) {
        if (limits->amount[i] == 0 || use.amount[i] <= limits->amount[i])
            continue;
        explain(text, image, active, i, use.amount[i], limits->amount[i], board);
        return 1;
    }
    return 0;
}

void by_limit_explain_bytes(struct by_text *text, uint32_t bytes, uint32_t most, const uint8_t *active,
                            const char *board)
{
    struct limit_share share, largest = {.job = UINT32_MAX};
    struct limit_walk walk;

    add_count(text, "memory: a table of ", bytes, " bytes; ");
    add_board(text, board);
    add_count(text, " accepts ", BY_IMAGE_HEADER_BYTES, " to ");
    by_text_number(text, most);
    walk_start(&walk, active);
    while (walk_next(&walk, &share))
        if (largest.job == UINT32_MAX || share.bytes > largest.bytes)
            largest = share;
    if (largest.job != UINT32_MAX) {
        add_count(text, "; job ", largest.job, " holds ");
        by_text_number(text, largest.bytes);
        by_text_add(text, " of the active one");
    }
    by_text_add(text, ": plan fewer trees, end a job, or use a larger board");
}
