/* The recipients of a transaction. */
#include "smtp/server/transaction.h"

#include "t/support/server_fake.h"
#include "t/support/tap.h"
#include "base/log/log_internal.h"
#include "smtp/access/senders.h"

#include <stdio.h>

static unsigned
taken(const struct fake *f)
{
    struct text rest = buffer_text(&f->out), line;
    unsigned count = 0;
    while (rest.length > 0 && text_cut(&rest, '\n', &line))
        count += text_starts(line, TEXT("250 2.1.5"));
    return count;
}

/* A recipient that is named again is there once, among few and among many. */
static void
test_repeated(unsigned different)
{
    static const struct server_rules rules = {.hostname = "mx.example.org",
                                              .size_limit = 1000,
                                              .recipient_limit = 300,
                                              .hop_limit = 50,
                                              .error_limit = 20};
    struct fake f = {0};
    char rcpt[64];
    fake_start(&f, &rules, NULL, false, false);
    fake_feed(&f, TEXT("EHLO x\r\nMAIL FROM:<a@b.example>\r\n"));
    for (unsigned i = 0; i < 240; i++) {
        snprintf(rcpt, sizeof(rcpt), "RCPT TO:<r%u@%s>\r\n", i % different,
                 i < 120 ? "example.org" : "EXAMPLE.org");
        fake_feed(&f, text_from(rcpt));
    }
    is_number(taken(&f), 240, "all are answered alike");
    fake_feed(&f, TEXT("DATA\r\nx\r\n.\r\n"));
    is_number(f.messages[0].envelope->count, different, "each is in the envelope once");
    server_fake_end(&f);
}

/* --- The mail that is ours, and the notes of its header --------------------------- */

static struct buffer said;
static bool keeps; /* events */

/* The envelope of what this client sends; it lasts until f ends. user: NULL, or logged in. */
static const struct envelope *
sends(struct fake *f, struct senders *senders, bool may_relay, const char *user,
      const char *message)
{
    struct server_rules rules = {.hostname = "mx.example.org",
                                 .size_limit = 1000000,
                                 .recipient_limit = 10,
                                 .hop_limit = 50,
                                 .senders = senders};
    static struct server_rules kept;
    static char name[100];
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_INFO);
    kept = rules;
    buffer_free(&said);
    buffer_init(&said, 8192);
    struct event_hub *events = event_hub_new(log);
    log_capture(log, &said);
    event_hub_keep(events, keeps);
    *f = (struct fake){0};
    fake_start(f, &kept, events, false, may_relay);
    if (user != NULL) {
        snprintf(name, sizeof(name), "%s", user);
        f->server.user = memory_string(name);
    }
    fake_feed(f, TEXT("EHLO x\r\nMAIL FROM:<ann@a.example>\r\nRCPT TO:<b@b.example>\r\n"
                      "DATA\r\n"));
    for (struct text rest = text_from(message); rest.length > 0; rest = text_after(rest, 7))
        fake_feed(f, text_before(rest, 7));
    fake_feed(f, TEXT(".\r\n"));
    event_hub_free(&events);
    log_free(&log);
    if (f->count != 1)
        abort();
    return f->messages[0].envelope;
}

static bool
is_said(const char *words)
{
    return said.length > 0 && memmem(said.at, said.length, words, strlen(words)) != NULL;
}

static void
test_who(void)
{
    struct fake f;
    static const char message[] = "From: a@b.example\r\n\r\nx\r\n";
    const struct envelope *e = sends(&f, NULL, false, NULL, message);
    ok_named(!e->ours && e->submitter.length == 0, "an untrusted client's is not ours");
    server_fake_end(&f);
    e = sends(&f, NULL, true, NULL, message);
    ok_named(e->ours, "that of a client that may relay is");
    is_text(e->submitter, TEXT(""), "without a name");
    is_number(e->header_needs, 0, "a whole header needs nothing");
    server_fake_end(&f);
    e = sends(&f, NULL, false, "ann", message);
    ok_named(e->ours, "that of a user is");
    is_text(e->submitter, TEXT("user:ann"), "in the name of that user");
    server_fake_end(&f);
}

