/* Asks, checks each answer as the daemon would, writes, and names the next steps. */
#include "admin/setup/init_command.h"

#include "admin/settings/complaint.h"
#include "admin/setup/init_files.h"
#include "admin/setup/init_plan.h"
#include "admin/tool/prompt.h"
#include "base/disk/disk.h"
#include "base/memory.h"
#include "base/sandbox/identity.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

enum {
    INIT_TRIES = 3,
    INIT_ERRORS_MAX = 64 * 1024,
    INIT_TEXT_MAX = 2048,
    INIT_COLUMNS = 78,
    INIT_INTERRUPTED = 130
};

static const char init_program[] = "petrel init";
static const char init_default_file[] = "/etc/petrel/petrel.conf";
static const char init_daemon_user[] = "petrel";

struct init_row {
    const char *flag, *name, *why, *form; /* form: of an answer that is taken */
};

/* clang-format off */
static const struct init_row init_rows[INIT_QUESTIONS] = {
    [INIT_HOSTNAME] = {"--hostname", "Name of this host",
        "Other servers look it up; write HOST.DOMAIN.",
        "HOST.DOMAIN"},
    [INIT_RELAY] = {"--relay", "Where mail goes",
        "A provider's name, submission://HOST, mx (direct: needs port 25 and records in "
        "DNS),\nor hold (keep it until you decide).",
        "a provider's name, submission://HOST, mx or hold"},
    [INIT_USER] = {"--relay-user", "User there",
        "Most providers want a login; often it is the mail address.",
        "the user as the provider has it"},
    [INIT_LISTEN] = {"--listen", "Clients that may send mail here",
        "local (programs of this host), or networks such as 192.168.1.0/24.",
        "local, or networks such as 192.168.1.0/24"},
    [INIT_ROOT] = {"--root", "Reader of the mail of root and cron",
        "An address, or none.",
        "NAME@DOMAIN, or none"},
    [INIT_HTTP] = {"--http", "Where health checks and metrics are read",
        "127.0.0.1:8025, or none; `petrel page` works without it.",
        "127.0.0.1:8025, or none"},
    [INIT_SENDER] = {"--sender", "Sender of the mail of root, cron and other programs",
        "An address that the smarthost accepts as yours, or none (as it comes, root@HOST).",
        "NAME@DOMAIN, or none"},
};
/* clang-format on */

struct init_run {
    const struct options_sources *sources;
    const struct init_helpers *helpers;
    struct init_plan plan;
    struct init_files files;
    const char *given[INIT_QUESTIONS], *password_file;
    bool yes, print, force, asks;
    struct text password;
    char *password_memory;
    size_t password_size;
    char hostname[INIT_ANSWER_MAX];
};

/* --- Arguments -------------------------------------------------------------------- */

static int
init_usage(void)
{
    fputs("usage: petrel init [--yes] [--print] [--force] [--hostname NAME]\n"
          "       [--relay PROVIDER|URL|mx|hold] [--relay-user USER] "
          "[--password-file FILE]\n"
          "       [--listen local|NETWORKS] [--root ADDRESS] [--http ADDRESS|none]\n"
          "       [--sender ADDRESS|none]\n",
          stderr);
    return EX_USAGE;
}

static bool
init_take_flag(struct init_run *r, const char *name)
{
    bool *flag = strcmp(name, "--yes") == 0     ? &r->yes
                 : strcmp(name, "--print") == 0 ? &r->print
                 : strcmp(name, "--force") == 0 ? &r->force
                                                : NULL;
    if (flag != NULL)
        *flag = true;
    return flag != NULL;
}

static bool
init_take_arguments(struct init_run *r, int count, char **arguments)
{
    for (int i = 0; i < count; i++) {
        if (init_take_flag(r, arguments[i]))
            continue;
        const char **value =
            strcmp(arguments[i], "--password-file") == 0 ? &r->password_file : NULL;
        for (int q = 0; q < INIT_QUESTIONS && value == NULL; q++)
            if (strcmp(arguments[i], init_rows[q].flag) == 0)
                value = &r->given[q];
        if (value == NULL || *value != NULL || i + 1 == count)
            return false;
        *value = arguments[++i];
    }
    return true;
}

/* --- Answers ---------------------------------------------------------------------- */

