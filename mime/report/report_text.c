/* The human-readable part of a delivery report: the results of a message, recipient by
 * recipient. */
#include "mime/report/report_text.h"

#include "mime/date.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define INDENT "    "

/* RFC 3463 subject and detail; the first row whose beginning matches counts. */
static const struct reason {
    const char *code, *words;
} reasons[] = {
    {"1.10", "The domain of this address accepts no mail."                 },
    {"1.1",  "There is no such mailbox."                                   },
    {"1.2",  "There is no such domain, or it has no mail server."          },
    {"1.3",  "The address is not well-formed."                             },
    {"1.6",  "The mailbox has moved without a forwarding address."         },
    {"1.",   "There is a problem with the address."                        },
    {"2.1",  "The mailbox is disabled and accepts no mail."                },
    {"2.2",  "The mailbox is full."                                        },
    {"2.3",  "The message is too large for this mailbox."                  },
    {"2.",   "The mailbox cannot accept the message."                      },
    {"3.4",  "The message is too large for the receiving system."          },
    {"3.",   "The receiving system has a problem."                         },
    {"4.1",  "The receiving mail server does not answer."                  },
    {"4.2",  "The connection to the receiving mail server was lost."       },
    {"4.3",  "The mail server of this domain could not be looked up."      },
    {"4.4",  "No route to a mail server of this domain is known."          },
    {"4.6",  "The message is in a mail loop."                              },
    {"4.7",  "The time for delivery has expired."                          },
    {"4.",   "The receiving mail server cannot be reached."                },
    {"5.",   "There was a protocol error with the receiving mail server."  },
    {"6.",   "The receiving system cannot handle the form of this message."},
    {"7.",   "The message was rejected for reasons of policy or security." },
};

/* A double bounce: it goes to postmaster, not to the sender of the original. */
static bool
report_is_double(const struct report *r)
{
    return !text_equal(r->original_sender, r->to);
}

static bool
report_has(const struct report *r, enum report_action action)
{
    for (size_t i = 0; i < r->count; i++)
        if (r->recipients[i].action == action)
            return true;
    return false;
}

/* A report can have recipients of several actions: the subject is that of the gravest
 * one. */
const char *
report_subject(const struct report *r)
{
    if (report_is_double(r))
        return "Undeliverable Mail, Sender Not Notified (double bounce)";
    if (report_has(r, REPORT_FAILED))
        return "Undelivered Mail Returned to Sender";
    if (report_has(r, REPORT_DELAYED))
        return "Delayed Mail (still being retried)";
    return "Successful Mail Delivery Report";
}

/* The class is skipped: subject and detail mean the same in each (RFC 3463 §3). A
 * detail must match as a whole, so that "1.1" does not match 1.10; a row that ends in a
 * dot is for all other details of its subject. */
static const char *
reason_words(const struct outcome *outcome)
{
    if (strlen(outcome->enhanced) > 2)
        for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
            size_t length = strlen(reasons[i].code);
            const char *behind = outcome->enhanced + 2 + length;
            if (strncmp(outcome->enhanced + 2, reasons[i].code, length) == 0 &&
                (reasons[i].code[length - 1] == '.' || *behind == '\0'))
                return reasons[i].words;
        }
    return outcome->code != 0 ? "The receiving system refused the message."
                              : "The message could not be delivered.";
}

/* The text of an outcome is for logs. People and programs get the reply alone. */
struct text
report_reply(const struct outcome *outcome)
{
    struct outcome_sentence said;
    if (outcome->code == 0 || outcome->remote[0] == '\0')
        return TEXT("");
    return outcome_reply_read(outcome, &said) ? said.reply : text_from(outcome->text);
}

/* "5 days", "4 hours 10 minutes": the two largest units. */
static void
say_duration(struct emitter *e, int64_t ms)
{
    static const struct {
        int64_t seconds;
        const char *name;
    } units[] = {
        {86400, "day"   },
        {3600,  "hour"  },
        {60,    "minute"},
        {1,     "second"}
    };
    enum { UNITS = sizeof(units) / sizeof(units[0]) };
    int64_t left = ms < 1000 ? 1 : ms / 1000;
    size_t unit = 0;
    while (left < units[unit].seconds)
        unit++;
    for (size_t i = unit; i < UNITS && i < unit + 2; i++) {
        int64_t count = left / units[i].seconds;
        left %= units[i].seconds;
        if (count == 0)
            continue;
        char words[48];
        snprintf(words, sizeof(words), "%s%" PRId64 " %s%s", i > unit ? " " : "", count,
                 units[i].name, count == 1 ? "" : "s");
        emitter_say(e, words);
    }
}

