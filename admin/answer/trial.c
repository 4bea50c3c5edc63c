/* Sends a test message from within the daemon, and reads its events. */
#include "admin/answer/trial.h"

#include "admin/answer/questions.h"
#include "admin/history/history_line.h"
#include "admin/history/life.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "mime/address.h"
#include "mime/date.h"
#include "base/event/event_log.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <utlist.h>

bool
trial_write_message(struct buffer *out, const char *hostname, struct text sender,
                    struct text recipient, int64_t now_ms)
{
    char date[DATE_TEXT_MAX];
    date_format(now_ms, date);
    /* Auto-Submitted: no holiday reply (RFC 3834). */
    return buffer_add(out, TEXT("From: <")) && buffer_add(out, sender) &&
           buffer_add(out, TEXT(">\r\nTo: <")) && buffer_add(out, recipient) &&
           buffer_format(out,
                         ">\r\nSubject: Test of %.255s\r\nAuto-Submitted: "
                         "auto-generated\r\nMIME-Version: 1.0\r\nContent-Type: "
                         "text/plain; charset=us-ascii\r\n\r\n"
                         "This is a test of the mail system of %.255s,\r\n"
                         "made by `petrel test` at %s.\r\n"
                         "It has arrived; nothing needs to be done.\r\n",
                         hostname, hostname, date);
}

enum { TRIAL_PREFIX_MAX = 2048, TRIAL_MESSAGE_ID_MAX = ENVELOPE_MESSAGE_ID_MAX + 1 };

/* A step within the queue that the verdict shows anyway. */
#define STEPS EVENT_BIT(EVENT_LOADED)

struct trial {
    struct trial *prev, *next;
    struct trials *trials;
    struct answer_events events;
    struct id id;
    char message_id[TRIAL_MESSAGE_ID_MAX];
    bool storing, refused;
    bool left;        /* the client has gone while it was being stored */
    bool named;       /* the line with the id was given */
    bool ended, held; /* the message */
    bool over;        /* the time, or the lines */
    char why[OUTCOME_TEXT_MAX];
    struct buffer lines; /* of the history, each with its LF */
    size_t told;         /* bytes of them */
    struct loop_timer timer;
    struct loop_task task;
};

struct trials {
    struct trials_setup setup;
    struct trial *list;
    struct trial *now; /* whose event is read */
    size_t count;
    struct log *lines; /* NULL: none is under way */
    char why[OUTCOME_TEXT_MAX];
};

/* --- Its events ------------------------------------------------------------------- */

static void trial_turn(void *context);

static void
trial_wake(struct trial *t)
{
    if (!t->left)
        loop_post(t->trials->setup.loop, &t->task, trial_turn, t);
}

/* A log's taker. */
static void
trial_take_line(void *context, struct text line)
{
    struct trial *t = ((struct trials *)context)->now;
    if (!buffer_add(&t->lines, line))
        t->over = true;
    trial_wake(t);
}

/* An event_reader. */
static void
trial_read_event(void *context, const struct event *event)
{
    struct trials *all = context;
    DL_FOREACH (all->list, all->now)
        if (event->id.time_ms != 0 && !all->now->over &&
            id_compare(all->now->id, event->id) == 0)
            event_log_history(all->lines, event);
    all->now = NULL;
}

static void
trials_listen(struct trials *all)
{
    all->lines = log_new_apart(all->setup.loop, trial_take_line, all);
    event_read(all->setup.events, EVENT_ALL & ~STEPS, trial_read_event, all);
}

static void
trials_rest(struct trials *all)
{
    event_read(all->setup.events, 0, trial_read_event, all);
    log_free(&all->lines);
}

static bool
trial_is_type(const json_t *event, const char *type)
{
    return strcmp(json_string_value(json_object_get(event, "type")), type) == 0;
}

static void
trial_tell_line(struct trial *t, struct text line, const char *id)
{
    json_t *event = life_event(line);
    if (event == NULL)
        return;
    t->ended = t->ended || life_ends(event);
    t->held =
        trial_is_type(event, "held") || (t->held && !trial_is_type(event, "released"));
    json_object_set_new(event, "message", json_string(id));
    t->events.line(t->events.context, event);
}

static void
trial_tell_lines(struct trial *t, const char *id)
{
    struct text line, rest = text_after(buffer_text(&t->lines), t->told);
    t->told = t->lines.length;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        trial_tell_line(t, line, id);
}

