/* The recipients of a transaction. */
#include "smtp/server/transaction.h"

#include "t/support/server_fake.h"
#include "t/support/tap.h"

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

int
main(void)
{
    test_repeated(1);
    test_repeated(16);
    test_repeated(17);
    test_repeated(100);
    return done();
}
