/* Lives of messages, by the lines of the log. */
#include "t/roof/law_log.h"

#include "base/id.h"
#include "base/memory.h"
#include "t/roof/dead.h"
#include "t/roof/group.h"
#include "t/roof/hop.h"
#include "t/roof/host.h"
#include "t/roof/law_age.h"
#include "t/roof/mailbox.h"
#include "t/roof/returner.h"
#include "t/roof/roof.h"
#include "t/roof/world_internal.h"

#include <stdlib.h>
#include <string.h>
#include <uthash.h>

struct life {
    struct book *book;
    char id[ID_LENGTH + 1];
    bool accepted, removed, held;
    bool found;       /* by a start: nobody was told that it is queued */
    unsigned starts;  /* of the host, when it was accepted */
    bool cancelled;   /* by the operator: its recipients need no fate */
    unsigned excuses; /* that there were at its last line */
    unsigned begun;   /* excuses at its first line */
    uint64_t lines;
    int64_t last_ms;               /* when the last one was said */
    struct model_message *message; /* NULL: no line has named a recipient of ours */
    unsigned rcpts, fates;         /* rcpts 0: not known */
    bool is_part;                  /* of a message that comes as fragments */
    bool moved;                    /* from another host of the group, or to it */
    UT_hash_handle hh;
};

/* The log of the daemons of one spool. */
static struct book {
    struct life *lives;
    unsigned excuses, starts;
    uint64_t lines;
    int64_t last_ms; /* when the last one was said */
} books[HOSTS_MAX];

static noreturn void
break_life(const struct life *l, const char *why, struct text line)
{
    roof_break("truth", l->id, "the log: %s: %.*s", why, TEXT_ARGS(line));
}

static struct life *
life_of(struct book *b, struct text id)
{
    struct life *l;
    HASH_FIND(hh, b->lives, id.at, id.length, l);
    if (l != NULL)
        return l;
    l = memory_new(sizeof(*l));
    (void)!text_copy(l->id, sizeof(l->id), id);
    l->book = b;
    l->begun = b->excuses;
    HASH_ADD(hh, b->lives, id, ID_LENGTH, l);
    return l;
}

static bool
is_first(const struct life *l)
{
    return l->book == &books[0];
}

static bool
has(struct text line, const char *words)
{
    return memmem(line.at, line.length, words, strlen(words)) != NULL;
}

/* The recipient of ours that the line is about. */
static struct model_rcpt *
rcpt_of(struct text line)
{
    if (!text_starts(line, TEXT("to=<")))
        return NULL;
    struct text rest = text_after(line, 4), address;
    text_cut(&rest, '>', &address);
    return model_find(address);
}

/* For another host than the first what is relayed is stored by a hop alone. */
static bool
may_be_sent(const struct life *l, const struct model_rcpt *r)
{
    bool is_relayed = is_first(l) && r->relayed_ms > 0;
    return r->stored > 0 || is_relayed || r->may_vanish || mailbox_has(r);
}

static void
take_fate(const struct life *l, struct model_rcpt *r, bool deferred, struct text line)
{
    const struct book *b = l->book;
    /* in a group it may be in two messages, when a reply was lost; or a mark with the disk */
    if (r->has_fate && r->fate_excuses == b->excuses && group_count() == 0 &&
        !course.with[WITH_LOST_DISK])
        break_life(l, deferred ? "deferred after its fate" : "a second fate", line);
    if (deferred)
        return;
    r->has_fate = true;
    r->fate_excuses = b->excuses;
}

/* The first of its delays. */
static int64_t
age_at_begin_ms(struct text line)
{
    static const char name[] = " delays=";
    const char *at = memmem(line.at, line.length, name, sizeof(name) - 1);
    return at != NULL ? (int64_t)(strtod(at + sizeof(name) - 1, NULL) * 1000) : 0;
}

enum { UNKNOWN_MS = 4 * 24 * HOUR_MS };

/* No mail is older than the run, by any clock: steps of a day or two are not always known,
 * and none within a second. */
static void
judge_age(struct life *l, struct text line)
{
    static const char name[] = " delay=";
    const char *at = memmem(line.at, line.length, name, sizeof(name) - 1);
    int64_t age_ms = at != NULL ? strtoll(at + sizeof(name) - 1, NULL, 10) * 1000 : 0;
    if (age_at_begin_ms(line) <
        age_ms) /* a step within the attempt is in one of them */
        age_ms = age_at_begin_ms(line);
    bool is_known =
        model_has_age(l->message) &&
        (host.stepped_ms == 0 || roof_now_ms() - host.stepped_ms > 2 * SECOND_MS);
    if (roof_breaks("old") || (is_known && age_ms > roof_now_ms() + UNKNOWN_MS))
        break_life(l, "older than the run", line);
}

