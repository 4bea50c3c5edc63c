/* Opens the queue for a command when no daemon runs. */
#include "admin/command/offline.h"

#include "base/disk/disk.h"
#include "base/loop/loop.h"
#include "base/memory.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

struct offline {
    struct manager *manager;
};

static bool
become(unsigned owner)
{
    const struct passwd *entry = getpwuid(owner);
    gid_t group = entry ? entry->pw_gid : getegid();
    bool groups =
        entry ? initgroups(entry->pw_name, group) == 0 : setgroups(0, NULL) == 0;
    return groups && setresgid(group, group, group) == 0 &&
           setresuid(owner, owner, owner) == 0;
}

int
offline_find(const char *path, unsigned *owner, char *error, size_t error_size)
{
    struct disk *disk;
    struct disk_info info = {0};
    int result = disk_open(&disk, path, false);
    if (result == 0) {
        result = disk_inspect(disk, ".", &info);
        disk_close(&disk);
    }
    *owner = info.owner;
    if (result == -ENOENT)
        snprintf(error, error_size,
                 "spool %s does not exist: a daemon makes it when it first starts",
                 path);
    else if (result < 0)
        snprintf(error, error_size, "spool %s: %s", path, strerror(-result));
    return result < 0 ? EX_UNAVAILABLE : 0;
}

int
offline_become_owner(const char *path, char *error, size_t error_size)
{
    unsigned owner;
    int code = offline_find(path, &owner, error, error_size);
    if (code != 0)
        return code;
    if (geteuid() == 0 && owner != 0 && !become(owner)) {
        snprintf(error, error_size, "spool %s: cannot become its owner, uid %u", path,
                 owner);
        return EX_NOPERM;
    }
    return 0;
}

int
offline_open(struct offline **offline, struct loop *loop, struct event_hub *events,
             const struct options *options, char *error, size_t error_size)
{
    struct manager_settings settings = options->manager;
    settings.sched.seed = loop_random(loop);
    settings.offline = true;
    struct manager *manager = NULL;
    *offline = NULL;
    int code = offline_become_owner(options->spool, error, error_size);
    if (code == 0)
        code = manager_new(&manager, loop, events, &settings, NULL, error, error_size);
    if (code != 0)
        return code;
    *offline = memory_new(sizeof(**offline));
    (*offline)->manager = manager;
    return 0;
}

struct manager *
offline_manager(struct offline *o)
{
    return o->manager;
}

void
offline_close(struct offline **offline)
{
    struct offline *o = *offline;
    if (o == NULL)
        return;
    *offline = NULL;
    manager_free(&o->manager);
    free(o);
}
