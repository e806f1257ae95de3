/* The ring of events; see journal.h. Pure; agent's thread. */
#include "firmware/agent/journal.h"

#include <stddef.h>

#include "firmware/agent/text.h"
#include "offload/base/assert.h"

BY_STATIC_ASSERT((BY_JOURNAL_EVENTS & (BY_JOURNAL_EVENTS - 1)) == 0, "a number's place is its low bits");

/* Returns whether `kept` is `text`, as far as that fits. */
static int is_same(const char *kept, const char *text)
{
    size_t i = 0;

    while (i + 1 < BY_JOURNAL_TEXT_BYTES && kept[i] && kept[i] == text[i])
        i++;
    return kept[i] == 0 && (text[i] == 0 || i + 1 == BY_JOURNAL_TEXT_BYTES);
}

void by_journal_add(struct by_journal *journal, uint64_t time_ns, const char *text)
{
    struct by_journal_event *last = &journal->event[(journal->next - 1) & (BY_JOURNAL_EVENTS - 1)];
    struct by_journal_event *event = &journal->event[journal->next & (BY_JOURNAL_EVENTS - 1)];
    struct by_text out;

    if (journal->next > 0 && is_same(last->text, text)) {
        last->time_ns = time_ns;
        last->times += last->times < UINT32_MAX;
        return;
    }
    event->time_ns = time_ns;
    event->times = 1;
    by_text_start(&out, event->text, sizeof event->text);
    by_text_add(&out, text);
    journal->next++;
}

uint64_t by_journal_first(const struct by_journal *journal)
{
    return journal->next > BY_JOURNAL_EVENTS ? journal->next - BY_JOURNAL_EVENTS : 0;
}

const struct by_journal_event *by_journal_at(const struct by_journal *journal, uint64_t number)
{
    if (number < by_journal_first(journal) || number >= journal->next)
        return NULL;
    return &journal->event[number & (BY_JOURNAL_EVENTS - 1)];
}
