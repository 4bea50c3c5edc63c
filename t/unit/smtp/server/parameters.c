/* smtp/parameters: the arguments of MAIL and RCPT, kept as given or refused. */
#include "smtp/server/parameters.h"

#include "t/support/tap.h"

static struct mail_parameters mail;
static struct rcpt_parameters rcpt;
static struct path_rules rules = {.hostname = TEXT("mx.example")};

/* The reply code, 250 when good. */
static int
read_mail(struct text argument)
{
    const struct refusal *refusal = parameters_read_mail(argument, &rules, &mail);
    return refusal == NULL ? 250 : refusal->code;
}

static int
read_rcpt(struct text argument, bool utf8)
{
    const struct refusal *refusal = parameters_read_rcpt(argument, &rules, utf8, &rcpt);
    return refusal == NULL ? 250 : refusal->code;
}

TEST(mail_values)
{
    is_number(
        read_mail(TEXT("FROM:<a@b.example> SIZE=17 BODY=8BITMIME SMTPUTF8 RET=FULL "
                       "ENVID=x+2By")),
        250, "all of them");
    is_text(mail.sender.address.local, TEXT("a"), "local part");
    is_text(mail.sender.address.domain, TEXT("b.example"), "domain");
    is_number(mail.size, 17, "size");
    ok(mail.eight_bit && mail.utf8 && mail.ret == RETURN_FULL);
    is_text(mail.envelope_id, TEXT("x+2By"), "ENVID as given");
    is_number(read_mail(TEXT("from:<>")), 250, "none of them");
    ok(mail.size == 0 && !mail.eight_bit && !mail.utf8 && mail.ret == RETURN_DEFAULT &&
       mail.envelope_id.length == 0 && mail.sender.address.local.length == 0);
    is_number(read_mail(TEXT("FROM:<> RET=hdrs BODY=7bit")), 250, "values in any case");
    ok(mail.ret == RETURN_HEADERS && !mail.eight_bit && !mail.binary);
    is_number(read_mail(TEXT("FROM:<> BODY=BinaryMime")), 250, "the third BODY");
    ok(mail.binary && mail.eight_bit);
}

TEST(requiretls)
{
    is_number(read_mail(TEXT("FROM:<a@b.example> requiretls SIZE=5")), 250, "without a value");
    ok(mail.requires_tls && mail.size == 5);
    is_number(read_mail(TEXT("FROM:<a@b.example>")), 250, "none");
    ok(!mail.requires_tls);
    is_number(read_mail(TEXT("FROM:<a@b.example> REQUIRETLS=")), 501, "an empty value");
    is_number(read_mail(TEXT("FROM:<a@b.example> REQUIRETLS=YES")), 501, "a value");
    is_number(read_mail(TEXT("FROM:<a@b.example> REQUIRETLS REQUIRETLS")), 501, "twice");
    is_number(read_mail(TEXT("FROM:<a@b.example> REQUIRETLSX")), 555, "another one");
}

TEST(sizes)
{
    is_number(read_mail(TEXT("FROM:<> SIZE=2147483648")), 250, "2^31");
    is_number(mail.size, INT64_C(2147483648), "is 2^31");
    is_number(read_mail(TEXT("FROM:<> SIZE=9223372036854775807")), 250, "2^63-1");
    is_number(mail.size, INT64_MAX, "is 2^63-1");
    is_number(read_mail(TEXT("FROM:<> SIZE=9223372036854775808")), 250, "2^63");
    is_number(mail.size, INT64_MAX, "does not wrap");
    is_number(read_mail(TEXT("FROM:<> SIZE=18446744073709551616")), 250, "2^64");
    is_number(mail.size, INT64_MAX, "does not wrap either");
    is_number(read_mail(TEXT("FROM:<> SIZE=000000000000000000000")), 501, "21 digits");
    is_number(read_mail(TEXT("FROM:<> SIZE=0x10")), 501, "hexadecimal");
    is_number(read_mail(TEXT("FROM:<> SIZE=+5")), 501, "a sign");
}

TEST(priorities)
{
    static const char *const bad[] = {"",   "-",   "+1", "-0", "00", "05", "-09",
                                      "10", "-10", "99", "a",  "1.", "--1"};
    char line[60];
    for (int i = -9; i <= 9; i++) {
        snprintf(line, sizeof(line), "FROM:<a@b.example> mt-priority=%d", i);
        is_number(read_mail(text_from(line)), 250, line);
        ok(mail.has_priority && mail.priority == i);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(line, sizeof(line), "FROM:<> MT-PRIORITY=%s", bad[i]);
        is_number(read_mail(text_from(line)), 501, line);
        ok_named(mail.has_priority, "it was there, bad as it is");
    }
    is_number(read_mail(TEXT("FROM:<> MT-PRIORITY")), 501, "no value");
    ok(mail.has_priority && mail.priority == 0);
    is_number(read_mail(TEXT("FROM:<> MT-PRIORITY=1 MT-PRIORITY=1")), 501, "twice");
    is_number(read_mail(TEXT("FROM:<>")), 250, "none");
    ok(!mail.has_priority && mail.priority == 0);
}

