/* Finds the end of a path, and the mailbox in it. */
#include "smtp/server/path.h"

#include "mime/header.h"

#include <string.h>

/* Up to the first blank outside quotes. */
static size_t
first_word(struct text t)
{
    bool quoted = false;
    size_t at = 0;
    while (at < t.length && (quoted || t.at[at] != ' ')) {
        if (t.at[at] == '"')
            quoted = !quoted;
        at += quoted && t.at[at] == '\\' ? 2 : 1;
    }
    return at < t.length ? at : t.length;
}

/* "KEY=value", or the only parameter without a value. */
static bool
is_parameter(struct text word)
{
    size_t at = 0;
    while (at < word.length &&
           (text_is_digit(word.at[at]) || word.at[at] == '-' ||
            ((word.at[at] | 0x20) >= 'a' && (word.at[at] | 0x20) <= 'z')))
        at++;
    return (at > 0 && at < word.length && word.at[at] == '=') ||
           text_equal_nocase(word, TEXT("SMTPUTF8"));
}

/* All but the parameters at the end; at least one word. */
static size_t
before_parameters(struct text t)
{
    struct text path = text_trim(t);
    for (;;) {
        size_t blank = text_find_last(path, ' ');
        if (blank == TEXT_NONE || !is_parameter(text_after(path, blank + 1)))
            return path.length;
        path = text_trim(text_before(path, blank));
    }
}

static size_t
path_count(struct text t, char c)
{
    size_t count = 0;
    for (size_t at = 0; at < t.length; at++)
        count += t.at[at] == c;
    return count;
}

/* Without an outer pair of brackets, or a bracket that lacks the other. */
static struct text
without_brackets(struct text t)
{
    size_t opening = path_count(t, '<'), closing = path_count(t, '>');
    bool opens = text_starts(t, TEXT("<"));
    bool closes = t.length > 1 && t.at[t.length - 1] == '>' &&
                  (closing > opening || (opens && closing == opening));
    t = text_after(t, opens ? 1 : 0);
    return text_trim(text_before(t, t.length - (closes ? 1 : 0)));
}

struct path_reading {
    struct path *out;
    size_t count, length;
};

static void
path_keep(void *context, const struct address_place *place)
{
    struct path_reading *r = context;
    if (r->count++ > 0 || place->mailbox.length >= sizeof(r->out->kept))
        return;
    memcpy(r->out->kept, place->mailbox.at, place->mailbox.length);
    r->length = place->mailbox.length;
}

/* Reads t as an address list, which knows display names, comments, and blanks around dots
 * and the @; again without brackets that make none of it. */
static struct text
path_find_mailbox(struct text t, struct path_reading *r)
{
    for (;;) {
        r->count = 0;
        if (address_list_places(t, path_keep, r) == 0 && r->count > 0)
            return text_of(r->out->kept, r->length);
        struct text inner = without_brackets(t);
        if (inner.length == t.length)
            return t;
        t = inner;
    }
}

/* An address that is a local part alone is completed. */
static const char *
path_forgive(struct text *argument, const struct path_rules *rules, struct path *out)
{
    struct path_reading r = {.out = out};
    struct buffer written;
    size_t length = before_parameters(*argument);
    struct text mailbox = path_find_mailbox(text_before(*argument, length), &r);
    *argument = text_after(*argument, length);
    out->address = (struct address){.local = TEXT("")};
    if (r.count > 1)
        return "more than one address";
    if (mailbox.length == 0) /* "< >" */
        return NULL;
    const char *rule = address_judge(mailbox, &out->address);
    if (rule == NULL || !address_is_local(mailbox))
        return rule;
    out->address = (struct address){mailbox, rules->hostname, !text_is_ascii(mailbox)};
    buffer_init(&written, ADDRESS_MAX);
    bool fits = address_write(&out->address, &written);
    buffer_free(&written);
    return fits ? NULL : "longer than 254 octets";
}

const char *
path_read(struct text *argument, const struct path_rules *rules, struct path *out)
{
    struct text rest = *argument;
    const char *rule = address_judge_path(&rest, &out->address);
    if (rule == NULL && rest.length > 0 && rest.at[0] != ' ')
        rule = "text behind the address";
    if (rule == NULL) {
        *argument = rest;
        return NULL;
    }
    if (rules->forgiving)
        return path_forgive(argument, rules, out);
    if (rest.length < argument->length)
        return rule; /* it has both brackets */
    size_t length = first_word(*argument);
    struct text path = text_before(*argument, length);
    *argument = text_after(*argument, length);
    return address_judge(without_brackets(path), &out->address);
}
