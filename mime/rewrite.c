/* Passes a header field by field, and changes fields that must not leave as they are.
 *
 * Two passes: the first finds the new From, on which Sender and Reply-To depend, the
 * second writes. */
#include "mime/rewrite.h"

#include "mime/address.h"
#include "mime/header.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum {
    OLD_MAX = 8 * 1024,
    LINE_MAX_BYTES = 998,
    FOLD_AT = 78,
    FROM_NAME_MAX = 200 /* bytes of a From that become a name */
};

/* Which addresses of a field are replaced. */
enum field_kind {
    FIELD_OTHER,
    FIELD_PRIVATE, /* removed; Postfix drops the same */
    FIELD_FROM,
    FIELD_SENDER,
    FIELD_ORIGIN, /* like these two */
    FIELD_TARGET, /* only those replaced as local to their host: recipients are not
                   * ours */
    FIELD_REPLIES /* only those that are local to their host, whose replies would be
                   * lost: others reach the author, not an address that is everybody's */
};

/* A field while it is rewritten, with the results of its addresses. */
struct rewritten {
    const struct rewrite *rewrite;
    enum field_kind kind;
    struct text value;
    struct buffer *out;
    size_t done; /* bytes of value that have been written */
    bool full;   /* out is */
    unsigned count;
    bool replaced;                  /* one, not only completed */
    bool changed;                   /* replaced or completed */
    char last[REWRITE_ADDRESS_MAX]; /* the last address as it leaves */
    struct buffer *old;             /* those replaced that were not local; or NULL */
};

/* The findings of the first pass. */
struct survey {
    bool has_from, has_reply_to, has_dkim;
    struct header_field from; /* the first one; name.at is NULL: there is none */
    bool is_unreadable;       /* it has no address, or an entry that is none */
    bool replaced;            /* an address of From was */
    char
        only[REWRITE_ADDRESS_MAX]; /* From as it leaves, if it has one address; or "" */
    struct buffer old;
};

static enum field_kind
field_kind(struct text name)
{
    static const struct {
        struct text name;
        enum field_kind kind;
    } fields[] = {
        {TEXT("From"),                        FIELD_FROM   },
        {TEXT("Sender"),                      FIELD_SENDER },
        {TEXT("To"),                          FIELD_TARGET },
        {TEXT("Cc"),                          FIELD_TARGET },
        {TEXT("Reply-To"),                    FIELD_REPLIES},
        {TEXT("Bcc"),                         FIELD_PRIVATE},
        {TEXT("Return-Path"),                 FIELD_PRIVATE},
        {TEXT("Resent-Bcc"),                  FIELD_PRIVATE},
        {TEXT("X-Petrel-Tag"),                FIELD_PRIVATE},
        {TEXT("Resent-From"),                 FIELD_ORIGIN },
        {TEXT("Resent-Sender"),               FIELD_ORIGIN },
        {TEXT("Resent-To"),                   FIELD_TARGET },
        {TEXT("Resent-Cc"),                   FIELD_TARGET },
        {TEXT("Errors-To"),                   FIELD_ORIGIN },
        {TEXT("Return-Receipt-To"),           FIELD_ORIGIN },
        {TEXT("Disposition-Notification-To"), FIELD_ORIGIN },
    };
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
        if (text_equal_nocase(name, fields[i].name))
            return fields[i].kind;
    return FIELD_OTHER;
}

/* --- A field ------------------------------------------------------------------------ */

static void
rewritten_put(struct rewritten *w, struct text t)
{
    w->full = w->full || !buffer_add(w->out, t);
}

/* Copies the value up to this byte. */
static void
copy_to(struct rewritten *w, size_t at)
{
    assert(at >= w->done && at <= w->value.length);
    rewritten_put(w, text_of(w->value.at + w->done, at - w->done));
    w->done = at;
}

static bool
is_printable(const char *address)
{
    for (; *address != '\0'; address++)
        if (*address < ' ' || *address > '~')
            return false;
    return true;
}