/* "command line: relay: x" is about this answer: only "x" is for people. Without
 * question: with the key. */
static void
init_first_error(struct text errors, enum init_question q, char why[INIT_WHY_MAX])
{
    struct text line = text_before(errors, text_find(errors, '\n'));
    bool is_answer = q < INIT_QUESTIONS;
    for (int i = 0; i < (is_answer ? 2 : 1); i++) {
        size_t colon = text_find(line, ':');
        if (colon != TEXT_NONE)
            line = text_trim(text_after(line, colon + 1));
    }
    line = text_before(line, INIT_WHY_MAX - 80);
    bool helps = memmem(line.at, line.length, "write ", 6) != NULL ||
                 memmem(line.at, line.length, "use ", 4) != NULL;
    snprintf(why, INIT_WHY_MAX, "%.*s%s%s", TEXT_ARGS(line),
             helps       ? ""
             : is_answer ? "; write "
                         : "; run it again",
             helps || !is_answer ? "" : init_rows[q].form);
}

/* As a daemon with these settings would. q: the answer that is new. */
static bool
init_check(const struct init_run *r, enum init_question q, char why[INIT_WHY_MAX])
{
    struct init_setting *settings = memory_array(INIT_SETTINGS_MAX, sizeof(*settings));
    char *overrides[INIT_SETTINGS_MAX + 1] = {NULL}, *const environment[] = {NULL};
    size_t count = init_plan_settings(&r->plan, "/dev/null", settings), i;
    struct buffer errors;
    buffer_init(&errors, INIT_ERRORS_MAX);
    for (i = 0; i < count; i++) {
        struct buffer b;
        buffer_init(&b, 2 * INIT_VALUE_MAX);
        if (strcmp(settings[i].key, "relay_password_file") == 0)
            (void)!buffer_add(&b, TEXT("relay_password=x")); /* it will be there */
        else
            (void)!buffer_format(&b, "%s=%s", settings[i].key, settings[i].value);
        overrides[i] = text_string(buffer_text(&b));
        buffer_free(&b);
    }
    struct options_sources sources = {
        .file = "/dev/null", .overrides = overrides, .environment = environment};
    bool good = r->helpers->check(&sources, &errors);
    if (!good)
        init_first_error(buffer_text(&errors), q, why);
    for (i = 0; i < count; i++)
        free(overrides[i]);
    buffer_free(&errors);
    free(settings);
    return good;
}

/* False: the plan is as before. */
static bool
init_accept(struct init_run *r, enum init_question q, struct text answer,
            char why[INIT_WHY_MAX])
{
    struct init_plan *before = memory_new(sizeof(*before));
    *before = r->plan;
    bool good = init_plan_take(&r->plan, q, answer, why) && init_check(r, q, why);
    if (!good)
        r->plan = *before;
    free(before);
    return good;
}

static int
init_ended(enum prompt_result result)
{
    if (result == PROMPT_INTERRUPTED) {
        fputs("petrel init: interrupted, nothing was written; run it again\n", stderr);
        return INIT_INTERRUPTED;
    }
    fputs("\npetrel init: the input has ended, nothing was written; run it again, or "
          "give the answers as flags with --yes\n",
          stderr);
    return EX_DATAERR;
}

/* In lines that a terminal does not break. */
static void
init_list_providers(struct buffer *out)
{
    size_t begin = 0, blank = 0;
    (void)!buffer_add(out, TEXT("Providers: "));
    init_plan_providers(out);
    for (size_t i = 0; i < out->length; i++) {
        if (i - begin > INIT_COLUMNS && blank > begin) {
            out->at[blank] = '\n';
            begin = blank + 1;
        }
        if (out->at[i] == ' ')
            blank = i;
    }
}

static void
init_write_question(const struct init_run *r, enum init_question q, const char *preset,
                    char out[INIT_TEXT_MAX])
{
    const struct init_row *row = &init_rows[q];
    struct buffer providers;
    buffer_init(&providers, INIT_TEXT_MAX);
    if (q == INIT_RELAY)
        init_list_providers(&providers);
    if (q == INIT_USER && r->plan.facts != NULL && r->plan.facts->user[0] != '\0')
        (void)!buffer_format(&providers, "%s: %s", r->plan.facts->name,
                             r->plan.facts->user);
    bool more = providers.length > 0;
    snprintf(out, INIT_TEXT_MAX, "\n%d. %s (%s)\n%s\n%.*s%s%s%s%s> ", (int)q + 1,
             row->name, row->flag, row->why, TEXT_ARGS(buffer_text(&providers)),
             more ? "\n" : "", preset != NULL ? "[" : "", preset != NULL ? preset : "",
             preset != NULL ? "] " : "");
    buffer_free(&providers);
}

