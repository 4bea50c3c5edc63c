/* Warns of file systems that lose mail, or are slow to keep it. */
#include "queue/spool/nature.h"

#include <inttypes.h>
#include <string.h>

static const char probe[] = "lock/probe";

static void
nature_warn_of(struct log *log, const char *path, const char *what)
{
    log_say(log, LOG_LEVEL_WARNING, "queue", NULL, "spool %s %s", path, what);
}

void
nature_warn(struct log *log, const char *path, const struct disk_nature *nature,
            enum disk_syncing way)
{
    bool measured = nature->sync_us >= 0;
    if (nature->forgets)
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "spool %s is in memory (%s): mail does not survive a reboot; set "
                "`spool` to a directory on a disk",
                path, nature->type);
    else if (measured && nature->sync_us < NATURE_SYNC_MIN_US)
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "spool %s: its disk (%s) syncs in %" PRId64
                " us, so nothing is really written: mail does not survive a power cut; "
                "look for eatmydata, barrier=0, nobarrier, an overlay mounted volatile",
                path, nature->type, nature->sync_us);
    if (nature->fast_commit)
        nature_warn_of(
            log, path,
            "is on ext4 with fast_commit, which has lost files that were synced; turn "
            "it off: tune2fs -O ^fast_commit DEVICE, unmounted");
    if (nature->copies)
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "spool %s is on %s, which copies what is overwritten: syncs are slow "
                "and need free space; %s",
                path, nature->type,
                strcmp(nature->type, "btrfs") == 0
                    ? "stop petrel, empty journal/, and say chattr +C on it"
                    : "another file system (ext4, xfs) is faster");
    if (way == DISK_SYNC_BLOCKS)
        nature_warn_of(
            log, path,
            "cannot be synced in the background: all sessions wait for each sync; "
            "allow io_setup(2) (seccomp), or raise fs.aio-max-nr");
}

static void
nature_ask(void *context)
{
    struct nature *n = context;
    struct disk_nature nature;
    if (disk_nature(n->disk, probe, &nature) < 0)
        return;
    log_say(n->log, LOG_LEVEL_DEBUG, "queue", NULL,
            "spool %s: %s, syncs in %" PRId64 " us", disk_path(n->disk), nature.type,
            nature.sync_us);
    nature_warn(n->log, disk_path(n->disk), &nature, disk_sync_way(n->disk));
}

void
nature_start(struct nature *n)
{
    loop_timer_start(n->loop, &n->timer, NATURE_AFTER_MS, nature_ask, n);
}

void
nature_stop(struct nature *n)
{
    loop_timer_stop(n->loop, &n->timer);
}
