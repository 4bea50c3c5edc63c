/* Lines of the file of MTA-STS policies: what is written is read again, and nothing else. */
#include "smtp/client/sts_file.h"

#include "t/support/tap.h"

static void
test_lines(void)
{
    static const char *const bad[] = {
        "", "1", "2 a.test 1 none 1 1", "1 *.a.test 1 none 1 1", "1 a..test 1 none 1 1", "1 a.test 1- none 1 1",
        "1 a.test 1 maybe 1 1", "1 a.test 1 none -1 1", "1 a.test 1 none 1 31557601", "1 a.test 1 none 1 1 mx.test",
        "1 a.test 1 enforce 1 1", "1 a.test 1 testing 1 1 a..b", "1 a.test 1 enforce 1",
        "1 a.test 123456789012345678901234567890123 none 1 1",
    };
    struct sts_line line;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
        ok_named(!sts_line_read(text_from(bad[i]), &line), bad[i]);
    struct buffer out;
    buffer_init(&out, 1000);
    ok(sts_line_read(TEXT("1 a.test x9 enforce 1234567890123 31557600 *.a.test b.test"), &line));
    ok(sts_line_write(&out, &line));
    is_text(buffer_text(&out), TEXT("1 a.test x9 enforce 1234567890123 31557600 *.a.test b.test\n"), "there and back");
    sts_policy_free(&line.policy);
    buffer_clear(&out);
    ok(sts_line_read(TEXT("1 a.test 1 none 0 0"), &line));
    ok(sts_line_write(&out, &line));
    is_text(buffer_text(&out), TEXT("1 a.test 1 none 0 0\n"), "mode none has no pattern");
    sts_policy_free(&line.policy);
    buffer_free(&out);
}

int
main(void)
{
    test_lines();
    return done();
}