static void
trial_end(struct trial *t, const char *id)
{
    json_t *life = life_make(t->id, buffer_text(&t->lines), 0);
    json_t *end = json_pack("{s:b,s:b,s:s,s:O}", "ok", true, "end", true, "id", id,
                            "state", json_object_get(life, "state"));
    json_decref(life);
    t->events.ended(t->events.context, end);
}

static void
trial_turn(void *context)
{
    struct trial *t = context;
    char id[ID_LENGTH + 1];
    id_format(t->id, id);
    if (t->storing)
        return;
    if (t->refused) {
        t->events.ended(t->events.context, questions_refuse(t->why));
        return;
    }
    if (!t->named)
        t->events.line(t->events.context, json_pack("{s:s}", "id", id));
    t->named = true;
    trial_tell_lines(t, id);
    if (t->ended || t->held || t->over)
        trial_end(t, id);
}

static void
trial_time_out(void *context)
{
    struct trial *t = context;
    t->over = true;
    trial_wake(t);
}

/* --- The request ------------------------------------------------------------------ */

/* "a@b", "<a@b>" in normal form. */
static bool
trial_read_address(const json_t *value, struct buffer *out)
{
    struct address address;
    struct text t = text_of(json_string_value(value), json_string_length(value));
    if (t.at == NULL || t.length > TRIAL_TO_MAX || text_has_control(t))
        return false;
    t = text_within(text_trim(t), '<', '>');
    return address_parse(t, &address) && address_write(&address, out);
}

static bool
trial_is_null_sender(const json_t *value)
{
    const char *text = json_string_value(value);
    return text != NULL && (text[0] == '\0' || strcmp(text, "<>") == 0);
}

/* NULL, or the error. */
static const char *
trial_read(const struct trials *all, const json_t *request, struct envelope *e)
{
    struct buffer to, from;
    const json_t *sender = json_object_get(request, "from");
    const char *why = NULL;
    buffer_init(&to, TRIAL_TO_MAX);
    buffer_init(&from, TRIAL_TO_MAX);
    if (!trial_read_address(json_object_get(request, "to"), &to) ||
        !envelope_add(e, buffer_text(&to), NOTIFY_DEFAULT, TEXT("")))
        why = "to must be one mail address: NAME@DOMAIN";
    else if (sender == NULL && !buffer_format(&from, "postmaster@%.255s",
                                              all->setup.hostname(all->setup.context)))
        why = "the hostname is too long for a sender address: set from";
    else if (sender != NULL && !trial_is_null_sender(sender) &&
             !trial_read_address(sender, &from))
        why = "from must be a mail address: NAME@DOMAIN";
    else
        e->sender = envelope_text(e, buffer_text(&from));
    buffer_free(&to);
    buffer_free(&from);
    return why;
}

bool
trial_is_known(const char *member)
{
    return strcmp(member, "to") == 0 || strcmp(member, "from") == 0;
}

/* --- The message ------------------------------------------------------------------ */

static void
trial_free(struct trial *t)
{
    struct trials *all = t->trials;
    loop_timer_stop(all->setup.loop, &t->timer);
    loop_unpost(all->setup.loop, &t->task);
    DL_DELETE(all->list, t);
    all->count--;
    if (all->count == 0)
        trials_rest(all);
    buffer_free(&t->lines);
    free(t);
}

static void
trial_tell_submitted(const struct trial *t, const struct envelope *e)
{
    struct event_origin origin = {.tag = e->tag};
    event_tell(t->trials->setup.events,
               &(struct event){.kind = EVENT_SUBMITTED,
                               .id = e->id,
                               .message_id = text_from(t->message_id),
                               .origin = &origin,
                               .sender = e->sender,
                               .size = e->content_size,
                               .recipients = e->count,
                               .injector = (uint32_t)getuid()});
}

static void
trial_on_stored(void *context, struct envelope *e, const struct outcome *refusal)
{
    struct trial *t = context;
    t->storing = false;
    t->refused = refusal != NULL;
    if (refusal != NULL) {
        text_copy(t->why, sizeof(t->why), text_from(refusal->text));
    } else {
        trial_tell_submitted(t, e);
        manager_accept(t->trials->setup.manager, &e);
    }
    if (t->left)
        trial_free(t);
    else
        trial_wake(t);
}

