/* Bounces without fields for programs: sentences by which systems begin them, and the
 * addresses and replies behind. */
#include "mime/report/reading_internal.h"

#include <string.h>

enum {
    LOWER_MAX = 8 * 1024, /* of the text, in which sentences are looked for */
    REASON_MAX = 600
};

/* In lower case. */
static const struct opening {
    const char *words;
    bool is_delay;
} openings[] = {
    {"has not been delivered yet",                            true },
    {"not yet been delivered",                                true },
    {"could not yet be delivered",                            true },
    {"this is a warning message only",                        true },
    {"delivery to the following recipients has been delayed", true },
    {"delivery to the following recipient has been delayed",  true },
    {"will continue to attempt",                              true },
    {"temporary problem delivering",                          true },
    {"still trying to deliver",                               true },
    {"noch nicht zugestellt",                                 true },
    {"this is the mail system at host",                       false},
    {"this is the qmail-send program",                        false},
    {"this message was created automatically by",             false},
    {"could not be delivered",                                false},
    {"could not deliver",                                     false},
    {"couldn't be delivered",                                 false},
    {"cannot be delivered",                                   false},
    {"can not be delivered",                                  false},
    {"could not be sent",                                     false},
    {"was not delivered",                                     false},
    {"wasn't delivered",                                      false},
    {"not delivered to",                                      false},
    {"did not reach",                                         false},
    {"unable to deliver",                                     false},
    {"unable to be delivered",                                false},
    {"undeliverable",                                         false},
    {"undelivered message",                                   false},
    {"delivery has failed",                                   false},
    {"delivery failed",                                       false},
    {"failed permanently",                                    false},
    {"permanent fatal errors",                                false},
    {"permanent error",                                       false},
    {"failed to deliver",                                     false},
    {"delivery to the following",                             false},
    {"had permanent",                                         false},
    {"rcpt to generated following response",                  false},
    {"message could not be",                                  false},
    {"was rejected",                                          false},
    {"address not found",                                     false},
    {"message not delivered",                                 false},
    {"returned to you",                                       false},
    {"being returned",                                        false},
    {"user unknown",                                          false},
    {"recipient unknown",                                     false},
    {"not listed in domino directory",                        false},
    {"konnte nicht zugestellt",                               false},
    {"nicht zugestellt werden",                               false},
    {"unzustellbar",                                          false},
    {"n'a pas pu",                                            false},
    {"n'a pu ",                                               false},
    {"no se ha podido",                                       false},
    {"no pudo ",                                              false},
    {"non e' stato ",                                         false},
    {"kon niet worden",                                       false},
};

/* The message that came back is behind these. */
static const char *const copies[] = {
    "--- below this line is a copy",
    "--- below the next line",
    "------ this is a copy",
    "--- original message",
    "-----original message",
    "----- original message",
    "----- message header",
    "--- the message",
    "original message headers",
    "return-path:",
    "received:",
    "--- unsent message",
    "----- unsent message",
    "--- undelivered message",
    "message headers follow",
    "original message follows",
    "--- mensaje original",
    "--- message d'origine",
};

/* Words that stand for a status, in a reason that has none. */
static const struct {
    const char *words, *status;
} meanings[] = {
    {"host or domain",         "5.1.2"}, /* "name not found" */
    {"host not found",         "5.1.2"},
    {"host name lookup",       "5.1.2"},
    {"domain not found",       "5.1.2"},
    {"domain does not exist",  "5.1.2"},
    {"no such domain",         "5.1.2"},
    {"user unknown",           "5.1.1"},
    {"unknown user",           "5.1.1"},
    {"no such user",           "5.1.1"},
    {"no such mailbox",        "5.1.1"},
    {"no mailbox",             "5.1.1"},
    {"unknown address",        "5.1.1"},
    {"unknown recipient",      "5.1.1"},
    {"recipient unknown",      "5.1.1"},
    {"unrouteable address",    "5.1.2"},
    {"not listed in domino",   "5.1.1"},
    {"address not found",      "5.1.1"},
    {"does not exist",         "5.1.1"},
    {"doesn't exist",          "5.1.1"},
    {"not found",              "5.1.1"},
    {"couldn't find any host", "5.1.2"},
    {"host unknown",           "5.1.2"},
    {"over quota",             "5.2.2"},
    {"overquota",              "5.2.2"},
    {"exceeded",               "5.2.2"},
    {"mailbox is full",        "5.2.2"},
    {"mailbox full",           "5.2.2"},
    {"disabled",               "5.2.1"},
    {"too large",              "5.3.4"},
    {"timed out",              "4.4.1"},
};

