/* Determines a program's MPI; see find.h. */
#include "host-driver/tools/run/find.h"

#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *by_run_locate(const char *program)
{
    const char *path = getenv("PATH");
    char *found = NULL;

    if (strchr(program, '/') != NULL || path == NULL)
        return access(program, X_OK) == 0 ? realpath(program, NULL) : NULL;
    while (found == NULL && *path != 0) {
        size_t length = strcspn(path, ":");
        char *candidate;

        if (asprintf(&candidate, "%.*s/%s", (int)length, path, program) < 0)
            return NULL;
        if (access(candidate, X_OK) == 0)
            found = realpath(candidate, NULL);
        free(candidate);
        path += length + (path[length] == ':');
    }
    return found;
}

/* Derives the MPI from the name of a library or launcher. */
static enum by_run_mpi mpi_of_name(const char *name)
{
    static const struct {
        const char *part;
        enum by_run_mpi mpi;
    } parts[] = {
        {"mpich", BY_RUN_MPICH},     {"hydra", BY_RUN_MPICH},         {"openmpi", BY_RUN_OPENMPI},
        {"orterun", BY_RUN_OPENMPI}, {"prterun", BY_RUN_OPENMPI},     {"libmpi.so", BY_RUN_OPENMPI},
        {"libmpi_", BY_RUN_OPENMPI}, {"libopen-rte", BY_RUN_OPENMPI},
    };

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(name, parts[i].part) != NULL)
            return parts[i].mpi;
    return BY_RUN_UNKNOWN;
}

/* Derives the MPI from the first conclusive library in a dynamic section. */
static enum by_run_mpi mpi_of_section(Elf *elf, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    enum by_run_mpi mpi = BY_RUN_UNKNOWN;
    size_t count = header->sh_entsize > 0 ? header->sh_size / header->sh_entsize : 0;

    for (size_t i = 0; data != NULL && i < count && mpi == BY_RUN_UNKNOWN; i++) {
        const char *name;
        GElf_Dyn entry;

        if (gelf_getdyn(data, (int)i, &entry) == NULL || entry.d_tag != DT_NEEDED)
            continue;
        name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
        if (name != NULL)
            mpi = mpi_of_name(name);
    }
    return mpi;
}

static enum by_run_mpi mpi_of_file(const char *path)
{
    enum by_run_mpi mpi = BY_RUN_UNKNOWN;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    Elf *elf;

    if (fd < 0)
        return BY_RUN_UNKNOWN;
    elf_version(EV_CURRENT);
    elf = elf_begin(fd, ELF_C_READ, NULL);
    while (elf != NULL && mpi == BY_RUN_UNKNOWN && (section = elf_nextscn(elf, section)) != NULL)
        if (gelf_getshdr(section, &header) != NULL && header.sh_type == SHT_DYNAMIC)
            mpi = mpi_of_section(elf, section, &header);
    elf_end(elf);
    close(fd);
    return mpi;
}

enum by_run_mpi by_run_mpi_of(const char *path, const char **why)
{
    const char *base = strrchr(path, '/');
    enum by_run_mpi mpi;

    *why = "the launcher that started it";
    if (getenv("OMPI_COMM_WORLD_SIZE") != NULL)
        return BY_RUN_OPENMPI;
    if (getenv("PMI_SIZE") != NULL)
        return BY_RUN_MPICH;
    *why = "the libraries that it needs";
    mpi = mpi_of_file(path);
    if (mpi != BY_RUN_UNKNOWN)
        return mpi;
    *why = "its name";
    return mpi_of_name(base != NULL ? base + 1 : path);
}
