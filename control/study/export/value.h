/*
 * Symbolic values: which chunk of the data a place holds, and which ranks have contributed to it.
 * Equal values have equal numbers. Private to export/. One thread for each table.
 */
#ifndef BY_STUDY_EXPORT_VALUE_H
#define BY_STUDY_EXPORT_VALUE_H

#include <stdbool.h>
#include <stdint.h>

/* The place was never written. */
#define BY_VALUE_NONE 0u
/* The table is full; see by_values_new. */
#define BY_VALUE_FULL UINT32_MAX

struct by_values;

/*
 * Makes a table for values with contributions of `rank_count` ranks, of at most `bytes_max` bytes.
 */
struct by_values *by_values_new(uint32_t rank_count, uint64_t bytes_max);
void by_values_free(struct by_values *values);
/* Returns the value of one rank's own contribution to a chunk. */
uint32_t by_value_own(struct by_values *values, uint32_t chunk, uint32_t rank);
/* Returns the value with all ranks' contributions. */
uint32_t by_value_all(struct by_values *values, uint32_t chunk);
/*
 * Returns the sum of two values of one chunk without a common contribution. Returns BY_VALUE_NONE
 * if there is no such sum: `*twice` is the rank that contributes to both, or -1 if the chunks
 * differ.
 */
uint32_t by_value_sum(struct by_values *values, uint32_t a, uint32_t b, int64_t *twice);
uint32_t by_value_chunk(const struct by_values *values, uint32_t value);
uint32_t by_value_count(const struct by_values *values,
                        uint32_t value); /* Returns the number of contributions. */
bool by_value_has(const struct by_values *values, uint32_t value, uint32_t rank);

#endif
