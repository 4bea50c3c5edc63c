/* One part of the settings in each turn. */
#include "admin/startup/reload.h"

#include "admin/control/listing.h"
#include "admin/startup/reload_emptied.h"
#include "smtp/trust/trust_anchors.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { ERROR_MAX = 512, LINE_BYTES = LOG_LINE_MAX };

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
           const struct sandbox *sandbox, struct tls_client **anchors)
{
    char place[TRUST_ANCHORS_PLACE_MAX], error[ERROR_MAX] = "the settings have errors";
    struct buffer errors;
    buffer_init(&errors, CONFIGURATION_ERRORS_MAX);
    struct configuration *fresh = configuration_end(r->fresh, &errors);
    r->fresh = NULL;
    bool denied = errors.length > 0 && refuse_each(r, buffer_text(&errors));
    buffer_free(&errors);
    refuse_emptied(r, running, &fresh);
    *anchors = fresh ? configuration_anchors(fresh, place, error, ERROR_MAX) : NULL;
    if (*anchors != NULL) {
        trust_anchors_say(place, r->log);
        return fresh;
    }
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
