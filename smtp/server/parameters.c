/* Reads path and ESMTP parameters of MAIL and RCPT; checks each after decoding. */
#include "smtp/server/parameters.h"

#include "mime/date.h"
#include "mime/header.h"
#include "queue/envelope/set_mark.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { HOLD_FOR_MAX_S = 999999999, PARAMETER_HOLD_MAX = 40 };

/* --- Paths ------------------------------------------------------------------------ */

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

/* "KEY=value", or one of the parameters without a value. */
static bool
is_parameter(struct text word)
{
    size_t at = 0;
    while (at < word.length &&
           (text_is_digit(word.at[at]) || word.at[at] == '-' ||
            ((word.at[at] | 0x20) >= 'a' && (word.at[at] | 0x20) <= 'z')))
        at++;
    return (at > 0 && at < word.length && word.at[at] == '=') ||
           text_equal_nocase(word, TEXT("SMTPUTF8")) ||
           text_equal_nocase(word, TEXT("REQUIRETLS"));
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
        if (address_list_read(t, path_keep, NULL, r) == 0 && r->count > 0)
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
parameters_read_path(struct text *argument, const struct path_rules *rules,
                     struct path *out)
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

static const struct refusal mail_syntax = {501, "5.5.4",
                                           "syntax: MAIL FROM:<address> [parameters]"};
static const struct refusal rcpt_syntax = {501, "5.5.4",
                                           "syntax: RCPT TO:<address> [parameters]"};
static const struct refusal needs_utf8 = {553, "5.6.7", "address needs SMTPUTF8"};
static const struct refusal unknown = {555, "5.5.4", "unknown parameter"};
static const struct refusal twice = {501, "5.5.4", "parameter given twice"};
static const struct refusal bad_size = {501, "5.5.4", "bad SIZE"};
static const struct refusal bad_body = {501, "5.5.4",
                                        "BODY must be 7BIT, 8BITMIME or BINARYMIME"};
static const struct refusal no_value = {501, "5.5.4", "SMTPUTF8 takes no value"};
static const struct refusal no_tls_value = {501, "5.5.4", "REQUIRETLS takes no value"};
static const struct refusal bad_ret = {501, "5.5.4", "RET must be FULL or HDRS"};
static const struct refusal bad_envid = {501, "5.5.4", "bad ENVID"};
static const struct refusal bad_priority = {501, "5.5.4",
                                            "MT-PRIORITY must be from -9 to 9"};
static const struct refusal bad_auth = {501, "5.5.4", "AUTH must be <> or an address"};
static const struct refusal bad_set_mark = {501, "5.5.4",
                                            "XDEFRAG must be KEY;DEPTH;EPOCH"};
static const struct refusal bad_hold_for = {501, "5.5.4",
                                            "HOLDFOR must be 1 to 999999999 seconds"};
static const struct refusal bad_hold_until = {
    501, "5.5.4", "HOLDUNTIL must be a time like 2030-01-31T08:00:00Z"};
static const struct refusal two_holds = {501, "5.5.4",
                                         "HOLDFOR and HOLDUNTIL exclude each other"};
static const struct refusal bad_notify = {501, "5.5.4", "bad NOTIFY"};
static const struct refusal bad_orcpt = {501, "5.5.4", "bad ORCPT"};

/* True: valid xtext. */
static bool
is_xtext(struct text t)
{
    struct buffer decoded;
    buffer_init(&decoded, t.length);
    bool good = t.length > 0 && xtext_read(t, &decoded);
    buffer_free(&decoded);
    return good;
}

/* Cuts "FROM:" or "TO:" off, with the blanks that many clients add before the path. */
static bool
take_prefix(struct text *argument, struct text prefix)
{
    if (!text_starts_nocase(*argument, prefix))
        return false;
    *argument = text_after(*argument, prefix.length);
    while (argument->length > 0 && argument->at[0] == ' ')
        *argument = text_after(*argument, 1);
    return argument->length > 0;
}

static const struct refusal *
bad_path(struct parameter_refusal *out, const char *enhanced, const char *whose,
         const char *rule)
{
    snprintf(out->text, sizeof(out->text), "bad %s address: %s", whose, rule);
    out->refusal = (struct refusal){501, enhanced, out->text};
    return &out->refusal;
}

/* A value that a client wrote raw, as RFC 3461 wants it. Empty: it does not fit. */
static struct text
parameters_encode(struct text raw, char *at, size_t size)
{
    struct buffer coded;
    buffer_init(&coded, size);
    bool fits = raw.length > 0 && xtext_write(raw, &coded);
    if (fits)
        memcpy(at, coded.at, coded.length);
    struct text t = text_of(at, fits ? coded.length : 0);
    buffer_free(&coded);
    return t;
}

/* Cuts "KEY" or "KEY=value" off. value.at is NULL without '='. */
static bool
take_parameter(struct text *rest, struct text *key, struct text *value)
{
    struct text word;
    if (!text_word(rest, " ", &word))
        return false;
    bool cut = text_cut(&word, '=', key);
    assert(cut);
    *value = word;
    return true;
}

static const struct refusal *
parameters_read_size(struct mail_parameters *out, struct text value)
{
    uint64_t size = 0;
    /* RFC 1870 §3: up to 20 digits; a value that overflows exceeds every limit. */
    for (size_t i = 0; i < value.length; i++)
        if (value.at[i] < '0' || value.at[i] > '9')
            return &bad_size;
    if (value.length == 0 || value.length > 20)
        return &bad_size;
    if (!text_number(value, INT64_MAX, &size))
        size = INT64_MAX;
    out->size = (int64_t)size;
    return NULL;
}

static const struct refusal *
read_body(struct mail_parameters *out, struct text value)
{
    out->binary = text_equal_nocase(value, TEXT("BINARYMIME"));
    out->eight_bit = out->binary || text_equal_nocase(value, TEXT("8BITMIME"));
    return out->eight_bit || text_equal_nocase(value, TEXT("7BIT")) ? NULL : &bad_body;
}

static const struct refusal *
read_utf8(struct mail_parameters *out, struct text value)
{
    out->utf8 = true;
    return value.at == NULL ? NULL : &no_value;
}

/* RFC 8689 */
static const struct refusal *
read_requires_tls(struct mail_parameters *out, struct text value)
{
    out->requires_tls = true;
    return value.at == NULL ? NULL : &no_tls_value;
}

static const struct refusal *
read_ret(struct mail_parameters *out, struct text value)
{
    bool full = text_equal_nocase(value, TEXT("FULL"));
    out->ret = full ? RETURN_FULL : RETURN_HEADERS;
    return full || text_equal_nocase(value, TEXT("HDRS")) ? NULL : &bad_ret;
}

static const struct refusal *
read_envid(struct mail_parameters *out, struct text value)
{
    bool good = value.length <= PARAMETER_ENVID_MAX && is_xtext(value);
    out->envelope_id =
        good ? value : parameters_encode(value, out->coded, sizeof(out->coded));
    return good ? NULL : &bad_envid;
}

/* RFC 6710: 0, or 1 to 9 with an optional minus; no plus. */
static const struct refusal *
read_priority(struct mail_parameters *out, struct text value)
{
    bool minus = text_starts(value, TEXT("-"));
    struct text digit = text_after(value, minus ? 1 : 0);
    out->has_priority = true;
    if (digit.length != 1 || digit.at[0] < (minus ? '1' : '0') || digit.at[0] > '9')
        return &bad_priority;
    out->priority = digit.at[0] - '0';
    if (minus)
        out->priority = -out->priority;
    return NULL;
}

/* RFC 4954 §5: the original submitter, as the client declares it. The syntax is checked;
 * the value is not passed on, which is equivalent to <>. */
static const struct refusal *
parameters_read_auth(struct mail_parameters *out, struct text value)
{
    (void)out;
    return text_equal(value, TEXT("<>")) ||
                   (value.length <= PARAMETER_AUTH_MAX && is_xtext(value))
               ? NULL
               : &bad_auth;
}

/* XDEFRAG: see smtp/redirect.h. */
static const struct refusal *
read_set_mark(struct mail_parameters *out, struct text value)
{
    struct set_mark mark;
    out->has_set_mark = true;
    out->set_mark = value;
    return set_mark_read(value, &mark) ? NULL : &bad_set_mark;
}

/* RFC 4865 §4 */
static const struct refusal *
read_hold_for(struct mail_parameters *out, struct text value)
{
    uint64_t seconds = 0;
    if (out->has_hold)
        return &two_holds;
    out->has_hold = true;
    bool good = value.length <= 9 && text_number(value, HOLD_FOR_MAX_S, &seconds) &&
                seconds > 0;
    out->hold_s = (int64_t)seconds;
    out->hold = value;
    return good ? NULL : &bad_hold_for;
}

static const struct refusal *
read_hold_until(struct mail_parameters *out, struct text value)
{
    if (out->has_hold)
        return &two_holds;
    out->has_hold = true;
    out->hold = value;
    bool good = value.length <= PARAMETER_HOLD_MAX && value.at != NULL &&
                date_read_utc(value, &out->hold_until_ms);
    return good ? NULL : &bad_hold_until;
}

static const struct {
    struct text key;
    const struct refusal *(*read)(struct mail_parameters *, struct text value);
} mail_keys[] = {
    {TEXT("SIZE"),        parameters_read_size},
    {TEXT("BODY"),        read_body           },
    {TEXT("SMTPUTF8"),    read_utf8           },
    {TEXT("RET"),         read_ret            },
    {TEXT("ENVID"),       read_envid          },
    {TEXT("MT-PRIORITY"), read_priority       },
    {TEXT("AUTH"),        parameters_read_auth},
    {TEXT("XDEFRAG"),     read_set_mark       },
    {TEXT("HOLDFOR"),     read_hold_for       },
    {TEXT("HOLDUNTIL"),   read_hold_until     },
    {TEXT("REQUIRETLS"),  read_requires_tls   },
};
enum { MAIL_KEYS = sizeof(mail_keys) / sizeof(mail_keys[0]) };

static const struct refusal *
read_mail_parameter(struct mail_parameters *out, struct text key, struct text value,
                    bool forgiving, unsigned *seen)
{
    for (unsigned i = 0; i < MAIL_KEYS; i++) {
        if (!text_equal_nocase(key, mail_keys[i].key))
            continue;
        if (*seen & 1U << i)
            return &twice;
        *seen |= 1U << i;
        const struct refusal *refusal = mail_keys[i].read(out, value);
        bool matters = refusal != &bad_envid && refusal != &bad_auth;
        return forgiving && !matters ? NULL : refusal;
    }
    return &unknown;
}

const struct refusal *
parameters_read_mail(struct text argument, const struct path_rules *rules,
                     struct mail_parameters *out)
{
    struct address *sender = &out->sender.address;
    struct text key, value;
    unsigned seen = 0;
    *out = (struct mail_parameters){.ret = RETURN_DEFAULT};
    if (!take_prefix(&argument, TEXT("FROM:")))
        return &mail_syntax;
    const char *rule = parameters_read_path(&argument, rules, &out->sender);
    /* <postmaster> without a domain is valid in RCPT only (RFC 5321 §4.1.1.3). */
    if (rule == NULL && sender->domain.length == 0 && sender->local.length > 0) {
        sender->domain = rules->forgiving ? rules->hostname : TEXT("");
        rule = rules->forgiving ? NULL : "no domain";
    }
    if (rule != NULL)
        return bad_path(&out->bad, "5.1.7", "sender", rule);
    while (take_parameter(&argument, &key, &value)) {
        const struct refusal *refusal =
            read_mail_parameter(out, key, value, rules->forgiving, &seen);
        if (refusal != NULL)
            return refusal;
    }
    return sender->utf8 && !out->utf8 ? &needs_utf8 : NULL;
}

static const struct refusal *
read_notify(struct rcpt_parameters *out, struct text value)
{
    static const struct {
        struct text word;
        unsigned bit;
    } words[] = {
        {TEXT("NEVER"),   NOTIFY_NEVER  },
        {TEXT("SUCCESS"), NOTIFY_SUCCESS},
        {TEXT("FAILURE"), NOTIFY_FAILURE},
        {TEXT("DELAY"),   NOTIFY_DELAY  },
    };
    struct text word;
    unsigned notify = 0;
    while (text_cut(&value, ',', &word)) {
        unsigned bit = 0;
        for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
            if (text_equal_nocase(word, words[i].word))
                bit = words[i].bit;
        if (bit == 0)
            return &bad_notify;
        notify |= bit;
    }
    out->notify = notify;
    /* NEVER stands alone (RFC 3461 §4.1). */
    bool mixed = (notify & NOTIFY_NEVER) != 0 && notify != NOTIFY_NEVER;
    return notify == 0 || mixed ? &bad_notify : NULL;
}

static bool
is_atom(struct text t)
{
    for (size_t i = 0; i < t.length; i++) {
        char c = t.at[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && !text_is_digit(c) && c != '-')
            return false;
    }
    return t.length > 0;
}

/* "type;address": xtext; for type utf-8 also plain UTF-8 (RFC 6533 §3). */
static const struct refusal *
read_orcpt(struct rcpt_parameters *out, struct text value, bool utf8)
{
    struct text rest = value, type;
    if (value.length > PARAMETER_ORCPT_MAX || !text_cut(&rest, ';', &type) ||
        !is_atom(type) || rest.length == 0)
        return &bad_orcpt;
    bool raw = text_equal_nocase(type, TEXT("utf-8")) &&
               (utf8 || text_is_ascii(rest)) && text_is_utf8(rest) &&
               !text_has_control(rest);
    out->original = value;
    if (raw || is_xtext(rest))
        return NULL;
    /* The type and its semicolon, and then the rest in code. */
    size_t before = type.length + 1;
    memcpy(out->coded, value.at, before);
    rest = parameters_encode(rest, out->coded + before, sizeof(out->coded) - before);
    out->original = text_of(out->coded, rest.length > 0 ? before + rest.length : 0);
    return &bad_orcpt;
}

static const struct refusal *
read_rcpt_parameter(struct rcpt_parameters *out, struct text key, struct text value,
                    bool utf8)
{
    if (text_equal_nocase(key, TEXT("NOTIFY")))
        return out->notify != 0 ? &twice : read_notify(out, value);
    if (text_equal_nocase(key, TEXT("ORCPT")))
        return out->original.length > 0 ? &twice : read_orcpt(out, value, utf8);
    return &unknown;
}

const struct refusal *
parameters_read_rcpt(struct text argument, const struct path_rules *rules, bool utf8,
                     struct rcpt_parameters *out)
{
    struct text key, value;
    *out = (struct rcpt_parameters){.notify = NOTIFY_DEFAULT};
    if (!take_prefix(&argument, TEXT("TO:")))
        return &rcpt_syntax;
    const char *rule = parameters_read_path(&argument, rules, &out->recipient);
    if (rule == NULL && out->recipient.address.local.length == 0)
        rule = "no local part";
    if (rule != NULL)
        return bad_path(&out->bad, "5.1.3", "recipient", rule);
    while (take_parameter(&argument, &key, &value)) {
        const struct refusal *refusal = read_rcpt_parameter(out, key, value, utf8);
        if (refusal != NULL && !(rules->forgiving && refusal == &bad_orcpt))
            return refusal;
    }
    return out->recipient.address.utf8 && !utf8 ? &needs_utf8 : NULL;
}
