/* Lists and changes suppressed addresses, by the daemon or without one. */
#include "admin/command/suppress_command.h"

#include "admin/answer/suppression_answer.h"
#include "admin/command/offline.h"
#include "admin/settings/complaint.h"
#include "admin/view/control_client.h"
#include "admin/view/words.h"
#include "base/disk/disk.h"
#include "base/event/event.h"
#include "base/json_field.h"
#include "queue/suppression/suppression_record.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

static const char suppress_program[] = "petrel suppress";
static const char suppress_usage[] = "usage: petrel suppress ls [--json] [TEXT]\n"
                                     "       petrel suppress add ADDRESS [REASON]\n"
                                     "       petrel suppress rm ADDRESS...\n"
                                     "       petrel suppress import [FILE]\n"
                                     "       petrel suppress export\n";

/* A request may have 32 KiB with all escapes. */
enum {
    BATCH_BYTES = 12 * 1024,
    BATCH_LINES = 250,
    LIST_BYTES_MAX = 1 << 28,
    SUPPRESS_ERROR_MAX = 512
};

struct suppress_run {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct control_client *daemon; /* NULL: */
    struct offline *offline;
    int code;
};

/* Takes the request. NULL: it was refused, which was said. */
static json_t *
suppress_ask(struct suppress_run *r, json_t *request)
{
    if (r->daemon != NULL || request == NULL)
        return r->daemon != NULL
                   ? control_client_ask(r->daemon, suppress_program, request, &r->code)
                   : NULL;
    json_t *answer =
        suppression_answer(offline_manager(r->offline), loop_now_ms(r->loop), request);
    json_decref(request);
    loop_turn(r->loop, 0); /* what has changed is written */
    if (json_field_is_true(answer, "ok"))
        return answer;
    r->code = complaint_say(suppress_program, EX_CONFIG,
                            json_field_string(answer, "error"), "");
    json_decref(answer);
    return NULL;
}

static bool
suppress_begin(struct suppress_run *r, const struct options *options)
{
    char error[SUPPRESS_ERROR_MAX], refused[SUPPRESS_ERROR_MAX];
    r->daemon = control_client_new(r->loop, options->control, refused, sizeof(refused));
    if (r->daemon != NULL)
        return true;
    if (errno == EACCES) {
        r->code = control_client_refused(suppress_program, refused);
        return false;
    }
    r->code =
        offline_open(&r->offline, r->loop, r->events, options, error, sizeof(error));
    if (r->code != 0)
        complaint_say(suppress_program, r->code, error, "");
    return r->code == 0;
}

/* --- ls, export ---------------------------------------------------------------------- */

static void
suppress_export(const json_t *entry)
{
    struct buffer line;
    struct suppression_entry e = {
        .address = text_from(json_field_string(entry, "address")),
        .domain = text_from(json_field_string(entry, "sender_domain")),
        .reason = text_from(json_field_string(entry, "reason")),
        .at_s = json_field_number(entry, "at_ms") / 1000};
    if (!suppression_class_read(text_from(json_field_string(entry, "class")),
                                &e.class) ||
        (e.class == SUPPRESSION_DOUBTFUL &&
         json_field_number(entry, "strikes") <
             SUPPRESSION_STRIKES)) /* not suppressed */
        return;
    buffer_init(&line, SUPPRESSION_LINE_MAX);
    if (suppression_export_line(&e, &line))
        fwrite(line.at, 1, line.length, stdout);
    buffer_free(&line);
}

enum suppress_form { FORM_WORDS, FORM_JSON, FORM_CSV };

static int
suppress_list(struct suppress_run *r, const char *q, enum suppress_form form)
{
    static const char words[] =
        "{address}[sender_domain: for {sender_domain}]  {class}[class=doubtful: "
        "({#strikes})] {at_ms@since}[until_ms>0:, until {until_ms@until}]"
        "[reason:  {reason}]\n";
    json_int_t next = 0;
    do {
        json_t *entry,
            *answer = suppress_ask(r, json_pack("{s:s,s:I,s:s}", "command",
                                                "suppress-list", "from", next, "q", q));
        size_t i;
        if (answer == NULL)
            return r->code != 0 ? r->code : EX_DATAERR;
        next = (json_int_t)json_field_number(answer, "next");
        json_array_foreach (json_object_get(answer, "entries"), i, entry)
            if (form == FORM_CSV)
                suppress_export(entry);
            else if (form == FORM_JSON)
                json_field_print_line(entry);
            else
                words_print(words, entry, loop_now_ms(r->loop));
        json_decref(answer);
    } while (next > 0);
    return 0;
}

/* --- add, import --------------------------------------------------------------------- */

struct suppress_import {
    struct suppress_run *run;
    const char *subject; /* NULL: the number of the line */
    json_t *lines;       /* of the next request */
    size_t bytes, first, number, added, bad;
};

static void
import_refuse(struct suppress_import *i, size_t number, const char *why)
{
    if (i->subject != NULL)
        fprintf(stderr, "%s: %s: %s\n", suppress_program, i->subject, why);
    else
        fprintf(stderr, "%s: line %zu: %s\n", suppress_program, number, why);
    i->bad++;
}

/* False: nobody takes it. */
static bool
import_send(struct suppress_import *i)
{
    json_t *bad;
    size_t n;
    if (json_array_size(i->lines) == 0)
        return true;
    json_t *answer = suppress_ask(
        i->run, json_pack("{s:s,s:O}", "command", "suppress-add", "lines", i->lines));
    if (answer == NULL)
        return false;
    json_array_foreach (json_object_get(answer, "bad"), n, bad) {
        import_refuse(i, i->first + (size_t)json_field_number(bad, "index"),
                      json_field_string(bad, "error"));
    }
    i->added += (size_t)json_field_number(answer, "added");
    json_decref(answer);
    json_array_clear(i->lines);
    i->bytes = 0;
    i->first = i->number + 1;
    return true;
}

