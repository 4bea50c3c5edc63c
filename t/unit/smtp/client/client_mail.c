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
