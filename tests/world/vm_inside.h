/* What the files of the virtual machine room share: files behind descriptors. See vm.h. */
#ifndef BY_TESTS_WORLD_VM_INSIDE_H
#define BY_TESTS_WORLD_VM_INSIDE_H

#include "tests/world/vm.h"

struct vm_file;

/* net.c */
int vm_fd_of_file(struct vm_file *file);
struct vm_file *vm_file_of_fd(int fd);
bool vm_is_socket(const char *path);
void vm_socket_unlink(const char *path);
/* disk.c: the process closes a descriptor of the file, and loses its lock. */
void vm_file_close(struct vm_file *file, const struct vm_process *process);

#endif
