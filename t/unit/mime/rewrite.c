/* The header of submitted mail as it leaves. */
#include "mime/rewrite.h"

#include "t/support/tap.h"

static void
becomes(const char *sender, const char *header, const char *want)
{
    struct rewrite r = {.hostname = TEXT("h.test"), .sender = text_from(sender)};
    struct buffer out, again;
    buffer_init(&out, 4096);
    buffer_init(&again, 4096);
    ok(rewrite_header(&r, text_from(header), &out));
    is_text(buffer_text(&out), text_from(want), want);
    ok(rewrite_header(&r, buffer_text(&out), &again));
    is_text(buffer_text(&again), text_from(want), "twice is as once");
    buffer_free(&out);
    buffer_free(&again);
}

static void
test_removal(void)
{
    becomes("", "From: a@b\r\nBcc: c@d\r\n e@f\r\nTo: g@h\r\n",
            "From: a@b\r\nTo: g@h\r\n");
    becomes("", "Return-Path: <x@y>\r\nFrom: a@b\r\nbcc:\r\nBCC : x\r\nResent-Bcc: y\r\n",
            "From: a@b\r\n");
    becomes("", "From: a@b\r\nX-Bcc: c@d\r\nBccs: e\r\n",
            "From: a@b\r\nX-Bcc: c@d\r\nBccs: e\r\n");
}

static void
test_from(void)
{
    becomes("s@x.test", "Received: by h\r\n\tid 1\r\nSubject: x\r\n",
            "Received: by h\r\n\tid 1\r\nFrom: s@x.test\r\nSubject: x\r\n");
    becomes("s@x.test", "Received: by h\r\nReceived: by i\r\n",
            "Received: by h\r\nReceived: by i\r\nFrom: s@x.test\r\n");
    becomes("", "Subject: x\r\n", "From: MAILER-DAEMON@h.test\r\nSubject: x\r\n");
    becomes("s@x.test", "", "From: s@x.test\r\n");
    becomes("s@x.test", "Received: by h", "Received: by h\r\nFrom: s@x.test\r\n");
    becomes("s@x.test", "FROM: a@b\r\n", "FROM: a@b\r\n");
    becomes("s@x.test", "Subject: From: y\r\nFrom:\r\n", "Subject: From: y\r\nFrom:\r\n");
}

static void
test_limit(void)
{
    static const char header[] = "From: a@b\r\nTo: c@d\r\n";
    struct rewrite r = {.hostname = TEXT("h.test")};
    for (size_t limit = 0; limit < sizeof(header) - 1; limit++) {
        struct buffer out;
        buffer_init(&out, limit);
        ok_named(!rewrite_header(&r, text_from(header), &out), "no space");
        buffer_free(&out);
    }
}

int
main(void)
{
    test_removal();
    test_from();
    test_limit();
    return done();
}
