/* Describes the activity of a session, as an object and as a sentence. */
#include "admin/control/doing.h"

#include "admin/control/json_field.h"
#include "admin/control/listing.h"
#include "admin/control/words.h"

#include <string.h>

static const struct doing_kind {
    const char *word, *words;
} doing_kinds[ACTIVITY_KINDS] = {
    [ACTIVITY_NONE] = {"nothing",    "open"                                         },
    [ACTIVITY_LOOK_UP] = {"looking_up", "looking up {what}"                            },
    [ACTIVITY_CONNECT] = {"connecting", "connecting to {remote}"                       },
    [ACTIVITY_GREETING] = {"greeting",   "connected to {remote}, no greeting"           },
    [ACTIVITY_HANDSHAKE] = {"handshake",  "TLS handshake with {remote}"                  },
    [ACTIVITY_REPLY] = {"reply",      "waiting for the reply to {what} from {remote}"},
    [ACTIVITY_CONTENT] = {"content",    "sending content to {remote}"                  },
    [ACTIVITY_PREPARE] = {"preparing",  "preparing commands for {remote}"              },
    [ACTIVITY_IDLE] = {"idle",       "connected to {remote}, idle"                  },
    [ACTIVITY_STORE] = {"storing",    "delivering to Maildirs in {what}"             },
};

json_t *
doing_make(const struct activity *a)
{
    json_t *doing = json_pack(
        "{s:s,s:I,s:o,s:o,s:b}", "doing", doing_kinds[a->kind].word, "since_ms",
        (json_int_t)a->since_ms, "what", listing_text(text_from(a->what)), "remote",
        listing_text(text_from(a->remote)), "this_message", a->has_message);
    if (a->scheme != NULL)
        json_object_set_new(doing, "scheme", json_string(a->scheme));
    return doing;
}

void
doing_explain(const json_t *doing, int64_t now_ms, struct buffer *out)
{
    const char *word = json_field_string(doing, "doing");
    size_t kind = ACTIVITY_KINDS - 1;
    while (kind > ACTIVITY_NONE && strcmp(doing_kinds[kind].word, word) != 0)
        kind--;
    words_say(out, doing_kinds[kind].words, doing, now_ms);
    words_say(out,
              " for {since_ms@age}[this_message:, with this message]"
              "[scheme: (does this port need {scheme}://?)]",
              doing, now_ms);
}
