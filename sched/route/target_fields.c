/* Fields that a route adds to the header of its mail, or removes: fixed texts, percent-
 * encoded as users are. Fields that others need, or that may stand once, are not its to
 * change. */
#include "sched/route/target_internal.h"

#include <stdio.h>
#include <string.h>

enum { FIELD_MAX = 400 };

/* Sender and way of the mail, by which loops end, and the form of its body. */
static const char *const kept[] = {"Received",      "Return-Path",    "Delivered-To",
                                   "X-Original-To", "From",           "Date",
                                   "Message-ID",    "MIME-Version",   "Content-",
                                   "Resent-",       "DKIM-Signature", "ARC-"};
/* RFC 5322 §3.6. */
static const char *const single[] = {"Sender", "Reply-To",    "To",         "Cc",
                                     "Bcc",    "In-Reply-To", "References", "Subject"};

static bool
field_is_one_of(struct text name, const char *const *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        struct text one = text_from(list[i]);
        bool prefix = one.at[one.length - 1] == '-';
        if (prefix ? text_starts_nocase(name, one) : text_equal_nocase(name, one))
            return true;
    }
    return false;
}

static bool
field_is_name(struct text t)
{
    for (size_t i = 0; i < t.length; i++)
        if (t.at[i] <= ' ' || t.at[i] >= 0x7f || t.at[i] == ':' || t.at[i] == ',')
            return false;
    return t.length > 0 && t.length <= 76;
}

static bool
field_has_space(char *list, size_t size, struct text line)
{
    size_t length = strlen(list);
    return length + line.length < size && text_copy(list + length, size - length, line);
}

static bool
field_add(struct target_parser *p, struct text value)
{
    char line[FIELD_MAX + 8];
    size_t colon = text_find(value, ':');
    struct text name = text_before(value, colon), body = text_after(value, colon + 1);
    if (colon == TEXT_NONE || !field_is_name(name) || text_has_control(body) ||
        !text_is_ascii(body) || text_trim(body).length == 0)
        return target_complain(p, "add_header= needs NAME:VALUE of ASCII, as in "
                                  "add_header=X-Environment:%%20staging");
    if (field_is_one_of(name, kept, sizeof(kept) / sizeof(*kept)) ||
        field_is_one_of(name, single, sizeof(single) / sizeof(*single)))
        return target_complain(p, "add_header=%.*s: a message has its own",
                               TEXT_ARGS(name));
    body = text_trim(body);
    int length = snprintf(line, sizeof(line), "%.*s: %.*s\r\n", TEXT_ARGS(name),
                          TEXT_ARGS(body));
    return field_has_space(p->target->add_header, sizeof(p->target->add_header),
                           text_of(line, (size_t)length)) ||
           target_complain(p, "add_header= of one route have at most %d bytes",
                           TARGET_FIELDS_MAX - 1);
}

static bool
field_remove(struct target_parser *p, struct text name)
{
    char line[FIELD_MAX + 8];
    if (!field_is_name(name))
        return target_complain(p, "remove_header= needs the name of a field");
    if (field_is_one_of(name, kept, sizeof(kept) / sizeof(*kept)))
        return target_complain(p, "remove_header=%.*s: other hosts need it",
                               TEXT_ARGS(name));
    int length = snprintf(line, sizeof(line), "%.*s,", TEXT_ARGS(name));
    return field_has_space(p->target->remove_header, sizeof(p->target->remove_header),
                           text_of(line, (size_t)length)) ||
           target_complain(p, "remove_header= of one route have at most %d bytes",
                           TARGET_FIELDS_MAX - 1);
}

bool
target_fields_option(struct target_parser *p, struct text key, struct text value,
                     bool *good)
{
    bool adds = text_equal_nocase(key, TEXT("add_header"));
    enum target_kind kind = p->target->kind;
    char decoded[FIELD_MAX];
    size_t length;
    if (!adds && !text_equal_nocase(key, TEXT("remove_header")))
        return false;
    if (kind != TARGET_MX && kind != TARGET_SMTP && kind != TARGET_LMTP)
        *good = target_complain(p, "%.*s= is for SMTP and LMTP", TEXT_ARGS(key));
    else if (!target_decode(value, decoded, sizeof(decoded), &length))
        *good = target_complain(p,
                                "%.*s=: empty, longer than %d bytes, or badly encoded "
                                "(%%20 is a blank, %%26 is &)",
                                TEXT_ARGS(key), FIELD_MAX);
    else
        *good = adds ? field_add(p, text_of(decoded, length))
                     : field_remove(p, text_of(decoded, length));
    return true;
}
