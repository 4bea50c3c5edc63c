/* Builds delivery status notifications: header, text for people, fields for programs.
 *
 * A report has five passes over the recipients: a text for each of the four actions,
 * then the status fields. A report of 50,000 recipients in one turn took 100 ms and
 * more, in which nobody else was served. So report_begin() visits a number of
 * recipients and leaves its place to the next call. All text of peers passes the
 * header_writer. */
#include "mime/report/report.h"

#include "mime/date.h"
#include "mime/report/header_writer.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- The text for people ---------------------------------------------------------- */

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

/* Without line end. A report can have recipients of several actions: the subject is
 * that of the gravest one. */
static const char *
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

/* The reply of the next hop, "550 5.1.1 No such user", without our own words around
 * it ("host x said: ... (in reply to ...)"); empty if outcome has no reply. The text
 * of an outcome is for logs. People and programs get the reply alone. */
static struct text
report_reply(const struct outcome *outcome)
{
    struct outcome_sentence said;
    if (outcome->code == 0 || outcome->remote[0] == '\0')
        return TEXT("");
    return outcome_reply_read(outcome, &said) ? said.reply : text_from(outcome->text);
}

/* "5 days", "4 hours 10 minutes": the two largest units. */
static void
say_duration(struct header_writer *e, int64_t ms)
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
        header_writer_say(e, words);
    }
}

static void
say_date(struct header_writer *e, int64_t ms)
{
    char date[DATE_TEXT_MAX];
    date_format(ms, date);
    header_writer_say(e, date);
}

/* Names the host of "host[ip]:port", but never a local path, which is private. */
static void
say_words_of(struct header_writer *e, const struct outcome *outcome)
{
    struct text reply = report_reply(outcome), host = text_from(outcome->remote);
    header_writer_say(e, INDENT);
    if (reply.length == 0) {
        header_writer_put_words(e, text_from(outcome->text), INDENT);
    } else {
        size_t port = text_find_last(host, ':'), bracket = text_find_last(host, ']');
        if (port != TEXT_NONE && bracket != TEXT_NONE && port > bracket)
            host = text_before(host, port);
        if (text_starts(host, TEXT("/")) || text_starts(host, TEXT("unix:"))) {
            header_writer_say(e, "The local mail server");
        } else {
            header_writer_say(e, "The mail server ");
            header_writer_put_words(e, host, INDENT);
        }
        header_writer_say(e, " replied:\r\n" INDENT INDENT);
        header_writer_put_words(e, reply, INDENT INDENT);
    }
    header_writer_say(e, "\r\n");
}

