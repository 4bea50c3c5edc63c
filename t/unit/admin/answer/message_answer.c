/* One message: in the queue, held, damaged, gone but in the history, given away, unknown. */
#include "admin/answer/message_answer.h"

#include "admin/view/control_client.h"
#include "admin/history/history.h"
#include "t/support/control_world.h"
#include "t/support/folder.h"
#include "t/support/until.h"

enum { SOME = 20 };

static char folder[40];
static struct world w;
static struct control_client *a;

/* A session that never takes its mail. */
static void
open_session(void *context, struct sched_session *session, const struct target *target, const char *domain)
{
    (void)target, (void)domain;
    ((struct world *)context)->session = session;
}

/* The line of the answer; NULL: there is none. Its end is checked. */
static json_t *
shown(struct id id, bool why)
{
    char name[ID_LENGTH + 1];
    json_t *found = NULL;
    id_format(id, name);
    json_t *line = control_client_question(a, json_pack("{s:s,s:s,s:b}", "command", "show", "id", name, "why", why));
    while (line != NULL && json_object_get(line, "ok") == NULL) {
        if (json_object_get(line, "seen") == NULL)
            found = json_incref(line);
        json_decref(line);
        line = control_client_next(a);
    }
    ok(json_is_true(json_object_get(line, "end")));
    json_decref(line);
    return found;
}

static const char *
word(const json_t *object, const char *key)
{
    const char *value = json_string_value(json_object_get(object, key));
    return value != NULL ? value : "";
}

static bool
has_event(const json_t *line, const char *type)
{
    const json_t *event;
    size_t i;
    json_array_foreach (json_object_get(line, "events"), i, event)
        if (strcmp(word(event, "type"), type) == 0)
            return true;
    return false;
}

TEST(held)
{
    json_t *line = shown(w.id, false);
    is_string(word(line, "queue_name"), "hold", "a held message");
    is_string(word(line, "reason"), "held by a route", "why");
    ok_named(json_integer_value(json_object_get(line, "since")) > 0, "since when");
    ok_named(json_array_size(json_object_get(line, "recipients")) == 2, "for whom");
    ok_named(has_event(line, "accepted") || has_event(line, "held"), "its history");
    ok(json_object_get(line, "why") == NULL);
    json_decref(line);
}

TEST(waiting)
{
    post_mail(&w, 1, "later.test");
    until(&w, w.accepted == 2);
    control_turns(&w, SOME);
    json_t *line = shown(w.id, true);
    ok_named(word(line, "queue_name")[0] != '\0' && strcmp(word(line, "queue_name"), "gone") != 0, word(line, "queue_name"));
    ok_named(json_is_object(json_object_get(line, "why")), "why it waits, if that is asked");
    json_decref(line);
}

TEST(damaged)
{
    struct id id = w.id;
    queue_quarantine(manager_queue(w.manager), id, "somebody has sat on it");
    control_turns(&w, SOME);
    json_t *line = shown(id, false);
    is_string(word(line, "queue_name"), "corrupt", "a damaged message");
    is_string(word(line, "reason"), "somebody has sat on it", "why");
    json_decref(line);
}

TEST(gone)
{
    unsigned before = w.accepted;
    post_mail(&w, 1, "away.test");
    until(&w, w.accepted > before && manager_active(w.manager, w.id) == NULL);
    control_turns(&w, SOME);
    json_t *line = shown(w.id, true);
    is_string(word(line, "queue_name"), "gone", "one that is over");
    is_string(word(line, "state"), "delivered", "what became of it");
    ok_named(has_event(line, "ended"), "its events");
    ok(json_object_get(line, "given") == NULL);
    json_decref(line);
}

TEST(given)
{
    struct id id = {.time_ms = 1749600000000, .hash = 7};
    char name[ID_LENGTH + 1], path[200];
    id_format(id, name);
    snprintf(path, sizeof(path), "%s/history/mail.%.10s", folder, name);
    FILE *file = fopen(path, "w");
    if (file == NULL)
        abort();
    fprintf(file, "2025-06-11T00:00:00.000Z qmgr: %s: event=accepted, from=<a@x.test>, nrcpt=1\n", name);
    fprintf(file, "2025-06-11T00:01:00.000Z qmgr: %s: event=given, to=relay2, as=3abcDEF, attempts=3\n", name);
    fprintf(file, "2025-06-11T00:01:00.000Z qmgr: %s: event=ended\n", name);
    fclose(file);
    json_t *line = shown(id, false);
    const json_t *given = json_object_get(line, "given");
    is_string(word(line, "queue_name"), "gone", "one that was given away");
    is_string(word(given, "host"), "relay2", "to whom");
    is_string(word(given, "id"), "3abcDEF", "as what");
    ok_named(json_integer_value(json_object_get(given, "time_ms")) == 1749600060000, "when");
    json_decref(line);
}

TEST(unknown)
{
    ok_named(shown((struct id){.time_ms = 1749600000001, .hash = 1}, false) == NULL, "no line about one that was never there");
    json_t *answer = control_client_question(a, json_pack("{s:s,s:s}", "command", "show", "id", "x"));
    is_string(word(answer, "error"), "invalid id", "an id is an id");
    json_decref(answer);
    char error[300], name[ID_LENGTH + 1];
    struct control_client *b = control_client_new(w.loop, w.path, error, sizeof(error));
    id_format(w.id, name);
    control_client_send(b, json_pack("{s:s,s:s}", "command", "show", "id", name));
    control_client_free(&b);
    control_turns(&w, SOME);
    answer = control_client_question(a, json_pack("{s:s}", "command", "findings"));
    ok_named(json_is_true(json_object_get(answer, "ok")), "a client that leaves ends its question alone");
    json_decref(answer);
}

int
main(void)
{
    char error[300] = "";
    folder_make(folder, sizeof(folder), "message");
    control_world_begin(&w, folder, TEXT("keep.test hold\nlater.test smtp://x.test\n* discard"));
    struct history_settings settings = {.size = 1024 * 1024, .age_ms = 86400000};
    struct history *history = history_new(&(struct history_setup){.loop = w.loop, .log = w.log, .events = w.events, .spool = queue_disk(manager_queue(w.manager)), .part = ""}, &settings);
    manager_set_channel(w.manager, TARGET_SMTP, open_session, &w);
    control_turns(&w, SOME);
    post_mail(&w, 2, "keep.test");
    until(&w, w.accepted == 1 && queue_count_apart(manager_queue(w.manager)).held == 1);
    a = control_client_new(w.loop, w.path, error, sizeof(error));
    ok_named(a != NULL, error);
    tap_tests("");
    control_client_free(&a);
    manager_session_ended(w.manager, w.session, &outcome_no_trouble);
    history_free(&history);
    control_world_end(&w);
    folder_remove(folder);
    return done();
}
