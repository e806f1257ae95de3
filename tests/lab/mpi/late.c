/* Loads a program that was linked as a library, and runs its main. The library brings its MPI with
 * it, in a scope of its own, as the modules of Python do: late LIBRARY [ARGUMENT...] */
#include <dlfcn.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    int (*program)(int, char **);

    if (library == NULL) {
        fprintf(stderr, "late: %s\n", argc > 1 ? dlerror() : "a library is missing");
        return 2;
    }
    *(void **)&program = dlsym(library, "main");
    return program != NULL ? program(argc - 1, argv + 1) : 2;
}
