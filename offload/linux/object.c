/* Loads embedded eBPF objects with libbpf. See object.h. */
#include "offload/linux/object.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

struct bpf_object *by_object_open(const uint8_t *begin, const uint8_t *end)
{
    libbpf_print_fn_t before = libbpf_set_print(by_object_be_silent);
    struct bpf_object *object = bpf_object__open_mem(begin, (uintptr_t)end - (uintptr_t)begin, NULL);

    libbpf_set_print(before);
    return object;
}

/* Finds the map in which libbpf keeps a program's constants or variables, by its section name. */
static struct bpf_map *find_map(struct bpf_object *object, const char *section)
{
    struct bpf_map *map;

    bpf_object__for_each_map(map, object)
    {
        if (strstr(bpf_map__name(map), section) != NULL)
            return map;
    }
    return NULL;
}

int by_object_constants(struct bpf_object *object, const void *constants, size_t bytes)
{
    struct bpf_map *map = find_map(object, ".rodata");

    return map != NULL ? bpf_map__set_initial_value(map, constants, bytes) : -ENOENT;
}

void *by_object_variables(struct bpf_object *object, size_t bytes)
{
    struct bpf_map *map = find_map(object, ".bss");
    void *memory = MAP_FAILED;

    if (map != NULL)
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, bpf_map__fd(map), 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int by_object_load_tcx(struct bpf_object *object, uint32_t place)
{
    struct bpf_program *program = bpf_object__next_program(object, NULL);
    libbpf_print_fn_t before = libbpf_set_print(by_object_be_silent);
    int error = program != NULL ? 0 : -ENOENT;

    if (error == 0)
        error = bpf_program__set_expected_attach_type(program, (enum bpf_attach_type)place);
    if (error == 0)
        error = bpf_object__load(object);
    libbpf_set_print(before);
    return error == 0 ? bpf_program__fd(program) : error;
}

int by_object_attach_tcx(int program_fd, unsigned interface_index, uint32_t place)
{
    return bpf_link_create(program_fd, (int)interface_index, (enum bpf_attach_type)place, NULL);
}
