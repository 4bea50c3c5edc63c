/* A spool on the real disk: where it is, what is in it, and time that passes, after
 * clock_stop(). */
#ifndef T_QUEUE_HOME_H
#define T_QUEUE_HOME_H

#include "t/support/clock.h"
#include "t/support/queue_kit.h"

#include <dirent.h>
#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

static inline int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    (void)status;
    (void)kind;
    (void)where;
    return remove(path);
}

static inline void
make_home(char home[64])
{
    snprintf(home, 64, "/tmp/petrel-queue-XXXXXX");
    if (mkdtemp(home) == NULL)
        abort();
}

static inline void
remove_home(const char *home)
{
    nftw(home, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void
path_of(const char *home, const char *dir, struct id id, char out[200])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(out, 200, "%s/%s/%s", home, dir, name);
}

static inline bool
is_there(const char *home, const char *dir, struct id id)
{
    char path[200];
    struct stat status;
    path_of(home, dir, id, path);
    return lstat(path, &status) == 0;
}

/* Which of the directories have a file of id, as letters. */
static inline const char *
where(const char *home, struct id id)
{
    static char out[16];
    static const struct {
        const char *dir;
        char letter;
    } dirs[] = {
        {"mess",   'm'},
        {"intd",   'i'},
        {"todo",   't'},
        {"info",   'I'},
        {"local",  'l'},
        {"remote", 'r'},
        {"bounce", 'b'},
        {"hold",   'h'}
    };
    size_t length = 0;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        if (is_there(home, dirs[i].dir, id))
            out[length++] = dirs[i].letter;
    out[length] = '\0';
    return out;
}

static inline unsigned
count_files(const char *home, const char *dir)
{
    char path[200];
    unsigned count = 0;
    struct dirent *entry;
    snprintf(path, sizeof(path), "%s/%s", home, dir);
    DIR *directory = opendir(path);
    while (directory != NULL && (entry = readdir(directory)) != NULL)
        count += entry->d_name[0] != '.';
    if (directory != NULL)
        closedir(directory);
    return count;
}

static inline unsigned
count_all(const char *home)
{
    static const char *const dirs[] = {"pid",   "mess",   "intd",   "todo", "info",
                                        "local", "remote", "bounce", "hold", "corrupt"};
    unsigned count = 0;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        count += count_files(home, dirs[i]);
    return count;
}

static inline void
wait_ms(struct kit *k, int64_t ms)
{
    for (int64_t step; ms > 0; ms -= step) {
        step = ms < 10 ? ms : 10;
        clock_pass(step);
        kit_turns(k, 1);
    }
}

#endif