/* --- Addresses in sentences -------------------------------------------------------- */

static bool
reading_text_is_local(char c)
{
    return text_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (unsigned char)c >= 0x80 || (c != '\0' && strchr("!#$%&'*+-/=?^_`{|}~.", c));
}

static bool
reading_text_is_domain(char c)
{
    return text_is_digit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
           (unsigned char)c >= 0x80 || c == '-' || c == '.';
}

/* The address around the '@' at `at`; its end. */
static bool
reading_text_address(struct text t, size_t at, char out[ADDRESS_MAX + 1], size_t *end)
{
    size_t start = at;
    while (start > 0 && at - start < ADDRESS_MAX &&
           reading_text_is_local(t.at[start - 1]))
        start--;
    *end = at + 1;
    while (*end < t.length && reading_text_is_domain(t.at[*end]))
        ++*end;
    while (*end > at + 1 && t.at[*end - 1] == '.')
        --*end;
    while (start < at && (t.at[start] == '.' || t.at[start] == '\''))
        start++;
    struct text word = text_of(t.at + start, *end - start);
    return text_find(text_after(word, at - start + 1), '.') != TEXT_NONE &&
           reading_address(word, out);
}

static bool
reading_text_knows(const struct reading *reading, const char *address)
{
    for (size_t i = 0; i < reading->count; i++)
        if (text_equal_nocase(text_from(address),
                              text_from(reading->recipients[i].address)))
            return true;
    return false;
}

/* --- Reasons ----------------------------------------------------------------------- */

static void
reading_text_judge(struct reading_recipient *r, bool is_delay)
{
    char lower[OUTCOME_TEXT_MAX];
    reading_find_status(text_from(r->text), r->status, &r->code);
    memcpy(lower, r->text, sizeof(lower));
    text_lower(lower, strlen(lower));
    for (size_t i = 0;
         r->status[0] == '\0' && i < sizeof(meanings) / sizeof(meanings[0]); i++)
        if (strstr(lower, meanings[i].words) != NULL)
            memcpy(r->status, meanings[i].status, strlen(meanings[i].status) + 1);
    if (r->status[0] == '\0')
        memcpy(r->status, is_delay || r->code / 100 == 4 ? "4.0.0" : "5.0.0",
               sizeof("5.0.0"));
    r->action = is_delay ? REPORT_DELAYED : REPORT_FAILED;
}

/* The reason of an address is behind it, up to the next one that begins a line; of one
 * at the end of the text, before it. */
static void
reading_text_take(struct reading *reading, struct text t, bool is_delay)
{
    char address[ADDRESS_MAX + 1];
    size_t end;
    for (size_t at = 0; at < t.length; at++) {
        if (t.at[at] != '@' || !reading_text_address(t, at, address, &end))
            continue;
        if (!reading_text_knows(reading, address)) {
            struct reading_recipient *r = reading_recipient_add(reading);
            if (r == NULL)
                return;
            struct text reason = text_before(text_after(t, end), REASON_MAX);
            if (text_trim(reason).length < 8) /* punctuation */
                reason = text_before(t, at);
            text_copy(r->address, sizeof(r->address), text_from(address));
            reading_squeeze(reason, r->text, sizeof(r->text));
        }
        at = end - 1;
    }
    for (size_t i = 0; i < reading->count; i++)
        reading_text_judge(&reading->recipients[i], is_delay);
}

