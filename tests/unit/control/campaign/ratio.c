/* Implements ratio.h: the distribution of achieved / bound. */
#include "tests/unit/control/campaign/ratio.h"

#include <stdio.h>

#include "control/base/fraction.h"

/* Lower limits of the classes, in hundredths; the first is exactly 1. */
static const int64_t least[RATIO_CLASSES] = {100, 99, 95, 90, 80, 70, 50, 0};
static const char *const names[RATIO_CLASSES] = {"1",    ">=.99", ">=.95", ">=.9",
                                                 ">=.8", ">=.7",  ">=.5",  "<.5"};
/* The classes that count as near the bound. */
#define NEAR_CLASSES 2u

static unsigned row_of(char capability)
{
    return capability == 'a' ? 0 : capability == 'm' ? 1 : 2;
}

void ratio_add(struct ratio_table *table, char capability, struct by_fraction achieved,
               struct by_fraction bound)
{
    unsigned row = row_of(capability), class = 0;
    __int128 left = (__int128)achieved.num * bound.den, right = (__int128)achieved.den * bound.num;

    /* Above 2^115 the factor 100 would overflow. Small random fabrics stay far below. */
    if (left >= (__int128)1 << 115 || right >= (__int128)1 << 115) {
        left >>= 20;
        right >>= 20;
    }
    while (class + 1 < RATIO_CLASSES && left * 100 < right * least[class])
        class ++;
    table->count[row][class]++;
    table->sum[row] += by_fraction_value(achieved) / by_fraction_value(bound);
}

void ratio_print(const struct ratio_table *table)
{
    static const char *const rows[] = {"every switch capable", "some capable", "none capable"};

    printf("allreduce, achieved over bound:");
    for (unsigned class = 0; class < RATIO_CLASSES; class ++)
        printf(" %6s", names[class]);
    printf("    mean\n");
    for (unsigned row = 0; row < 3; row++) {
        uint64_t all = 0;

        printf("  %-28s ", rows[row]);
        for (unsigned class = 0; class < RATIO_CLASSES; class ++) {
            printf(" %6llu", (unsigned long long)table->count[row][class]);
            all += table->count[row][class];
        }
        printf("  %.4f\n", all ? table->sum[row] / (double)all : 0);
    }
}

bool ratio_reaches(const struct ratio_table *table, uint64_t percent)
{
    uint64_t all = 0, near = 0;

    for (unsigned row = 0; row < 2; row++)
        for (unsigned class = 0; class < RATIO_CLASSES; class ++) {
            all += table->count[row][class];
            near += class < NEAR_CLASSES ? table->count[row][class] : 0;
        }
    return near * 100 >= all * percent;
}
