/* Fragments of a message, and what becomes of them. */
#include "t/roof/split.h"

#include "base/memory.h"
#include "t/roof/group.h"
#include "t/roof/host.h"
#include "t/roof/roof.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    PART_MAX = 4 << 20,
    SET_NAME_MAX = 20,
    WAIT_MS = 9 * MINUTE_MS /* ten, by SPLIT_OPTIONS */
};

static bool is_forgiven, is_demanded;

/* Sets whose fragments contradict each other, by the log. */
static struct conflict {
    char set[SET_NAME_MAX];
    int64_t since_ms;
    unsigned starts; /* of the host then */
} * conflicts;
static size_t conflict_count;

void
split_forgive(void)
{
    is_forgiven = true;
}

void
split_demand(void)
{
    is_demanded = true;
}

/* --- Giving --- */

static void
write_part(struct model_message *m, unsigned index, unsigned number, struct text body)
{
    struct split *s = m->split;
    struct buffer *b = &s->contents[index];
    buffer_init(b, PART_MAX);
    if (!buffer_format(
            b,
            "X-Part: m%up%u\r\nFrom: s%u@" MODEL_BACK
            "\r\nTo: all@roof.test\r\nDate: Sun, 15 Jun 2025 15:06:40 +0000\r\n"
            "Message-ID: <m%up%u@roof.test>\r\nSubject: part %u\r\n"
            "MIME-Version: 1.0\r\nContent-Type: message/partial; "
            "id=\"m%u@roof.test\"; number=%u",
            m->number, number, m->number, m->number, number, number, m->number, number))
        abort();
    /* any of them may say the total; the last one must */
    if ((number == s->parts || roof_chance(500)) &&
        !buffer_format(b, "; total=%u", s->parts))
        abort();
    if (!buffer_add(b, TEXT("\r\n\r\n")) || !buffer_add(b, body))
        abort();
}

/* Behind the header, at the end of a line. */
static size_t
draw_cut(struct text content, size_t from)
{
    size_t at = from + roof_below((unsigned)(content.length - from));
    size_t end = text_find(text_after(content, at), '\n');
    return end == TEXT_NONE ? content.length : at + end + 1;
}

static void
cut_message(struct model_message *m, unsigned wanted)
{
    struct split *s = m->split;
    struct text content = buffer_text(&m->content);
    const char *blank = memmem(content.at, content.length, "\r\n\r\n", 4);
    size_t cuts[SPLIT_PARTS_MAX], from = (size_t)(blank - content.at) + 4;
    while (s->parts + 1 < wanted && from < content.length) {
        from = draw_cut(content, from);
        if (from < content.length)
            cuts[s->parts++] = from;
    }
    cuts[s->parts++] = content.length;
    for (unsigned i = 0; i < s->parts; i++) {
        size_t begin = i > 0 ? cuts[i - 1] : 0;
        write_part(m, i, i + 1,
                   text_before(text_after(content, begin), cuts[i] - begin));
    }
}

static void
give(struct split *s, unsigned index)
{
    if (s->given_count < SPLIT_GIVEN_MAX)
        s->given[s->given_count++] = index;
}

void
split_draw(struct model_message *m)
{
    struct split *s = m->split = memory_new(sizeof(*s));
    m->rcpts[0].domain =
        roof_below(model_domains() - 1); /* the last may have Maildirs */
    cut_message(m, 2 + roof_below(SPLIT_PARTS_MAX - 1));
    unsigned missing = roof_chance(100) ? roof_below(s->parts) : s->parts;
    for (unsigned i = 0; i < s->parts; i++)
        if (i != missing)
            give(s, i);
    s->is_doubled = roof_chance(200);
    if (s->is_doubled)
        give(s, roof_below(s->parts));
    s->is_contradictory = roof_chance(100);
    if (s->is_contradictory) {
        write_part(m, SPLIT_PARTS_MAX, 1, TEXT("Subject: another\r\n\r\nbody\r\n"));
        give(s, SPLIT_PARTS_MAX);
    }
    for (unsigned i = s->given_count; i > 1 && roof_chance(800); i--) {
        unsigned other = roof_below(i), index = s->given[i - 1];
        s->given[i - 1] = s->given[other];
        s->given[other] = index;
    }
    s->left = s->given_count;
    s->begun_ms = roof_now_ms();
    roof_note("client: m%u is in %u parts, %u are given%s%s", m->number, s->parts,
              s->given_count, s->is_doubled ? ", doubled" : "",
              s->is_contradictory ? ", contradictory" : "");
}

