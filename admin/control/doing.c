/* Describes the activity of a session, as an object and as a sentence. */
#include "admin/control/doing.h"

#include "admin/control/json_field.h"
#include "admin/control/listing.h"
#include "admin/control/format_time.h"

#include <string.h>

static const char *const kinds[] = {
    [ACTIVITY_NONE] = "nothing",        [ACTIVITY_LOOK_UP] = "looking_up",
    [ACTIVITY_CONNECT] = "connecting",  [ACTIVITY_GREETING] = "greeting",
    [ACTIVITY_HANDSHAKE] = "handshake", [ACTIVITY_REPLY] = "reply",
    [ACTIVITY_CONTENT] = "content",     [ACTIVITY_PREPARE] = "preparing",
    [ACTIVITY_IDLE] = "idle",           [ACTIVITY_STORE] = "storing",
};

json_t *
doing_make(const struct activity *a)
{
    json_t *doing = json_pack(
        "{s:s,s:I,s:o,s:o,s:b}", "doing", kinds[a->kind], "since_ms",
        (json_int_t)a->since_ms, "what", listing_text(text_from(a->what)), "remote",
        listing_text(text_from(a->remote)), "this_message", a->has_message);
    if (a->scheme != NULL)
        json_object_set_new(doing, "scheme", json_string(a->scheme));
    return doing;
}

static enum activity_kind
doing_kind_of(const json_t *doing)
{
    const char *word = json_field_string(doing, "doing");
    for (int i = 0; i < ACTIVITY_KINDS; i++)
        if (strcmp(kinds[i], word) == 0)
            return (enum activity_kind)i;
    return ACTIVITY_NONE;
}

static void
say_kind(const json_t *doing, struct buffer *out)
{
    const char *what = json_field_string(doing, "what"),
               *remote = json_field_string(doing, "remote");
    switch (doing_kind_of(doing)) {
    case ACTIVITY_LOOK_UP:
        (void)!buffer_format(out, "looking up %s", what);
        return;
    case ACTIVITY_CONNECT:
        (void)!buffer_format(out, "connecting to %s", remote);
        return;
    case ACTIVITY_GREETING:
        (void)!buffer_format(out, "connected to %s, no greeting", remote);
        return;
    case ACTIVITY_HANDSHAKE:
        (void)!buffer_format(out, "TLS handshake with %s", remote);
        return;
    case ACTIVITY_REPLY:
        (void)!buffer_format(out, "waiting for the reply to %s from %s", what, remote);
        return;
    case ACTIVITY_CONTENT:
        (void)!buffer_format(out, "sending content to %s", remote);
        return;
    case ACTIVITY_PREPARE:
        (void)!buffer_format(out, "preparing commands for %s", remote);
        return;
    case ACTIVITY_IDLE:
        (void)!buffer_format(out, "connected to %s, idle", remote);
        return;
    case ACTIVITY_STORE:
        (void)!buffer_format(out, "delivering to Maildirs in %s", what);
        return;
    case ACTIVITY_NONE:
    case ACTIVITY_KINDS:
        break;
    }
    (void)!buffer_add(out, TEXT("open"));
}

void
doing_explain(const json_t *doing, int64_t now_ms, struct buffer *out)
{
    char span[FORMAT_TIME_MAX];
    const char *scheme = json_field_string(doing, "scheme");
    say_kind(doing, out);
    (void)!buffer_format(
        out, " for %s",
        format_time_span(now_ms - json_field_number(doing, "since_ms"), span));
    if (json_field_is_true(doing, "this_message"))
        (void)!buffer_add(out, TEXT(", with this message"));
    if (scheme[0] != '\0')
        (void)!buffer_format(out, " (does this port need %s://?)", scheme);
}
