/* Prints the library's capabilities and its settings. Needs no table and no network. */
#include <banyan/banyan.h>
#include <stdio.h>

int main(void)
{
    const char *name, *fallback, *help, *value, *origin;

    printf("version %d, built for %d\n", banyan_version(), BANYAN_VERSION);
    for (banyan_dtype_t dtype = BANYAN_I8; dtype <= BANYAN_F64; dtype++) {
        printf("%-4s %zu bytes:", banyan_dtype_name(dtype), banyan_dtype_size(dtype));
        for (banyan_op_t op = BANYAN_SUM; op <= BANYAN_BXOR; op++)
            if (banyan_supports(op, dtype))
                printf(" %s", banyan_op_name(op));
        printf("\n");
    }
    printf("%d is: %s\n", BANYAN_ETIMEDOUT, banyan_strerror(BANYAN_ETIMEDOUT));
    for (uint32_t i = 0; banyan_setting(i, &name, &fallback, &help, &value, &origin) == BANYAN_OK; i++)
        printf("%s=%s (%s; default '%s'): %s\n", name, value, origin, fallback, help);
    return banyan_version() == BANYAN_VERSION ? 0 : 1;
}
