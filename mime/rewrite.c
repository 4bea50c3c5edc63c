/* Passes a header field by field, and changes what must not leave as it is. */
#include "mime/rewrite.h"

#include "mime/header.h"

/* Postfix drops the same (RFC 5322 §3.6.3, RFC 5321 §4.4). */
static bool
is_private(struct text name)
{
    return text_equal_nocase(name, TEXT("Bcc")) ||
           text_equal_nocase(name, TEXT("Resent-Bcc")) ||
           text_equal_nocase(name, TEXT("Return-Path"));
}

static bool
rewrite_has_field(struct text header, struct text name)
{
    struct header_field f;
    while (header_next(&header, &f))
        if (text_equal_nocase(f.name, name))
            return true;
    return false;
}

/* The last line of a message may lack its end (RFC 3030 §4.2). */
static bool
add_from(const struct rewrite *r, struct buffer *out)
{
    bool is_open = out->length > 0 && out->at[out->length - 1] != '\n';
    return (!is_open || buffer_add(out, TEXT("\r\n"))) &&
           buffer_add(out, TEXT("From: ")) &&
           (r->sender.length > 0 ? buffer_add(out, r->sender)
                                 : buffer_add(out, TEXT("MAILER-DAEMON@")) &&
                                       buffer_add(out, r->hostname)) &&
           buffer_add(out, TEXT("\r\n"));
}

/* A new field stands behind the trace fields, which come first. */
static bool
is_trace(struct text name)
{
    return text_equal_nocase(name, TEXT("Received"));
}

bool
rewrite_header(const struct rewrite *r, struct text header, struct buffer *out)
{
    struct header_field f;
    bool needs_from = !rewrite_has_field(header, TEXT("From")), good = true;
    while (good && header_next(&header, &f)) {
        if (needs_from && !is_trace(f.name)) {
            good = add_from(r, out);
            needs_from = false;
        }
        if (good && !is_private(f.name))
            good = buffer_add(out, f.whole);
    }
    if (good && needs_from)
        good = add_from(r, out);
    return good && buffer_add(out, header);
}
