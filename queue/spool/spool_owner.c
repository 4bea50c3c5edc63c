/* Gives files that root has made in a spool to the daemon's user. */
#include "queue/spool/spool_owner.h"

#include "queue/spool/spool.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { DEPTH_MAX = 2, READABLE_BY_ALL = 0004, WRITABLE_BY_ALL = 0002 };

/* Files beside the directories. */
static const char journal[] = "journal", control[] = "control";
static const char oauth[] = "oauth"; /* smtp/oauth/oauth_file.c makes it */
static const char history[] = "history";

/* The walk through one directory of the spool. Each is entered by its own descriptor:
 * the owner of a parent could redirect a path. */
struct giving {
    struct disk *directory;
    unsigned user, group;
    unsigned depth; /* of subdirectories to enter */
    bool looks;     /* only counts and gives nothing */
    bool wide;      /* any user may put names there */
    unsigned count;
    int error; /* the first error */
};

static bool
is_space(const char *name)
{
    for (unsigned i = 0; i < SPOOL_DIRS; i++)
        if (strcmp(name, spool_dir_name((enum spool_dir)i)) == 0)
            return true;
    return strcmp(name, journal) == 0 || strcmp(name, oauth) == 0 ||
           strcmp(name, history) == 0;
}

static bool
is_of_a_spool(const char *name)
{
    return is_space(name) || strncmp(name, control, strlen(control)) == 0;
}

static void
note_failure(struct giving *g, int result)
{
    if (result < 0 && result != -ENOENT && g->error == 0)
        g->error = result;
}

static void
give_name(struct giving *g, const char *name)
{
    int result = g->looks ? 0 : disk_give(g->directory, name, g->user, g->group);
    if (result == 0)
        g->count++;
    /* A link, a second name of a file, or a file that is not root's: another user may
     * have put it there, and it is left alone. */
    else if (result != -EINVAL && result != -EPERM)
        note_failure(g, result);
}

static bool give_entry(void *context, const char *name);

/* The entries before the directory itself: a walk that is cut short begins again. */
static void
give_directory(struct giving *g, const char *name, unsigned mode)
{
    struct giving below = *g;
    int result = disk_open_below(&below.directory, g->directory, name);
    note_failure(g, result);
    if (result < 0)
        return;
    below.depth = g->depth - 1;
    below.wide = (mode & WRITABLE_BY_ALL) != 0;
    result = disk_list(below.directory, ".", give_entry, &below);
    disk_close(&below.directory);
    g->count = below.count;
    g->error = below.error;
    note_failure(g, result);
}

static bool
give_entry(void *context, const char *name)
{
    struct giving *g = context;
    struct disk_info info;
    if (disk_inspect(g->directory, name, &info) < 0)
        return true;
    if (info.kind == DISK_DIRECTORY && g->depth > 0 && !g->wide)
        give_directory(g, name, info.mode);
    if (info.owner == 0 && !(g->wide && (info.mode & READABLE_BY_ALL) != 0))
        give_name(g, name);
    return true;
}

static bool
give_top_entry(void *context, const char *name)
{
    struct giving *g = context;
    if (!is_of_a_spool(name))
        return true;
    bool has_slices = strcmp(name, journal) == 0 || strcmp(name, history) == 0;
    g->depth = has_slices ? DEPTH_MAX : 1;
    return give_entry(context, name);
}

/* Only a few files: those that every startup of a daemon writes. */
static bool
look_entry(void *context, const char *name)
{
    struct giving *g = context;
    bool small =
        strcmp(name, journal) == 0 || strcmp(name, spool_dir_name(SPOOL_LOCK)) == 0;
    if (!is_of_a_spool(name))
        return true;
    g->depth = small ? 1 : 0;
    return give_entry(context, name);
}

static int
give_all(struct disk *disk, const struct disk_info *top, unsigned user, unsigned group)
{
    struct giving g = {.directory = disk, .user = user, .group = group, .looks = true};
    int result = disk_list(disk, ".", look_entry, &g);
    if (result < 0 || (g.count == 0 && top->owner != 0))
        return result;
    g.looks = false;
    g.count = 0;
    result = disk_list(disk, ".", give_top_entry, &g);
    if (top->owner == 0)
        give_name(&g, ".");
    if (result < 0 || g.error < 0)
        return result < 0 ? result : g.error;
    return (int)g.count;
}

static bool
note_strange(void *context, const char *name)
{
    bool *strange = context;
    *strange =
        name[0] != '.' && strcmp(name, "lost+found") != 0 && !is_of_a_spool(name);
    return !*strange;
}

/* `spool = /var` is an error that must not give /var away. */
static bool
may_be_given(const char *path, unsigned user)
{
    struct disk *disk;
    struct disk_info top;
    bool strange = false;
    if (disk_open(&disk, path, false) < 0)
        return true; /* missing: it is made later, or reported */
    int result = disk_inspect(disk, ".", &top);
    if (result == 0 && top.owner == 0)
        result = disk_list(disk, ".", note_strange, &strange);
    disk_close(&disk);
    return result == 0 && !strange && (top.owner == 0 || top.owner == user);
}

int
spool_owner_give(const char *path, unsigned user, unsigned group)
{
    struct spool spool;
    struct disk_info top;
    char error[512];
    if (!may_be_given(path, user))
        return 0;
    int result = spool_open(&spool, path, true, NULL, error, sizeof(error));
    if (result < 0)
        return result;
    result = disk_inspect(spool.disk, ".", &top);
    if (result == 0)
        result = give_all(spool.disk, &top, user, group);
    spool_close(&spool);
    return result;
}

unsigned
spool_owner_of(const char *path)
{
    struct disk *disk;
    struct disk_info top = {0};
    if (disk_open(&disk, path, false) < 0)
        return 0;
    if (disk_inspect(disk, ".", &top) < 0)
        top.owner = 0;
    disk_close(&disk);
    return top.owner;
}
