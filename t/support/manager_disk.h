/* The manager's world on the simulated disk. */
#ifndef T_SUPPORT_MANAGER_DISK_H
#define T_SUPPORT_MANAGER_DISK_H

#include "t/support/manager_world.h"

/* On an empty disk. */
void world_begin_afresh(struct world *w, const char *routes, int64_t journal_size);

/* Files in a directory of the spool. */
size_t world_disk_files(const struct world *w, const char *dir);

#endif
