/* Writes and reads the file of used quotas. Every value is checked by itself. */
#include "queue/manager/quota_file.h"

#include "queue/spool/spool.h"

#include <errno.h>

#define TITLE "petrel quotas 1"
#define RELAY "relay "

static const char letters[QUOTA_PERIODS] = {
    [QUOTA_SECOND] = 's', [QUOTA_MINUTE] = 'm', [QUOTA_HOUR] = 'h', [QUOTA_DAY] = 'd'};

struct quota_page {
    struct buffer text;
    int64_t now_ms, ahead_ms;
};

/* A line that does not fit is left out as a whole. */
static void
quota_file_add_window(struct quota_page *page, const struct quota_use *use,
                      enum quota_period p, const char *kind, const char *name)
{
    uint32_t counts[QUOTA_SLOTS];
    int64_t end_ms;
    size_t before = page->text.length, last = QUOTA_SLOTS - 1;
    if (!quota_keep(use, p, page->now_ms, counts, &end_ms))
        return;
    while (last > 0 && counts[last] == 0)
        last--;
    bool fits = buffer_format(&page->text, "%c %lld ", letters[p],
                              (long long)(end_ms + page->ahead_ms));
    for (size_t i = 0; i <= last; i++)
        fits =
            fits && buffer_format(&page->text, "%u%s", counts[i], i < last ? "," : " ");
    if (!fits || !buffer_format(&page->text, "%s%s\n", kind, name))
        page->text.length = before;
}

static void
quota_file_add_sender(void *context, const struct quotas_state *state)
{
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++)
        if (state->quota->amounts[p] > 0)
            quota_file_add_window(context, state->use, p, "", state->name);
}

static void
quota_file_add_hop(void *context, const struct sched_quota *hop)
{
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++)
        if (hop->quota == NULL || hop->quota->amounts[p] > 0)
            quota_file_add_window(context, hop->use, p, RELAY, hop->key);
}

int
quota_file_write(struct disk *disk, const char *path, const struct quota_file *file)
{
    struct quota_page page = {.now_ms = file->now_ms - file->ahead_ms,
                              .ahead_ms = file->ahead_ms};
    buffer_init(&page.text, QUOTA_FILE_MAX);
    (void)!buffer_add(&page.text, TEXT(TITLE "\n"));
    size_t title = page.text.length;
    quotas_each(file->quotas, page.now_ms, quota_file_add_sender, &page);
    page.ahead_ms = sched_quota_ahead_ms(file->sched);
    page.now_ms = file->now_ms - page.ahead_ms;
    sched_quotas(file->sched, quota_file_add_hop, &page);
    int result = page.text.length > title
                     ? spool_write_path(disk, path, buffer_text(&page.text))
                     : disk_unlink(disk, path);
    buffer_free(&page.text);
    return result == -ENOENT ? 0 : result;
}

static bool
read_counts(struct text list, uint32_t counts[QUOTA_SLOTS])
{
    struct text word;
    uint64_t number;
    for (size_t i = 0; text_cut(&list, ',', &word); i++) {
        if (i == QUOTA_SLOTS || !text_number(word, QUOTA_AMOUNT_MAX, &number))
            return false;
        counts[i] = (uint32_t)number;
    }
    return true;
}

static void
quota_file_restore(const struct quota_file *file, struct text name, enum quota_period p,
                   const uint32_t counts[QUOTA_SLOTS], int64_t end_ms)
{
    struct text relay = TEXT(RELAY);
    bool is_hop = text_starts(name, relay);
    int64_t ahead_ms = is_hop ? sched_quota_ahead_ms(file->sched) : file->ahead_ms;
    struct quota_use *use =
        is_hop ? sched_quota_recall(file->sched, text_after(name, relay.length))
               : quotas_recall(file->quotas, name);
    if (use != NULL)
        quota_restore(use, p, file->now_ms - ahead_ms, counts, end_ms - ahead_ms);
}

/* False: not a line of ours. */
static bool
quota_file_read_line(struct text line, const struct quota_file *file)
{
    struct text letter, end, list;
    uint32_t counts[QUOTA_SLOTS] = {0};
    uint64_t end_ms;
    enum quota_period p = 0;
    if (!text_cut(&line, ' ', &letter) || !text_cut(&line, ' ', &end) ||
        !text_cut(&line, ' ', &list) || letter.length != 1 || line.length == 0)
        return false;
    while (p < QUOTA_PERIODS && letters[p] != letter.at[0])
        p++;
    if (p == QUOTA_PERIODS || !text_number(end, INT64_MAX / 2, &end_ms) ||
        !read_counts(list, counts))
        return false;
    quota_file_restore(file, line, p, counts, (int64_t)end_ms);
    return true;
}

int
quota_file_read(struct disk *disk, const char *path, const struct quota_file *file)
{
    struct buffer all;
    buffer_init(&all, QUOTA_FILE_MAX);
    int result = spool_read_path(disk, path, &all);
    struct text rest = buffer_text(&all), line = TEXT("");
    if (result >= 0) {
        (void)!text_cut(&rest, '\n', &line);
        result = text_equal(line, TEXT(TITLE)) ? 0 : -EILSEQ;
    }
    bool good = result == 0;
    while (result == 0 && rest.length > 0 && text_cut(&rest, '\n', &line))
        good = quota_file_read_line(line, file) && good;
    buffer_free(&all);
    return result == 0 && !good ? -EILSEQ : result;
}