static void
take_verdict(struct life *l, struct text line)
{
    struct model_rcpt *r = rcpt_of(line);
    bool deferred = has(line, "status=deferred"), sent = has(line, "status=sent");
    l->fates += !deferred && text_starts(line, TEXT("to=<"));
    if (r == NULL)
        return; /* of a report */
    l->message = r->message;
    l->is_part = r->message->split != NULL;
    judge_age(l, line);
    if (l->is_part)
        return; /* each fragment has a life of its own */
    if (sent && !may_be_sent(l, r))
        break_life(l, "sent, and no hop has stored it", line);
    if (!sent && !deferred && hop_has_lied(line))
        model_refused(r);
    model_logged(r, sent ? MODEL_SUCCESS : deferred ? MODEL_DELAY : MODEL_FAILURE);
    if (deferred && !has(line, "in reply to RCPT TO"))
        model_site_failed(r->message);
    if (deferred && is_first(l) && r->relayed_ms == 0)
        law_age_deferred(r, age_at_begin_ms(line));
    if (is_first(l)) /* elsewhere it may be in two messages, when a reply was lost */
        take_fate(l, r, deferred, line);
}

/* The message of the model: by its recipients, or by its id. */
static struct model_message *
message_of(const struct life *l)
{
    for (unsigned i = 0; is_first(l) && l->message == NULL && i < model_count(); i++)
        if (strcmp(model_at(i)->id, l->id) == 0)
            return model_at(i);
    return l->message;
}

static void
take_removed(struct life *l, struct text line)
{
    const struct model_message *m = message_of(l);
    /* A kill may have come before the line that it is accepted, or taken from another host
     * with some of its ends. */
    bool is_whole = l->accepted && l->begun == l->book->excuses && !l->cancelled &&
                    !l->is_part && !l->moved;
    l->removed = true;
    if (is_whole && l->rcpts > 0 && l->fates != l->rcpts)
        break_life(l, "removed, with another number of fates than recipients", line);
    if (!is_first(l) || l->cancelled || l->moved || m == NULL ||
        m->state != MODEL_ACKED || strcmp(m->id, l->id) != 0)
        return;
    for (unsigned j = 0; j < m->rcpt_count; j++)
        if (m->rcpts[j].accepted && !m->rcpts[j].has_fate)
            break_life(l, "removed, and a recipient has no fate", line);
}

static void
take_count(struct life *l, struct text line)
{
    static const char name[] = ", nrcpt=";
    const char *at = memmem(line.at, line.length, name, sizeof(name) - 1);
    l->rcpts = at != NULL ? (unsigned)strtoul(at + sizeof(name) - 1, NULL, 10) : 0;
}

/* id: what the lines about messages begin with, behind the program. */
static bool
cut_id(struct text *line, struct text *id)
{
    struct id parsed;
    struct text program;
    if (!text_cut(line, ' ', &program) || line->length < ID_LENGTH + 2 ||
        line->at[ID_LENGTH] != ':')
        return false;
    *id = text_before(*line, ID_LENGTH);
    *line = text_after(*line, ID_LENGTH + 2);
    return id_parse(*id, &parsed);
}

void
law_log_start(unsigned log)
{
    books[log].starts++;
}

void
law_log_excuse(unsigned log)
{
    books[log].excuses++;
}

static bool
accepts(struct text line)
{
    return has(line, "(queued") || text_equal(line, TEXT("notification stored")) ||
           text_equal(line, TEXT("reassembled message stored")) || has(line, ", was=");
}

/* Mail of sendmail(1) is in todo/ until it is deferred: each process that finds it there
 * reports that it takes it. */
static void
take_acceptance(struct life *l, bool excused, struct text line)
{
    const struct book *b = l->book;
    bool again = (l->starts != b->starts || host.is_shared) && has(line, "uid=");
    if (l->accepted && !excused && !again)
        break_life(l, "accepted twice", line);
    l->accepted = true;
    l->starts = b->starts;
}

static void
take_notification(const struct life *l, struct text line)
{
    bool of_delay = text_starts(line, TEXT("sender notified of the delay"));
    bool of_delivery = text_starts(line, TEXT("sender notified of the delivery"));
    model_notified(l->message, of_delay      ? MODEL_DELAY
                               : of_delivery ? MODEL_SUCCESS
                                             : MODEL_FAILURE);
}

