/* Reads the files, has the settings checked, writes them, and reports each line. */
#include "admin/import/import_command.h"

#include "admin/import/import.h"
#include "admin/settings/complaint.h"
#include "admin/settings/whole_file.h"
#include "admin/view/terminal.h"
#include "base/json_field.h"
#include "base/memory.h"
#include "mime/alias.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    IMPORT_ERRORS_MAX = 64 * 1024,
    IMPORT_ARGUMENTS_MAX = 20,
    IMPORT_WHY_MAX = 2400
};

static const char *const import_fates[] = {"unknown", "taken", "needless", "left"};
static const char import_program[] = "petrel import";
static const char import_default[] = "/etc/petrel/petrel.conf";
static const char import_user[] = "petrel";

struct import_run {
    struct import im;
    const struct init_helpers *helpers;
    const char *files[IMPORT_ARGUMENTS_MAX];
    size_t file_count;
    const char *from, *output;
    bool force, json;
    struct buffer settings;
};

static int
import_usage(void)
{
    fputs("usage: petrel import [--from KIND] [--output FILE [--force]] [--json] "
          "FILE...\n"
          "       KIND: postfix, msmtp, ssmtp, nullmailer, dma, opensmtpd, exim\n",
          stderr);
    return EX_USAGE;
}

static bool
import_take_arguments(struct import_run *r, int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        const char **value = strcmp(arguments[i], "--from") == 0     ? &r->from
                             : strcmp(arguments[i], "--output") == 0 ? &r->output
                                                                     : NULL;
        bool *flag = strcmp(arguments[i], "--force") == 0  ? &r->force
                     : strcmp(arguments[i], "--json") == 0 ? &r->json
                                                           : NULL;
        if (flag != NULL)
            *flag = true;
        else if (value != NULL && *value == NULL && i + 1 < count)
            *value = arguments[++i];
        else if (value == NULL && arguments[i][0] != '-' &&
                 r->file_count < IMPORT_ARGUMENTS_MAX)
            r->files[r->file_count++] = arguments[i];
        else
            return false;
    }
    return r->file_count > 0 && (!r->force || r->output != NULL);
}

/* --- Reading ---------------------------------------------------------------------- */

/* A directory has no content of its own: it is nullmailer's. */
static int
import_read_one(struct import_run *r, const char *path)
{
    struct import *im = &r->im;
    struct disk_info info;
    struct text content = TEXT("");
    const char *name = path, *why;
    bool is_directory = disk_look(path, &info) == 0 && info.kind == DISK_DIRECTORY;
    if (!is_directory && !import_read(im, NULL, path, &content, &name, &why))
        return complaint_say(import_program, EX_NOINPUT, why, "");
    if (im->kind == NULL && r->from == NULL)
        im->kind = is_directory ? &import_nullmailer : import_guess(path, content);
    if (im->kind == NULL)
        return complaint_say(import_program, EX_DATAERR,
                             "no program that is known here has such a file; name the "
                             "program, --from postfix",
                             path);
    im->kind->read(im, name, content);
    return 0;
}

static int
import_read_all(struct import_run *r)
{
    int code = 0;
    if (r->from != NULL && (r->im.kind = import_named(text_from(r->from))) == NULL)
        return import_usage();
    for (size_t i = 0; i < r->file_count && code == 0; i++)
        code = import_read_one(r, r->files[i]);
    if (code == 0 && r->im.count == 0)
        return complaint_say(import_program, EX_DATAERR,
                             "no line of these files is a setting", r->files[0]);
    return code;
}

/* --- The check -------------------------------------------------------------------- */

static char *
import_override(const struct import_setting *s)
{
    struct buffer b;
    buffer_init(&b, IMPORT_TEXT_MAX + 200);
    (void)!buffer_format(&b, "%s=%.*s", s->key, TEXT_ARGS(buffer_text(&s->value)));
    char *override = text_string(buffer_text(&b));
    buffer_free(&b);
    return override;
}

/* "command line: KEY: why": the setting is left out. False: it is none of ours. */
static bool
import_blame(struct import *im, struct text errors)
{
    struct text line = text_before(errors, text_find(errors, '\n'));
    static const struct text place = {"command line: ", 14};
    if (text_starts(line, place))
        line = text_after(line, place.length);
    struct text key = text_before(line, text_find(line, ':'));
    bool is_pair = text_equal(key, TEXT("tls_certificate")); /* each needs the other */
    bool found = false;
    for (size_t i = 0; i < im->setting_count; i++) {
        struct import_setting *s = &im->settings[i];
        bool is_it = text_equal(key, text_from(s->key)) ||
                     (is_pair && strcmp(s->key, "tls_key") == 0);
        if (!is_it || s->error != NULL)
            continue;
        s->error = import_format(im, "`petrel check` says: %.*s",
                                 TEXT_ARGS(text_before(line, 400)));
        found = true;
    }
    return found;
}

