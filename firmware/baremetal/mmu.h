/* Memory protection and caches. Start-up only, before anything else in C runs. */
#ifndef BY_BAREMETAL_MMU_H
#define BY_BAREMETAL_MMU_H

/* Maps the board's devices and RAM one to one: code is executable and not writable, constants are
 * read-only, data is not executable; below the stack nothing is mapped. Then enables MMU and
 * caches. */
void by_mmu_start(void);

#endif
