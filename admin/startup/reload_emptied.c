/* Compares what files had with what they have. */
#include "admin/startup/reload_emptied.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIX                                                                            \
    "if somebody is writing it, reload again afterwards; better write a new file "     \
    "and rename it"

/* The source of a value from a `key_file`: "petrel.conf:3, from /etc/petrel/routes". */
static const char from_file[] = ", from ";

struct emptied {
    const struct settings *now;
    size_t before, after; /* settings from a file */
    const char *file;     /* a `key_file` that is empty now; NULL: none */
};

/* "petrel.conf:3"; others are "environment", "command line" and "default". */
static bool
emptied_is_of_file(const struct setting_view *view)
{
    return strchr(view->source, ':') != NULL;
}

static void
emptied_note_after(void *context, const struct setting_view *view)
{
    struct emptied *e = context;
    e->after += emptied_is_of_file(view);
}

static void
emptied_note_before(void *context, const struct setting_view *view)
{
    struct emptied *e = context;
    const char *source = settings_origin(e->now, text_from(view->key));
    const char *value = settings_written(e->now, text_from(view->key));
    const char *from = source ? strstr(source, from_file) : NULL;
    e->before += emptied_is_of_file(view);
    if (view->value != NULL && from != NULL && value != NULL && value[0] == '\0')
        e->file = from + strlen(from_file);
}

static void
emptied_take_first(void *context, const char *path)
{
    const char **file = context;
    if (*file == NULL)
        *file = path;
}

bool
reload_is_emptied(const struct settings *was, const struct settings *now,
                  char why[RELOAD_EMPTIED_MAX])
{
    struct emptied e = {.now = now};
    settings_each(was, emptied_note_before, &e);
    settings_each(now, emptied_note_after, &e);
    if (e.before > 0 && e.after == 0) {
        const char *file = NULL;
        settings_each_file(was, emptied_take_first, &file);
        snprintf(why, RELOAD_EMPTIED_MAX,
                 "%.300s: has no setting now, and %zu are in use from it; " FIX,
                 file ? file : "the settings file", e.before);
        return true;
    }
    if (e.file != NULL)
        snprintf(why, RELOAD_EMPTIED_MAX,
                 "%.300s: is empty now, and its value is in use; " FIX, e.file);
    return e.file != NULL;
}
