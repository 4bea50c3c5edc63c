/* Asks how much space the spool has, and says when new mail must be refused. */
#include "queue/spool/space.h"

#include <inttypes.h>
#include <stdio.h>

enum { FORMAT_TIME_MAX = 64, AMOUNT_MAX = 128 };

static const struct disk_space unknown = {INT64_MAX, INT64_MAX, INT64_MAX, INT64_MAX};

/* --- Words ------------------------------------------------------------------------ */

static const char *
megabytes(int64_t bytes, char out[FORMAT_TIME_MAX])
{
    snprintf(out, FORMAT_TIME_MAX, "%.1f MB", (double)bytes / 1e6);
    return out;
}

static const char *
amount(int64_t bytes, int64_t files, char out[AMOUNT_MAX])
{
    char size[FORMAT_TIME_MAX];
    if (bytes < INT64_MAX && files < INT64_MAX)
        snprintf(out, AMOUNT_MAX, "%s and %" PRId64 " files", megabytes(bytes, size),
                 files);
    else if (bytes < INT64_MAX)
        snprintf(out, AMOUNT_MAX, "%s", megabytes(bytes, size));
    else
        snprintf(out, AMOUNT_MAX, "%" PRId64 " files", files);
    return out;
}

/* --- How much must be free -------------------------------------------------------- */

/* An eighth more than the reserve, so that acceptance does not change at every
 * message. */
static int64_t
enough(int64_t reserve)
{
    return reserve + reserve / 8;
}

static bool
lacks_bytes(const struct space *s)
{
    return s->now.bytes_free < s->bytes_reserve;
}

static bool
lacks_files(const struct space *s)
{
    return s->now.inodes_free < s->inodes_reserve;
}

static bool
has_space(const struct space *s)
{
    return s->now.bytes_free >= enough(s->bytes_reserve) &&
           s->now.inodes_free >= enough(s->inodes_reserve);
}

static int64_t
part_of(int64_t whole, int64_t most)
{
    return whole > 0 && whole / SPACE_PART < most ? whole / SPACE_PART : most;
}

static void
derive_reserve(struct space *s)
{
    if (s->bytes_reserve <= 0)
        s->bytes_reserve = part_of(s->now.bytes, SPACE_RESERVE);
    if (s->inodes_reserve <= 0)
        s->inodes_reserve = part_of(s->now.inodes, SPACE_FILES_RESERVE);
}

/* --- Texts ------------------------------------------------------------------------ */

/* Names the resource that is short: bytes, files or both. */
static void
space_log_refusing(const struct space *s)
{
    char has[AMOUNT_MAX], needs[AMOUNT_MAX];
    bool bytes = lacks_bytes(s) || !lacks_files(s);
    bool files = lacks_files(s) || !lacks_bytes(s);
    log_say(s->spool->log, LOG_LEVEL_WARNING, "queue", NULL,
            "spool %s: %s free: mail is refused until %s are free",
            disk_path(s->spool->disk),
            amount(bytes ? s->now.bytes_free : INT64_MAX,
                   files ? s->now.inodes_free : INT64_MAX, has),
            amount(bytes ? enough(s->bytes_reserve) : INT64_MAX,
                   files ? enough(s->inodes_reserve) : INT64_MAX, needs));
}

static void
space_log_accepting(const struct space *s)
{
    char has[AMOUNT_MAX];
    log_say(s->spool->log, LOG_LEVEL_WARNING, "queue", NULL,
            "spool %s: %s free: accepting mail again", disk_path(s->spool->disk),
            amount(s->now.bytes_free, s->now.inodes_free, has));
}

/* --- Asking ----------------------------------------------------------------------- */

static void
space_ask(struct space *s)
{
    int result = disk_space(s->spool->disk, &s->now);
    s->known = true;
    s->asked_ms = loop_monotonic_ms(s->loop);
    if (result < 0) {
        (void)spool_trouble(s->spool, result, NULL, "ask for free space");
        s->now = unknown;
    }
}

static void
space_refresh(void *context)
{
    struct space *s = context;
    bool was = s->refusing;
    space_ask(s);
    s->refusing = was ? !has_space(s) : lacks_bytes(s) || lacks_files(s);
    if (!s->logs)
        return;
    if (s->refusing && !was)
        space_log_refusing(s);
    else if (was && !s->refusing)
        space_log_accepting(s);
    if (s->refusing)
        loop_timer_start(s->loop, &s->again, SPACE_AGAIN_MS, space_refresh, s);
    else
        loop_timer_stop(s->loop, &s->again);
}

bool
space_has(struct space *s, int64_t size)
{
    if (!s->known || loop_monotonic_ms(s->loop) - s->asked_ms >= SPACE_EVERY_MS)
        space_refresh(s);
    return !s->refusing &&
           s->now.bytes_free - s->bytes_reserve >= (size > 0 ? size : 0);
}

int64_t
space_journal(struct space *s, int64_t wanted, unsigned slices)
{
    char size[FORMAT_TIME_MAX], whole[FORMAT_TIME_MAX];
    int64_t most = part_of(s->now.bytes, INT64_MAX) / slices;
    if (wanted <= most)
        return wanted;
    log_say(s->spool->log, LOG_LEVEL_INFO, "queue", NULL,
            "spool %s: its file system has %s: the journal is limited to a quarter of "
            "that, instead of %s",
            disk_path(s->spool->disk), megabytes(s->now.bytes, whole),
            megabytes(wanted, size));
    return most;
}

void
space_check(struct space *s, bool has_journal)
{
    char has[AMOUNT_MAX], needs[AMOUNT_MAX];
    int64_t bytes = has_journal ? SPACE_LEAST_JOURNAL : SPACE_LEAST;
    bool small = (s->now.bytes > 0 && s->now.bytes < bytes) ||
                 (s->now.inodes > 0 && s->now.inodes < SPACE_FILES_LEAST);
    if (!small) {
        space_refresh(s);
        return;
    }
    log_say(s->spool->log, LOG_LEVEL_ERROR, "queue", NULL,
            "spool %s: its file system is too small: it has %s, a spool needs %s; set "
            "`spool` to a directory on a larger one",
            disk_path(s->spool->disk),
            amount(s->now.bytes > 0 ? s->now.bytes : INT64_MAX,
                   s->now.inodes > 0 ? s->now.inodes : INT64_MAX, has),
            amount(bytes, SPACE_FILES_LEAST, needs));
    space_refresh(s);
}

void
space_describe(const struct space *s, char out[SPACE_TEXT_MAX])
{
    char has[AMOUNT_MAX], reserve[AMOUNT_MAX];
    if (s->now.bytes_free == INT64_MAX && s->now.inodes_free == INT64_MAX)
        snprintf(out, SPACE_TEXT_MAX, "the disk of %.300s is full",
                 disk_path(s->spool->disk));
    else
        snprintf(out, SPACE_TEXT_MAX,
                 "%s are free in %.300s; %s are reserved for accepted mail",
                 amount(s->now.bytes_free, s->now.inodes_free, has),
                 disk_path(s->spool->disk),
                 amount(s->bytes_reserve, s->inodes_reserve, reserve));
}

void
space_start(struct space *s)
{
    space_ask(s);
    s->known = false; /* the first question asks again */
    derive_reserve(s);
    s->spool->bytes_reserve = part_of(s->now.bytes, SPACE_RESERVE);
}

void
space_stop(struct space *s)
{
    loop_timer_stop(s->loop, &s->again);
}