static unsigned
part_of(unsigned index)
{
    return index == SPLIT_PARTS_MAX ? 0 : index;
}

void
split_ended(struct model_message *m, unsigned given, enum model_state how)
{
    struct split *s = m->split;
    unsigned bit = 1U << part_of(s->given[given]);
    s->left--;
    if (how == MODEL_ACKED) {
        s->acked |= bit;
        s->acked_ms = roof_now_ms();
        model_acked(m, TEXT(""));
        roof_note("client: m%up%u acknowledged", m->number,
                  part_of(s->given[given]) + 1);
    } else if (how == MODEL_MAYBE) {
        s->maybe |= bit;
    }
    if (s->left == 0 && m->state == MODEL_UNSENT)
        m->state = s->maybe != 0 ? MODEL_MAYBE : MODEL_REFUSED;
}

/* --- Judging --- */

static unsigned
seen_parts(const struct split *s)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < s->parts; i++)
        bits |= s->seen[i] > 0 ? 1U << i : 0;
    return bits;
}

bool
split_has_arrived(const struct model_rcpt *r)
{
    const struct split *s = r->message->split;
    return r->stored > 0 || (s->acked & ~seen_parts(s)) == 0;
}

static void
break_split(const char *law, const struct model_rcpt *r, const char *why)
{
    char about[MODEL_ADDRESS_MAX];
    snprintf(about, sizeof(about), "m%ur%u", r->message->number, r->index);
    roof_break(law, about, "m%u in parts: %s", r->message->number, why);
}

/* From our first field on. */
static struct text
without_trace(const struct model_rcpt *r, struct text content)
{
    const char *at = memmem(content.at, content.length, "X-Part: ", 8);
    if (at == NULL)
        break_split("whole", r, "what was stored has not our header");
    return text_after(content, (size_t)(at - content.at));
}

static struct text
cut_header(struct text *content)
{
    const char *blank = memmem(content->at, content->length, "\r\n\r\n", 4);
    size_t length = blank != NULL ? (size_t)(blank - content->at) + 4 : content->length;
    struct text header = text_before(*content, length);
    *content = text_after(*content, length);
    return header;
}

static bool
has_words(struct text t, const char *words)
{
    return memmem(t.at, t.length, words, strlen(words)) != NULL;
}

static void
part_stored(struct model_rcpt *r, struct text content)
{
    struct split *s = r->message->split;
    /* one that was moved twice comes again when its set may have gone */
    bool may_end =
        s->is_contradictory || s->is_doubled || is_forgiven || r->chances > 0;
    for (unsigned i = 0; i <= SPLIT_PARTS_MAX; i++) {
        if (!text_equal(content, buffer_text(&s->contents[i])))
            continue;
        if (((s->acked | s->maybe) & 1U << part_of(i)) == 0 && s->left == 0)
            break_split("whole", r, "a fragment is stored that was refused");
        s->seen[part_of(i)]++;
        if (!may_end && roof_now_ms() - s->begun_ms < WAIT_MS)
            break_split("in time", r, "a fragment goes on before its time");
        return;
    }
    break_split("whole", r, "a fragment is not as it was given");
}

static void
whole_stored(struct model_rcpt *r, struct text header, struct text body)
{
    const struct model_message *m = r->message;
    struct text want = text_of(m->content.at, m->content.length);
    char id[MODEL_ADDRESS_MAX], subject[MODEL_ADDRESS_MAX];
    (void)cut_header(&want);
    snprintf(id, sizeof(id), "\r\nMessage-ID: <m%u@roof.test>\r\n", m->number);
    snprintf(subject, sizeof(subject), "\r\nSubject: message %u\r\n", m->number);
    r->stored++;
    if (m->split->is_contradictory) /* one reading or the other */
        return;
    if (!has_words(header, id) || !has_words(header, subject))
        break_split("whole", r, "the header is not that of the message within");
    if (!text_equal(body, want))
        break_split("whole", r, "the body is not what was given");
    if (((m->split->acked | m->split->maybe) + 1) != 1U << m->split->parts &&
        m->split->left == 0)
        break_split("whole", r, "it is whole, and a part was refused");
}

