/* A spool on the real disk. */
#include "t/support/queue_home.h"

int
queue_home_remove_one(const char *path, const struct stat *status, int kind, struct FTW *queue_home_where)
{
    (void)status;
    (void)kind;
    (void)queue_home_where;
    return remove(path);
}

void
queue_home_make_home(char home[64])
{
    snprintf(home, 64, "/tmp/petrel-queue-XXXXXX");
    if (mkdtemp(home) == NULL)
        abort();
}

void
remove_home(const char *home)
{
    nftw(home, queue_home_remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void
queue_home_path_of(const char *home, const char *dir, struct id id, char out[200])
{
    char name[ID_LENGTH + 1];
    id_format(id, name);
    snprintf(out, 200, "%s/%s/%s", home, dir, name);
}

bool
is_there(const char *home, const char *dir, struct id id)
{
    char path[200];
    struct stat status;
    queue_home_path_of(home, dir, id, path);
    return lstat(path, &status) == 0;
}

const char *
queue_home_where(const char *home, struct id id)
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

unsigned
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

unsigned
count_all(const char *home)
{
    static const char *const dirs[] = {"pid",   "mess",   "intd",   "todo", "info",
                                        "local", "remote", "bounce", "hold", "corrupt"};
    unsigned count = 0;
    for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++)
        count += count_files(home, dirs[i]);
    return count;
}

void
wait_ms(struct kit *k, int64_t ms)
{
    for (int64_t step; ms > 0; ms -= step) {
        step = ms < 10 ? ms : 10;
        clock_pass(step);
        kit_turns(k, 1);
    }
}
