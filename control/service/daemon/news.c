/* The latest lines about the fabric. See news.h. */
#include "control/service/daemon/news.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "control/base/alloc.h"
#include "control/service/daemon/say.h"

struct by_news {
    uint64_t count;
    struct by_news_line lines[BY_NEWS_MAX]; /* line n at (n - 1) % BY_NEWS_MAX */
};

uint64_t by_news_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

struct by_news *by_news_open(void)
{
    return by_alloc(1, sizeof(struct by_news));
}

void by_news_close(struct by_news *news)
{
    free(news);
}

void by_news_keep(struct by_news *news, enum by_news_grade grade, const char *text)
{
    struct by_news_line *line;

    if (news == NULL)
        return;
    line = &news->lines[news->count++ % BY_NEWS_MAX];
    line->number = news->count;
    line->time_ms = by_news_clock_ms();
    line->grade = grade;
    snprintf(line->text, sizeof(line->text), "%s", text);
}

void by_news_tell(struct by_news *news, enum by_news_grade grade, const char *format, ...)
{
    char text[700];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    by_daemon_say("%s", text);
    by_news_keep(news, grade, text);
}

const struct by_news_line *by_news_at(const struct by_news *news, uint32_t age)
{
    if (news == NULL || age >= BY_NEWS_MAX || age >= news->count)
        return NULL;
    return &news->lines[(news->count - 1 - age) % BY_NEWS_MAX];
}

uint64_t by_news_count(const struct by_news *news)
{
    return news != NULL ? news->count : 0;
}
