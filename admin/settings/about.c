/* Settings for commands that need few of them, despite errors in the others. */
#include "admin/settings/about.h"

#include "base/disk/disk.h"
#include "base/memory.h"
#include "base/settings/settings_file.h"
#include "mime/address.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ABOUT_MAX = 64 * 1024, ABOUT_PATH_MAX = 4096 };

static const char path[] = "lock/about", draft[] = "lock/about.new";
/* The spool of a daemon by default: without -c a command may mean it. */
static const char system_spool[] = "/var/spool/petrel";

/* Nothing else is taken from a daemon. */
static const char *const keys[] = {"hostname", "message_size_limit", "recipient_limit",
                                   "slices", "control"};

/* --- The daemon ------------------------------------------------------------------- */

static void
about_format(const struct options *o, struct buffer *out)
{
    bool good = buffer_format(
        out,
        "# Settings that sendmail(1) and mailq(1) need when they cannot "
        "read the settings.\nhostname = %s\n"
        "message_size_limit = %" PRId64 "\n"
        "recipient_limit = %d\nslices = %" PRId64 "\n",
        o->hostname, o->message_size_limit, o->server.recipient_limit, o->slices);
    if (good && o->slices == 1) /* else each slice has its own */
        (void)!buffer_format(out, "control = %s\n", o->control);
}

/* Renamed into place: a reader never sees half of it. Not synced, since each start
 * writes it anew. */
void
about_write(struct disk *spool, const struct options *options)
{
    struct buffer out;
    (void)disk_unlink(spool, draft); /* of one that died */
    int file = disk_create(spool, draft, 0644);
    if (file < 0)
        return;
    buffer_init(&out, ABOUT_MAX);
    about_format(options, &out);
    int result = disk_write(spool, file, buffer_text(&out));
    disk_close_file(spool, file);
    if (result == 0)
        result = disk_rename(spool, draft, path);
    if (result < 0)
        (void)disk_unlink(spool, draft);
    buffer_free(&out);
}

/* --- The command ------------------------------------------------------------------ */

static bool
is_about(struct text key)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (text_equal(key, text_from(keys[i])))
            return true;
    return false;
}

/* After an error the value is 0 or NULL. */
static bool
is_usable(const struct options *o, struct text key)
{
    if (text_equal(key, TEXT("hostname")))
        return o->hostname && address_is_domain(text_from(o->hostname));
    if (text_equal(key, TEXT("message_size_limit")))
        return o->message_size_limit > 0;
    if (text_equal(key, TEXT("recipient_limit")))
        return o->server.recipient_limit > 0;
    if (text_equal(key, TEXT("slices")))
        return o->slices > 0;
    return o->control != NULL;
}

static bool
are_usable(const struct options *o)
{
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        if (!is_usable(o, text_from(keys[i])))
            return false;
    return o->spool != NULL;
}

/* Replaces a default or an invalid value; the line may be invalid, too. */
static void
about_take_line(struct settings *s, const struct options *o,
                const struct settings_line *line)
{
    struct buffer setting;
    if (line->error || !is_about(line->key) ||
        (settings_origin(s, line->key) != NULL && is_usable(o, line->key)))
        return;
    buffer_init(&setting, ABOUT_MAX);
    if (buffer_format(&setting, "%.*s=%.*s", TEXT_ARGS(line->key),
                      TEXT_ARGS(line->value)) &&
        buffer_add_byte(&setting, '\0'))
        /* The strongest source: an invalid value in the file of settings would win
         * otherwise. */
        settings_read_argument(s, setting.at);
    buffer_free(&setting);
}

/* False: no daemon has left anything there. A value of the daemon counts only where the
 * caller's settings have none that is usable. */
static bool
take_about(struct settings *s, struct options *o)
{
    char full[ABOUT_PATH_MAX], *content;
    size_t length;
    struct settings_file file;
    struct settings_line line;
    int used = snprintf(full, sizeof(full), "%s/%s", o->spool ? o->spool : "", path);
    if (used < 0 || used >= (int)sizeof(full) ||
        disk_read_regular(full, ABOUT_MAX, &content, &length) < 0)
        return false;
    settings_file_start(&file, text_of(content, length));
    while (settings_file_next(&file, &line))
        about_take_line(s, o, &line);
    settings_file_end(&file);
    free(content);
    settings_apply(s);
    options_fill_sections(o);
    return true;
}

/* Whether the file is there and not for the caller. */
static bool
is_denied(struct text errors)
{
    struct text line;
    text_cut(&errors, '\n', &line);
    return errors.length == 0 &&
           memmem(line.at, line.length, "cannot read", strlen("cannot read")) &&
           memmem(line.at, line.length, strerror(EACCES), strlen(strerror(EACCES)));
}

/* The spool that is meant is certain: it was named, or a daemon has served the one that
 * is everybody's, and no other settings were asked for. */
static bool
is_spool_certain(const struct options_sources *sources, const struct settings *s,
                 const struct options *o, bool has_about)
{
    return settings_origin(s, TEXT("spool")) != NULL ||
           (sources->file == NULL && has_about && o->spool &&
            strcmp(o->spool, system_spool) == 0);
}

struct settings *
about_read(const struct options_sources *sources, struct options *options)
{
    struct settings *s = options_read(sources, options);
    char *errors = text_string(settings_errors(s));
    struct text all = text_from(errors), first;
    bool denied = is_denied(all);
    if (all.length == 0) {
        /* A program beside the daemon's container may know no more than the spool. */
        if (settings_origin(s, TEXT("spool")) != NULL &&
            settings_origin(s, TEXT("hostname")) == NULL)
            (void)take_about(s, options);
        free(errors);
        return s;
    }
    bool has_about = take_about(s, options);
    text_cut(&all, '\n', &first);
    if (!is_spool_certain(sources, s, options, has_about) || !are_usable(options)) {
        fputs(errors, stderr);
        settings_free(&s);
    } else if (!denied || !has_about) {
        fprintf(stderr,
                "petrel: warning: %.*s; continuing without it (`petrel check` shows "
                "all errors)\n",
                TEXT_ARGS(first));
    }
    free(errors);
    return s;
}