static void
trial_compose_prefix(struct trial *t, struct envelope *e, const char *hostname)
{
    struct buffer out;
    char date[DATE_TEXT_MAX], id[ID_LENGTH + 1];
    buffer_init(&out, TRIAL_PREFIX_MAX);
    id_format(e->id, id);
    date_format(loop_now_ms(t->trials->setup.loop), date);
    snprintf(t->message_id, sizeof(t->message_id), "<%s@%.200s>", id, hostname);
    bool good = buffer_format(&out,
                              "Received: by %.255s (Petrel)\r\n\tid %s; %s\r\n"
                              "Date: %s\r\nMessage-ID: %s\r\n",
                              hostname, id, date, date, t->message_id);
    assert(good); /* every part is bounded */
    e->prefix = envelope_text(e, buffer_text(&out));
    buffer_free(&out);
    if (event_are_kept(t->trials->setup.events))
        e->message_id = envelope_text(e, text_from(t->message_id));
}

/* Takes the envelope, and the draft, which has its content. */
static void
trial_send(struct trial *t, struct queue_draft *draft, struct envelope *e)
{
    const struct trials_setup *s = &t->trials->setup;
    e->ours = true;
    e->utf8 = !text_is_ascii(e->sender) || !text_is_ascii(e->recipients[0].address);
    manager_expand_own(s->manager, e);
    queue_name(draft, e);
    t->id = e->id;
    trial_compose_prefix(t, e, s->hostname(s->context));
    t->storing = true;
    queue_commit(&draft, &e, trial_on_stored, t);
}

static struct trial *
trial_new(struct trials *all, const struct answer_events *events)
{
    struct trial *t = memory_new(sizeof(*t));
    t->trials = all;
    t->events = *events;
    buffer_init(&t->lines, TRIAL_LINES_MAX);
    if (all->count == 0)
        trials_listen(all);
    DL_APPEND(all->list, t);
    all->count++;
    loop_timer_start(all->setup.loop, &t->timer, TRIAL_FOR_MS, trial_time_out, t);
    return t;
}

/* NULL: the reason is in why. */
static struct queue_draft *
trial_write(struct trials *all, const struct envelope *e, struct trial_refusal *no)
{
    struct outcome refusal;
    struct buffer message;
    struct queue_draft *draft = NULL;
    buffer_init(&message, TRIAL_MESSAGE_MAX);
    if (!trial_write_message(&message, all->setup.hostname(all->setup.context),
                             e->sender, e->recipients[0].address,
                             loop_now_ms(all->setup.loop))) {
        no->why = "the addresses are too long: use shorter ones";
    } else if ((draft = queue_begin(manager_queue(all->setup.manager),
                                    (int64_t)message.length, &refusal)) == NULL) {
        text_copy(all->why, sizeof(all->why), text_from(refusal.text));
        *no = (struct trial_refusal){.is_later = true, .why = all->why};
    } else {
        (void)!queue_write(draft, buffer_text(&message)); /* the commit reports it */
    }
    buffer_free(&message);
    return draft;
}

/* --- public ----------------------------------------------------------------------- */

struct trial *
trial_ask(struct trials *all, const json_t *request, const struct answer_events *events,
          struct trial_refusal *refusal)
{
    struct envelope *e = envelope_new();
    struct queue_draft *draft = NULL;
    struct trial *t = NULL;
    const char *leaves = all->setup.leaves(all->setup.context);
    *refusal = (struct trial_refusal){.why = trial_read(all, request, e)};
    if (refusal->why == NULL && leaves != NULL)
        *refusal = (struct trial_refusal){.is_later = true, .why = leaves};
    else if (refusal->why == NULL && all->count == TRIALS_MAX)
        *refusal = (struct trial_refusal){
            .is_later = true, .why = "8 test messages are under way: try again later"};
    else if (refusal->why == NULL)
        draft = trial_write(all, e, refusal);
    if (draft == NULL) {
        envelope_free(&e);
        return NULL;
    }
    t = trial_new(all, events);
    trial_send(t, draft, e);
    return t;
}

void
trial_leave(struct trial **trial)
{
    struct trial *t = *trial;
    *trial = NULL;
    if (t == NULL)
        return;
    t->left = true;
    if (!t->storing)
        trial_free(t);
}

struct trials *
trials_new(const struct trials_setup *setup)
{
    struct trials *all = memory_new(sizeof(*all));
    all->setup = *setup;
    return all;
}

void
trials_free(struct trials **trials)
{
    struct trials *all = *trials;
    struct trial *t, *next;
    *trials = NULL;
    if (all == NULL)
        return;
    DL_FOREACH_SAFE (all->list, t, next) {
        assert(t->left && t->storing);
        queue_commit_ignore(manager_queue(all->setup.manager), t);
        trial_free(t);
    }
    free(all);
}
