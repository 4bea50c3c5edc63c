/* Postfix's lines, word for word, and what peers may write into them. */
#include "base/log/log_internal.h"
#include "base/event/event.h"
#include "t/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct log *log_;
static struct event_hub *hub;
static struct buffer lines;

#define ID "01JD3ZK5Q89F3K2C7A"
static struct event_client client = {
    .name = "[192.0.2.7]", .helo = "vm", .protocol = "ESMTP", .uid = EVENT_NO_UID};

/* Each line of wanted: "PROGRAM TEXT". */
static void
is_said(struct event *event, const char *wanted)
{
    char want[2000] = "";
    size_t at = 0;
    struct text rest = text_from(wanted), line, program;
    while (rest.length > 0 && text_cut(&rest, '\n', &line)) {
        (void)text_cut(&line, ' ', &program);
        at += (size_t)snprintf(want + at, sizeof(want) - at,
                               "postfix/%.*s[%ld]: %.*s\n", TEXT_ARGS(program),
                               (long)getpid(), TEXT_ARGS(line));
    }
    buffer_clear(&lines);
    event_tell(hub, event);
    is_text(buffer_text(&lines), text_from(want), wanted);
}

TEST(sessions)
{
    struct event_verb verbs[] = {
        {"ehlo", 1, 1},
        {"auth", 0, 1},
        {"rcpt", 2, 3},
        {NULL,   0, 0}
    };
    struct event e = {.kind = EVENT_CONNECTED, .client = &client};
    is_said(&e, "smtpd connect from unknown[192.0.2.7]");
    client.name = "[IPv6:2001:db8::1]";
    is_said(&e, "smtpd connect from unknown[2001:db8::1]");
    client.name = "[127.0.0.1]";
    is_said(&e, "smtpd connect from localhost[127.0.0.1]");
    client.name = "[IPv6:::1]";
    is_said(&e, "smtpd connect from localhost[::1]");
    client.name = "unix";
    is_said(&e, "smtpd connect from unix[unix]");
    client.name = "[192.0.2.7]";
    e = (struct event){.kind = EVENT_DISCONNECTED, .client = &client, .verbs = verbs};
    is_said(&e, "smtpd disconnect from unknown[192.0.2.7] ehlo=1 auth=0/1 rcpt=2/3 "
                "commands=3/5");
    e.is_quiet = true;
    is_said(&e, "");
    e = (struct event){.kind = EVENT_LOST,
                       .client = &client,
                       .command = TEXT("RCPT"),
                       .size = -1,
                       .text = TEXT("lost connection")};
    is_said(&e, "smtpd lost connection after RCPT from unknown[192.0.2.7]");
    e.command = TEXT("DATA");
    e.size = 17;
    is_said(&e, "smtpd lost connection after DATA (17 bytes) from unknown[192.0.2.7]");
    e = (struct event){.kind = EVENT_SECURED,
                       .client = &client,
                       .text = TEXT("Anonymous"),
                       .tls = TEXT("TLSv1.3 with cipher TLS_AES_256_GCM_SHA384")};
    is_said(&e, "smtpd Anonymous TLS connection established from unknown[192.0.2.7]: "
                "TLSv1.3 with cipher TLS_AES_256_GCM_SHA384 (256/256 bits)");
}

