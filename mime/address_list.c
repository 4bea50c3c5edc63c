/* The addresses of an address list (RFC 5322 §3.4), one pass, no recursion.
 *
 * A word can be a part of a display name, of a group name or of a mailbox, and only a
 * later byte decides which. So all words of an entry are appended to `mailbox`, and the
 * byte that decides ('<', ':', ',' or ';') keeps, drops or checks them. Address lists
 * come from header fields of any client: a malformed entry is counted and skipped, and
 * the next one starts behind the next comma or semicolon. */
#include "mime/header.h"

#include "mime/address.h"

#include <assert.h>
#include <string.h>

/* The entry being read, between two commas. */
struct entry {
    char mailbox[ADDRESS_MAX + 1]; /* the mailbox so far, without comments */
    size_t length;
    bool present;  /* holds anything but comments */
    bool broken;   /* is malformed in any case */
    bool phrase;   /* two adjacent words: a display name, or else malformed */
    bool gap;      /* white space or a comment since the last word */
    bool in_angle; /* behind < */
    bool closed;   /* behind > */
    bool in_route; /* behind <@ and before its colon */
    bool named;    /* words stand before < */
    bool started;  /* start is known: there is a word */
    size_t start, end, angle;
};

struct reader {
    struct text in;
    size_t at;
    struct entry entry;
    bool in_group;
    size_t begin; /* of the entry, with the white space before it */
    size_t broken;
    void (*each_broken)(void *context, struct text entry); /* NULL: not wanted */
    address_list_met *each;
    void *context;
};

/* The entry ends at r->at. */
static void
address_list_reject(struct reader *r)
{
    r->broken++;
    if (r->each_broken != NULL)
        r->each_broken(r->context,
                       text_trim(text_of(r->in.at + r->begin, r->at - r->begin)));
}

/* Two adjacent words are allowed only as the display name before <...>. In the end the
 * mailbox is parsed by the rules of RCPT, or is a local part alone: nothing else is
 * reported to each(). */
static void
finish_entry(struct reader *r)
{
    struct entry *e = &r->entry;
    struct text mailbox = text_of(e->mailbox, e->length);
    struct address parsed;
    bool good = !e->broken && !e->in_angle && (e->closed || !e->phrase) &&
                (address_parse(mailbox, &parsed) || address_is_local(mailbox));
    struct address_place place = {.mailbox = mailbox,
                                  .start = e->start,
                                  .end = e->end,
                                  .angle = e->closed ? e->angle : TEXT_NONE,
                                  .has_name = e->named};
    if (good)
        r->each(r->context, &place);
    else if (e->present)
        address_list_reject(r);
    *e = (struct entry){.gap = false};
}

static void
note_span(struct entry *e, size_t at, size_t length)
{
    if (!e->started)
        e->start = at;
    e->started = true;
    e->end = at + length;
}

/* Adds a word, "@" or ".". A route ("<@a,@b:") is not kept, and a token behind <...>
 * makes the entry malformed. White space and comments around "." and "@" do not
 * separate words (RFC 5322 §4.4, obs-local-part and obs-domain). */
static void
add_token(struct entry *e, struct text token, size_t at)
{
    assert(token.length > 0);
    e->present = true;
    if (e->closed) {
        e->broken = true; /* <a@b> c */
        return;
    }
    note_span(e, at, token.length);
    if (e->in_route)
        return;
    char last = e->length > 0 ? e->mailbox[e->length - 1] : '.';
    bool joined =
        last == '.' || last == '@' || token.at[0] == '.' || token.at[0] == '@';
    if (e->gap && !joined) {
        e->phrase = true;
        e->broken = e->broken || e->in_angle;
    }
    e->gap = false;
    if (e->length + token.length > sizeof(e->mailbox)) {
        e->phrase = true; /* too long for a mailbox, but not for a display name */
        e->broken = e->broken || e->in_angle;
        return;
    }
    memcpy(e->mailbox + e->length, token.at, token.length);
    e->length += token.length;
}

/* At "(": skips the comment; to the end if it is not closed. */
static void
address_list_skip_comment(struct reader *r)
{
    size_t length = header_comment_length(text_after(r->in, r->at));
    if (length == TEXT_NONE)
        r->entry.present = r->entry.broken = true;
    r->at = length == TEXT_NONE ? r->in.length : r->at + length;
    r->entry.gap = true;
}