TEST(mail_mistakes)
{
    is_number(read_mail(TEXT("")), 501, "nothing");
    is_number(read_mail(TEXT("FROM:")), 501, "no path");
    is_number(read_mail(TEXT("FROM <a@b.example>")), 501, "no colon");
    is_number(read_mail(TEXT("FROM:<a@b.example>SIZE=1")), 501, "no blank");
    is_number(read_mail(TEXT("FROM:<a@b.example> =1")), 555, "no key");
    is_number(read_mail(TEXT("FROM:<a@b.example> X=1")), 555, "an unknown key");
    is_number(read_mail(TEXT("FROM:<a@b.example> BODY=7BIT BODY=7BIT")), 501, "twice");
    is_number(read_mail(TEXT("FROM:<a@b.example> SMTPUTF8 SMTPUTF8")), 501,
              "twice, bare");
    is_number(read_mail(TEXT("FROM:<\xc3\xa9@b.example>")), 553, "needs SMTPUTF8");
    is_number(read_mail(TEXT("FROM:<\xc3\xa9@b.example> SMTPUTF8")), 250, "has it");
}

#define MARK "00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff;0;17"

/* Its accepted values are in t/unit/queue/envelope/set_mark.c. */
TEST(set_marks)
{
    is_number(read_mail(TEXT("FROM:<a@b.example> XDEFRAG=" MARK " SIZE=3")), 250,
              "a mark");
    is_text(mail.set_mark, TEXT(MARK), "as given");
    ok(mail.has_set_mark && mail.size == 3);
    is_number(read_mail(TEXT("FROM:<> xdefrag=" MARK)), 250, "in any case");
    is_number(read_mail(TEXT("FROM:<> XDEFRAG=" MARK "x")), 501, "a bad one");
    ok_named(mail.has_set_mark, "it was there, bad as it is");
    is_number(read_mail(TEXT("FROM:<> XDEFRAG")), 501, "no value");
    ok(mail.has_set_mark);
    is_number(read_mail(TEXT("FROM:<> XDEFRAG=" MARK " XDEFRAG=" MARK)), 501, "twice");
    is_number(read_mail(TEXT("FROM:<>")), 250, "none");
    ok(!mail.has_set_mark && mail.set_mark.length == 0);
    is_number(read_rcpt(TEXT("TO:<a@b.example> XDEFRAG=" MARK), false), 555,
              "of the other verb");
}

TEST(rcpt_values)
{
    is_number(read_rcpt(TEXT("TO:<a@b.example> NOTIFY=SUCCESS,DELAY,FAILURE "
                             "ORCPT=rfc822;a+3Db@b.example"),
                        false),
              250, "all of them");
    is_number(rcpt.notify, NOTIFY_SUCCESS | NOTIFY_DELAY | NOTIFY_FAILURE, "bits");
    is_text(rcpt.original, TEXT("rfc822;a+3Db@b.example"), "ORCPT as given");
    is_number(read_rcpt(TEXT("to: <a@b.example>"), false), 250, "none of them");
    ok(rcpt.notify == NOTIFY_DEFAULT && rcpt.original.length == 0);
    is_number(read_rcpt(TEXT("TO:<Postmaster>"), false), 250, "postmaster");
    is_number(read_rcpt(TEXT("TO:<a@b.example> ORCPT=utf-8;\xc3\xa9@b.example"), true),
              250, "utf-8 with SMTPUTF8");
    is_number(read_rcpt(TEXT("TO:<a@b.example> ORCPT=utf-8;\\x{E9}@b.example"), false),
              250, "utf-8 in ASCII without");
    is_number(read_rcpt(TEXT("TO:<a@b.example> ORCPT=x400;whatever"), false), 250,
              "another type");
}

/* Every control character, however it is spelt. */
TEST(rcpt_controls)
{
    unsigned taken = 0;
    for (unsigned c = 0; c < 0x20; c++) {
        char argument[80];
        snprintf(argument, sizeof(argument), "TO:<a@b.example> ORCPT=rfc822;x+%02Xy",
                 c);
        taken += read_rcpt(text_from(argument), true) == 250;
        snprintf(argument, sizeof(argument), "TO:<a@b.example> ORCPT=utf-8;x+%02Xy%c",
                 c, c == 0 ? 1 : (int)c);
        taken += read_rcpt(text_from(argument), true) == 250;
    }
    is_number(taken, 0, "no control character gets through");
}

TEST(rcpt_mistakes)
{
    is_number(read_rcpt(TEXT("TO:<>"), false), 501, "the null path");
    is_number(read_rcpt(TEXT("TO:<a@b.example> ORCPT=utf-8;\xc3\xa9@b.example"), false),
              501, "utf-8 without SMTPUTF8");
    is_number(read_rcpt(TEXT("TO:<a@b.example> ORCPT=utf-8;\xff"), true), 501,
              "no UTF-8");
    is_number(read_rcpt(TEXT("TO:<a@b.example> ORCPT=rf 822;x"), true), 501, "a blank");
    is_number(read_rcpt(TEXT("TO:<a@b.example> ORCPT=rf_822;x"), true), 501,
              "a bad type");
    is_number(read_rcpt(TEXT("TO:<a@b.example> RET=FULL"), true), 555,
              "of the other verb");
    is_number(read_rcpt(TEXT("TO:<\xc3\xa9@b.example>"), false), 553, "needs SMTPUTF8");
    is_number(read_rcpt(TEXT("TO:<\xc3\xa9@b.example>"), true), 250, "has it");
}