static int
init_ask(struct init_run *r, enum init_question q, const char *preset)
{
    char question[INIT_TEXT_MAX], line[PROMPT_LINE_MAX], why[INIT_WHY_MAX];
    init_write_question(r, q, preset, question);
    for (int i = 0; i < INIT_TRIES; i++) {
        struct text answer;
        enum prompt_result result =
            prompt_ask(i == 0 ? question : "> ", false, line, &answer);
        if (result == PROMPT_ENDED || result == PROMPT_INTERRUPTED)
            return init_ended(result);
        if (answer.length == 0 && preset != NULL)
            answer = text_from(preset);
        if (result == PROMPT_LONG)
            snprintf(why, sizeof(why), "the answer is too long; write a shorter one");
        else if (init_accept(r, q, answer, why))
            return 0;
        (void)complaint_say(init_program, 0, why, "");
    }
    return complaint_say(init_program, EX_DATAERR,
                         "three answers were wrong, nothing was written; read "
                         "petrel.conf(5) and run it again",
                         "");
}

static int
init_missing(const struct init_run *r, const char *flag, const char *value)
{
    char what[INIT_WHY_MAX];
    snprintf(what, sizeof(what), "an answer is missing%s; add %s (%s), or run it %s",
             r->yes ? "" : ", and standard input is not a terminal", flag, value,
             r->yes ? "without --yes" : "on a terminal");
    return complaint_say(init_program, EX_USAGE, what, "");
}

static int
init_answer(struct init_run *r, enum init_question q)
{
    char why[INIT_WHY_MAX], what[INIT_WHY_MAX + 40];
    const char *preset = init_plan_preset(&r->plan, q), *given = r->given[q];
    if (!init_plan_asks(&r->plan, q) && given != NULL)
        return complaint_say(
            init_program, EX_USAGE,
            q == INIT_SENDER
                ? "--sender needs a smarthost; remove it, or write "
                  "--relay submission://HOST"
                : "--relay-user needs one smarthost that is named without a "
                  "user; remove it, or write --relay submission://HOST",
            "");
    if (!init_plan_asks(&r->plan, q))
        return 0;
    if (given == NULL && r->asks && !init_plan_derives(&r->plan, q))
        return init_ask(r, q, preset);
    if (given == NULL && preset == NULL)
        return init_missing(r, init_rows[q].flag, init_rows[q].form);
    if (init_accept(r, q, text_from(given != NULL ? given : preset), why))
        return 0;
    snprintf(what, sizeof(what), "%s: %s", init_rows[q].flag, why);
    return complaint_say(init_program, EX_DATAERR, what, "");
}

/* --- The password ----------------------------------------------------------------- */

static const char *
init_password_error(struct text password)
{
    if (password.length == 0)
        return "the password is empty; write it";
    if (password.length > INIT_PASSWORD_MAX)
        return "the password is too long; write at most 1,024 bytes";
    if (text_has_control(password))
        return "the password has control characters; write one line of plain text";
    return NULL;
}

static int
init_read_password(struct init_run *r)
{
    int error = disk_read_whole(r->password_file, INIT_PASSWORD_MAX + 2,
                                &r->password_memory, &r->password_size);
    if (error < 0)
        return complaint_say(init_program, EX_NOINPUT,
                             error == -EFBIG
                                 ? "--password-file is too long; write at most 1,024 "
                                   "bytes into it"
                                 : "--password-file cannot be read; name a file that "
                                   "has the password as its only line",
                             r->password_file);
    size_t length = r->password_size;
    while (length > 0 && (r->password_memory[length - 1] == '\n' ||
                          r->password_memory[length - 1] == '\r'))
        length--;
    r->password = text_of(r->password_memory, length);
    const char *why = init_password_error(r->password);
    return why == NULL ? 0 : complaint_say(init_program, EX_DATAERR, why, "");
}