static void
report_write_words(const struct report *r, const struct report_recipient *recipient,
                   struct header_writer *e)
{
    header_writer_say(e, "\r\n<");
    header_writer_put_address(e, recipient->address);
    header_writer_say(e, ">\r\n");
    if (recipient->action != REPORT_FAILED && recipient->action != REPORT_DELAYED)
        return;
    header_writer_say(e, INDENT);
    header_writer_say(e, reason_words(recipient->outcome));
    header_writer_say(e, "\r\n");
    if (recipient->outcome->text[0] != '\0')
        say_words_of(e, recipient->outcome);
    char hint[REPORT_HINT_MAX];
    if (r->hint != NULL && r->hint(recipient->outcome, hint)) {
        header_writer_say(e, INDENT "Hint: ");
        header_writer_put_words(e, text_from(hint), INDENT);
        header_writer_say(e, ".\r\n");
    }
    if (recipient->expired) {
        header_writer_say(e, INDENT "Delivery was attempted for ");
        say_duration(e, r->now_ms - r->arrival_ms);
        header_writer_say(e, ", without success.\r\n");
    } else if (recipient->action == REPORT_DELAYED) {
        header_writer_say(e, INDENT "Delivery was attempted for ");
        say_duration(e, r->now_ms - r->arrival_ms);
        header_writer_say(e, " and will be retried");
        if (recipient->retry_until_ms > 0) {
            header_writer_say(e, " until\r\n" INDENT);
            say_date(e, recipient->retry_until_ms);
        }
        header_writer_say(e, ".\r\n");
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
static void
report_write_heading(const struct report *r, enum report_action action,
                     struct header_writer *e)
{
    if (!report_has(r, action))
        return;
    header_writer_say(e, "\r\n");
    header_writer_say(e, heading(action));
}

/* Body of the first part, CRLF ended: the introduction, for each action that occurs
 * a heading and the text about its recipients, and the closing. A double bounce
 * names the sender of the original, since postmaster reads it. */
static void
report_write_introduction(const struct report *r, struct header_writer *e)
{
    header_writer_say(e, "This is the mail system at host ");
    header_writer_put_address(e, r->reporting_host);
    header_writer_say(e, ".\r\n\r\n");
    if (report_is_double(r)) {
        header_writer_say(
            e, "This is for the postmaster: a message could not be delivered, and\r\n"
               "its sender could not be notified. It came from <");
        header_writer_put_address(e, r->original_sender);
        header_writer_say(e, ">\r\non ");
    } else {
        header_writer_say(e,
                          "This report is about the message accepted from you on\r\n");
    }
    say_date(e, r->arrival_ms);
    header_writer_say(e, ". Its queue ID is\r\n");
    header_writer_put_address(e, r->id);
    header_writer_say(e, r->full ? ". It is attached below.\r\n"
                                 : ". Its header is attached below.\r\n");
}

static void
report_write_closing(const struct report *r, struct header_writer *e)
{
    header_writer_say(e, "\r\nIf you need help, write to <postmaster@");
    header_writer_put_address(e, r->reporting_host);
    header_writer_say(e, ">.\r\n");
}

enum { BOUNDARY_MAX = 68 }; /* RFC 2046 §5.1.1: 70; our prefix takes two */

static void
put_date(struct header_writer *e, const char *name, int64_t ms)
{
    char date[DATE_TEXT_MAX];
    date_format(ms, date);
    header_writer_say(e, name);
    header_writer_say(e, ": ");
    header_writer_say(e, date);
    header_writer_say(e, "\r\n");
}

/* "=_" cannot occur in quoted-printable, and nothing but bchars may be inside. The id
 * is unique, so the copy of the original cannot contain the boundary by accident. */
static void
put_boundary(const struct report *r, struct header_writer *e)
{
    header_writer_say(e, "=_");
    struct text name = text_before(r->boundary, BOUNDARY_MAX);
    for (size_t at = 0; at < name.length; at++) {
        char c = name.at[at], small = c;
        text_lower(&small, 1);
        bool plain = (small >= 'a' && small <= 'z') || text_is_digit(c) ||
                     (c != '\0' && strchr("'()+_,-./:=?", c) != NULL);
        header_writer_put(e, plain ? text_of(&c, 1) : TEXT("_"));
    }
}

static void
start_part(const struct report *r, struct header_writer *e, const char *type,
           bool eight_bit)
{
    header_writer_say(e, "\r\n--");
    put_boundary(r, e);
    header_writer_say(e, "\r\nContent-Type: ");
    header_writer_say(e, type);
    if (eight_bit)
        header_writer_say(e, "\r\nContent-Transfer-Encoding: 8bit");
    header_writer_say(e, "\r\n\r\n");
}

/* Auto-Submitted keeps automatic responders from a reply (RFC 3834 §2). */
static void
report_write_header(const struct report *r, struct header_writer *e)
{
    header_writer_say(e, "From: Mail Delivery System <");
    header_writer_put_address(e, r->from);
    header_writer_say(e, ">\r\nTo: <");
    header_writer_put_address(e, r->to);
    header_writer_say(e, ">\r\nSubject: ");
    header_writer_say(e, report_subject(r));
    header_writer_say(e, "\r\n");
    put_date(e, "Date", r->now_ms);
    header_writer_say(e, "Message-ID: <");
    header_writer_put_address(e, r->boundary);
    header_writer_say(e, "@");
    header_writer_put_address(e, r->reporting_host);
    header_writer_say(e,
                      ">\r\nAuto-Submitted: auto-replied\r\n"
                      "MIME-Version: 1.0\r\n"
                      "Content-Type: multipart/report; report-type=delivery-status;\r\n"
                      "\tboundary=\"");
    put_boundary(r, e);
    header_writer_say(e, "\"\r\n");
    if (r->utf8 || r->eight_bit)
        header_writer_say(e, "Content-Transfer-Encoding: 8bit\r\n");
    if (r->waives_tls)
        header_writer_say(e, "TLS-Required: No\r\n");
    header_writer_say(e, "\r\nThis is a delivery report in MIME format.\r\n");
}

static const char *
action_word(enum report_action action)
{
    switch (action) {
    case REPORT_FAILED:
        return "failed";
    case REPORT_DELAYED:
        return "delayed";
    case REPORT_DELIVERED:
        return "delivered";
    case REPORT_RELAYED:
        return "relayed";
    case REPORT_EXPANDED:
        return "expanded";
    }
    abort(); /* an action that does not exist */
}

/* class "." subject "." detail of RFC 3463 §2. RFC 3464 §2.3.4 requires a status, and a
 * peer may give none or a malformed one. */
static bool
is_status(struct text t)
{
    struct text part;
    uint64_t number;
    unsigned parts = 0;
    if (t.length < 5 || strchr("245", t.at[0]) == NULL || t.at[1] != '.')
        return false;
    while (text_cut(&t, '.', &part)) {
        if (part.length > 3 || !text_number(part, 999, &number))
            return false;
        parts++;
    }
    return parts == 3;
}

/* Without a valid code of the peer only the class is known, from the action. */
static void
put_status(struct header_writer *e, const struct report_recipient *recipient)
{
    struct text enhanced = text_from(recipient->outcome->enhanced);
    if (!is_status(enhanced))
        enhanced = recipient->action == REPORT_FAILED    ? TEXT("5.0.0")
                   : recipient->action == REPORT_DELAYED ? TEXT("4.0.0")
                                                         : TEXT("2.0.0");
    header_writer_field(e, "Status", "", enhanced);
}

/* The host of "host[ip]:port", or "[ip]" without one; not our own paths. */
static void
put_remote(struct header_writer *e, const struct outcome *outcome)
{
    struct text host = text_from(outcome->remote);
    if (text_starts(host, TEXT("/")) || text_starts(host, TEXT("unix:")))
        return;
    size_t bracket = text_find(host, '[');
    if (bracket != TEXT_NONE && bracket > 0)
        host = text_before(host, bracket);
    else if (bracket == 0)
        host = text_before(host, text_find(host, ']') == TEXT_NONE
                                     ? host.length
                                     : text_find(host, ']') + 1);
    header_writer_field(e, "Remote-MTA", "dns; ", host);
}

static bool
has_code(struct text reply)
{
    uint64_t code;
    return text_number(text_before(reply, 3), 599, &code) && code >= 200 &&
           (reply.length == 3 || reply.at[3] == ' ');
}

/* RFC 3464 §2.3.6: "smtp" is for replies of a host. A failure that Petrel found by
 * itself has a type of its own. */
static void
put_diagnostic(struct header_writer *e, const struct outcome *outcome)
{
    struct text reply = report_reply(outcome);
    if (reply.length == 0) { /* our own error, not of a peer */
        header_writer_field(e, "Diagnostic-Code", "x-petrel; ",
                            text_from(outcome->text));
        return;
    }
    char code[] = {(char)('0' + outcome->code / 100 % 10),
                   (char)('0' + outcome->code / 10 % 10),
                   (char)('0' + outcome->code % 10), ' ', '\0'};
    header_writer_say(e, "Diagnostic-Code: smtp; ");
    /* An SMTP reply begins with its code; the text of an outcome may lack it. */
    if (!has_code(reply))
        header_writer_say(e, code);
    header_writer_put_words(e, reply, " ");
    header_writer_say(e, "\r\n");
}

/* ORCPT is "type;address"; without a type it is an rfc822 address. */
static void
put_original(struct header_writer *e, struct text original)
{
    if (original.length == 0)
        return;
    header_writer_say(e, "Original-Recipient: ");
    size_t type = text_find(original, ';');
    if (type == TEXT_NONE || type == 0 || type > 20)
        header_writer_say(e, "rfc822;");
    header_writer_put_address(e, original);
    header_writer_say(e, "\r\n");
}

static void
write_recipient(const struct report *r, const struct report_recipient *recipient,
                struct header_writer *e)
{
    assert(recipient->outcome != NULL);
    header_writer_say(e, "\r\n");
    put_original(e, recipient->original);
    header_writer_say(e, "Final-Recipient: ");
    header_writer_say(e, r->utf8 && !text_is_ascii(recipient->address) ? "utf-8; "
                                                                       : "rfc822; ");
    header_writer_put_address(e, recipient->address);
    header_writer_say(e, "\r\nAction: ");
    header_writer_say(e, action_word(recipient->action));
    header_writer_say(e, "\r\n");
    put_status(e, recipient);
    put_remote(e, recipient->outcome);
    if (recipient->outcome->text[0] != '\0')
        put_diagnostic(e, recipient->outcome);
    put_date(e, "Last-Attempt-Date", r->now_ms);
    if (recipient->action == REPORT_DELAYED && recipient->retry_until_ms > 0)
        put_date(e, "Will-Retry-Until", recipient->retry_until_ms);
}

static void
start_words(const struct report *r, struct header_writer *e)
{
    report_write_header(r, e);
    start_part(r, e,
               r->utf8 ? "text/plain; charset=utf-8" : "text/plain; charset=us-ascii",
               r->utf8);
    report_write_introduction(r, e);
}

/* With an SMTPUTF8 message the types are those of RFC 6533, which may hold UTF-8. */
static void
start_status(const struct report *r, struct header_writer *e)
{
    report_write_closing(r, e);
    start_part(r, e,
               r->utf8 ? "message/global-delivery-status" : "message/delivery-status",
               r->utf8);
    header_writer_field(e, "Reporting-MTA", "dns; ", r->reporting_host);
    if (r->envelope_id.length > 0) {
        header_writer_say(e, "Original-Envelope-Id: ");
        header_writer_put_address(e, r->envelope_id);
        header_writer_say(e, "\r\n");
    }
    put_date(e, "Arrival-Date", r->arrival_ms);
    if (r->release_request.length > 0)
        header_writer_field(e, "Future-Release-Request", "", r->release_request);
    header_writer_field(e, "X-Petrel-Queue-ID", "", r->id);
}

static void
start_original(const struct report *r, struct header_writer *e)
{
    const char *type = r->utf8   ? r->full ? "message/global" : "message/global-headers"
                       : r->full ? "message/rfc822"
                                 : "text/rfc822-headers";
    start_part(r, e, type, r->utf8 || r->eight_bit);
}

/* The lists of recipients, in this order: a text for each action, then the status
 * fields. */
enum list {
    LIST_FIRST = REPORT_FAILED,
    LIST_WORDS_LAST = REPORT_EXPANDED,
    LIST_STATUS,
    LIST_END
};

static void
start_list(const struct report *r, unsigned list, struct header_writer *e)
{
    if (list == LIST_FIRST)
        start_words(r, e);
    if (list <= LIST_WORDS_LAST)
        report_write_heading(r, (enum report_action)list, e);
    else if (list == LIST_STATUS)
        start_status(r, e);
    else
        start_original(r, e);
}

static void
list_recipient(const struct report *r, const struct report_place *place,
               struct header_writer *e)
{
    const struct report_recipient *recipient = &r->recipients[place->next];
    if (place->list == LIST_STATUS)
        write_recipient(r, recipient, e);
    else if (recipient->action == (enum report_action)place->list)
        report_write_words(r, recipient, e);
}

bool
report_begin(const struct report *r, struct report_place *place, size_t most,
             void (*write)(void *, struct text), void *context)
{
    assert(r->count > 0 && r->boundary.length > 0 && r->reporting_host.length > 0);
    assert(most > 0 && place->list < LIST_END);
    struct header_writer e;
    header_writer_start(&e, r->utf8, write, context);
    if (place->list == LIST_FIRST && place->next == 0)
        start_list(r, LIST_FIRST, &e);
    /* Each list visits all recipients, so a call has a bound for any actions. */
    for (; most > 0 && place->list < LIST_END; most--) {
        list_recipient(r, place, &e);
        if (++place->next < r->count)
            continue;
        *place = (struct report_place){.list = place->list + 1};
        start_list(r, place->list, &e);
    }
    header_writer_end(&e);
    return place->list == LIST_END;
}

void
report_end(const struct report *r, void (*write)(void *, struct text), void *context)
{
    struct header_writer e;
    header_writer_start(&e, r->utf8, write, context);
    header_writer_say(&e, "\r\n--");
    put_boundary(r, &e);
    header_writer_say(&e, "--\r\n");
    header_writer_end(&e);
}
