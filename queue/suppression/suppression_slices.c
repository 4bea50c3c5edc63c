/* Reads the files of other slices, and those of another number of them. */
#include "queue/suppression/suppression_slices.h"

#include "base/memory.h"
#include "queue/spool/appended_file.h"
#include "queue/spool/slices.h"
#include "queue/suppression/suppression_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct suppression_slices {
    struct loop *loop;
    struct suppression *suppression;
    struct loop_timer timer;
    unsigned count; /* of the others */
    struct appended_follow others[];
};

static bool
slices_learn(void *context, struct text line)
{
    struct suppression_record record;
    if (!suppression_record_read(line, &record))
        return false;
    suppression_learn(context, &record.entry, false);
    return true;
}

static const struct appended_kind slices_kind = {.title = TEXT(SUPPRESSION_TITLE),
                                                 .read = slices_learn};

static void
slices_follow(struct appended_follow *f, struct disk *disk, struct suppression *s,
              const char *name, const char *suffix)
{
    *f = (struct appended_follow){.disk = disk, .kind = &slices_kind, .context = s};
    snprintf(f->path, sizeof(f->path), "%s%s", name, suffix);
}

/* --- Another number of slices --------------------------------------------------------- */

struct slices_search {
    const char *name; /* without its directory */
    struct slices ours;
    char own[SLICES_SUFFIX_MAX], found[SLICES_SUFFIX_MAX];
};

/* No daemon has a file that covers a part of our slice, but we. */
static bool
slices_is_old(void *context, const char *name)
{
    struct slices_search *search = context;
    struct text suffix = text_from(name);
    unsigned first = 0, last = ID_SLICES_MAX - 1;
    if (!text_starts(suffix, text_from(search->name)))
        return true;
    suffix = text_after(suffix, strlen(search->name));
    if ((suffix.length > 0 &&
         (suffix.at[0] != '.' ||
          !slices_part_read(text_after(suffix, 1), &first, &last))) ||
        text_equal(suffix, text_from(search->own)) ||
        !slices_overlap(&search->ours, first, last))
        return true;
    return !text_copy(search->found, sizeof(search->found), suffix);
}

/* It goes when our file has all of it durably. False: it stays. */
static bool
slices_take(struct log *log, struct disk *disk, struct suppression *s, const char *name,
            const char *suffix)
{
    struct appended_follow old;
    char fresh[APPENDED_PATH_MAX + 8];
    int result;
    slices_follow(&old, disk, s, name, suffix);
    while ((result = appended_follow_read(&old)) > 0)
        ;
    appended_follow_end(&old);
    if (result == 0 && !suppression_settle(s))
        return false; /* which was logged */
    snprintf(fresh, sizeof(fresh), "%s.new", old.path);
    (void)disk_unlink(disk, fresh);
    if (result == -EILSEQ) {
        snprintf(fresh, sizeof(fresh), "%s.bad", old.path);
        log_say(log, LOG_LEVEL_ERROR, "queue", NULL,
                "%s: damaged, or not written by Petrel: it is %s now", old.path, fresh);
        return disk_rename(disk, old.path, fresh) == 0;
    }
    if (result == 0)
        result = disk_unlink(disk, old.path);
    if (result == 0)
        log_say(log, LOG_LEVEL_INFO, "queue", NULL,
                "%s, of another number of slices: taken over; damaged lines: %zu",
                old.path, old.reading.bad);
    else
        log_say(log, LOG_LEVEL_WARNING, "queue", NULL,
                "%s, of another number of slices: cannot be taken over: %s", old.path,
                strerror(-result));
    return result == 0;
}

static void
slices_take_all(struct log *log, struct disk *disk, struct suppression *s,
                const char *name, unsigned slices, unsigned slice)
{
    const char *below = strrchr(name, '/');
    char directory[APPENDED_PATH_MAX];
    struct slices_search search = {.name = below + 1};
    snprintf(directory, sizeof(directory), "%.*s", (int)(below - name), name);
    slices_init(&search.ours, slices, slice);
    slices_suffix(slices, slice, search.own);
    /* "?" is no suffix. */
    do {
        (void)text_copy(search.found, sizeof(search.found), TEXT("?"));
        if (disk_list(disk, directory, slices_is_old, &search) < 0)
            return;
    } while (search.found[0] != '?' && slices_take(log, disk, s, name, search.found));
}

/* --- The others ----------------------------------------------------------------------- */

static void
slices_read(void *context)
{
    struct suppression_slices *o = context;
    bool is_more = false;
    for (unsigned i = 0; i < o->count && !suppression_is_shared(o->suppression); i++)
        is_more = appended_follow_read(&o->others[i]) > 0 || is_more;
    loop_timer_start(o->loop, &o->timer, is_more ? 0 : SUPPRESSION_SLICES_MS,
                     slices_read, o);
}

struct suppression_slices *
suppression_slices_new(struct loop *loop, struct log *log, struct disk *disk,
                       struct suppression *s, const char *name, unsigned slices,
                       unsigned slice)
{
    slices_take_all(log, disk, s, name, slices, slice);
    if (slices == 1)
        return NULL;
    struct suppression_slices *o =
        memory_new(sizeof(*o) + (slices - 1) * sizeof(o->others[0]));
    o->loop = loop;
    o->suppression = s;
    for (unsigned i = 0; i < slices; i++) {
        char suffix[SLICES_SUFFIX_MAX];
        slices_suffix(slices, i, suffix);
        if (i == slice)
            continue;
        slices_follow(&o->others[o->count], disk, s, name, suffix);
        while (appended_follow_read(&o->others[o->count]) > 0)
            ;
        o->count++;
    }
    loop_timer_start(loop, &o->timer, SUPPRESSION_SLICES_MS, slices_read, o);
    return o;
}

void
suppression_slices_free(struct suppression_slices **slices)
{
    struct suppression_slices *o = *slices;
    *slices = NULL;
    if (o == NULL)
        return;
    loop_timer_stop(o->loop, &o->timer);
    for (unsigned i = 0; i < o->count; i++)
        appended_follow_end(&o->others[i]);
    free(o);
}