/* At a quote or a bracket: takes all bytes up to the closing one. A comma, a colon or
 * an angle bracket in it has no meaning. */
static void
take_enclosed(struct reader *r, char close)
{
    size_t start = r->at++;
    while (r->at < r->in.length && r->in.at[r->at] != close)
        r->at += r->in.at[r->at] == '\\' ? 2 : 1;
    if (r->at >= r->in.length) {
        r->entry.present = r->entry.broken = true;
        r->at = r->in.length;
        return;
    }
    r->at++;
    /* "x"y is not a word of RFC 5322, even if address_parse() would accept the two. */
    if (close == '"' && r->entry.length > 0 && !r->entry.gap && !r->entry.in_route)
        r->entry.gap = true;
    add_token(&r->entry, text_of(r->in.at + start, r->at - start), start);
    r->entry.gap = r->entry.gap || close == '"';
}

static void
address_list_take_word(struct reader *r)
{
    size_t start = r->at;
    while (
        r->at < r->in.length && !text_is_space(r->in.at[r->at]) &&
        (r->in.at[r->at] == '\0' || strchr("()<>[]:;@,.\"", r->in.at[r->at]) == NULL))
        r->at++;
    assert(r->at > start);
    add_token(&r->entry, text_of(r->in.at + start, r->at - start), start);
}

/* The words before '<' were the display name, which is dropped; a second pair of
 * brackets is malformed. */
static void
on_angle(struct entry *e, char c, size_t at)
{
    e->present = true;
    if (c == '<') {
        e->broken = e->broken || e->in_angle || e->closed;
        e->in_angle = true;
        e->named = e->started; /* however long its words are */
        e->length = 0;         /* it was the display name */
        e->started = false;
        e->angle = at;
    } else {
        e->broken = e->broken || !e->in_angle || e->in_route;
        e->in_angle = e->in_route = false;
        e->closed = true;
    }
    e->gap = false;
}

static void
on_colon(struct reader *r)
{
    struct entry *e = &r->entry;
    if (e->in_route) {
        e->in_route = false;
        return;
    }
    if (e->in_angle || e->closed) {
        e->present = e->broken = true;
        return;
    }
    /* "a@b Cc: c@d" is not a group but a line with a lost line end. */
    bool address = memchr(e->mailbox, '@', e->length) != NULL && e->mailbox[0] != '"';
    if (e->broken || !e->present || r->in_group || address)
        address_list_reject(r);
    *e = (struct entry){.gap = false};
    r->begin = r->at;
    r->in_group = true; /* the words before it are its name */
}

/* The commas of a route separate hosts, not entries. */
static void
on_separator(struct reader *r, char c)
{
    if (c == ',' && r->entry.in_route)
        return;
    r->at--; /* the entry ends before it */
    finish_entry(r);
    r->begin = ++r->at;
    if (c == ';')
        r->in_group = false;
}

static void
take_special(struct reader *r, char c)
{
    struct entry *e = &r->entry;
    r->at++;
    switch (c) {
    case '<':
    case '>':
        on_angle(e, c, r->at - 1);
        return;
    case ':':
        on_colon(r);
        return;
    case ',':
    case ';': /* ends a group, and separates for some mail readers */
        on_separator(r, c);
        return;
    case '@':
        if (e->in_angle && e->length == 0)
            e->in_route = true;
        add_token(e, TEXT("@"), r->at - 1);
        return;
    case '.':
        add_token(e, TEXT("."), r->at - 1);
        return;
    default: /* ) or ] by itself */
        e->present = e->broken = true;
        return;
    }
}

size_t
address_list_read(struct text value, address_list_met *each,
                  void (*broken)(void *context, struct text entry), void *context)
{
    struct reader r = {
        .in = value, .each = each, .each_broken = broken, .context = context};
    while (r.at < r.in.length) {
        char c = r.in.at[r.at];
        if (text_is_space(c)) {
            r.entry.gap = true;
            r.at++;
        } else if (c == '(') {
            address_list_skip_comment(&r);
        } else if (c == '"') {
            take_enclosed(&r, '"');
        } else if (c == '[') {
            take_enclosed(&r, ']');
        } else if (c != '\0' && strchr("<>:,;@.)]", c) != NULL) {
            take_special(&r, c);
        } else {
            address_list_take_word(&r);
        }
    }
    finish_entry(&r);
    return r.broken;
}
