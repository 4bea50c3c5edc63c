/* The message of `petrel test`: whole header, CRLF, host and time; what is too long. */
#include "admin/control/trial.h"

#include "base/memory.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static const char whole[] =
    "From: <ann@a.test>\r\nTo: <bob@b.test>\r\nSubject: Test of "
    "h.test\r\nAuto-Submitted: auto-generated\r\n"
    "MIME-Version: 1.0\r\nContent-Type: text/plain; charset=us-ascii\r\n\r\n"
    "This is a test of the mail system of h.test,\r\nmade by `petrel test` at Thu, 1 "
    "Jan 1970 00:00:00 +0000.\r\n"
    "It has arrived; nothing needs to be done.\r\n";

int
main(void)
{
    struct buffer out;
    char *address = memory_new(TRIAL_MESSAGE_MAX + 1), host[400];
    setenv("TZ", "UTC", 1);
    buffer_init(&out, TRIAL_MESSAGE_MAX);
    ok(trial_write_message(&out, "h.test", TEXT("ann@a.test"), TEXT("bob@b.test"), 0));
    is_text(buffer_text(&out), text_from(whole), "a message");

    buffer_clear(&out);
    ok(trial_write_message(&out, "h.test", TEXT(""), TEXT("bob@b.test"), 0));
    ok(text_starts(buffer_text(&out), TEXT("From: <>\r\nTo: <bob@b.test>\r\n")));

    /* The longest names that a setting and an address may have. */
    buffer_clear(&out);
    memset(host, 'h', sizeof(host) - 1);
    host[sizeof(host) - 1] = '\0';
    memset(address, 'a', TRIAL_MESSAGE_MAX);
    ok(trial_write_message(&out, host, text_of(address, 320), text_of(address, 320),
                          INT64_C(253402300799000)));
    ok(memmem(out.at, out.length, host, 256) == NULL);
    buffer_clear(&out);
    ok(!trial_write_message(&out, host, text_of(address, TRIAL_MESSAGE_MAX),
                           TEXT("b@b.test"), 0));
    buffer_free(&out);
    free(address);
    return done();
}
