/* Disk faults on demand: a layer over SQLite's own file system that fails the writes or the syncs of the log.
 * Install before the first store is opened; it stays for the process. Any thread. */
#ifndef SUPPORT_FAULT_VFS_H
#define SUPPORT_FAULT_VFS_H

enum fault {
    FAULT_NONE,
    FAULT_LOG_WRITE,      /* nothing reaches the log */
    FAULT_LOG_WRITE_HALF, /* the first half of each write does */
    FAULT_LOG_SYNC,       /* everything reaches the log; its sync says it failed */
    FAULT_LOG_HANG,       /* its sync does not come back before another fault is set */
    FAULT_LOG_FULL,       /* no space left */
    FAULT_LOG_TIGHT,      /* no space left for more than 16 KiB */
};

void fault_vfs_install(void);
void fault_vfs_set(enum fault fault);
/* Faults given since the last fault_vfs_set. */
int fault_vfs_count(void);

#endif
