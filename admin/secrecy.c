/* Warns of files with secrets that everybody can read. */
#include "admin/secrecy.h"

#include "base/disk.h"

enum { READ_BY_ALL = 04 };

static void
look(const char *key, const char *path, struct log *log)
{
    struct disk *here;
    struct disk_info info;
    if (path == NULL || disk_open(&here, ".", false) != 0)
        return;
    if (disk_inspect(here, path, &info) == 0 && info.kind == DISK_FILE &&
        (info.mode & READ_BY_ALL) != 0)
        log_say(log, LOG_LEVEL_WARNING, "main", NULL,
                "%s: %s can be read by everybody: chmod 600", key, path);
    disk_close(&here);
}

void
secrecy_warn(const struct options *options, struct log *log)
{
    look("auth_passwords", options->auth_passwords, log);
}