/* Says where the mail is from, in place of a name: "\"root@vps7\" ". */
static void
put_name(struct rewritten *w, const char *old)
{
    rewritten_put(w, TEXT("\""));
    for (; *old != '\0'; old++) {
        if (*old == '"' || *old == '\\')
            rewritten_put(w, TEXT("\\"));
        rewritten_put(w, text_of(old, 1));
    }
    rewritten_put(w, TEXT("\" "));
}

/* The address as it would be without any table: complete. False: it is too long. */
static bool
complete_address(const struct rewritten *w, struct text mailbox, bool bare,
                 char out[REWRITE_ADDRESS_MAX])
{
    struct text host = bare ? w->rewrite->hostname : TEXT("");
    int length = snprintf(out, REWRITE_ADDRESS_MAX, "%.*s%s%.*s", TEXT_ARGS(mailbox),
                          bare ? "@" : "", TEXT_ARGS(host));
    return length > 0 && length < REWRITE_ADDRESS_MAX;
}

static bool
counts_for(enum field_kind kind, const struct rewrite_answer *answer)
{
    return kind == FIELD_TARGET    ? answer->by_local
           : kind == FIELD_REPLIES ? answer->local
                                   : true;
}

/* Asks the table. True: the address is replaced by the answer's. */
static bool
is_replaced(const struct rewritten *w, struct text mailbox,
            const struct address *parsed, struct rewrite_answer *answer)
{
    struct buffer normal;
    *answer = (struct rewrite_answer){.local = false};
    if (w->rewrite->find == NULL)
        return false;
    buffer_init(&normal, REWRITE_ADDRESS_MAX);
    bool asked = parsed == NULL || address_write(parsed, &normal);
    struct text address = parsed != NULL ? buffer_text(&normal) : mailbox;
    if (asked)
        w->rewrite->find(w->rewrite->table, address, answer);
    /* One that differs in its form alone stays: else twice would not be once. */
    bool differs = asked && !text_equal(address, text_from(answer->address));
    buffer_free(&normal);
    return differs && answer->address[0] != '\0' && counts_for(w->kind, answer);
}

static void
note_old(struct rewritten *w, const char *old)
{
    if (w->old != NULL)
        (void)!buffer_format(w->old, "%s%s", w->old->length > 0 ? ",\r\n " : "", old);
}

/* A line that would become too long (RFC 5322 §2.1.1) is folded, before an address of
 * this length that goes here. */
static void
fold_before(struct rewritten *w, size_t length, size_t end)
{
    struct text rest = text_after(w->value, end);
    size_t before = text_find_last(buffer_text(w->out), '\n');
    size_t line = w->out->length + length - (before == TEXT_NONE ? 0 : before + 1);
    size_t until = text_find(rest, '\n');
    if (line > FOLD_AT &&
        line + (until == TEXT_NONE ? rest.length : until) > LINE_MAX_BYTES)
        rewritten_put(w, TEXT("\r\n "));
}

/* A From without a name gets one, since the new address may be everybody's. */
static void
replace(struct rewritten *w, const struct address_place *place, const char *old,
        const struct rewrite_answer *answer)
{
    bool named = w->kind != FIELD_FROM || place->has_name || !is_printable(old);
    bool has_angle = place->angle != TEXT_NONE;
    if (!answer->local)
        note_old(w, old);
    w->replaced = w->changed = true;
    if (!named) {
        copy_to(w, has_angle ? place->angle : place->start);
        fold_before(w, 2 * strlen(old) + strlen(answer->address), place->end);
        put_name(w, old);
    }
    copy_to(w, place->start);
    if (!named && !has_angle)
        rewritten_put(w, TEXT("<"));
    fold_before(w, strlen(answer->address), place->end);
    rewritten_put(w, text_from(answer->address));
    if (!named && !has_angle)
        rewritten_put(w, TEXT(">"));
    w->done = place->end;
}

