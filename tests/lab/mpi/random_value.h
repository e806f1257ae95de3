/*
 * Types, operators and values of a random MPI program. A value is computed from the seed, the call,
 * the rank and the index, and is small enough that sums are exact in every type.
 */
#ifndef TESTS_LAB_MPI_RANDOM_VALUE_H
#define TESTS_LAB_MPI_RANDOM_VALUE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct draw {
    uint64_t state;
};

static uint64_t draw_mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

static uint64_t draw_next(struct draw *draw)
{
    return draw->state = draw_mix(draw->state);
}

/* Returns a number below `limit`, which is not 0. */
static uint64_t draw_below(struct draw *draw, uint64_t limit)
{
    return draw_next(draw) % limit;
}

struct value {
    int64_t a, b; /* b: the second part of pairs and of complex numbers */
};

enum value_class { INTEGER, FLOATING, COMPLEX, PAIR, GAPPED, AFFINE };

struct value_type {
    const char *name;
    enum value_class class;
    MPI_Datatype type;
    size_t extent, width, second; /* bytes; of the first part; where the second part is */
};

enum value_act {
    SUM,
    PROD,
    MAX,
    MIN,
    LAND,
    LOR,
    LXOR,
    BAND,
    BOR,
    BXOR,
    MAXLOC,
    MINLOC,
    MODULAR,
    COMPOSE,
    ACTS
};

struct value_op {
    const char *name;
    enum value_act act;
    MPI_Op op;
};

static struct value_type value_types[32];
static struct value_op value_ops[ACTS];
static int value_type_count;
static uint64_t value_seed;

static void value_add_type(const char *name, enum value_class class, MPI_Datatype type, size_t extent,
                           size_t width, size_t second)
{
    value_types[value_type_count++] = (struct value_type){name, class, type, extent, width, second};
}

static int64_t value_get_part(const uint8_t *at, size_t width, bool floating)
{
    int8_t i8;
    int16_t i16;
    int32_t i32;
    int64_t i64;
    float f32;
    double f64;
    long double f80;

    if (floating && width == sizeof(f32))
        return memcpy(&f32, at, width), (int64_t)f32;
    if (floating && width == sizeof(f64))
        return memcpy(&f64, at, width), (int64_t)f64;
    if (floating)
        return memcpy(&f80, at, width), (int64_t)f80;
    switch (width) {
    case 1:
        return memcpy(&i8, at, width), i8;
    case 2:
        return memcpy(&i16, at, width), i16;
    case 4:
        return memcpy(&i32, at, width), i32;
    default:
        return memcpy(&i64, at, width), i64;
    }
}

static void value_put_part(uint8_t *at, size_t width, bool floating, int64_t value)
{
    float f32 = (float)value;
    double f64 = (double)value;
    long double f80 = value;

    if (!floating)
        memcpy(at, &value, width); /* little-endian */
    else if (width == sizeof(f32))
        memcpy(at, &f32, width);
    else if (width == sizeof(f64))
        memcpy(at, &f64, width);
    else
        memcpy(at, &f80, 10); /* the rest is padding */
}

static bool value_is_floating(const struct value_type *type)
{
    return type->class == FLOATING || type->class == COMPLEX || (type->class == PAIR && type->name[0] == 'f');
}

static size_t value_second_width(const struct value_type *type)
{
    return type->class == COMPLEX ? type->width : 4;
}

static void value_put(const struct value_type *type, void *at, struct value value)
{
    value_put_part(at, type->width, value_is_floating(type), value.a);
    if (type->second > 0)
        value_put_part((uint8_t *)at + type->second, value_second_width(type), type->class == COMPLEX,
                       value.b);
}

static struct value value_get(const struct value_type *type, const void *at)
{
    struct value value = {.a = value_get_part(at, type->width, value_is_floating(type))};

    if (type->second > 0)
        value.b = value_get_part((const uint8_t *)at + type->second, value_second_width(type),
                                 type->class == COMPLEX);
    return value;
}

static bool value_same(const struct value_type *type, const void *x, const void *y)
{
    struct value a = value_get(type, x), b = value_get(type, y);

    return a.a == b.a && a.b == b.b;
}

/* Copies an element whose padding a call may have changed. Gaps of derived types stay. */
static void value_take_padding(const struct value_type *type, void *to, const void *from)
{
    if (type->class != GAPPED)
        memcpy(to, from, type->extent);
}

