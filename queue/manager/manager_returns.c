/* Reads reports that come back, and says which are ours. */
#include "queue/manager/manager_internal.h"

#include "base/memory.h"
#include "mime/report/reading.h"
#include "mime/verp.h"
#include "queue/manager/maildir.h"
#include "sched/limits/refusal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    RETURN_PIECE_BYTES = 16 * 1024,
    RETURN_BYTES_MAX = 256 * 1024, /* what is behind is not read */
    RETURN_BYTES_ROUTED = 256      /* count as a recipient, in the work of a turn */
};

const char *const manager_forged_words[MANAGER_FORGED_REASONS] = {
    [MANAGER_FORGED_UNTAGGED] = "it has no tag of ours",
    [MANAGER_FORGED_TAG] = "its tag is wrong or too old",
    [MANAGER_FORGED_RECIPIENT] = "it is not about the recipient of its tag"};

void
manager_set_verp(struct manager *m, const struct verp *verp)
{
    m->verp = verp;
}

const struct manager_returns *
manager_returns(const struct manager *m)
{
    return &m->returns;
}

void
manager_forged_return(struct manager *m, enum manager_forged why)
{
    m->returns.forged[why]++;
}

/* --- Reading ----------------------------------------------------------------------- */

/* False: the disk does not give it. */
static bool
return_read_content(struct manager *m, const struct envelope *e,
                    struct report_reader *r)
{
    int content = queue_content_open(m->queue, e);
    char *piece = memory_new(RETURN_PIECE_BYTES);
    int64_t at = 0, got = content >= 0 ? 1 : -1;
    reading_add(r, e->prefix);
    while (got > 0 && at < RETURN_BYTES_MAX) {
        got = queue_content_read(m->queue, content, at, piece, RETURN_PIECE_BYTES);
        if (got > 0)
            reading_add(r, text_of(piece, (size_t)got));
        at += got > 0 ? got : 0;
    }
    if (content >= 0)
        queue_content_close(m->queue, content);
    free(piece);
    m->routed_now += (unsigned)(at / RETURN_BYTES_ROUTED);
    return got >= 0;
}

/* --- Judging ----------------------------------------------------------------------- */

struct return_judging {
    struct active *active;
    unsigned index;
    const struct verp *verp;
    const struct reading *reading;
    enum verp_answer answer; /* of the address it came to */
    struct verp_tag tag;
    char recipient[ADDRESS_MAX + 1], domain[ADDRESS_DOMAIN_MAX + 1];
    const struct reading_recipient *about; /* NULL: no fields of that recipient */
};

/* The tag of the address counts; feedback loops know one address, and have the tag in what
 * came back. */
static bool
return_find_tag(struct return_judging *j, int64_t now_ms)
{
    const struct reading *r = j->reading;
    for (size_t i = 0; j->answer != VERP_GOOD && i < r->mark_count; i++)
        j->answer = verp_read_tag(j->verp, text_from(r->marks[i]), now_ms, &j->tag);
    return j->answer == VERP_GOOD;
}

static bool
return_is_about(const struct return_judging *j, const struct reading_recipient *r)
{
    return verp_is_for(j->verp, &j->tag, text_from(r->address)) ||
           (r->original[0] != '\0' &&
            verp_is_for(j->verp, &j->tag, text_from(r->original)));
}

/* Behind a forwarder the report names another address: then the stamp has ours. */
static bool
return_find_recipient(struct return_judging *j)
{
    const struct reading *r = j->reading;
    bool stamped =
        verp_read_stamp(j->verp, &j->tag, text_from(r->stamp), j->recipient, j->domain);
    for (size_t i = 0; i < r->count && j->about == NULL; i++)
        if (return_is_about(j, &r->recipients[i]))
            j->about = &r->recipients[i];
    if (j->about != NULL && !stamped)
        text_copy(j->recipient, sizeof(j->recipient),
                  text_from(verp_is_for(j->verp, &j->tag, text_from(j->about->address))
                                ? j->about->address
                                : j->about->original));
    for (size_t i = 0; stamped && i < r->count && j->about == NULL; i++)
        if (r->recipients[i].action == REPORT_FAILED)
            j->about = &r->recipients[i];
    if (stamped && j->about == NULL && r->count > 0)
        j->about = &r->recipients[0];
    return j->recipient[0] != '\0';
}

