/* Writes and compares the word of the daemon that holds a spool. */
#include "queue/spool/holder.h"

#include "base/disk/disk.h"
#include "base/log/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { HOLDER_MODE = 0640, WORD_DIGITS = 16 };

static void
holder_path(const char *part, char out[32])
{
    snprintf(out, 32, "lock/holder.%.12s", part);
}

/* In place: a host that has another file under this name in its cache would read that one
 * for up to a minute. A word that a crash cuts off is another word, too. */
static int
holder_write(struct disk *disk, const char *path, const char *text)
{
    int file = disk_create(disk, path, HOLDER_MODE);
    if (file == -EEXIST)
        file = disk_open_file(disk, path, true);
    if (file < 0)
        return file;
    int result = disk_write_at(disk, file, 0, text_from(text));
    if (result == 0)
        result = disk_sync(disk, file);
    disk_close_file(disk, file);
    return result;
}

/* Up to the first newline: behind it may be the end of a longer name. */
static struct text
holder_read(struct disk *disk, const char *path, char bytes[HOLDER_TEXT_MAX],
            int *error)
{
    int64_t got = disk_read_at(disk, path, 0, bytes, HOLDER_TEXT_MAX);
    struct text rest = {bytes, got > 0 ? (size_t)got : 0}, line;
    *error = got < 0 ? (int)got : 0;
    return text_cut(&rest, '\n', &line) ? line : TEXT("");
}

static void
holder_ask(void *context)
{
    struct holder *h = context;
    if (holder_is_ours(h) || !h->is_lost)
        loop_timer_start(h->loop, &h->timer, HOLDER_CHECK_MS, holder_ask, h);
}

static void
holder_outlive_cache(struct disk *disk, struct loop *loop, const char *part,
                     const char *host)
{
    char before[HOLDER_HOST_MAX + 1];
    holder_host(disk, part, before);
    int64_t end_ms = loop_monotonic_ms(loop) + HOLDER_CACHE_MS;
    if (before[0] == '\0' || text_equal(text_from(before), text_from(host)))
        return;
    while (loop_monotonic_ms(loop) < end_ms)
        loop_turn(loop, end_ms - loop_monotonic_ms(loop));
}

int
holder_take(struct holder *h, struct disk *disk, struct loop *loop, struct log *log,
            const char *part, const char *host)
{
    if (!disk_is_shared(disk))
        return 0;
    h->disk = disk;
    h->loop = loop;
    h->log = log;
    holder_path(part, h->path);
    snprintf(h->text, sizeof(h->text), "%016" PRIx64 " %.*s\n", loop_random(loop),
             HOLDER_HOST_MAX, host);
    holder_outlive_cache(disk, loop, part, host);
    int error = holder_write(disk, h->path, h->text);
    if (error == 0)
        error = disk_sync_directory(disk, "lock");
    if (error < 0)
        h->text[0] = '\0';
    else
        loop_timer_start(loop, &h->timer, HOLDER_CHECK_MS, holder_ask, h);
    return error;
}

void
holder_stop(struct holder *h)
{
    if (h->loop != NULL)
        loop_timer_stop(h->loop, &h->timer);
}

int
holder_mark(const struct holder *h, const char *part)
{
    char path[32];
    holder_path(part, path);
    return h->text[0] == '\0' ? 0 : holder_write(h->disk, path, h->text);
}

static void
holder_lose(struct holder *h, struct text now)
{
    h->is_lost = true;
    log_say(
        h->log, LOG_LEVEL_ERROR, "queue", NULL,
        "another petrel has taken the spool%s%.*s: this one ends, and writes nothing "
        "more",
        now.length > WORD_DIGITS ? ", on" : "",
        (int)(now.length > WORD_DIGITS ? now.length - WORD_DIGITS : 0),
        now.length > WORD_DIGITS ? now.at + WORD_DIGITS : "");
    loop_stop(h->loop);
}

bool
holder_is_ours(struct holder *h)
{
    char bytes[HOLDER_TEXT_MAX];
    int error;
    if (h->text[0] == '\0')
        return true;
    if (h->is_lost)
        return false;
    struct text now = holder_read(h->disk, h->path, bytes, &error);
    if (error == 0 && !text_equal(now, text_trim(text_from(h->text))))
        holder_lose(h, now);
    return error == 0 && !h->is_lost;
}

void
holder_host(struct disk *disk, const char *part, char out[HOLDER_HOST_MAX + 1])
{
    char bytes[HOLDER_TEXT_MAX], path[32];
    int error;
    holder_path(part, path);
    struct text now =
        text_after(holder_read(disk, path, bytes, &error), WORD_DIGITS + 1);
    snprintf(out, HOLDER_HOST_MAX + 1, "%.*s", (int)now.length, now.at);
}