static int
init_ask_password(struct init_run *r)
{
    bool may_be_empty = init_plan_oauth(&r->plan) != NULL;
    r->password_size = PROMPT_LINE_MAX;
    r->password_memory = memory_new(PROMPT_LINE_MAX);
    for (int i = 0; i < INIT_TRIES; i++) {
        enum prompt_result result =
            prompt_ask(may_be_empty ? "   Password (empty: log in with OAuth2): "
                                    : "   Password: ",
                       true, r->password_memory, &r->password);
        if (result == PROMPT_ENDED || result == PROMPT_INTERRUPTED)
            return init_ended(result);
        if (may_be_empty && r->password.length == 0 && result == PROMPT_GOOD) {
            r->plan.has_oauth = true;
            return 0;
        }
        const char *why = result == PROMPT_LONG
                              ? "the password is too long; write at most 1,024 bytes"
                              : init_password_error(r->password);
        if (why == NULL)
            return 0;
        (void)complaint_say(init_program, 0, why, "");
    }
    return complaint_say(
        init_program, EX_DATAERR,
        "three passwords were wrong, nothing was written; run it again", "");
}

static int
init_password(struct init_run *r)
{
    if (!init_plan_needs_password(&r->plan))
        return r->password_file == NULL
                   ? 0
                   : complaint_say(init_program, EX_USAGE,
                                   "--password-file needs a user; remove it, or add "
                                   "--relay-user",
                                   "");
    if (r->password_file != NULL)
        return init_read_password(r);
    if (r->asks)
        return init_ask_password(r);
    r->plan.has_oauth = init_plan_oauth(&r->plan) != NULL;
    return r->plan.has_oauth ? 0
                             : init_missing(r, "--password-file",
                                            "a file whose only line is the password");
}

/* --- The end ---------------------------------------------------------------------- */

static void
init_say_oauth(const struct init_run *r, const char *self)
{
    bool is_google = strcmp(init_plan_oauth(&r->plan), "google") == 0;
    printf("Mail is kept, because there is no password. ");
    if (is_google)
        printf("Make an app password at %s, and give it to\n  %s init --force\n"
               "or log in with OAuth2. For that register",
               r->plan.facts->name, self);
    else
        printf("%s wants OAuth2: register", r->plan.facts->name);
    printf(" an application there, follow the\nlast lines of the settings, and then "
           "run\n  %s oauth login %s %s\n  %s queue release --all\n",
           self, r->plan.host, r->plan.user, self);
}

static int
init_end(const struct init_run *r, const char *path)
{
    char self[INIT_PATH_MAX + 40];
    bool is_usual = strcmp(path, init_default_file) == 0;
    struct options_sources sources = *r->sources;
    sources.file = path;
    snprintf(self, sizeof(self), is_usual ? "petrel" : "petrel -c %.1000s", path);
    printf("Written: %s%s%s\n\n", path, r->password.length > 0 ? ", " : "",
           r->password.length > 0 ? r->files.password : "");
    (void)fflush(stdout);
    /* While mail is kept nobody can object to it. */
    if (r->plan.way != INIT_HOLD && !r->plan.has_oauth) {
        (void)r->helpers->examine(&sources);
        puts("");
    }
    if (r->plan.has_oauth)
        init_say_oauth(r, self);
    if (r->plan.way == INIT_HOLD)
        printf("Mail is kept until you decide: run %s init --force, then %s queue "
               "release --all\n",
               self, self);
    if (r->plan.sender[0] != '\0')
        printf("Mail of root, cron and other programs of this host leaves as %s\n"
               "(`rewrite`): smarthosts refuse senders that they do not know.\n",
               r->plan.sender);
    printf("Next:\n  %s\n  %s test %s\n",
           is_usual && r->plan.is_root
               ? "systemctl enable petrel && systemctl restart petrel"
               : self,
           self, r->plan.root[0] != '\0' ? r->plan.root : "you@example.org");
    return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : 0;
}