TEST(refusals)
{
    struct outcome o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 554, "5.7.1", "no");
    struct event e = {.kind = EVENT_REFUSED,
                      .client = &client,
                      .outcome = &o,
                      .verb = "rcpt",
                      .reason = "relay",
                      .size = -1,
                      .sender = TEXT("s@x.example"),
                      .recipient = TEXT("r@y.example")};
    is_said(&e, "smtpd NOQUEUE: reject: RCPT from unknown[192.0.2.7]: 554 5.7.1 "
                "<r@y.example>: Relay access denied; from=<s@x.example> "
                "to=<r@y.example> proto=ESMTP helo=<vm>");
    e.reason = "user";
    is_said(&e, "smtpd NOQUEUE: reject: RCPT from unknown[192.0.2.7]: 554 5.7.1 "
                "<r@y.example>: Recipient address rejected: User unknown in local "
                "recipient table; from=<s@x.example> to=<r@y.example> proto=ESMTP "
                "helo=<vm>");
    e.verb = "mail";
    e.reason = "sender";
    e.recipient = (struct text){NULL, 0};
    client.user = "bob";
    is_said(&e, "smtpd NOQUEUE: reject: MAIL from unknown[192.0.2.7]: 554 5.7.1 "
                "<s@x.example>: Sender address rejected: not owned by user bob; "
                "from=<s@x.example> proto=ESMTP helo=<vm>");
    e.size = 5;
    e.reason = "size";
    is_said(&e, "smtpd NOQUEUE: reject: END-OF-MESSAGE from unknown[192.0.2.7]: 554 "
                "5.7.1 no; from=<s@x.example> proto=ESMTP helo=<vm>");
    e.size = -1;
    e.verb = "connect";
    e.reason = "rate";
    e.sender = (struct text){NULL, 0};
    is_said(&e, "smtpd NOQUEUE: reject: CONNECT from unknown[192.0.2.7]: 554 5.7.1 "
                "Client host rejected: no; proto=ESMTP helo=<vm>");
    e.verb = "rcpt";
    e.recipient = TEXT("a\r\nforged\x1b");
    e.reason = "relay";
    is_said(&e, "smtpd NOQUEUE: reject: RCPT from unknown[192.0.2.7]: 554 5.7.1 "
                "<a\\x0d\\x0aforged\\x1b>: Relay access denied; "
                "to=<a\\x0d\\x0aforged\\x1b> proto=ESMTP helo=<vm>");
    o = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 421, "4.4.2", "timed out");
    is_said(&e, "");
    client.mechanism = "LOGIN";
    e.kind = EVENT_DENIED;
    is_said(&e, "smtpd warning: unknown[192.0.2.7]: SASL LOGIN authentication failed: "
                "authentication failure, sasl_username=bob");
}

static void
mail(void)
{
    struct id id, other;
    if (!id_parse(TEXT("01JD3ZK5Q8-9F3K2C7A"), &id))
        abort();
    other = id;
    struct outcome o = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "/m/a");
    struct event e = {.kind = EVENT_ACCEPTED,
                      .id = id,
                      .client = &client,
                      .message_id = TEXT("<1@x>")};
    is_said(&e, "smtpd " ID ": client=unknown[192.0.2.7], sasl_method=LOGIN, "
                "sasl_username=bob\ncleanup " ID ": message-id=<1@x>");
    client.user = client.mechanism = NULL;
    e.message_id = TEXT("");
    is_said(&e, "smtpd " ID ": client=unknown[192.0.2.7]\ncleanup " ID ": message-id=<>");
    e = (struct event){.kind = EVENT_DELIVERED,
                       .id = id,
                       .program = "local",
                       .recipient = TEXT("a@b"),
                       .outcome = &o,
                       .delay_ms = {10, 0, 20, 0},
                       .total_ms = 30};
    snprintf(o.remote, sizeof(o.remote), "/m/a");
    is_said(&e, "virtual " ID ": to=<a@b>, relay=virtual, delay=0.03, "
                "delays=0.01/0/0.02/0, dsn=2.0.0, status=sent (delivered to "
                "maildir)");
    e.program = "queue";
    o.remote[0] = '\0';
    is_said(&e, "discard " ID ": to=<a@b>, relay=none, delay=0.03, "
                "delays=0.01/0/0.02/0, dsn=2.0.0, status=sent (/m/a)");
    e.kind = EVENT_EXPIRED;
    is_said(&e, "");
    e.kind = EVENT_LIFETIME;
    e.sender = TEXT("s@x");
    is_said(&e, "qmgr " ID ": from=<s@x>, status=expired, returned to sender");
    e = (struct event){
        .kind = EVENT_NOTIFIED, .id = id, .other = other, .reason = "failure"};
    is_said(&e, "bounce " ID ": sender non-delivery notification: " ID);
    e.reason = "delay";
    is_said(&e, "bounce " ID ": sender delay notification: " ID);
    e = (struct event){.kind = EVENT_HELD, .id = id};
    is_said(&e, "postsuper " ID ": placed on hold");
    e.kind = EVENT_ENDED;
    is_said(&e, "qmgr " ID ": removed");
}

int
main(void)
{
    log_ = log_new(NULL, LOG_STYLE_POSTFIX, LOG_LEVEL_INFO);
    hub = event_hub_new(log_);
    buffer_init(&lines, 65536);
    log_capture(log_, &lines);
    tap_tests("");
    mail();
    event_hub_free(&hub);
    log_free(&log_);
    buffer_free(&lines);
    return done();
}
