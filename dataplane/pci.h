/*
 * PCI addresses of network cards, checked before DPDK starts: DPDK ignores a card that it cannot
 * use, without a reason. Reads sysfs only. Start-up.
 */
#ifndef BY_DATAPLANE_PCI_H
#define BY_DATAPLANE_PCI_H

/*
 * Checks that a network card exists at `address`, is bound to a driver that DPDK can use, and that
 * this process may open its group of vfio. `root` precedes /sys and /dev: "" except in tests.
 * Returns 0; BY_ENOENT (no such card; the text lists the existing ones), BY_EINVAL (not a network
 * card), BY_EPERM or BY_EIO (driver, IOMMU or permission). Reported by by_say, with the remedy.
 */
int by_pci_check(const char *root, const char *address);

#endif