static void
test_needs(void)
{
    static const struct {
        const char *message;
        unsigned needs;
    } rows[] = {
        {"From: a@b.example\r\nTo: c@d.example\r\n\r\nx\r\n", 0},
        {"Subject: x\r\n\r\nx\r\n", HEADER_NEEDS_FROM},
        {"From: root\r\n\r\nx\r\n", HEADER_NEEDS_DOMAIN},
        {"From: a@b.example\r\nTo: alice\r\n\r\nx\r\n", HEADER_NEEDS_DOMAIN},
        {"From: a@b.example\r\nBcc: e@f.example\r\n\r\nx\r\n", HEADER_NEEDS_REMOVAL},
        {"From: a@b.example\r\nSubject : x\r\n\r\nx\r\n", HEADER_NEEDS_REMOVAL},
        {"From: a@b.example\r\nX-Petrel-Tag: t\r\n\r\nx\r\n", HEADER_NEEDS_REMOVAL},
        {"Return-Path: <>\r\nTo: bob\r\n\r\nx\r\n", HEADER_NEEDS_ALL},
        {"no header at all\r\n", HEADER_NEEDS_FROM},
        {"From: a@b.example\r\nno field\r\n", HEADER_NEEDS_REMOVAL},
        {"From: root\r\n", HEADER_NEEDS_DOMAIN},
        {"From: a@b.example\r\n\r\nTo: alice\r\nBcc: x\r\n", 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct fake f;
        const struct envelope *e = sends(&f, NULL, true, NULL, rows[i].message);
        is_number(e->header_needs, rows[i].needs, rows[i].message);
        server_fake_end(&f);
    }
}

static void
check_names(const char *message, bool may_relay, const char *message_id, const char *tag)
{
    struct fake f;
    const struct envelope *e = sends(&f, NULL, may_relay, NULL, message);
    is_text(e->message_id, text_from(message_id), message);
    is_text(e->tag, text_from(tag), "the tag");
    server_fake_end(&f);
}

/* The data of a message for events are kept while there are some. */
static void
test_names(void)
{
    static char long_id[400] = "Message-ID: <";
    static const char message[] = "From: a@b.example\r\nMessage-ID: <x@y>\r\n"
                                  "X-Petrel-Tag: order 17\r\n\r\nx\r\n";
    check_names(message, true, "", "");
    keeps = true;
    check_names(message, true, "<x@y>", "order 17");
    check_names(message, false, "<x@y>", "");
    memset(long_id + 13, 'i', 300);
    memcpy(long_id + 313, ">\r\n\r\n", 6);
    struct fake f;
    const struct envelope *e = sends(&f, NULL, true, NULL, long_id);
    is_number((int64_t)e->message_id.length, ENVELOPE_MESSAGE_ID_MAX, "a long one is cut");
    server_fake_end(&f);
    e = sends(&f, NULL, true, NULL, "From: a@b.example\r\n\r\nx\r\n");
    ok_named(text_starts(e->message_id, TEXT("<")) &&
                 text_ends_nocase(e->message_id, TEXT("@mx.example.org>")),
             "the one that is added");
    server_fake_end(&f);
    keeps = false;
}

/* Mail that is sent again says when, if it is ours (RFC 5322 §3.6.6). */
static void
test_resent(void)
{
    static const char message[] = "Resent-From: a@b.example\r\nDate: x\r\n"
                                  "Message-ID: <y@z>\r\n\r\nx\r\n";
    struct fake f;
    for (int ours = 0; ours < 2; ours++) {
        const struct envelope *e = sends(&f, NULL, ours == 1, NULL, message);
        bool dated = memmem(e->prefix.at, e->prefix.length, "Resent-Date: ", 13) != NULL;
        bool named = memmem(e->prefix.at, e->prefix.length, "Resent-Message-ID: <", 20) != NULL;
        ok_named(dated == (ours == 1) && named == (ours == 1),
                 ours == 1 ? "a submission" : "mail of others stays");
        server_fake_end(&f);
    }
}

static void
judged(struct senders *senders, const char *user, const char *message, bool ours,
       const char *name)
{
    struct fake f;
    const struct envelope *e = sends(&f, senders, user == NULL, user, message);
    ok_named(e->ours == ours, name);
    ok_named(is_said("neither signed nor rewritten") != ours, "what is not ours is logged");
    server_fake_end(&f);
}

static void
test_from(void)
{
    struct buffer errors;
    static char late[SUBMITTER_HEAD_MAX + 200];
    buffer_init(&errors, 4096);
    struct senders *senders =
        senders_new(TEXT("ann ann@a.example\nann .lists.example\nroot *\n"),
                    TEXT("a.example .lists.example mx.example.org"), &errors);
    is_text(buffer_text(&errors), TEXT(""), "the rules are good");
    judged(senders, "ann", "From: Ann <Ann@A.example>\r\n\r\nx\r\n", true,
           "the address of the user");
    judged(senders, "ann", "From: bob@a.example\r\n\r\nx\r\n", false,
           "that of another user");
    ok(is_said("From <bob@a.example> is not a sender of user ann: neither"));
    judged(senders, "ann",
           "From: \"ann@a.example\" <bob@a.example>\r\n\r\nx\r\n", false,
           "a display name is no address");
    judged(senders, "ann", "From: bob@a.example, ann@a.example\r\n\r\nx\r\n", false,
           "the first address counts");
    judged(senders, "ann",
           "From: bob@a.example\r\nFrom: ann@a.example\r\n\r\nx\r\n", false,
           "of the first field");
    judged(senders, "ann", "from :\r\n (Ann)\r\n ann@a.example\r\n\r\nx\r\n", true,
           "a folded field");
    judged(senders, "ann", "From: friends: x@y.lists.example;\r\n\r\nx\r\n", true,
           "a group");
    judged(senders, "ann", "Subject: x\r\n\r\nFrom: bob@a.example\r\n", true,
           "no From: the sender's is added");
    judged(senders, "ann", "From: root\r\n\r\nx\r\n", false,
           "a bare address is one of this host");
    ok(is_said("From <root@mx.example.org> is not"));
    judged(senders, "root", "From: root\r\n\r\nx\r\n", true, "of who may use it");
    judged(senders, NULL, "From: x@a.example\r\n\r\nx\r\n", true,
           "a trusted client may use sender_domains");
    judged(senders, NULL, "From: x@other.example\r\n\r\nx\r\n", false, "and no other");
    ok(is_said("From <x@other.example> is not a sender of this client: neither"));
    judged(senders, "ann", "From: ann@a.example\r\n", true, "a header without an end");
    static const char *const odd[] = {"x@other.example.", "x@other..example",
                                      "x@other.example@", "x@other_.-.example@a.example",
                                      "\"x@other.example\"@", "@other.example", "@",
                                      "x@[other.example]", "<x@other.example@a.example>"};
    char message[400];
    for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
        snprintf(message, sizeof(message), "From: %s\r\n\r\nx\r\n", odd[i]);
        judged(senders, NULL, message, false, odd[i]);
    }
    snprintf(message, sizeof(message), "From: %065d@other.example\r\n\r\nx\r\n", 1);
    judged(senders, NULL, message, false, "a local part that is too long");
    memset(late, 'x', sizeof(late));
    memcpy(late, "X: ", 3);
    snprintf(late + SUBMITTER_HEAD_MAX, 200, "\r\nFrom: ann@a.example\r\n\r\nx\r\n");
    judged(senders, "ann", late, false, "a From that comes too late");
    senders_free(&senders);
    buffer_free(&errors);
}

static void
submitter_tests(void)
{
    test_who();
    test_needs();
    test_names();
    test_resent();
    test_from();
    buffer_free(&said);
}


int
main(void)
{
    test_repeated(1);
    test_repeated(16);
    test_repeated(17);
    test_repeated(100);
    submitter_tests();
    return done();
}