static void
take_line(struct life *l, struct text line)
{
    const struct book *b = l->book;
    if (text_starts(line, TEXT("held by")))
        l->held = true;
    else if (text_starts(line, TEXT("released by")))
        l->held = false;
    else if (text_starts(line, TEXT("removed by")))
        l->cancelled = true;
    else if (text_starts(line, TEXT("sender notified")) && l->message != NULL)
        take_notification(l, line);
    else if (text_equal(line, TEXT("removed")))
        take_removed(l, line);
    else if (has(line, ", status=given") || has(line, ", was="))
        l->moved = true;
    else if (has(line, "status="))
        take_verdict(l, line);
    else if (has(line, "(queue active)"))
        take_count(l, line);
    /* An orderly stop whose drain_timeout passes ends clients without a reply: what of theirs
     * reaches the disk then is mail of which nobody has said that it is queued. */
    if (!has(line, "(queue active)") || l->accepted || b->excuses > 0)
        return;
    l->found = l->found || (l->lines == 1 && b->starts > 1);
    if (!l->found)
        break_life(l, "tried, and never accepted", line);
}

void
law_log_line(unsigned log, struct text line)
{
    struct text id;
    struct book *b = &books[log];
    if (log == 0 || dead_in_slices())
        dead_log_line(0, line);
    if (!cut_id(&line, &id) || returner_line(line)) /* it may have ended long ago */
        return;
    struct life *l = life_of(b, id);
    bool excused = l->lines > 0 && l->excuses != b->excuses;
    if (line.length == 0)
        break_life(l, "a line says nothing", line);
    bool complains = text_starts(line, TEXT("error: ")) ||
                     text_starts(line, TEXT("warning: cannot"));
    if (complains && (b->excuses > 0 || world_has_failed())) {
        law_log_excuse(log); /* it is the bad disk's */
        b->lines++;          /* a list of this time may lack the message */
        return;
    }
    bool is_lost = roof_breaks("log") || (roof_breaks("fates") && !is_first(l));
    if (is_lost && has(line, "status=sent"))
        return;
    /* Another slice has ended what the one that was killed had begun. */
    if (host.is_shared && text_starts(line, TEXT("warning: was being processed")))
        return;
    /* A start may end once more, and say so, what a power cut had left of the end. */
    if (text_equal(line, TEXT("removing files left by a finished message")))
        return;
    if (l->removed && !excused)
        break_life(l, "a line after the last one", line);
    if (accepts(line))
        take_acceptance(l, excused, line);
    l->lines++;
    l->last_ms = b->last_ms = roof_now_ms();
    l->excuses = b->excuses;
    l->removed = l->removed && !excused;
    b->lines++;
    take_line(l, line);
}

static void
judge_lives(const struct book *b)
{
    struct life *l, *next;
    HASH_ITER (hh, b->lives, l, next)
        if (life_is_open(l) && life_is_whole(l))
            break_life(l, "its end is missing", TEXT(""));
}

/* One of the hosts has accepted it. */
static bool
is_known(const char *id)
{
    struct life *l = NULL;
    for (unsigned i = 0; i < HOSTS_MAX && l == NULL; i++)
        HASH_FIND(hh, books[i].lives, id, ID_LENGTH, l);
    return l != NULL;
}

void
law_log_judge(void)
{
    for (unsigned i = 0; i < model_count(); i++) {
        const struct model_message *m = model_at(i);
        if (m->state != MODEL_ACKED || m->split != NULL)
            continue;
        if (!is_known(m->id) && books[0].excuses == 0)
            roof_break("truth", m->id, "the log: m%u was acknowledged and not logged",
                       i);
    }
    for (unsigned i = 0; i < HOSTS_MAX; i++)
        judge_lives(&books[i]);
}

int64_t
law_log_last_ms(void)
{
    return books[0].last_ms;
}

unsigned
law_log_excuses(void)
{
    return books[0].excuses;
}

uint64_t
law_log_lines(void)
{
    return books[0].lines;
}

bool
law_log_is_certain(const struct model_rcpt *r)
{
    return r->fate_excuses == books[0].excuses;
}

const struct life *
law_log_find(struct text id)
{
    struct life *l;
    HASH_FIND(hh, books[0].lives, id.at, id.length, l);
    return l;
}

bool
life_is_open(const struct life *l)
{
    return l->accepted && !l->removed;
}

bool
life_has_ended(const struct life *l)
{
    return l->removed;
}

bool
life_is_held(const struct life *l)
{
    return l->held;
}

bool
life_is_whole(const struct life *l)
{
    return l->begun == l->book->excuses;
}

int64_t
life_last_ms(const struct life *l)
{
    return l->last_ms;
}

uint64_t
life_lines(const struct life *l)
{
    return l->lines;
}

void
law_log_each_open(void (*each)(void *context, const char *id, const struct life *l),
                  void *context)
{
    struct life *l, *next;
    HASH_ITER (hh, books[0].lives, l, next)
        if (life_is_open(l) && life_is_whole(l))
            each(context, l->id, l);
}
