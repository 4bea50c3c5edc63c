/* A spool on the simulated disk with nothing but a file in lock/. */
#include "t/support/lock_file.h"

#include "t/sim/sim_disk.h"

#include <stdlib.h>

struct disk *
lock_file_home(void)
{
    struct disk *disk;
    sim_disk_reset();
    if (disk_open(&disk, "/spool", true) < 0 ||
        disk_make_directory(disk, "lock", 0700) < 0)
        abort();
    sim_disk_count_anew();
    return disk;
}

void
lock_file_put(struct disk *disk, const char *path, const char *content)
{
    int file = disk_create(disk, path, 0600);
    if (file < 0 || disk_write(disk, file, text_from(content)) < 0)
        abort();
    disk_close_file(disk, file);
}
