/* smtp/trace: the Received header says the truth, in short lines, for any input of a
 * client. */
#include "smtp/server/trace.h"

#include "t/support/tap.h"

static struct trace trace;

static struct text
written(struct buffer *out)
{
    buffer_clear(out);
    trace_write(&trace, out);
    return buffer_text(out);
}

/* Every line ends with CRLF, none is longer than 77 unless one word is, continuation
 * lines begin with a tab. */
static bool
is_folded(struct text t)
{
    struct text line;
    unsigned number = 0;
    while (text_cut(&t, '\n', &line)) {
        if (t.at == NULL)
            return line.length == 0;
        if (line.length < 2 || line.at[line.length - 1] != '\r')
            return false;
        bool field = text_starts(line, TEXT("Received: ")) ||
                     text_starts(line, TEXT("Date: ")) ||
                     text_starts(line, TEXT("Message-ID: <"));
        bool one_word = text_find(text_after(line, 1), ' ') == TEXT_NONE;
        if (number++ > 0 && !field && line.at[0] != '\t')
            return false;
        if (line.length > 78 && !one_word)
            return false;
    }
    return false;
}

static void
forms(struct buffer *out)
{
    struct trace before = trace;
    trace.add_date = trace.add_message_id = false;
    trace.recipient = trace.priority = TEXT("");
    trace.form = SERVER_RECEIVED_SHORT;
    is_text(written(out),
            TEXT("Received: by mx.example.org (Petrel) with ESMTP id 01JD3ZK5Q8-9F3K2C7A;\r\n"
                 "\tTue, 14 Nov 2023 22:13:20 +0000\r\n"),
            "without the client");
    trace.form = SERVER_RECEIVED_NONE;
    trace.add_date = true;
    is_text(written(out), TEXT("Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"), "other fields alone");
    trace.add_date = false;
    is_text(written(out), TEXT(""), "nothing");
    trace = before;
}

static void
plain(struct buffer *out)
{
    is_text(
        written(out),
        TEXT(
            "Received: from client.example ([192.0.2.1]) by mx.example.org (Petrel)\r\n"
            "\twith ESMTP id 01JD3ZK5Q8-9F3K2C7A for <b@example.org>;\r\n"
            "\tTue, 14 Nov 2023 22:13:20 +0000\r\n"),
        "one recipient");
    trace.recipient = TEXT("");
    is_text(
        written(out),
        TEXT(
            "Received: from client.example ([192.0.2.1]) by mx.example.org (Petrel)\r\n"
            "\twith ESMTP id 01JD3ZK5Q8-9F3K2C7A; Tue, 14 Nov 2023 22:13:20 +0000\r\n"),
        "several are not told");
    trace.priority = TEXT("-9");
    is_text(
        written(out),
        TEXT(
            "Received: from client.example ([192.0.2.1]) by mx.example.org (Petrel)\r\n"
            "\twith ESMTP id 01JD3ZK5Q8-9F3K2C7A PRIORITY -9;\r\n"
            "\tTue, 14 Nov 2023 22:13:20 +0000\r\n"),
        "a priority");
    trace.recipient = TEXT("b@example.org");
    ok_named(memmem(written(out).at, out->length, "> PRIORITY -9;\r\n", 16) != NULL,
             "behind the recipient");
    trace.recipient = trace.priority = TEXT("");
    trace.add_date = true;
    trace.add_message_id = true;
    ok(text_ends_nocase(written(out),
                        TEXT("\r\nDate: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
                             "Message-ID: <01JD3ZK5Q8-9F3K2C7A@mx.example.org>\r\n")));
    ok(is_folded(written(out)));
    trace.add_resent_date = trace.add_resent_message_id = true;
    ok_named(
        text_ends_nocase(
            written(out),
            TEXT("\r\nResent-Date: Tue, 14 Nov 2023 22:13:20 +0000\r\n"
                 "Resent-Message-ID: <01JD3ZK5Q8-9F3K2C7A.resent@mx.example.org>\r\n")),
        "a message that is sent again");
    trace.add_resent_date = trace.add_resent_message_id = false;
    trace.add_end = true;
    ok_named(text_ends_nocase(written(out), TEXT("@mx.example.org>\r\n\r\n")),
             "a message without a header gets the end of ours");
    trace.add_end = false;
}

/* Any byte in any place of HELO. */
static void
hostile(struct buffer *out)
{
    char helo[4] = "a?b";
    unsigned wrong = 0;
    trace.helo = helo;
    for (int c = 1; c < 256; c++) {
        helo[1] = (char)c;
        struct text t = written(out);
        bool plain_byte = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                          (c >= '0' && c <= '9') || strchr(".-_[]:", c) != NULL;
        struct text shown =
            text_before(text_after(t, sizeof("Received: from ") - 1), 3);
        wrong += !text_starts(t, TEXT("Received: from a")) || shown.at[2] != 'b' ||
                 shown.at[1] != (plain_byte ? (char)c : '?') || !is_folded(t);
    }
    is_number(wrong, 0, "only harmless bytes pass");
    trace.helo = "";
    ok(text_starts(written(out), TEXT("Received: from unknown (")));
}

static void
long_names(struct buffer *out)
{
    char name[300], address[400];
    memset(name, 'h', 255);
    name[255] = '\0';
    trace.helo = trace.hostname = name;
    trace.client = "[IPv6:2001:db8:1111:2222:3333:4444:5555:6666]";
    memset(address, 'a', 64);
    address[64] = '@';
    memset(address + 65, 'd', 255);
    trace.recipient = text_of(address, 320);
    struct text t = written(out);
    ok(t.length < TRACE_MAX);
    struct text line;
    size_t longest = 0;
    while (text_cut(&t, '\n', &line))
        longest = line.length > longest ? line.length : longest;
    ok_named(longest < 998, "RFC 5322 2.1.1 holds whatever comes");
    memset(name, 'h', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    trace.hostname = "mx.example.org";
    ok_named(written(out).length < TRACE_MAX, "a longer HELO is cut");
}

int
main(void)
{
    struct buffer out;
    buffer_init(&out, TRACE_MAX);
    trace = (struct trace){.helo = "client.example",
                           .client = "[192.0.2.1]",
                           .hostname = "mx.example.org",
                           .protocol = "ESMTP",
                           .id = "01JD3ZK5Q8-9F3K2C7A",
                           .recipient = TEXT("b@example.org"),
                           .now_ms = 1700000000000};
    plain(&out);
    forms(&out);
    hostile(&out);
    long_names(&out);
    buffer_free(&out);
    return done();
}