static void
rewrite_place(void *context, const struct address_place *place)
{
    struct rewritten *w = context;
    struct address parsed;
    struct rewrite_answer answer;
    char old[REWRITE_ADDRESS_MAX];
    bool bare = !address_parse(place->mailbox, &parsed);
    bool dotted = !bare && place->mailbox.at[place->mailbox.length - 1] == '.';
    if (++w->count > REWRITE_ADDRESSES_MAX ||
        !complete_address(
            w, text_before(place->mailbox, place->mailbox.length - dotted), bare, old))
        return;
    if (is_replaced(w, place->mailbox, bare ? NULL : &parsed, &answer)) {
        replace(w, place, old, &answer);
        snprintf(w->last, sizeof(w->last), "%s", answer.address);
        return;
    }
    snprintf(w->last, sizeof(w->last), "%s", old);
    if (!bare && !dotted)
        return;
    w->changed = true;
    copy_to(w, place->start);
    fold_before(w, strlen(old), place->end);
    rewritten_put(w, text_from(old));
    w->done = place->end;
}

static struct text
behind_colon(const struct header_field *f)
{
    return text_after(f->whole, (size_t)(f->value.at - f->whole.at));
}

/* As it is, but for white space before the colon. */
static bool
add_unchanged(const struct header_field *f, struct buffer *out)
{
    return buffer_add(out, f->name) && buffer_add_byte(out, ':') &&
           buffer_add(out, behind_colon(f));
}

/* Appends the field as it leaves. False: it cannot be parsed; the appended bytes are
 * undefined. */
static bool
rewrite_field(struct rewritten *w, const struct header_field *f)
{
    if (f->value.length > REWRITE_FIELD_MAX)
        return false;
    w->value = f->value;
    rewritten_put(w, f->name);
    rewritten_put(w, TEXT(":"));
    size_t broken = address_list_read(f->value, rewrite_place, NULL, w);
    copy_to(w, w->value.length);
    rewritten_put(w, text_after(behind_colon(f), f->value.length));
    return broken == 0 && w->count <= REWRITE_ADDRESSES_MAX;
}

/* --- The header --------------------------------------------------------------------- */

/* The first From counts for the others. */
static void
survey_from(struct survey *s, const struct rewrite *r, const struct header_field *f)
{
    struct buffer unused;
    struct rewritten w = {
        .rewrite = r, .kind = FIELD_FROM, .out = &unused, .old = &s->old};
    if (s->has_from)
        return;
    s->has_from = true;
    s->from = *f;
    buffer_init(&unused, 2 * REWRITE_FIELD_MAX);
    bool good = rewrite_field(&w, f);
    s->is_unreadable = f->value.length <= REWRITE_FIELD_MAX &&
                       w.count <= REWRITE_ADDRESSES_MAX && (!good || w.count == 0);
    if (!good) {
        buffer_clear(&s->old);
    } else {
        s->replaced = w.replaced;
        if (w.count == 1)
            snprintf(s->only, sizeof(s->only), "%s", w.last);
    }
    buffer_free(&unused);
}

static void
survey_header(struct survey *s, const struct rewrite *r, struct text header)
{
    struct header_field f;
    while (header_next(&header, &f)) {
        if (field_kind(f.name) == FIELD_FROM)
            survey_from(s, r, &f);
        s->has_reply_to =
            s->has_reply_to || text_equal_nocase(f.name, TEXT("Reply-To"));
        s->has_dkim = s->has_dkim || text_equal_nocase(f.name, TEXT("DKIM-Signature"));
    }
}

/* The last line of a message may lack its end (RFC 3030 §4.2), or half of it: a CR there
 * is the line end's and no octet of the field. */
static bool
end_line(struct buffer *out)
{
    char last = out->length > 0 ? out->at[out->length - 1] : '\n';
    return last == '\n' || buffer_add(out, last == '\r' ? TEXT("\n") : TEXT("\r\n"));
}