/* A line that is no UTF-8 has its number, too. */
static bool
import_line(struct suppress_import *i, struct text line)
{
    i->number++;
    json_t *text = json_stringn(line.at, line.length);
    if (text == NULL || line.length > SUPPRESSION_LINE_MAX ||
        text_find(line, '\0') != TEXT_NONE) {
        json_decref(text);
        import_refuse(i, i->number, "not UTF-8, or too long");
        text = json_string("");
    }
    json_array_append_new(i->lines, text);
    i->bytes += line.length;
    return (i->bytes < BATCH_BYTES && json_array_size(i->lines) < BATCH_LINES) ||
           import_send(i);
}

/* The first line may be the names of columns. */
static bool
import_all(struct suppress_import *i, struct text all)
{
    struct text line;
    bool goes_on = true;
    if (text_starts(all, TEXT("\xef\xbb\xbf"))) /* as spreadsheets write */
        all = text_after(all, 3);
    while (goes_on && all.length > 0 && text_cut(&all, '\n', &line)) {
        if (i->number == 0 && text_find(line, '@') == TEXT_NONE)
            line = TEXT("");
        goes_on = import_line(i, line);
    }
    return goes_on && import_send(i);
}

static int
suppress_import(struct suppress_run *r, const char *path)
{
    char *content = NULL;
    size_t length = 0;
    int result = disk_read_whole(path, LIST_BYTES_MAX, &content, &length);
    if (result < 0)
        return complaint_say(suppress_program, EX_NOINPUT, disk_explain(result), path);
    struct suppress_import i = {.run = r, .lines = json_array(), .first = 1};
    bool good = import_all(&i, text_of(content, length));
    free(content);
    json_decref(i.lines);
    if (i.added + i.bad > 0 || good)
        printf("%zu addresses are suppressed; lines refused: %zu\n", i.added, i.bad);
    return !good ? (r->code != 0 ? r->code : EX_DATAERR) : i.bad > 0 ? EX_DATAERR : 0;
}

static int
suppress_add(struct suppress_run *r, const char *address, const char *reason)
{
    struct suppress_import i = {
        .run = r, .subject = address, .lines = json_array(), .first = 1};
    struct suppression_entry e = {.address = text_from(address),
                                  .reason = text_from(reason),
                                  .at_s = loop_now_ms(r->loop) / 1000,
                                  .class = SUPPRESSION_MANUAL};
    struct buffer line;
    buffer_init(&line, SUPPRESSION_LINE_MAX);
    bool good = suppression_export_line(&e, &line) &&
                import_line(&i, text_trim(buffer_text(&line))) && import_send(&i);
    buffer_free(&line);
    json_decref(i.lines);
    if (good && i.bad == 0)
        printf("%s is suppressed\n", address);
    return good && i.bad == 0 ? 0 : good || r->code == 0 ? EX_DATAERR : r->code;
}

/* --- rm ------------------------------------------------------------------------------ */

static int
suppress_remove(struct suppress_run *r, int count, char **addresses)
{
    int worst = 0;
    for (int i = 0; i < count; i++) {
        json_t *answer =
            suppress_ask(r, json_pack("{s:s,s:[s]}", "command", "suppress-remove",
                                      "addresses", addresses[i]));
        if (answer == NULL)
            return r->code != 0 ? r->code : EX_DATAERR;
        bool was_there = json_integer_value(
                             json_array_get(json_object_get(answer, "removed"), 0)) > 0;
        printf("%s %s\n", addresses[i],
               was_there ? "is tried again" : "was not suppressed");
        worst = was_there ? worst : EX_DATAERR;
        json_decref(answer);
    }
    return worst;
}

/* --- All ----------------------------------------------------------------------------- */

static int
suppress_run(struct suppress_run *r, int count, char **arguments)
{
    const char *verb = arguments[0];
    bool is_json = count > 1 && strcmp(arguments[1], "--json") == 0;
    int rest = count - 1 - is_json;
    if (strcmp(verb, "ls") == 0 && rest <= 1)
        return suppress_list(r, rest == 1 ? arguments[count - 1] : "",
                             is_json ? FORM_JSON : FORM_WORDS);
    if (strcmp(verb, "export") == 0 && count == 1)
        return suppress_list(r, "", FORM_CSV);
    if (strcmp(verb, "import") == 0 && count <= 2)
        return suppress_import(r, count == 2 ? arguments[1] : "/dev/stdin");
    if (strcmp(verb, "add") == 0 && (count == 2 || count == 3))
        return suppress_add(r, arguments[1], count == 3 ? arguments[2] : "");
    if (strcmp(verb, "rm") == 0 && count >= 2)
        return suppress_remove(r, count - 1, arguments + 1);
    fputs(suppress_usage, stderr);
    return EX_USAGE;
}

int
suppress_command(int count, char **arguments, const struct options *options)
{
    if (count == 0) {
        fputs(suppress_usage, stderr);
        return EX_USAGE;
    }
    struct suppress_run r = {.loop = loop_new()};
    r.log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_WARNING);
    r.events = event_hub_new(r.log);
    int code =
        suppress_begin(&r, options) ? suppress_run(&r, count, arguments) : r.code;
    offline_close(&r.offline);
    control_client_free(&r.daemon);
    event_hub_free(&r.events);
    log_free(&r.log);
    loop_free(&r.loop);
    return (fflush(stdout) != 0 || ferror(stdout)) && code == 0 ? EX_IOERR : code;
}