/* The text before the message that came back. */
static struct text
reading_text_before_copy(struct text t)
{
    struct text rest = t, line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        struct text words = text_trim(line);
        for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++)
            if (text_starts_nocase(words, text_from(copies[i])))
                return text_before(t, (size_t)(line.at - t.at));
    }
    return t;
}

/* Fields for programs in a part of another type. */
static struct text
reading_text_fields(struct text t)
{
    struct text rest = t, line;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        if (text_starts_nocase(line, TEXT("Reporting-MTA:")) ||
            text_starts_nocase(line, TEXT("Final-Recipient:")) ||
            text_starts_nocase(line, TEXT("Original-Recipient:")))
            return text_after(t, (size_t)(line.at - t.at));
    return TEXT("");
}

static const struct opening *
reading_text_opening(struct text t)
{
    char lower[LOWER_MAX];
    reading_squeeze(t, lower, sizeof(lower));
    text_lower(lower, strlen(lower));
    for (size_t i = 0; i < sizeof(openings) / sizeof(openings[0]); i++)
        if (strstr(lower, openings[i].words) != NULL)
            return &openings[i];
    return NULL;
}

static bool
reading_text_has_code(struct text t)
{
    char status[12] = "";
    int code = 0;
    reading_find_status(t, status, &code);
    return status[0] != '\0' || code != 0;
}

/* A sentence alone may be in any mail. */
static bool
reading_text_is_bounce(const struct report_reader *r, const struct opening *opening,
                       struct text t)
{
    bool from = (r->signs & READING_FROM_DAEMON) != 0;
    bool subject = (r->signs & READING_SUBJECT_BOUNCE) != 0;
    if (r->failed.length > 0 || (r->signs & READING_IS_REPORT) != 0)
        return true;
    if ((r->signs & READING_SUBJECT_AUTOMATIC) != 0)
        return false;
    if (opening != NULL)
        return from || subject;
    return from && subject && reading_text_has_code(t);
}

static void
reading_text_failed(struct reading *reading, struct text list)
{
    struct text word;
    while (text_word(&list, ", \t\r\n", &word)) {
        char address[ADDRESS_MAX + 1];
        if (!reading_address(word, address) || reading_text_knows(reading, address))
            continue;
        struct reading_recipient *r = reading_recipient_add(reading);
        if (r == NULL)
            return;
        text_copy(r->address, sizeof(r->address), text_from(address));
    }
}

/* Each named by X-Failed-Recipients has the reason that the text has for all. */
static void
reading_text_share(struct reading *reading, struct text t, bool is_delay)
{
    for (size_t i = 0; i < reading->count; i++) {
        struct reading_recipient *r = &reading->recipients[i];
        const char *local = r->address;
        const char *at =
            t.length > 0 ? memmem(t.at, t.length, local, strlen(local)) : NULL;
        struct text behind =
            at != NULL ? text_after(t, (size_t)(at - t.at) + strlen(local)) : t;
        reading_squeeze(text_before(behind, REASON_MAX), r->text, sizeof(r->text));
        reading_text_judge(r, is_delay);
    }
}

void
reading_of_text(struct report_reader *r)
{
    struct reading *out = &r->result;
    struct text all = buffer_text(&r->bodies[READING_BODY_TEXT]);
    struct text fields = reading_text_fields(all), t = reading_text_before_copy(all);
    const struct opening *opening = reading_text_opening(t);
    if (!reading_text_is_bounce(r, opening, t))
        return;
    bool is_delay = (r->signs & READING_SUBJECT_DELAY) != 0 ||
                    (opening != NULL && opening->is_delay);
    reading_of_status(out, fields);
    if (out->kind == READING_STATUS)
        return;
    reading_text_failed(out, buffer_text(&r->failed));
    if (out->count > 0)
        reading_text_share(out, t, is_delay);
    else
        reading_text_take(out, t, is_delay);
    if (out->count == 0) { /* it names nobody */
        struct reading_recipient *one = reading_recipient_add(out);
        reading_squeeze(text_before(t, REASON_MAX), one->text, sizeof(one->text));
        reading_text_judge(one, is_delay);
    }
    out->by_text = true;
    out->kind = READING_STATUS;
}