/* The values of type and operator that a rank contributes to a call. */
static struct value value_draw(const struct value_type *type, const struct value_op *op, uint64_t call,
                               uint64_t from, uint64_t index)
{
    uint64_t x = draw_mix(draw_mix(value_seed ^ call << 40 ^ from << 20) ^ index);
    struct value value = {.a = (int64_t)(x & 7), .b = (int64_t)(x >> 8 & 7)};

    switch (op != NULL ? op->act : ACTS) {
    case PROD:
        value.a = type->class == COMPLEX ? (int64_t)(x & 1) : 1 + (int64_t)(x & 1);
        value.b = (int64_t)(x >> 1 & 1);
        break;
    case MAX:
    case MIN:
        value.a = (int64_t)(x & 127);
        break;
    case BAND:
    case BOR:
    case BXOR:
        value.a = (int64_t)(op->act == BAND ? x | x << 13 | x << 29 : x);
        break;
    case LAND:
    case LOR:
    case LXOR:
        value.a = (int64_t)(x % 3);
        break;
    case MODULAR:
        value.a = (int64_t)(x & 0xffff);
        break;
    case COMPOSE:
        value.a = 1 + (int64_t)(x % 9000);
        value.b = (int64_t)(x >> 20) % 9001;
        break;
    default:
        break;
    }
    if (type->second == 0)
        value.b = 0;
    if (type->width < 8 && type->class == INTEGER) { /* as the type holds it */
        uint8_t bytes[8];

        value_put_part(bytes, type->width, false, value.a);
        value.a = value_get_part(bytes, type->width, false);
    }
    return value;
}

#define VALUE_PRIME 9001

static struct value value_reduce(const struct value_type *type, const struct value_op *op, struct value x,
                                 struct value y)
{
    struct value r = x;

    switch (op->act) {
    case SUM:
        r = (struct value){x.a + y.a, x.b + y.b};
        break;
    case PROD:
        r = type->class == COMPLEX ? (struct value){x.a * y.a - x.b * y.b, x.a * y.b + x.b * y.a}
                                   : (struct value){(int64_t)((uint64_t)x.a * (uint64_t)y.a), 0};
        break;
    case MAX:
        r.a = x.a > y.a ? x.a : y.a;
        break;
    case MIN:
        r.a = x.a < y.a ? x.a : y.a;
        break;
    case LAND:
        r.a = x.a != 0 && y.a != 0;
        break;
    case LOR:
        r.a = x.a != 0 || y.a != 0;
        break;
    case LXOR:
        r.a = (x.a != 0) != (y.a != 0);
        break;
    case BAND:
        r.a = x.a & y.a;
        break;
    case BOR:
        r.a = x.a | y.a;
        break;
    case BXOR:
        r.a = x.a ^ y.a;
        break;
    case MAXLOC:
        r = x.a > y.a || (x.a == y.a && x.b < y.b) ? x : y;
        break;
    case MINLOC:
        r = x.a < y.a || (x.a == y.a && x.b < y.b) ? x : y;
        break;
    case MODULAR:
        r.a = (x.a + y.a) & 0xffff;
        break;
    case COMPOSE: /* x -> a x + b, one after the other: does not commute */
        r = (struct value){x.a * y.a % VALUE_PRIME, (x.a * y.b + x.b) % VALUE_PRIME};
        break;
    case ACTS:
        break;
    }
    return r;
}

static void value_modular(void *in, void *inout, int *count, MPI_Datatype *type)
{
    (void)type;
    for (int i = 0; i < *count; i++)
        ((int *)inout)[i] = (((int *)in)[i] + ((int *)inout)[i]) & 0xffff;
}

static void value_compose(void *in, void *inout, int *count, MPI_Datatype *type)
{
    int32_t *x = in, *y = inout;

    (void)type;
    for (int i = 0; i < *count; i++, x += 2, y += 2) {
        int64_t a = (int64_t)x[0] * y[0] % VALUE_PRIME, b = ((int64_t)x[0] * y[1] + x[1]) % VALUE_PRIME;

        y[0] = (int32_t)a;
        y[1] = (int32_t)b;
    }
}