static int
init_finish(struct init_run *r, const char *path)
{
    char why[INIT_FILES_WHY_MAX], wrong[INIT_WHY_MAX];
    struct buffer text;
    buffer_init(&text, INIT_FILE_MAX);
    if (!init_check(r, INIT_QUESTIONS,
                    wrong)) /* by then: a defect, or the machine has changed */
        return complaint_say(init_program, EX_CONFIG, wrong, "");
    init_plan_write(&r->plan, r->files.password, &text);
    int code = 0;
    if (r->print)
        fwrite(text.at, 1, text.length, stdout);
    else
        code = init_files_write(&r->files, buffer_text(&text), r->password,
                                r->plan.daemon_user, why);
    buffer_free(&text);
    if (code != 0)
        return complaint_say(init_program, code, why, "");
    if (r->print && init_plan_needs_password(&r->plan) && !r->plan.has_oauth)
        fprintf(
            stderr,
            "petrel init: write the password into %s, which the daemon's user alone "
            "may read\n",
            r->files.password);
    if (r->print)
        return fflush(stdout) != 0 || ferror(stdout) ? EX_IOERR : 0;
    return init_end(r, path);
}

static void
init_find(struct init_run *r)
{
    struct options options = {0};
    struct identity who;
    char *const none[] = {NULL};
    struct options_sources nothing = {.file = "/dev/null",
                                      .overrides = none,
                                      .environment = none,
                                      .without_secrets = true};
    struct settings *settings = options_read(&nothing, &options);
    snprintf(r->hostname, sizeof(r->hostname), "%s",
             options.hostname != NULL ? options.hostname : "localhost");
    settings_free(&settings);
    r->plan.found = r->hostname;
    r->plan.is_root = geteuid() == 0;
    (void)text_copy(r->plan.hostname, sizeof(r->plan.hostname), text_from(r->hostname));
    (void)text_copy(r->plan.listen, sizeof(r->plan.listen), TEXT("127.0.0.1:2525"));
    if (r->plan.is_root && identity_find(&who, init_daemon_user) && who.change)
        r->plan.daemon_user = init_daemon_user;
}

static int
init_run_all(struct init_run *r, const char *path)
{
    char why[INIT_FILES_WHY_MAX];
    int code = r->print ? init_files_name(&r->files, path, why)
                        : init_files_open(&r->files, path, r->force, why);
    if (code != 0)
        return complaint_say(init_program, code, why, "");
    init_find(r);
    for (int q = 0; q < INIT_QUESTIONS && code == 0; q++) {
        code = init_answer(r, (enum init_question)q);
        if (q == INIT_HOSTNAME && code == 0 && strchr(r->plan.hostname, '.') == NULL)
            fprintf(stderr,
                    "petrel init: warning: %s has no dot, so that other servers may "
                    "refuse mail; give the full name of this host, HOST.DOMAIN%s\n",
                    r->plan.hostname, r->asks ? "" : " (--hostname)");
        if (q == INIT_USER && code == 0)
            code = init_password(r);
        if (q == INIT_USER && code == 0 && !init_plan_needs_password(&r->plan) &&
            text_starts(text_from(r->plan.relay), TEXT("submission:")))
            fputs(
                "petrel init: warning: nobody logs in at the smarthost, and most want "
                "a login; give the user, --relay-user USER, unless yours knows this "
                "host by its address\n",
                stderr);
        if (q == INIT_SENDER && code == 0 && r->plan.way == INIT_SMARTHOST &&
            !r->asks && r->given[q] == NULL && r->plan.sender[0] == '\0')
            fprintf(stderr,
                    "petrel init: warning: mail of root and cron comes from root@%s, "
                    "which most smarthosts refuse; give an address that yours knows, "
                    "--sender NAME@DOMAIN\n",
                    r->plan.hostname);
    }
    return code != 0 ? code : init_finish(r, path);
}

int
init_command(int count, char **arguments, const struct options_sources *sources,
             const struct init_helpers *helpers)
{
    struct init_run *r = memory_new(sizeof(*r));
    const char *path = sources->file != NULL ? sources->file : init_default_file;
    r->sources = sources;
    r->helpers = helpers;
    int code = init_take_arguments(r, count, arguments) ? 0 : init_usage();
    r->asks = !r->yes && prompt_is_possible();
    if (code == 0)
        code = init_run_all(r, path);
    if (r->password_memory != NULL)
        explicit_bzero(r->password_memory, r->password_size);
    free(r->password_memory);
    init_files_close(&r->files);
    free(r);
    return code;
}
