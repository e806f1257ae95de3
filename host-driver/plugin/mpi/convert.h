/*
 * Elements of MPI that libbanyan has no type for, and the elements that travel in their place:
 * truth values as bytes, 16-bit integers as 32-bit ones, and pairs of a value and an index as
 * numbers in the order of MPI_MINLOC or MPI_MAXLOC. Independent of MPI. Pure; any thread.
 */
#ifndef BY_PLUGIN_MPI_CONVERT_H
#define BY_PLUGIN_MPI_CONVERT_H

#include <stdint.h>

enum by_mpi_form {
    BY_MPI_AS_IS, /* libbanyan has the type */
    BY_MPI_TRUTH, /* integers of `bytes` bytes: u8, 0 or 1 */
    BY_MPI_WIDE,  /* 16-bit integers: i32 or u32 */
    BY_MPI_PAIR   /* a value of `bytes` bytes, then an int at `index_at`: u64 */
};

struct by_mpi_shape {
    uint8_t form;        /* enum by_mpi_form */
    uint8_t bytes;       /* of an element, or of the value in a pair */
    uint8_t is_signed;   /* the element, or the value in a pair */
    uint8_t is_real;     /* the value in a pair is a float of 4 bytes */
    uint8_t is_greatest; /* pairs: the greatest value counts, not the least */
    uint8_t index_at;    /* pairs: bytes before the index */
    uint8_t stride;      /* bytes from element to element */
};

/* Bytes of one element as it travels. */
unsigned by_mpi_wire_bytes(const struct by_mpi_shape *shape);
/* Convert `count` elements; the buffers do not overlap. Bytes between the parts of a pair are not
 * written. */
void by_mpi_encode(const struct by_mpi_shape *shape, const void *from, uint64_t count, void *to);
void by_mpi_decode(const struct by_mpi_shape *shape, const void *from, uint64_t count, void *to);

#endif
