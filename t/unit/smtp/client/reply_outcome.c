/* The meaning of replies and silences: verdict, blame, enhanced code and text. */
#include "smtp/client/reply_outcome.h"

#include "t/support/tap.h"

static const struct reply_outcome_peer peer = {"mx.test[192.0.2.1]", "mx.test[192.0.2.1]:25", 25};

static struct reply
heard(const char *lines)
{
    struct reply reply;
    struct text input = text_from(lines);
    reply_start(&reply);
    if (reply_parse(&input, &reply) != PROGRESS_DONE)
        abort();
    return reply;
}

static void
is_outcome(struct outcome o, enum verdict verdict, enum blame blame,
           const char *enhanced, const char *name)
{
    is_number(o.verdict, verdict, name);
    is_number(o.blame, blame, name);
    is_string(o.enhanced, enhanced, name);
    is_string(o.remote, peer.remote, name);
}

TEST(replies)
{
    static const struct {
        const char *line;
        enum verdict verdict, of_rcpt;
        enum blame blame;
        const char *enhanced;
    } rows[] = {
        {"250 ok\r\n",         VERDICT_DELIVERED, VERDICT_DELIVERED, BLAME_NONE,    "2.0.0"},
        {"251 2.1.5 ok\r\n",   VERDICT_DELIVERED, VERDICT_DELIVERED, BLAME_NONE,    "2.1.5"},
        {"250 5.1.1 liar\r\n", VERDICT_DELIVERED, VERDICT_DELIVERED, BLAME_NONE,
         "2.0.0"                                                                           },
        {"450 x\r\n",          VERDICT_DEFERRED,  VERDICT_DEFERRED,  BLAME_MESSAGE, "4.0.0"},
        {"450 4.7.1 x\r\n",    VERDICT_DEFERRED,  VERDICT_DEFERRED,  BLAME_SITE,    "4.7.1"},
        {"449 4.7.1 x\r\n",    VERDICT_DEFERRED,  VERDICT_DEFERRED,  BLAME_MESSAGE, "4.7.1"},
        {"453 4.7.1 x\r\n",    VERDICT_DEFERRED,  VERDICT_DEFERRED,  BLAME_MESSAGE, "4.7.1"},
        {"451 4.70.1 x\r\n",   VERDICT_DEFERRED,  VERDICT_DEFERRED,  BLAME_MESSAGE,
         "4.70.1"                                                                          },
        {"452 5.7.1 x\r\n",    VERDICT_DEFERRED,  VERDICT_DEFERRED,  BLAME_MESSAGE, "4.0.0"},
        {"421 x\r\n",          VERDICT_DEFERRED,  VERDICT_DEFERRED,  BLAME_SITE,    "4.0.0"},
        {"550 4.1.1 x\r\n",    VERDICT_FAILED,    VERDICT_FAILED,    BLAME_MESSAGE, "5.0.0"},
        {"552 5.2.2 x\r\n",    VERDICT_FAILED,    VERDICT_DEFERRED,  BLAME_MESSAGE, "5.2.2"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply r = heard(rows[i].line);
        is_outcome(reply_outcome_reply(&peer, &r, "x"), rows[i].verdict, rows[i].blame,
                   rows[i].enhanced, rows[i].line);
        struct outcome rcpt = reply_outcome_rcpt(&peer, &r, "x");
        is_number(rcpt.verdict, rows[i].of_rcpt, "the same to RCPT");
        is_number(rcpt.code, r.code, "the code is what was said");
        ok(rcpt.enhanced[0] == (rcpt.verdict == VERDICT_DELIVERED  ? '2'
                                : rcpt.verdict == VERDICT_DEFERRED ? '4'
                                                                   : '5'));
    }
}

TEST(handshake)
{
    struct reply r = heard("554 5.7.1 go away\r\n");
    struct outcome o = reply_outcome_handshake(&peer, &r, "as its greeting");
    is_outcome(o, VERDICT_DEFERRED, BLAME_SITE, "4.7.1", "a 5yz greeting waits");
    is_number(o.code, 554, "with its code");
    is_string(o.text,
              "host mx.test[192.0.2.1] said: 554 5.7.1 go away (as its greeting)",
              "and its text");
}

TEST(silences)
{
    struct outcome o = reply_outcome_lost(&peer, "sending MAIL FROM");
    is_outcome(o, VERDICT_DEFERRED, BLAME_SITE, "4.4.2", "lost");
    is_string(o.text, "lost connection with mx.test[192.0.2.1] while sending MAIL FROM",
              "its sentence");
    o = reply_outcome_timed_out(&peer, "sending EHLO");
    is_outcome(o, VERDICT_DEFERRED, BLAME_SITE, "4.4.2", "timed out");
    is_string(o.text,
              "conversation with mx.test[192.0.2.1] timed out while sending EHLO",
              "its sentence");
    o = reply_outcome_protocol(&peer, "sending EHLO", "nonsense");
    is_outcome(o, VERDICT_DEFERRED, BLAME_SITE, "4.5.0", "nonsense");
    o = reply_outcome_unfit(&peer, "5.3.4", "too large");
    is_outcome(o, VERDICT_FAILED, BLAME_MESSAGE, "5.3.4", "unfit");
    is_number(o.code, 0, "nothing was said");
}

/* Replies of a host that we have logged in to. */
TEST(account)
{
    static const struct {
        const char *line;
        enum verdict verdict;
        enum blame blame;
        const char *enhanced;
    } rows[] = {
        {"550 5.7.1 sender address rejected: not owned by user joe\r\n", VERDICT_DEFERRED, BLAME_MESSAGE, "4.7.1"},
        {"554 Email address is not verified\r\n", VERDICT_DEFERRED, BLAME_MESSAGE, "4.0.0"},
        {"550 5.4.5 Daily user sending limit exceeded\r\n", VERDICT_DEFERRED, BLAME_MESSAGE, "4.4.5"},
        {"530 5.7.0 Authentication required\r\n", VERDICT_DEFERRED, BLAME_SITE, "4.7.0"},
        {"550 5.1.1 user unknown\r\n", VERDICT_FAILED, BLAME_MESSAGE, "5.1.1"},
        {"554 5.7.1 spam\r\n", VERDICT_FAILED, BLAME_MESSAGE, "5.7.1"},
        {"450 4.7.1 sender address rejected\r\n", VERDICT_DEFERRED, BLAME_SITE, "4.7.1"},
        {"250 ok\r\n", VERDICT_DELIVERED, BLAME_NONE, "2.0.0"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct reply r = heard(rows[i].line);
        struct outcome o = reply_outcome_reply(&peer, &r, "in reply to MAIL FROM command");
        is_outcome(reply_outcome_by_account(o), rows[i].verdict, rows[i].blame,
                   rows[i].enhanced, rows[i].line);
    }
}

/* With the longest names there is still the code and the end of the sentence. */
TEST(long)
{
    struct reply_outcome_peer far;
    static char line[3000];
    memset(&far, 'h', sizeof(far));
    far.where[sizeof(far.where) - 1] = far.remote[sizeof(far.remote) - 1] = '\0';
    memset(line, 'x', sizeof(line) - 1);
    memcpy(line, "550 5.1.1 ", 10);
    memcpy(line + sizeof(line) - 3, "\r\n", 2);
    struct reply r = heard(line);
    struct outcome o = reply_outcome_reply(&far, &r, "in reply to RCPT TO command");
    is_number(strlen(o.text), OUTCOME_TEXT_MAX - 1, "the text is full");
    ok(strstr(o.text, "said: 550 5.1.1 xxx") != NULL);
    ok(strstr(o.text, "xx (in reply to RCPT TO command)") != NULL);
    is_string(o.remote, far.remote, "the remote is whole");
}