static bool
return_is_good_news(const struct return_judging *j)
{
    static const char *const words[] = {"not-spam", "auth-failure", "dmarc"};
    if (j->reading->kind == READING_STATUS)
        return j->about->action != REPORT_FAILED && j->about->action != REPORT_DELAYED;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strcmp(j->reading->feedback, words[i]) == 0)
            return true;
    return false;
}

/* --- Telling ----------------------------------------------------------------------- */

static struct text
return_feedback(const struct return_judging *j)
{
    return j->reading->feedback[0] != '\0' ? text_from(j->reading->feedback)
                                           : TEXT("abuse");
}

/* said: a refusal, as a reply; o: the same, as it came. */
static void
return_tell(const struct return_judging *j, const struct outcome *o,
            const struct outcome *said)
{
    bool complains = j->reading->kind == READING_COMPLAINT;
    struct text recipient = text_from(j->recipient),
                reporter = text_from(j->reading->reporter),
                feedback = complains ? return_feedback(j) : TEXT("");
    const char *class = complains ? "" : refusal_name(refusal_classify(said));
    struct text word = complains                        ? feedback
                       : o->verdict == VERDICT_DEFERRED ? TEXT("delayed")
                                                        : TEXT("failed");
    const struct event_field all[] = {
        {"to",       EVENT_ADDRESS, recipient,                             0},
        {"returned", EVENT_TEXT,    complains ? TEXT("complained") : word, 0},
        {"feedback", EVENT_TEXT,    feedback,                              0},
        {"class",    EVENT_TEXT,    text_from(class),                      0},
        {"dsn",      EVENT_TEXT,    text_from(o->enhanced),                0},
        {"reporter", EVENT_TEXT,    reporter,                              0},
        {"other",    EVENT_TEXT,    text_from(ID_TEXT(j->active->id)),     0},
    };
    struct event_field fields[sizeof(all) / sizeof(all[0])];
    size_t count = 0;
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].value.length > 0)
            fields[count++] = all[i];
    event_tell(
        j->active->manager->events,
        &(struct event){.kind = complains ? EVENT_COMPLAINED : EVENT_BOUNCED_LATER,
                        .program = "queue",
                        .id = j->tag.id,
                        .other = j->active->id,
                        .recipient = recipient,
                        .sender = text_from(j->domain),
                        .text = text_from(o->text),
                        .command = word,
                        .reason = class,
                        .relay = reporter,
                        .attempt = j->index + 1,
                        .fields = fields,
                        .field_count = count,
                        .outcome = o});
}

/* As a reply to ourselves, whose sentence has code, status and words. */
static struct outcome
return_said(const struct outcome *o, const char *reporter)
{
    struct outcome said = *o;
    char reply[OUTCOME_TEXT_MAX + 32];
    bool has_code = text_is_digit(o->text[0]) && text_is_digit(o->text[1]) &&
                    text_is_digit(o->text[2]);
    if (said.code == 0)
        said.code = o->enhanced[0] == '4' ? 450 : 550;
    if (has_code)
        text_copy(reply, sizeof(reply), text_from(o->text));
    else
        snprintf(reply, sizeof(reply), "%d %s %s", said.code, o->enhanced, o->text);
    text_copy(said.remote, sizeof(said.remote), text_from(reporter));
    outcome_say_reply(&said, "", text_from(reply), "in reply to RCPT TO command");
    return said;
}

/* A member of an alias that is dead, or the address behind a forwarder, says nothing of the
 * address that we know: others may read its mail. */
static enum suppression_class
return_suppression(const struct return_judging *j, const struct outcome *said)
{
    struct text about = text_from(j->about->address);
    return about.length == 0 || text_equal_nocase(about, text_from(j->recipient))
               ? suppression_judge(said)
               : SUPPRESSION_NONE;
}

static void
return_complained(const struct return_judging *j)
{
    struct manager *m = j->active->manager;
    struct outcome o = {.verdict = VERDICT_FAILED, .blame = BLAME_MESSAGE};
    m->returns.complained++;
    return_tell(j, &o, &o);
    manager_suppress(m, text_from(j->domain), text_from(j->recipient),
                     SUPPRESSION_COMPLAINT, return_feedback(j));
}

