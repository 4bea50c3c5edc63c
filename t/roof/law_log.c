/* Lives of messages, by the lines of the log. */
#include "t/roof/law_log.h"

#include "base/id.h"
#include "base/memory.h"
#include "t/roof/mailbox.h"
#include "t/roof/roof.h"

#include <string.h>
#include <uthash.h>

struct life {
    char id[ID_LENGTH + 1];
    bool accepted, removed, held;
    unsigned starts;  /* of the host, when it was accepted */
    bool cancelled;   /* by the operator: its recipients need no fate */
    unsigned excuses; /* that there were at its last line */
    unsigned begun;   /* excuses at its first line */
    uint64_t lines;
    UT_hash_handle hh;
};

static struct {
    struct life *lives;
    unsigned excuses, starts;
    uint64_t lines;
} lives;

static noreturn void
break_life(const struct life *l, const char *why, struct text line)
{
    roof_break("truth", l->id, "the log: %s: %.*s", why, TEXT_ARGS(line));
}

static struct life *
life_of(struct text id)
{
    struct life *l;
    HASH_FIND(hh, lives.lives, id.at, id.length, l);
    if (l != NULL)
        return l;
    l = memory_new(sizeof(*l));
    (void)!text_copy(l->id, sizeof(l->id), id);
    l->begun = lives.excuses;
    HASH_ADD(hh, lives.lives, id, ID_LENGTH, l);
    return l;
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
    struct model_rcpt *r = model_find(address);
    /* each fragment has a life of its own */
    return r != NULL && r->message->split == NULL ? r : NULL;
}

static void
take_verdict(struct life *l, struct text line)
{
    struct model_rcpt *r = rcpt_of(line);
    bool deferred = has(line, "status=deferred"), sent = has(line, "status=sent");
    if (r == NULL)
        return; /* of a report */
    bool excused = r->fate_excuses != lives.excuses;
    if (r->has_fate && !excused)
        break_life(l, deferred ? "deferred after its fate" : "a second fate", line);
    /* of a hop that lies, or the operator has removed it */
    if (sent && r->stored == 0 && r->relayed_ms == 0 && !r->may_vanish &&
        !mailbox_has(r))
        break_life(l, "sent, and no hop has stored it", line);
    if (deferred)
        return;
    r->has_fate = true;
    r->fate_excuses = lives.excuses;
}

static void
take_removed(struct life *l, struct text line)
{
    for (unsigned i = 0; i < model_count() && !l->cancelled; i++) {
        const struct model_message *m = model_at(i);
        if (m->state != MODEL_ACKED || strcmp(m->id, l->id) != 0)
            continue;
        for (unsigned j = 0; j < m->rcpt_count; j++)
            if (m->rcpts[j].accepted && !m->rcpts[j].has_fate)
                break_life(l, "removed, and a recipient has no fate", line);
    }
    l->removed = true;
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
law_log_start(void)
{
    lives.starts++;
}

void
law_log_excuse(void)
{
    lives.excuses++;
}

void
law_log_line(struct text line)
{
    struct text id;
    if (!cut_id(&line, &id))
        return;
    struct life *l = life_of(id);
    bool excused = l->lines > 0 && l->excuses != lives.excuses;
    bool accepts = has(line, "(queued)") ||
                   text_equal(line, TEXT("notification stored")) ||
                   text_equal(line, TEXT("reassembled message stored"));
    if (line.length == 0)
        break_life(l, "a line says nothing", line);
    bool complains = text_starts(line, TEXT("error: ")) ||
                     text_starts(line, TEXT("warning: cannot"));
    if (complains && lives.excuses > 0) {
        law_log_excuse(); /* it is the bad disk's */
        return;
    }
    if (roof_breaks("log") && has(line, "status=sent"))
        return;
    if (l->removed && !excused)
        break_life(l, "a line after the last one", line);
    /* Mail of sendmail(1) is in todo/ until it is deferred: each process that finds it
     * there reports that it takes it. */
    bool again = l->starts != lives.starts && has(line, "uid=");
    if (accepts && l->accepted && !excused && !again)
        break_life(l, "accepted twice", line);
    if (accepts) {
        l->accepted = true;
        l->starts = lives.starts;
    }
    l->lines++;
    l->excuses = lives.excuses;
    l->removed = l->removed && !excused;
    lives.lines++;
    if (text_starts(line, TEXT("held by")))
        l->held = true;
    else if (text_starts(line, TEXT("released by")))
        l->held = false;
    else if (text_starts(line, TEXT("removed by")))
        l->cancelled = true;
    else if (text_equal(line, TEXT("removed")))
        take_removed(l, line);
    else if (has(line, "status="))
        take_verdict(l, line);
    /* An orderly stop whose drain_timeout passes ends clients without a reply: what of theirs
     * reaches the disk then is mail of which nobody has said that it is queued. */
    else if (has(line, "(queue active)") && !l->accepted && lives.excuses == 0 &&
             (l->lines > 1 || lives.starts == 1))
        break_life(l, "tried, and never accepted", line);
}

void
law_log_judge(void)
{
    for (unsigned i = 0; i < model_count(); i++) {
        const struct model_message *m = model_at(i);
        if (m->state != MODEL_ACKED || m->split != NULL)
            continue;
        const struct life *l = law_log_find(text_from(m->id));
        if (l == NULL && lives.excuses == 0)
            roof_break("truth", m->id, "the log: m%u was acknowledged and not logged",
                       i);
        if (l != NULL && life_is_whole(l) && !l->removed)
            break_life(l, "its end is missing", TEXT(""));
    }
}

uint64_t
law_log_lines(void)
{
    return lives.lines;
}

unsigned
law_log_excuses(void)
{
    return lives.excuses;
}

const struct life *
law_log_find(struct text id)
{
    struct life *l;
    HASH_FIND(hh, lives.lives, id.at, id.length, l);
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
    return l->begun == lives.excuses;
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
    HASH_ITER (hh, lives.lives, l, next)
        if (life_is_open(l) && life_is_whole(l))
            each(context, l->id, l);
}