/* Files that are made are not there yet; and targets may have users with passwords. */
static bool
import_is_checked(const struct import *im, const struct import_setting *s,
                  bool with_secrets)
{
    bool is_target = strcmp(s->key, "relay") == 0 || strcmp(s->key, "routes") == 0 ||
                     strcmp(s->key, "sender_routes") == 0;
    bool is_made = strcmp(s->key, "auth_passwords") == 0 ||
                   (strcmp(s->key, "aliases") == 0 && im->aliases.length > 0);
    return s->error == NULL && !is_made && !import_waits(im, s) &&
           !(is_target && with_secrets);
}

/* As a daemon with these settings would: without secrets, and then with them (files of
 * keys), but without targets. Settings that it refuses go, one after the other. */
static int
import_check(struct import_run *r, bool with_secrets)
{
    struct import *im = &r->im;
    char *overrides[IMPORT_SETTINGS_MAX + 1], *const environment[] = {NULL};
    for (size_t tries = 0; tries <= IMPORT_SETTINGS_MAX; tries++) {
        struct buffer errors;
        size_t used = 0;
        buffer_init(&errors, IMPORT_ERRORS_MAX);
        for (size_t i = 0; i < im->setting_count; i++)
            if (import_is_checked(im, &im->settings[i], with_secrets))
                overrides[used++] = import_override(&im->settings[i]);
        overrides[used] = NULL;
        struct options_sources sources = {.file = "/dev/null",
                                          .overrides = overrides,
                                          .environment = environment,
                                          .without_secrets = !with_secrets};
        bool good = r->helpers->check(&sources, &errors);
        bool blamed = !good && import_blame(im, buffer_text(&errors));
        if (!good && !blamed)
            complaint_write(&errors);
        buffer_free(&errors);
        while (used > 0)
            free(overrides[--used]);
        if (good)
            return 0;
        if (!blamed)
            return EX_CONFIG;
    }
    return EX_CONFIG;
}

/* The daemon reads it when it starts. */
static void
import_check_ca(struct import *im)
{
    struct disk_info info;
    for (size_t i = 0; i < im->setting_count; i++) {
        struct import_setting *s = &im->settings[i];
        const char *path = import_keep(im, buffer_text(&s->value));
        if (strcmp(s->key, "tls_ca") == 0 && disk_look(path, &info) != 0)
            s->error = import_format(im, "%s cannot be read", path);
    }
}

/* --- Writing ---------------------------------------------------------------------- */

struct import_file {
    const char *name;
    struct text content; /* empty: it is not written */
    unsigned mode;
};

static int
import_complain(const struct import_run *r, const char *name, int error)
{
    char why[IMPORT_WHY_MAX];
    snprintf(why, sizeof(why), "%.1000s/%.255s: %s", r->im.directory, name,
             error == -EEXIST
                 ? "it is there already; run it with --force to replace it, or "
                   "with another --output"
                 : strerror(-error));
    return complaint_say(import_program,
                         error == -EACCES || error == -EPERM || error == -EROFS
                             ? EX_NOPERM
                             : EX_CANTCREAT,
                         why, "");
}

/* 0 or -errno: it cannot have its place. */
static int
import_may_put(const struct import_run *r, struct disk *disk,
               const struct import_file *f)
{
    struct disk_info info;
    if (f->content.length == 0 || disk_inspect(disk, f->name, &info) != 0)
        return 0;
    return r->force && info.kind == DISK_FILE ? 0 : -EEXIST;
}

static int
import_prepare(struct disk *disk, const struct import_file *f)
{
    struct identity who;
    bool is_given =
        geteuid() == 0 && f->mode == 0600 && identity_find(&who, import_user);
    return f->content.length == 0 ? 0
                                  : whole_file_prepare(disk, f->name, f->content,
                                                       f->mode, is_given ? &who : NULL);
}

/* All of them, or none: each is checked and written before the first has its place. The
 * settings come last: they name the others. */
static int
import_put_all(const struct import_run *r, struct disk *disk,
               const struct import_file *files, size_t count)
{
    size_t i, prepared = 0;
    int error = 0;
    for (i = count; i > 0 && error == 0; i--)
        error = import_may_put(r, disk, &files[i - 1]);
    if (error != 0)
        return import_complain(r, files[i].name, error);
    for (; prepared < count && error == 0; prepared++)
        error = import_prepare(disk, &files[prepared]);
    for (i = 0; i < count && error == 0; i++)
        if (files[i].content.length > 0)
            error = whole_file_place(disk, files[i].name, r->force);
    for (size_t n = 0; n < prepared && error != 0; n++)
        whole_file_drop(disk, files[n].name);
    return error == 0
               ? 0
               : import_complain(r, files[i > 0 ? i - 1 : prepared - 1].name, error);
}

