/* GET /v1/messages/ID: the life of a message, for the key that posted it. */
#include "admin/post/posting.h"

#include "admin/answer/message_answer.h"
#include "base/json_field.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHOW_USER_MAX = sizeof(POST_KEY_USER) + POST_KEY_NAME_MAX };

struct post_show {
    struct http_exchange *exchange;
    struct message_answer *answer;
    char user[SHOW_USER_MAX]; /* "": any message may be shown */
    bool is_own;
    json_t *found;
};

/* Whether the key has it in the queue; the history may not reach back to it. */
static bool
post_show_submitted(const struct post_door *d, struct id id, const char *user)
{
    struct manager *m = d->setup.manager;
    char submitter[sizeof("user:") + SHOW_USER_MAX];
    struct envelope *loaded = NULL;
    const struct envelope *e = manager_active(m, id);
    if (e == NULL && manager_handles(m, id))
        e = loaded = queue_load_envelope(manager_queue(m), id);
    snprintf(submitter, sizeof(submitter), "user:%s", user);
    bool own = e != NULL && text_equal(e->submitter, text_from(submitter));
    envelope_free(&loaded);
    return own;
}

static bool
post_show_accepted(const json_t *line, const char *user)
{
    const json_t *events = json_object_get(line, "events"), *event;
    size_t i;
    json_array_foreach (events, i, event)
        if (strcmp(json_field_string(event, "type"), "accepted") == 0 &&
            strcmp(json_field_string(event, "user"), user) == 0)
            return true;
    return false;
}

static const char *
post_show_state(const json_t *line)
{
    const char *place = json_field_string(line, "queue_name");
    if (strcmp(place, "gone") == 0)
        return json_field_string(line, "state");
    return strcmp(place, "hold") == 0      ? "held"
           : strcmp(place, "corrupt") == 0 ? "quarantined"
                                           : "waiting";
}

/* An answer_events.line. */
static void
post_show_line(void *context, json_t *line)
{
    struct post_show *s = context;
    bool own = s->user[0] == '\0' || s->is_own || post_show_accepted(line, s->user);
    if (own && s->found == NULL) {
        json_t *events = json_object_get(line, "events"),
               *recipients = json_object_get(line, "recipients");
        s->found = json_pack(
            "{s:s,s:s,s:O*,s:O*}", "id", json_field_string(line, "queue_id"), "state",
            post_show_state(line), "recipients", recipients, "events", events);
    }
    json_decref(line);
}

static void
post_show_refuse(struct http_exchange *x)
{
    http_answer_rule(x, 404, "id", "unknown", "no such message of this key");
}

static void
post_show_ended(void *context, json_t *end)
{
    struct post_show *s = context;
    json_decref(end);
    if (s->found != NULL)
        http_answer_json(s->exchange, 200, s->found);
    else
        post_show_refuse(s->exchange);
    s->found = NULL;
    http_exchange_wake(s->exchange);
}

/* There is no body. */
static void
post_show_body(void *context)
{
    (void)context;
}

static void
post_show_free(void *context)
{
    struct post_show *s = context;
    message_answer_free(&s->answer);
    json_decref(s->found);
    free(s);
}

static void
post_show_begin(struct post_door *d, struct http_exchange *x, struct id id,
                const char *user)
{
    const char *why = NULL;
    struct post_show *s = memory_new(sizeof(*s));
    struct answer_events events = {
        .context = s, .line = post_show_line, .ended = post_show_ended};
    json_t *request = json_pack("{s:s,s:s}", "command", "show", "id", ID_TEXT(id));
    s->exchange = x;
    (void)!text_copy(s->user, sizeof(s->user), text_from(user));
    s->is_own = user[0] != '\0' && post_show_submitted(d, id, user);
    s->answer = message_answer_new(d->setup.loop, d->setup.manager, d->setup.questions,
                                   request, &events, &why);
    json_decref(request);
    if (s->answer == NULL) {
        post_show_free(s);
        post_show_refuse(x);
        return;
    }
    x->sink =
        (struct http_sink){.end = post_show_body, .free = post_show_free, .context = s};
}

void
post_door_show(struct post_door *d, struct http_exchange *x)
{
    struct text path = x->target.path;
    char user[SHOW_USER_MAX] = "";
    struct id id;
    if (d->keys == NULL) {
        http_answer_rule(x, 404, NULL, "keys", "no submission by HTTP: see http_keys");
    } else if (x->key == NULL && x->may < HTTP_MAY_READ) {
        http_answer_field(x, "WWW-Authenticate", "Bearer");
        http_answer_rule(x, 401, NULL, "key", "a key is needed");
    } else if (!id_read(text_after(path, sizeof(POST_PATH)), &id)) {
        post_show_refuse(x);
    } else {
        if (x->key != NULL)
            snprintf(user, sizeof(user), POST_KEY_USER "%s", x->key);
        post_show_begin(d, x, id, user);
    }
}