static void
say_date(struct emitter *e, int64_t ms)
{
    char date[DATE_TEXT_MAX];
    date_format(ms, date);
    emitter_say(e, date);
}

/* Names the host of "host[ip]:port", but never a local path, which is private. */
static void
say_words_of(struct emitter *e, const struct outcome *outcome)
{
    struct text reply = report_reply(outcome), host = text_from(outcome->remote);
    emitter_say(e, INDENT);
    if (reply.length == 0) {
        emitter_put_words(e, text_from(outcome->text), INDENT);
    } else {
        size_t port = text_find_last(host, ':'), bracket = text_find_last(host, ']');
        if (port != TEXT_NONE && bracket != TEXT_NONE && port > bracket)
            host = text_before(host, port);
        if (text_starts(host, TEXT("/")) || text_starts(host, TEXT("unix:"))) {
            emitter_say(e, "The local mail server");
        } else {
            emitter_say(e, "The mail server ");
            emitter_put_words(e, host, INDENT);
        }
        emitter_say(e, " replied:\r\n" INDENT INDENT);
        emitter_put_words(e, reply, INDENT INDENT);
    }
    emitter_say(e, "\r\n");
}

void
report_write_words(const struct report *r, const struct report_recipient *recipient,
                   struct emitter *e)
{
    emitter_say(e, "\r\n<");
    emitter_put_address(e, recipient->address);
    emitter_say(e, ">\r\n");
    if (recipient->action != REPORT_FAILED && recipient->action != REPORT_DELAYED)
        return;
    emitter_say(e, INDENT);
    emitter_say(e, reason_words(recipient->outcome));
    emitter_say(e, "\r\n");
    if (recipient->outcome->text[0] != '\0')
        say_words_of(e, recipient->outcome);
    char hint[REPORT_HINT_MAX];
    if (r->hint != NULL && r->hint(recipient->outcome, hint)) {
        emitter_say(e, INDENT "Hint: ");
        emitter_put_words(e, text_from(hint), INDENT);
        emitter_say(e, ".\r\n");
    }
    if (recipient->expired) {
        emitter_say(e, INDENT "Delivery was attempted for ");
        say_duration(e, r->now_ms - r->arrival_ms);
        emitter_say(e, ", without success.\r\n");
    } else if (recipient->action == REPORT_DELAYED) {
        emitter_say(e, INDENT "Delivery was attempted for ");
        say_duration(e, r->now_ms - r->arrival_ms);
        emitter_say(e, " and will be retried");
        if (recipient->retry_until_ms > 0) {
            emitter_say(e, " until\r\n" INDENT);
            say_date(e, recipient->retry_until_ms);
        }
        emitter_say(e, ".\r\n");
    }
}

static const char *
heading(enum report_action action)
{
    switch (action) {
    case REPORT_FAILED:
        return "It could not be delivered to the following recipients and will not\r\n"
               "be retried:\r\n";
    case REPORT_DELAYED:
        return "This is only a warning; you do not need to resend it. Delivery to\r\n"
               "the following recipients is delayed:\r\n";
    case REPORT_DELIVERED:
        return "It was successfully delivered to:\r\n";
    case REPORT_RELAYED:
        return "It was relayed to a mail server without delivery reports, for:\r\n";
    case REPORT_EXPANDED:
        return "It was sent on to the members of:\r\n";
    }
    abort(); /* not an action */
}

/* An action without recipients has no heading: its list writes nothing. */
void
report_write_heading(const struct report *r, enum report_action action,
                     struct emitter *e)
{
    if (!report_has(r, action))
        return;
    emitter_say(e, "\r\n");
    emitter_say(e, heading(action));
}

/* A double bounce names the sender of the original, since postmaster reads it. */
void
report_write_introduction(const struct report *r, struct emitter *e)
{
    emitter_say(e, "This is the mail system at host ");
    emitter_put_address(e, r->reporting_host);
    emitter_say(e, ".\r\n\r\n");
    if (report_is_double(r)) {
        emitter_say(
            e, "This is for the postmaster: a message could not be delivered, and\r\n"
               "its sender could not be notified. It came from <");
        emitter_put_address(e, r->original_sender);
        emitter_say(e, ">\r\non ");
    } else {
        emitter_say(e, "This report is about the message accepted from you on\r\n");
    }
    say_date(e, r->arrival_ms);
    emitter_say(e, ". Its queue ID is\r\n");
    emitter_put_address(e, r->id);
    emitter_say(e, r->full ? ". It is attached below.\r\n"
                           : ". Its header is attached below.\r\n");
}

void
report_write_closing(const struct report *r, struct emitter *e)
{
    emitter_say(e, "\r\nIf you need help, write to <postmaster@");
    emitter_put_address(e, r->reporting_host);
    emitter_say(e, ">.\r\n");
}
