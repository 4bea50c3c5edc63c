/* The manager's world on the simulated disk. */
#include "t/support/manager_disk.h"

#include "t/sim/sim_disk.h"

void
world_begin_afresh(struct world *w, const char *routes, int64_t journal_size)
{
    sim_disk_reset();
    manager_world_begin(w, routes);
    w->settings.queue.journal_size = journal_size;
    world_restart(w);
}

size_t
world_disk_files(const struct world *w, const char *dir)
{
    char path[100];
    snprintf(path, sizeof(path), "%s/%s", w->folder, dir);
    return sim_disk_count(path);
}