/* Draws a type, and for a reduction an operator that it supports. */
static void value_draw_type(struct draw *draw, bool reduces, const struct value_type **type,
                            const struct value_op **op)
{
    enum value_act act = ACTS;
    uint64_t x = draw_next(draw);

    *type = &value_types[draw_below(draw, (uint64_t)value_type_count)];
    *op = NULL;
    while (reduces && (*type)->class == GAPPED)
        *type = &value_types[draw_below(draw, (uint64_t)value_type_count)];
    if (!reduces)
        return;
    switch ((*type)->class) {
    case INTEGER:
        act = x % 3 == 0 ? SUM : (enum value_act)(x / 3 % (BXOR + 1));
        if (strcmp((*type)->name, "int") == 0 && x % 5 == 0)
            act = MODULAR;
        break;
    case FLOATING:
        act = (enum value_act)(x % (MIN + 1));
        break;
    case COMPLEX:
        act = (enum value_act)(x % (PROD + 1));
        break;
    case PAIR:
        act = x % 2 == 0 ? MAXLOC : MINLOC;
        break;
    default:
        act = COMPOSE;
        break;
    }
    *op = &value_ops[act];
}

static void value_open(uint64_t seed)
{
    static const struct value_op builtin[] = {{"sum", SUM, 0},          {"prod", PROD, 0},
                                              {"max", MAX, 0},          {"min", MIN, 0},
                                              {"land", LAND, 0},        {"lor", LOR, 0},
                                              {"lxor", LXOR, 0},        {"band", BAND, 0},
                                              {"bor", BOR, 0},          {"bxor", BXOR, 0},
                                              {"maxloc", MAXLOC, 0},    {"minloc", MINLOC, 0},
                                              {"user sum", MODULAR, 0}, {"user composition", COMPOSE, 0}};
    MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MAX, MPI_MIN,  MPI_LAND,   MPI_LOR,
                    MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_MAXLOC, MPI_MINLOC};
    MPI_Datatype gapped, vector, affine;

    value_seed = draw_mix(seed);
    memcpy(value_ops, builtin, sizeof(builtin));
    for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
        value_ops[i].op = ops[i];
    MPI_Op_create(value_modular, 1, &value_ops[MODULAR].op);
    MPI_Op_create(value_compose, 0, &value_ops[COMPOSE].op);
    value_add_type("int8_t", INTEGER, MPI_INT8_T, 1, 1, 0);
    value_add_type("uint8_t", INTEGER, MPI_UINT8_T, 1, 1, 0);
    value_add_type("short", INTEGER, MPI_SHORT, 2, 2, 0);
    value_add_type("uint16_t", INTEGER, MPI_UINT16_T, 2, 2, 0);
    value_add_type("int", INTEGER, MPI_INT, 4, 4, 0);
    value_add_type("unsigned", INTEGER, MPI_UNSIGNED, 4, 4, 0);
    value_add_type("long", INTEGER, MPI_LONG, 8, 8, 0);
    value_add_type("uint64_t", INTEGER, MPI_UINT64_T, 8, 8, 0);
    value_add_type("float", FLOATING, MPI_FLOAT, 4, 4, 0);
    value_add_type("double", FLOATING, MPI_DOUBLE, 8, 8, 0);
    value_add_type("long double", FLOATING, MPI_LONG_DOUBLE, 16, 16, 0);
    value_add_type("float complex", COMPLEX, MPI_C_FLOAT_COMPLEX, 8, 4, 4);
    value_add_type("double complex", COMPLEX, MPI_C_DOUBLE_COMPLEX, 16, 8, 8);
    value_add_type("two int", PAIR, MPI_2INT, 8, 4, 4);
    value_add_type("short and int", PAIR, MPI_SHORT_INT, 8, 2, 4);
    value_add_type("long and int", PAIR, MPI_LONG_INT, 16, 8, 8);
    value_add_type("float and int", PAIR, MPI_FLOAT_INT, 8, 4, 4);
    value_add_type("fdouble and int", PAIR, MPI_DOUBLE_INT, 16, 8, 8);
    MPI_Type_vector(2, 1, 2, MPI_INT, &vector);
    MPI_Type_create_resized(vector, 0, 16, &gapped);
    MPI_Type_commit(&gapped);
    MPI_Type_free(&vector);
    value_add_type("two int with a gap", GAPPED, gapped, 16, 4, 8);
    MPI_Type_contiguous(2, MPI_INT, &affine);
    MPI_Type_commit(&affine);
    value_add_type("contiguous int", AFFINE, affine, 8, 4, 4);
}

static void value_close(void)
{
    for (int i = 0; i < value_type_count; i++)
        if (value_types[i].class == GAPPED || value_types[i].class == AFFINE)
            MPI_Type_free(&value_types[i].type);
    MPI_Op_free(&value_ops[MODULAR].op);
    MPI_Op_free(&value_ops[COMPOSE].op);
}

#endif
