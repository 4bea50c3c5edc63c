/* Writes and reads the file of used quotas. Every value is checked by itself. */
#include "queue/manager/quota_file.h"

#include "queue/spool/spool.h"

#include <errno.h>

#define TITLE "petrel quotas 1"

static const char letters[QUOTA_PERIODS] = {
    [QUOTA_SECOND] = 's', [QUOTA_MINUTE] = 'm', [QUOTA_HOUR] = 'h', [QUOTA_DAY] = 'd'};

struct quota_page {
    struct buffer text;
    int64_t now_ms, ahead_ms;
};

/* A line that does not fit is left out as a whole. */
static void
write_window(struct quota_page *page, const struct quotas_state *state,
             enum quota_period p)
{
    uint32_t counts[QUOTA_SLOTS];
    int64_t end_ms;
    size_t before = page->text.length, last = QUOTA_SLOTS - 1;
    if (!quota_keep(state->use, p, page->now_ms, counts, &end_ms))
        return;
    while (last > 0 && counts[last] == 0)
        last--;
    bool fits = buffer_format(&page->text, "%c %lld ", letters[p],
                              (long long)(end_ms + page->ahead_ms));
    for (size_t i = 0; i <= last; i++)
        fits =
            fits && buffer_format(&page->text, "%u%s", counts[i], i < last ? "," : " ");
    if (!fits || !buffer_format(&page->text, "%s\n", state->name))
        page->text.length = before;
}

static void
quota_file_write_name(void *context, const struct quotas_state *state)
{
    for (enum quota_period p = 0; p < QUOTA_PERIODS; p++)
        if (state->quota->amounts[p] > 0)
            write_window(context, state, p);
}

int
quota_file_write(struct disk *disk, const char *path, const struct quotas *quotas,
                 int64_t now_ms, int64_t ahead_ms)
{
    struct quota_page page = {.now_ms = now_ms, .ahead_ms = ahead_ms};
    buffer_init(&page.text, QUOTA_FILE_MAX);
    (void)!buffer_add(&page.text, TEXT(TITLE "\n"));
    size_t title = page.text.length;
    quotas_each(quotas, now_ms, quota_file_write_name, &page);
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

/* False: not a line of ours. A name without a quota is none's fault. */
static bool
quota_file_read_line(struct text line, struct quotas *quotas, int64_t now_ms,
                     int64_t ahead_ms)
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
    struct quota_use *use = quotas_recall(quotas, line);
    if (use != NULL)
        quota_restore(use, p, now_ms, counts, (int64_t)end_ms - ahead_ms);
    return true;
}

int
quota_file_read(struct disk *disk, const char *path, struct quotas *quotas,
                int64_t now_ms, int64_t ahead_ms)
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
        good = quota_file_read_line(line, quotas, now_ms, ahead_ms) && good;
    buffer_free(&all);
    return result == 0 && !good ? -EILSEQ : result;
}