void
split_stored(struct model_rcpt *r, struct text content)
{
    struct text ours = without_trace(r, content), body = ours;
    struct text header = cut_header(&body);
    r->stored_ms = roof_now_ms();
    if (has_words(header, "message/partial"))
        part_stored(r, ours);
    else
        whole_stored(r, header, body);
}

static unsigned
times_given(const struct split *s, unsigned part)
{
    unsigned count = 0;
    for (unsigned i = 0; i < s->given_count; i++)
        count += part_of(s->given[i]) == part;
    return count;
}

/* All of it was there in time. */
static bool
must_be_whole(const struct split *s)
{
    bool is_all = s->acked + 1 == 1U << s->parts && s->maybe == 0;
    return is_demanded && is_all && s->acked_ms - s->begun_ms < WAIT_MS / 2;
}

void
split_judge(const struct model_rcpt *r)
{
    const struct split *s = r->message->split;
    bool is_odd = s->is_doubled || s->is_contradictory || r->chances > 0;
    bool is_apart = seen_parts(s) != 0 || roof_breaks("joined");
    if (!is_odd && is_apart && must_be_whole(s))
        break_split("once", r, "all its fragments were there, and it was not joined");
    /* A set of one is whole each time, unless it is still remembered: not by another host,
     * and not behind a wait or a step of the clock. */
    unsigned again = s->parts == 1 ? s->given_count - 1 : 0;
    /* a set that was given twice may have two owners, without Redis or while it is away */
    again += s->is_doubled && group_count() > 0;
    if (r->stored > 1 + again + r->chances)
        break_split("once", r, "it is stored more often than replies were lost");
    for (unsigned i = 0; i < s->parts; i++)
        if (s->seen[i] > times_given(s, i) + r->chances)
            break_split("once", r,
                        "a fragment is stored more often than replies were lost");
    if (r->stored > 0 && seen_parts(s) != 0 && !is_odd)
        break_split("once", r, "it is stored both whole and in fragments");
}

/* --- The log ---------------------------------------------------------------------- */

static struct conflict *
conflict_of(const char *set)
{
    for (size_t i = conflict_count; i-- > 0;)
        if (strcmp(conflicts[i].set, set) == 0)
            return &conflicts[i];
    return NULL;
}

/* Its memory begins with its end, when it releases what it has; what passes later does not
 * make it longer. */
static void
note_conflict(const char *set, bool ends)
{
    struct conflict *c = conflict_of(set);
    ends = ends || c == NULL;
    if (c == NULL) {
        conflicts = memory_resize(conflicts, (conflict_count + 1) * sizeof(*conflicts));
        c = &conflicts[conflict_count++];
        (void)text_copy(c->set, sizeof(c->set), text_from(set));
    }
    c->since_ms = ends ? roof_now_ms() : c->since_ms;
    c->starts = host.starts;
}

void
split_line(struct text line)
{
    static const char key[] = ": set=";
    const char *at = memmem(line.at, line.length, key, sizeof(key) - 1);
    if (at == NULL)
        return;
    char set[SET_NAME_MAX];
    struct text rest = text_after(line, (size_t)(at - line.at) + sizeof(key) - 1), name;
    text_cut(&rest, ',', &name);
    (void)text_copy(set, sizeof(set), text_before(name, SET_NAME_MAX - 1));
    if (has_words(rest, "(the fragments contradict each other)")) {
        note_conflict(set, has_words(rest, "status=released"));
        return;
    }
    const struct conflict *c = conflict_of(set);
    if (c != NULL && has_words(rest, "status=waiting") && !is_forgiven &&
        c->starts == host.starts && roof_now_ms() - c->since_ms < WAIT_MS)
        roof_break("in time", set,
                   "set %s has contradicted itself, and a fragment waits", set);
}
