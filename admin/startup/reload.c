/* One part of the settings in each turn. */
#include "admin/startup/parts.h"

#include "admin/view/listing.h"
#include "smtp/trust/security.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_MAX = 512, LINE_BYTES = LOG_LINE_MAX, RELOAD_EMPTIED_MAX = 1024 };

/* --- Emptied files ------------------------------------------------------------------ */

/* Files that are empty now and were not before: somebody is writing them. As settings
 * they would mean the defaults: mail would go by MX. */
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

/* True: the settings file has no setting any more (or is not there), or the file that
 * has a value (`key_file`) is empty; why gets the error, with the file and the fix. Both
 * have been applied. */
static bool
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

/* --- Steps -------------------------------------------------------------------------- */

static void
reload_go_on(void *context)
{
    struct reload *r = context;
    if (configuration_go_on(r->fresh))
        r->done(r->context);
    else
        loop_post(r->loop, &r->task, reload_go_on, r);
}

void
reload_begin(struct reload *r, const struct options_sources *sources)
{
    struct options_sources now = *sources;
    now.runs = true;
    reload_stop(r);
    r->fresh = configuration_begin(&now);
    reload_go_on(r);
}

static void __attribute__((format(printf, 2, 3)))
reload_refuse(struct reload *r, const char *format, ...)
{
    char line[LINE_BYTES];
    va_list list;
    va_start(list, format);
    vsnprintf(line, sizeof(line), format, list);
    va_end(list);
    log_say(r->log, LOG_LEVEL_ERROR, "main", NULL, "%s", line);
    if (r->errors == NULL)
        r->errors = json_array();
    json_array_append_new(r->errors, listing_text(text_from(line)));
}

/* True: a file could not be read for lack of permission. */
static bool
refuse_each(struct reload *r, struct text lines)
{
    struct text line;
    bool denied = memmem(lines.at, lines.length, strerror(EACCES),
                         strlen(strerror(EACCES))) != NULL;
    while (lines.length > 0 && text_cut(&lines, '\n', &line))
        reload_refuse(r, "%.*s", TEXT_ARGS(line));
    return denied;
}

/* Frees *fresh if its files have been emptied. */
static void
refuse_emptied(struct reload *r, const struct settings *running,
               struct configuration **fresh)
{
    char why[RELOAD_EMPTIED_MAX];
    if (*fresh == NULL || running == NULL ||
        !reload_is_emptied(running, (*fresh)->settings, why))
        return;
    reload_refuse(r, "%s", why);
    configuration_free(fresh);
}

struct configuration *
reload_end(struct reload *r, const struct settings *running,
           const struct sandbox *sandbox)
{
    char error[ERROR_MAX] = "the settings have errors";
    struct buffer errors;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct configuration *fresh = configuration_end(r->fresh, &errors);
    r->fresh = NULL;
    bool denied = errors.length > 0 && refuse_each(r, buffer_text(&errors));
    buffer_free(&errors);
    refuse_emptied(r, running, &fresh);
    if (fresh != NULL && configuration_trust(fresh, r->log, error, ERROR_MAX))
        return fresh;
    reload_refuse(
        r,
        "reload refused: %s; the old settings stay: correct them, and reload again%s",
        error,
        denied && sandbox_get_state(sandbox)->landlock > 0
            ? " (files are read as `user` now, and the sandbox allows only those "
              "named at startup and their directories: a restart may help)"
            : "");
    configuration_free(&fresh);
    return NULL;
}

const json_t *
reload_errors(const struct reload *r)
{
    return r->errors;
}

void
reload_stop(struct reload *r)
{
    json_decref(r->errors);
    r->errors = NULL;
    if (r->fresh == NULL)
        return;
    loop_unpost(r->loop, &r->task);
    configuration_free(&r->fresh);
}