static int
import_put_files(struct import_run *r)
{
    struct disk *disk;
    const char *slash = strrchr(r->output, '/');
    const struct import_file files[] = {
        {"passwords",                           buffer_text(&r->im.passwords), 0600},
        {"aliases.imported",                    buffer_text(&r->im.aliases),   0644},
        {slash != NULL ? slash + 1 : r->output, buffer_text(&r->settings),     0644},
    };
    int error = disk_open(&disk, r->im.directory, false);
    if (error != 0)
        return complaint_say(
            import_program, EX_CANTCREAT,
            import_format(&r->im, "%s: %s", r->im.directory, strerror(-error)), "");
    int code = import_put_all(r, disk, files, sizeof(files) / sizeof(files[0]));
    disk_close(&disk);
    return code;
}

/* Files that cannot be written beside standard output. */
static void
import_print(const struct import_run *r)
{
    struct text rest = buffer_text(&r->im.aliases), line;
    struct terminal out;
    fwrite(r->settings.at, 1, r->settings.length, stdout);
    if (rest.length > 0)
        printf("\n# This is to be in %s/aliases.imported:\n", r->im.directory);
    terminal_start(&out, stdout, isatty(STDOUT_FILENO) != 0);
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        if (line.length > 0) {
            terminal_write(&out, TEXT("#   "));
            terminal_write(&out, line);
            terminal_write(&out, TEXT("\n"));
        }
    terminal_end(&out);
    if (r->im.passwords.length > 0)
        fprintf(stderr,
                "petrel import: passwords are not printed: --output FILE writes them "
                "into a file beside it\n");
}

/* --- The report ------------------------------------------------------------------- */

/* A line that is none of a setting may have a password at any place but the first. */
static struct text
import_shown(const struct import_line *l)
{
    struct text name = text_before(text_from(l->name), 200);
    size_t end = 0;
    if (l->fate != IMPORT_UNKNOWN && (!l->is_login || l->fate == IMPORT_TAKEN))
        return name;
    while (end < name.length && strchr(" \t:|", name.at[end]) == NULL)
        end++;
    return text_before(name, end);
}

static json_t *
import_json(const struct import_run *r)
{
    const struct import *im = &r->im;
    json_t *lines = json_array(), *settings = json_array();
    for (size_t i = 0; i < im->count; i++) {
        const struct import_line *l = &im->lines[i];
        struct text name = import_shown(l);
        json_t *line =
            json_pack("{s:s,s:i,s:s%,s:s}", "file", l->file, "line", (int)l->number,
                      "name", text_is_utf8(name) ? name.at : "?",
                      text_is_utf8(name) ? name.length : (size_t)1, "result",
                      import_fates[l->fate]);
        if (l->fate == IMPORT_TAKEN && l->setting != NULL)
            json_object_set_new(line, "setting", json_string(l->setting));
        if (l->why != NULL)
            json_object_set_new(line, "text", json_string(l->why));
        json_array_append_new(lines, line);
    }
    for (size_t i = 0; i < im->setting_count; i++)
        if (im->settings[i].error == NULL)
            json_array_append_new(settings, json_string(im->settings[i].key));
    return json_pack("{s:s,s:s,s:o,s:o}", "from", im->kind->name, "config",
                     r->output == NULL ? r->settings.at : "", "settings", settings,
                     "lines", lines);
}

static void
import_report(const struct import_run *r)
{
    static const char *const texts[] = {"unknown, and not imported", "", "not needed",
                                        "NOT IMPORTED"};
    const struct import *im = &r->im;
    size_t counts[4] = {0};
    struct terminal out;
    struct buffer line;
    terminal_start(&out, stderr, isatty(STDERR_FILENO) != 0);
    buffer_init(&line, IMPORT_VALUE_MAX);
    for (size_t i = 0; i < im->count; i++) {
        const struct import_line *l = &im->lines[i];
        bool taken = l->fate == IMPORT_TAKEN;
        counts[l->fate]++;
        buffer_clear(&line);
        (void)!buffer_format(
            &line, "%s:%u: %.*s: %s%s%s%s%s%s\n", l->file, l->number,
            TEXT_ARGS(import_shown(l)), l->setting != NULL ? "-> " : "",
            l->setting != NULL ? l->setting : "",
            l->setting != NULL && (!taken || l->why != NULL) ? "; " : "",
            texts[l->fate], l->why != NULL && !taken ? ": " : "",
            l->why != NULL ? l->why : "");
        terminal_write(&out, buffer_text(&line));
    }
    terminal_end(&out);
    buffer_free(&line);
    fprintf(stderr,
            "petrel import: %s: %zu lines taken, %zu not needed, %zu not imported, %zu "
            "unknown\n",
            im->kind->name, counts[IMPORT_TAKEN], counts[IMPORT_NEEDLESS],
            counts[IMPORT_LEFT], counts[IMPORT_UNKNOWN]);
}

