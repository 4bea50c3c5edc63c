/* Warns of file systems that lose mail, or are slow to keep it. */
#include "queue/spool/filesystem_check.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char probe[] = "lock/probe";

static void
filesystem_check_warn_of(struct log *log, const char *path, const char *what)
{
    log_say(log, LOG_LEVEL_WARNING, "queue", NULL, "spool %s %s", path, what);
}

static bool
filesystem_check_pretends(const struct disk_traits *traits)
{
    return traits->sync_us >= 0 && traits->sync_us < FILESYSTEM_CHECK_SYNC_MIN_US;
}

static void
filesystem_check_judge(struct filesystem_check *n, const struct disk_traits *traits)
{
    const char *why =
        traits->forgets ? "it is in memory, and mail does not survive a "
                          "reboot"
        : filesystem_check_pretends(traits)
            ? "its syncs write nothing, and mail does not survive a power "
              "cut"
        : traits->fast_commit ? "ext4 with fast_commit has lost files that were synced"
                              : NULL;
    n->unsafe[0] = '\0';
    if (why != NULL)
        snprintf(n->unsafe, sizeof(n->unsafe),
                 "the file system of the spool (%.20s) "
                 "may lose mail: %s",
                 traits->type, why);
}

/* Logs one line for each problem. */
static void
filesystem_check_warn(struct log *log, const char *path,
                      const struct disk_traits *traits, enum disk_syncing way)
{
    if (traits->forgets)
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "spool %s is in memory (%s): mail does not survive a reboot; set "
                "`spool` to a directory on a disk",
                path, traits->type);
    else if (filesystem_check_pretends(traits))
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "spool %s: its disk (%s) syncs in %" PRId64
                " us, so nothing is really written: mail does not survive a power cut; "
                "look for eatmydata, barrier=0, nobarrier, an overlay mounted volatile",
                path, traits->type, traits->sync_us);
    if (traits->fast_commit)
        filesystem_check_warn_of(
            log, path,
            "is on ext4 with fast_commit, which has lost files that were synced; turn "
            "it off: tune2fs -O ^fast_commit DEVICE, unmounted");
    if (traits->copies)
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "spool %s is on %s, which copies blocks that are overwritten: syncs "
                "are slow and need free space; %s",
                path, traits->type,
                strcmp(traits->type, "btrfs") == 0
                    ? "stop petrel, empty journal/, and say chattr +C on it"
                    : "another file system (ext4, xfs) is faster");
    if (traits->soft)
        filesystem_check_warn_of(
            log, path,
            "is mounted by NFS with soft: a server that is away is an error of the "
            "disk, "
            "and no mail is accepted until a restart; mount it with hard");
    if (traits->locks_stay)
        filesystem_check_warn_of(
            log, path,
            "is mounted by NFS 3 or older, whose locks outlive a lost host, so that no "
            "other can take the spool over; mount it with vers=4.2");
    if (way == DISK_SYNC_BLOCKS)
        filesystem_check_warn_of(
            log, path,
            "cannot be synced in the background: all sessions wait for each sync; "
            "allow io_setup(2) (seccomp), or raise fs.aio-max-nr");
}

static void
filesystem_check_ask(void *context)
{
    struct filesystem_check *n = context;
    struct disk_traits traits;
    if (disk_traits(n->disk, probe, &traits) < 0)
        return;
    log_say(n->log, LOG_LEVEL_DEBUG, "queue", NULL,
            "spool %s: %s, syncs in %" PRId64 " us", disk_path(n->disk), traits.type,
            traits.sync_us);
    filesystem_check_judge(n, &traits);
    filesystem_check_warn(n->log, disk_path(n->disk), &traits, disk_sync_way(n->disk));
}

void
filesystem_check_start(struct filesystem_check *n)
{
    loop_timer_start(n->loop, &n->timer, FILESYSTEM_CHECK_AFTER_MS,
                     filesystem_check_ask, n);
}

void
filesystem_check_stop(struct filesystem_check *n)
{
    loop_timer_stop(n->loop, &n->timer);
}
