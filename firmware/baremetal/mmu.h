/* Memory protection and caches. Start-up only, before anything else in C runs. */
#ifndef BY_BAREMETAL_MMU_H
#define BY_BAREMETAL_MMU_H

/* Maps the board's devices and RAM one to one: code can be run and not written, constants only
 * read, data not run; below the stack nothing is mapped. Then turns on MMU and caches. */
void by_mmu_start(void);

#endif