/* Replies must not go to an address that is everybody's. */
static bool
add_reply_to(struct survey *s, struct buffer *out)
{
    bool needed = !s->has_reply_to && s->old.length > 0;
    s->has_reply_to = true;
    return !needed ||
           (end_line(out) && buffer_add(out, TEXT("Reply-To: ")) &&
            buffer_add(out, buffer_text(&s->old)) && buffer_add(out, TEXT("\r\n")));
}

/* RFC 5322 §3.6.2: a Sender that equals From should not be there; some hosts refuse
 * it. */
static bool
is_needless(const struct rewritten *w, const struct survey *s)
{
    return w->kind == FIELD_SENDER && (w->replaced || s->replaced) && w->count == 1 &&
           s->only[0] != '\0' && strcmp(w->last, s->only) == 0;
}

/* False: out is full. */
static bool
add_field(struct rewrite *r, struct survey *s, const struct header_field *f,
          struct buffer *out)
{
    struct rewritten w = {.rewrite = r, .kind = field_kind(f->name), .out = out};
    size_t start = out->length;
    if (w.kind == FIELD_PRIVATE)
        return true;
    if (w.kind == FIELD_OTHER)
        return add_unchanged(f, out);
    if (!rewrite_field(&w, f)) {
        out->length = start;
        r->odd = r->unparsed++ == 0 ? f->name : r->odd;
        return add_unchanged(f, out);
    }
    r->breaks_dkim = r->breaks_dkim || (s->has_dkim && w.changed);
    if (is_needless(&w, s))
        out->length = start;
    return !w.full && (w.kind != FIELD_FROM || add_reply_to(s, out));
}

/* The text of a From as one line, cut between characters; bytes that are no UTF-8 are
 * shown as '?'. */
static struct text
from_as_name(struct text value, char name[FROM_NAME_MAX])
{
    bool utf8 = text_is_utf8(value);
    size_t length = 0;
    value = text_trim(value);
    for (size_t at = 0; at < value.length && length < FROM_NAME_MAX; at++) {
        char c = value.at[at];
        bool blank = c == ' ' || c == '\t' || c == '\r' || c == '\n';
        if (blank && length > 0 && name[length - 1] == ' ')
            continue;
        bool odd = (unsigned char)c < ' ' || c == 0x7f || (!utf8 && (c & 0x80) != 0);
        name[length++] = blank ? ' ' : odd ? '?' : c;
    }
    while (length > 0 && !text_is_utf8(text_of(name, length)))
        length--;
    return text_of(name, length);
}

/* From the envelope's sender, and rewritten like any other. old: the value of the From
 * that it takes the place of. */
static void
make_from(const struct rewrite *r, struct text old, struct buffer *line)
{
    char space[FROM_NAME_MAX];
    struct text name = from_as_name(old, space);
    bool empty = name.length == 0 || text_equal(name, TEXT("<>"));
    bool fits = buffer_add(line, TEXT("From: "));
    for (size_t at = 0; !empty && fits && at < name.length; at++)
        fits = (at > 0 || buffer_add(line, TEXT("\""))) &&
               (text_find(TEXT("\"\\"), name.at[at]) == TEXT_NONE ||
                buffer_add(line, TEXT("\\"))) &&
               buffer_add(line, text_of(name.at + at, 1));
    fits = fits && buffer_add(line, empty ? TEXT("") : TEXT("\" <")) &&
           (r->sender.length > 0
                ? buffer_add(line, r->sender)
                : buffer_format(line, "MAILER-DAEMON@%.*s", TEXT_ARGS(r->hostname))) &&
           buffer_add(line, empty ? TEXT("\r\n") : TEXT(">\r\n"));
    assert(fits);
}

/* "Doe, John <a@b>": a person whose name has commas, and no list. Writes the field with
 * the name in quotes; without its commas if it has encoded words, which quotes would
 * hide. */