/* --- The run ---------------------------------------------------------------------- */

static int
import_finish(struct import_run *r)
{
    struct identity who;
    int code;
    import_run(&r->im);
    if (geteuid() == 0 && identity_find(&who, import_user) && who.change)
        import_put(&r->im, NULL, "user", import_user);
    import_check_ca(&r->im);
    if ((code = import_check(r, false)) != 0 || (code = import_check(r, true)) != 0)
        return complaint_say(import_program, code, "these settings cannot be used", "");
    import_settle(&r->im);
    import_write(&r->im, &r->settings);
    if (!buffer_add_byte(&r->settings, '\0'))
        return complaint_say(import_program, EX_DATAERR,
                             "the settings are longer than 4 MiB", "");
    r->settings.length--;
    if (r->output != NULL && (code = import_put_files(r)) != 0)
        return code;
    if (r->json) {
        json_t *report = import_json(r);
        json_field_print(report);
        json_decref(report);
    } else {
        if (r->output == NULL)
            import_print(r);
        (void)fflush(stdout);
        import_report(r);
    }
    return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : 0;
}

/* The steps that are left. The sender stays as the other program had it: `init` asks. */
static void
import_say_next(const struct import_run *r)
{
    bool is_usual = strcmp(r->output, import_default) == 0;
    char self[IMPORT_WHY_MAX];
    snprintf(self, sizeof(self), is_usual ? "petrel" : "petrel -c %.1000s", r->output);
    if (r->im.lacks_password != NULL || import_lacks_relay(&r->im))
        fputs("petrel import: mail is kept (routes = * hold): the comments in the file "
              "say what is missing\n",
              stderr);
    else if (import_has(&r->im, "auth_passwords") && !import_has(&r->im, "rewrite"))
        fputs("petrel import: mail of root and cron leaves as root@ this host, which "
              "many smarthosts refuse: `rewrite = local ADDRESS` gives it a sender of "
              "the account\n",
              stderr);
    fprintf(stderr,
            "petrel import: written: %s; next: %s, and %s test you@example.org\n",
            r->output,
            is_usual && geteuid() == 0
                ? "systemctl enable petrel && systemctl restart petrel"
                : self,
            self);
}

/* The file that was written is read as the daemon will. */
static int
import_verify(const struct import_run *r)
{
    char *const nothing[] = {NULL};
    struct options_sources sources = {
        .file = r->output, .overrides = nothing, .environment = nothing};
    struct buffer errors;
    buffer_init(&errors, IMPORT_ERRORS_MAX);
    bool good = r->helpers->check(&sources, &errors);
    complaint_write(&errors);
    buffer_free(&errors);
    if (good && !r->json)
        import_say_next(r);
    return good ? 0 : EX_CONFIG;
}

static const char *
import_directory(struct import_run *r)
{
    const char *path = r->output != NULL ? r->output : import_default;
    char here[1024] = "";
    if (path[0] != '/' && getcwd(here, sizeof(here)) == NULL)
        here[0] = '\0';
    const char *slash = strrchr(path, '/');
    int length = slash != NULL ? (int)(slash - path) : 0;
    if (slash == path)
        return "/";
    return import_format(&r->im, "%s%s%.*s", here,
                         here[0] != '\0' && length > 0 ? "/" : "", length, path);
}

int
import_command(int count, char **arguments, const struct init_helpers *helpers)
{
    struct import_run *r = memory_new(sizeof(*r));
    import_init(&r->im, "");
    buffer_init(&r->settings, 4 * IMPORT_TEXT_MAX);
    r->helpers = helpers;
    int code = import_take_arguments(r, count, arguments) ? 0 : import_usage();
    r->im.directory = import_directory(r);
    if (code == 0)
        code = import_read_all(r);
    if (code == 0)
        code = import_finish(r);
    if (code == 0 && r->output != NULL)
        code = import_verify(r);
    buffer_free(&r->settings);
    import_free(&r->im);
    free(r);
    return code;
}
