/* Directories of tests for which the disk does not matter. */
#include "t/support/folder.h"

#include <dirent.h>

void
folder_make(char *out, size_t size, const char *name)
{
    static const char memory[] = "/dev/shm";
    struct statvfs s;
    bool fits = access(memory, W_OK | X_OK) == 0 && statvfs(memory, &s) == 0 &&
                s.f_bavail >= FOLDER_ROOM_MB * (1024UL * 1024 / s.f_frsize);
    int length =
        snprintf(out, size, "%s/petrel-%s-XXXXXX", fits ? memory : "/tmp", name);
    if (length < 0 || (size_t)length >= size || mkdtemp(out) == NULL)
        abort();
}

void
folder_remove(const char *folder)
{
    char command[200];
    int length = snprintf(command, sizeof(command), "rm -rf '%s'", folder);
    if (length < 0 || (size_t)length >= sizeof(command) || system(command) != 0)
        abort();
}

int
folder_descriptors(void)
{
    DIR *all = opendir("/proc/self/fd");
    int count = 0;
    while (all != NULL && readdir(all) != NULL)
        count++;
    closedir(all);
    return count;
}

const char *
folder_path(const char *folder, const char *name)
{
    static char path[200];
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}