static bool
quote_commas(const struct header_field *f, struct buffer *line)
{
    struct address address;
    struct text value = text_trim(f->value);
    size_t angle = text_find(value, '<');
    if (f->value.length > OLD_MAX || angle == TEXT_NONE || angle == 0 ||
        value.at[value.length - 1] != '>')
        return false;
    struct text name = text_trim(text_before(value, angle));
    struct text mailbox = text_after(value, angle + 1);
    mailbox = text_trim(text_before(mailbox, mailbox.length - 1));
    bool encoded = false, commas = false;
    for (size_t at = 0; at < name.length; at++) {
        if (text_find(TEXT("@>\"():;\\[]"), name.at[at]) != TEXT_NONE)
            return false;
        commas = commas || name.at[at] == ',';
        encoded = encoded || text_starts(text_after(name, at), TEXT("=?"));
    }
    if (!commas || !address_parse(mailbox, &address))
        return false;
    bool fits = buffer_add(line, encoded ? TEXT("From: ") : TEXT("From: \""));
    for (size_t at = 0; at < name.length && fits; at++)
        fits = encoded && name.at[at] == ','
                   ? true
                   : buffer_add(line, text_of(name.at + at, 1));
    fits = fits && buffer_format(line, "%s <%.*s>\r\n", encoded ? "" : "\"",
                                 TEXT_ARGS(mailbox));
    assert(fits);
    return true;
}

/* A From that takes the place of the first one. */
static bool
add_made_from(struct rewrite *r, struct survey *s, const struct header_field *from,
              const struct header_field *old, struct buffer *out)
{
    r->breaks_dkim = r->breaks_dkim || s->has_dkim;
    return add_field(r, s, from, out) &&
           (!r->made_from || text_trim(old->value).length == 0 ||
            (buffer_add(out, TEXT("X-Original-From:")) &&
             buffer_add(out, behind_colon(old))));
}

/* A new field stands behind the trace fields, which come first. */
static bool
add_fields(struct rewrite *r, struct survey *s, struct text header,
           const struct header_field *from, const struct header_field *old,
           struct buffer *out)
{
    struct header_field f;
    bool good = true;
    while (good && header_next(&header, &f)) {
        if (old->whole.at != NULL && f.whole.at == old->whole.at) {
            good = add_made_from(r, s, from, old, out);
            from = NULL;
            continue;
        }
        if (from != NULL && old->whole.at == NULL &&
            !text_equal_nocase(f.name, TEXT("Received"))) {
            good = add_field(r, s, from, out);
            from = NULL;
        }
        good = good && add_field(r, s, &f, out);
    }
    if (good && from != NULL)
        good = end_line(out) && add_field(r, s, from, out);
    return good && buffer_add(out, header);
}

bool
rewrite_header(struct rewrite *r, struct text header, struct buffer *out)
{
    struct survey s = {.has_from = false};
    struct header_field from, old = {.value = TEXT("")};
    struct buffer line;
    r->unparsed = 0;
    r->breaks_dkim = false;
    buffer_init(&s.old, OLD_MAX);
    buffer_init(&line, r->sender.length + r->hostname.length + 2 * OLD_MAX);
    survey_header(&s, r, header);
    bool has_commas = s.has_from && quote_commas(&s.from, &line);
    r->made_from = s.has_from && s.is_unreadable && !has_commas;
    r->quoted_name = has_commas;
    if (has_commas || r->made_from)
        old = s.from;
    if (r->made_from || !s.has_from)
        make_from(r, old.value, &line);
    bool needs_from = line.length > 0;
    if (needs_from) {
        struct text rest = buffer_text(&line);
        bool is_field = header_next(&rest, &from);
        assert(is_field);
        s.has_from = false;
        buffer_clear(&s.old);
        survey_from(&s, r, &from);
    }
    bool good = add_fields(r, &s, header, needs_from ? &from : NULL, &old, out);
    buffer_free(&line);
    buffer_free(&s.old);
    return good;
}
