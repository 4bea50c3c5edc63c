/* The limits that a host announces, as the client machine understands them. The words
 * of MAIL and RCPT are in t/dialog/client. */
#include "smtp/client/client_internal.h"

#include "t/support/tap.h"

#include <stdio.h>

static const struct reply_outcome_peer peer = {"mx.test[192.0.2.1]", "mx.test[192.0.2.1]:25", 25};

static void
limits_are(const char *told, unsigned mails, unsigned recipients, unsigned domains)
{
    struct client_settings settings = {
        .hostname = "me.example", .peer = &peer, .timeout_scale = 1};
    struct client *c = client_new(&settings);
    struct client_event event;
    char said[300];
    snprintf(said, sizeof(said), "220 mx\r\n250-mx\r\n250-LIMITS%s\r\n250 HELP\r\n",
             told);
    struct text input = text_before(text_from(said), 8), rest;
    ok(!client_next(c, &input, &event));
    rest = text_after(text_from(said), 8);
    ok(client_next(c, &rest, &event) && event.kind == CLIENT_READY);
    struct client_limits got = client_limits(c);
    ok_named(got.mails == mails && got.recipients == recipients &&
                 got.domains == domains,
             told);
    client_free(&c);
}

/* RFC 9422 §4; what is odd is no limit. */
TEST(limits)
{
    limits_are("", 0, 0, 0);
    limits_are(" RCPTMAX=20 MAILMAX=5 RCPTDOMAINMAX=3", 5, 20, 3);
    limits_are(" rcptmax=1", 0, 1, 0);
    limits_are(" RCPTMAX=999999 OTHER=1 MAILMAX", 0, 999999, 0);
    limits_are(" RCPTMAX=1000000 MAILMAX=0 RCPTDOMAINMAX=01", 0, 0, 0);
    limits_are(" RCPTMAX=-1 MAILMAX= RCPTDOMAINMAX=3x RCPTMAX=7", 0, 7, 0);
    limits_are(" =5 == RCPTMAX==5", 0, 0, 0);
}

/* RFC 3207 §4.2. */
TEST(limits_before_tls)
{
    struct client_settings settings = {.hostname = "me.example",
                                       .peer = &peer,
                                       .timeout_scale = 1,
                                       .tls = TARGET_TLS_MAY};
    struct client *c = client_new(&settings);
    struct client_event event;
    struct text input[] = {TEXT("220 mx\r\n"),
                           TEXT("250-mx\r\n250-LIMITS RCPTMAX=1\r\n250 STARTTLS\r\n"),
                           TEXT("220 go\r\n"), TEXT("250 mx\r\n")};
    ok(!client_next(c, &input[0], &event) && !client_next(c, &input[1], &event));
    ok(client_next(c, &input[2], &event) && event.kind == CLIENT_SECURE);
    client_secured(c);
    ok(!client_next(c, &input[2], &event));
    ok(client_next(c, &input[3], &event) && event.kind == CLIENT_READY);
    is_number(client_limits(c).recipients, 0, "what was told in clear is forgotten");
    client_free(&c);
}

/* RFC 8689: what the host offers under TLS counts, and that it is the one that is meant. */
TEST(requiretls)
{
    static const struct {
        const char *before, *under;
        bool required, certain, lmtp, ready, says;
    } rows[] = {
        {"STARTTLS", "REQUIRETLS", true, true, false, true, true},
        {"STARTTLS", "requiretls", true, true, false, true, true},
        {"STARTTLS", "8BITMIME", true, true, false, false, false},
        {"STARTTLS", "REQUIRETLS", true, false, false, false, false},
        {"REQUIRETLS\r\n250-STARTTLS", "8BITMIME", true, true, false, false, false},
        {"STARTTLS", "8BITMIME", true, true, true, true, false},
        {"STARTTLS", "REQUIRETLS", false, true, false, true, true},
        {"STARTTLS", "REQUIRETLS", false, false, false, true, false},
        {"STARTTLS", "8BITMIME", false, true, false, true, false},
    };
    struct envelope *e = envelope_new();
    unsigned index = 0;
    ok(envelope_add(e, TEXT("a@b.test"), 0, TEXT("")));
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct client_settings settings = {.hostname = "me.example", .peer = &peer, .timeout_scale = 1, .tls = TARGET_TLS_VERIFY, .is_certain = rows[i].certain, .is_required = rows[i].required, .lmtp = rows[i].lmtp};
        struct client *c = client_new(&settings);
        struct client_event event = {.kind = CLIENT_DONE};
        char hello[2][100];
        snprintf(hello[0], sizeof(hello[0]), "250-mx\r\n250-%s\r\n250 DSN\r\n", rows[i].before);
        snprintf(hello[1], sizeof(hello[1]), "250-mx\r\n250-%s\r\n250 DSN\r\n", rows[i].under);
        struct text input[] = {TEXT("220 mx\r\n"), text_from(hello[0]), TEXT("220 go\r\n"), text_from(hello[1])};
        ok(!client_next(c, &input[0], &event) && !client_next(c, &input[1], &event));
        ok(client_next(c, &input[2], &event) && event.kind == CLIENT_SECURE);
        client_secured(c);
        ok(!client_next(c, &input[2], &event) && client_next(c, &input[3], &event));
        is_number(event.kind, rows[i].ready ? CLIENT_READY : CLIENT_OVER, rows[i].under);
        if (event.kind == CLIENT_OVER) {
            is_string(event.outcome->enhanced, CLIENT_NO_REQUIRETLS, "the code");
            ok(event.outcome->verdict == VERDICT_DEFERRED && event.end == CLIENT_END_HOST);
        } else {
            e->tls = ENVELOPE_TLS_REQUIRED;
            struct client_mail mail = {.envelope = e, .indexes = &index, .count = 1};
            buffer_clear(client_output(c));
            client_send(c, &mail);
            struct text said = buffer_text(client_output(c));
            ok_named((memmem(said.at, said.length, " REQUIRETLS\r\n", 13) != NULL) == rows[i].says, "the parameter");
        }
        client_free(&c);
    }
    envelope_free(&e);
}