static void
return_bounced(const struct return_judging *j)
{
    struct manager *m = j->active->manager;
    bool delays = j->about->action == REPORT_DELAYED;
    struct outcome o = {.verdict = delays ? VERDICT_DEFERRED : VERDICT_FAILED,
                        .blame = BLAME_MESSAGE,
                        .code = j->about->code};
    text_copy(o.enhanced, sizeof(o.enhanced), text_from(j->about->status));
    text_copy(o.text, sizeof(o.text), text_from(j->about->text));
    struct outcome said = return_said(&o, j->reading->reporter);
    m->returns.bounced += !delays;
    m->returns.delayed += delays;
    return_tell(j, &o, &said);
    manager_suppress(m, text_from(j->domain), text_from(j->recipient),
                     return_suppression(j, &said), text_from(said.text));
}

static struct outcome
return_outcome(const char *what, const char *more)
{
    return outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "%s%s", what,
                        more);
}

static struct outcome
return_forged(struct manager *m, enum manager_forged why)
{
    manager_forged_return(m, why);
    return return_outcome("a report that counts for nothing: ",
                          manager_forged_words[why]);
}

static struct outcome
return_judge(struct return_judging *j)
{
    struct manager *m = j->active->manager;
    char id[ID_LENGTH + 1];
    if (!return_find_tag(j, loop_now_ms(m->loop)))
        return return_forged(m, j->answer == VERP_PLAIN ? MANAGER_FORGED_UNTAGGED
                                                        : MANAGER_FORGED_TAG);
    if (!return_find_recipient(j) ||
        (j->reading->kind == READING_STATUS && j->about == NULL))
        return return_forged(m, MANAGER_FORGED_RECIPIENT);
    id_format(j->tag.id, id);
    if (return_is_good_news(j)) {
        m->returns.positive++;
        return return_outcome("a report of no failure, about ", id);
    }
    if (j->reading->kind == READING_COMPLAINT)
        return_complained(j);
    else
        return_bounced(j);
    return return_outcome("a report, read; about ", id);
}

/* --- Other mail -------------------------------------------------------------------- */

/* No notification says that it could not be delivered: it answers a machine. */
static bool
return_goes_on(const struct active *a, unsigned index)
{
    const struct envelope *e = a->envelope;
    struct address address;
    const struct target *t =
        attempt_route(a->manager, e, &e->recipients[index], &address);
    if (t == NULL || !route_is_local_domain(a->manager->routes, address.domain))
        return false;
    if (t->kind == TARGET_MAILDIR)
        return maildir_exists(t, &address);
    return t->kind == TARGET_SMTP || t->kind == TARGET_LMTP || t->kind == TARGET_HOLD;
}

/* Sentences of a bounce may be those of a person, who is not to be lost: a tag proves them. */
static bool
return_is_report(struct return_judging *j)
{
    const struct reading *r = j->reading;
    return r->kind == READING_COMPLAINT ||
           (r->kind == READING_STATUS &&
            (!r->by_text || return_find_tag(j, loop_now_ms(j->active->manager->loop))));
}

static bool
return_read(struct return_judging *j, struct outcome *outcome)
{
    struct manager *m = j->active->manager;
    struct report_reader *reader = reading_new(verp_mark(j->verp), TEXT(VERP_STAMP));
    bool settled = true;
    if (verp_is_blind(j->verp)) {
        *outcome = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0",
                                "tags cannot be verified now: their secret cannot be "
                                "read");
    } else if (!return_read_content(m, j->active->envelope, reader)) {
        *outcome = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0",
                                "the report cannot be read from the disk");
    } else {
        j->reading = reading_end(reader);
        if (return_is_report(j)) {
            *outcome = return_judge(j);
        } else {
            settled = !return_goes_on(j->active, j->index);
            m->returns.others++;
            *outcome =
                return_outcome("not a report, and nobody reads this address", "");
        }
    }
    reading_free(&reader);
    return settled;
}

bool
manager_read_return(struct active *a, unsigned index, struct outcome *outcome)
{
    struct manager *m = a->manager;
    const struct recipient *r = &a->envelope->recipients[index];
    struct return_judging j = {.active = a, .index = index, .verp = m->verp};
    struct address address;
    if (!address_parse(r->address, &address))
        return false;
    j.answer = verp_read(m->verp, &address, loop_now_ms(m->loop), &j.tag);
    return j.answer != VERP_NO && return_read(&j, outcome);
}
