/* Classes of temporary refusals: known wordings, what must not be taken for them, and
 * the delays. */
#include "sched/limits/reply_class.h"

#include "t/support/tap.h"

#define MINUTE INT64_C(60000)
#define HOUR   (60 * MINUTE)

static struct outcome
refusal(int code, const char *enhanced, const char *words)
{
    return outcome_make(
        VERDICT_DEFERRED, BLAME_SITE, code, enhanced,
        "host mx.example[192.0.2.1]:25 said: %d %s %s (in reply to RCPT TO)", code,
        enhanced, words);
}

static const struct {
    enum reply_class_class class;
    int code;
    const char *enhanced, *words;
} wordings[] = {
    {REPLY_CLASS_GREYLIST,     450, "4.2.0",
     "<a@b.example>: Recipient address rejected: Greylisted"                                     },
    {REPLY_CLASS_GREYLIST,     451, "4.7.1",
     "Greylisting in action, please come back later"                                             },
    {REPLY_CLASS_GREYLIST,     451, "4.7.1",   "GREYLISTED"                                      },
    {REPLY_CLASS_GREYLIST,     450, "4.0.0",   "deferred by grey-listing policy"                 },
    {REPLY_CLASS_GREYLIST,     451, "4.0.0",   "you are graylisted"                              },
    {REPLY_CLASS_GREYLIST,     450, "4.0.0",   "see http://postgrey.example/help"                },
    {REPLY_CLASS_GREYLIST,     421, "4.7.0",   "Greylisted: too many connections"                },
    {REPLY_CLASS_RATE,         421, "4.7.28",  "unusual rate of mail from your IP"               },
    {REPLY_CLASS_RATE,         421, "4.7.28",  ""                                                },
    {REPLY_CLASS_RATE,         421, "4.7.0",   "an unusual rate of unsolicited mail"             },
    {REPLY_CLASS_RATE,         450, "4.2.1",
     "The user is receiving mail at a rate that is too high"                                     },
    {REPLY_CLASS_RATE,         450, "4.2.1",   "is receiving mail too quickly"                   },
    {REPLY_CLASS_RATE,         421, "4.7.0",   "[TSS04] Messages from 192.0.2.9 deferred"        },
    {REPLY_CLASS_RATE,         421, "4.7.0",   "deferred due to unexpected volume"               },
    {REPLY_CLASS_RATE,         451, "4.7.500", "Server busy. Please try again later"             },
    {REPLY_CLASS_RATE,         451, "4.7.650", "has been temporarily limited"                    },
    {REPLY_CLASS_RATE,         421, "4.0.0",
     "RP-001 the server has exceeded the rate limit allowed"                                     },
    {REPLY_CLASS_RATE,         421, "4.3.2",   "Connection rate limit exceeded"                  },
    {REPLY_CLASS_RATE,         450, "4.7.1",   "Error: too much mail from 192.0.2.9"             },
    {REPLY_CLASS_RATE,         450, "4.7.1",   "Error: too many recipients from 192.0.2.9"       },
    {REPLY_CLASS_RATE,         452, "4.7.1",   "Too many messages, slow down"                    },
    {REPLY_CLASS_RATE,         451, "4.7.1",   "You are being throttled"                         },
    {REPLY_CLASS_RATE,         451, "4.7.0",   "Rate-limited"                                    },
    {REPLY_CLASS_RATE,         451, "4.7.0",   "you are sending mail too fast"                   },
    {REPLY_CLASS_RATE,         451, "4.7.1",   "192.0.2.9 has exceeded its hourly limit"         },
    {REPLY_CLASS_RATE,         452, "4.0.0",   "Hourly limit of messages exceeded"               },
    {REPLY_CLASS_RATE,         452, "4.7.1",   "Sending quota exceeded"                          },
    {REPLY_CLASS_FULL_MAILBOX, 452, "4.2.2",   "no"                                              },
    {REPLY_CLASS_FULL_MAILBOX, 452, "4.0.0",   "Mailbox full"                                    },
    {REPLY_CLASS_FULL_MAILBOX, 450, "4.0.0",   "The mailbox of this user is full"                },
    {REPLY_CLASS_FULL_MAILBOX, 452, "4.1.1",   "user is over quota"                              },
    {REPLY_CLASS_FULL_MAILBOX, 452, "4.1.1",   "over their disk quota"                           },
    {REPLY_CLASS_FULL_MAILBOX, 451, "4.3.0",   "Disk quota exceeded"                             },
    {REPLY_CLASS_FULL_MAILBOX, 451, "4.3.0",   "has exceeded the storage limit"                  },
    {REPLY_CLASS_BUSY,         421, "4.7.0",   "Error: too many connections from 192.0.2.9"      },
    {REPLY_CLASS_BUSY,         421, "4.0.0",   "Too many concurrent SMTP connections"            },
    {REPLY_CLASS_BUSY,         421, "4.0.0",   "RP-003 has exceeded the connection limit"        },
    {REPLY_CLASS_BUSY,         421, "4.3.2",   "closing"                                         },
    {REPLY_CLASS_BUSY,         432, "4.3.2",   "recipient thread limit exceeded"                 },
    {REPLY_CLASS_BUSY,         452, "4.3.1",   "no room"                                         },
    {REPLY_CLASS_BUSY,         452, "4.0.0",   "Insufficient system storage"                     },
    {REPLY_CLASS_BUSY,         421, "4.0.0",   "Server busy"                                     },
    {REPLY_CLASS_BUSY,         421, "4.0.0",   "system load average is too high"                 },
    {REPLY_CLASS_BUSY,         451, "4.3.0",   "The server is overloaded"                        },
    {REPLY_CLASS_DNS,          451, "4.4.3",   "temporary failure"                               },
    {REPLY_CLASS_DNS,          450, "4.1.8",   "<a@b.example>: Sender rejected: Domain not found"},
    {REPLY_CLASS_DNS,          450, "4.7.25",  "cannot find your hostname, [192.0.2.9]"          },
    {REPLY_CLASS_DNS,          451, "4.0.0",   "DNS lookup failed"                               },
    {REPLY_CLASS_PLAIN,        451, "4.3.0",   "please try again later"                          },
    {REPLY_CLASS_PLAIN,        451, "4.7.1",   "Try again later"                                 },
    {REPLY_CLASS_PLAIN,        450, "4.2.0",   ""                                                },
    {REPLY_CLASS_PLAIN,        452, "4.5.3",   "Too many recipients"                             },
    {REPLY_CLASS_PLAIN,        452, "4.0.0",   "Too many recipients"                             },
    {REPLY_CLASS_PLAIN,        421, "4.7.0",   "Too many messages in this connection"            },
    {REPLY_CLASS_PLAIN,        421, "4.7.0",   "Too many errors"                                 },
    {REPLY_CLASS_PLAIN,        452, "4.3.4",   "Message size exceeds limit"                      },
    {REPLY_CLASS_PLAIN,        452, "4.0.0",   "message exceeds the size limit"                  },
    {REPLY_CLASS_PLAIN,        451, "4.3.0",   "memory limit exceeded"                           },
    {REPLY_CLASS_PLAIN,        421, "4.4.2",   "time limit exceeded"                             },
    {REPLY_CLASS_PLAIN,        451, "4.7.1",   "<throttle@b.example>: service unavailable"       },
    {REPLY_CLASS_PLAIN,        451, "4.7.1",   "<greylist over quota rate limit"                 },
    {REPLY_CLASS_PLAIN,        451, "4.7.1",   "corporate limited company"                       },
    {REPLY_CLASS_PLAIN,        451, "4.7.1",   "agreylist"                                       },
    {REPLY_CLASS_PLAIN,        451, "4.7.1",
     "exceeded what we can describe in these very many words, "
     "with no limit"                                                                             },
};

TEST(wordings)
{
    for (size_t i = 0; i < sizeof(wordings) / sizeof(*wordings); i++) {
        struct outcome o =
            refusal(wordings[i].code, wordings[i].enhanced, wordings[i].words);
        if (!ok_named(reply_class_classify(&o) == wordings[i].class, wordings[i].words))
            printf("# %s\n", o.text);
    }
}

TEST(only_refusals)
{
    struct outcome o = refusal(450, "4.7.1", "greylisted");
    o.code = 550;
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN,
              "a deferred 5yz has no class");
    o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 452, "4.2.2", "mailbox full");
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN, "nor has a failure");
    o = outcome_make(VERDICT_DELIVERED, BLAME_NONE, 250, "2.0.0", "not greylisted");
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN,
              "nor has mail that was taken");
    o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.2", "rate limit exceeded");
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN,
              "nor what we made up ourselves");
    o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.4.3", "no answer");
    is_number(reply_class_classify(&o), REPLY_CLASS_DNS, "our own DNS trouble");
    o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.7.0", "no token");
    is_number(reply_class_classify(&o), REPLY_CLASS_TOKEN, "our own lack of a token");
    o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 450, "4.7.0", "450 no token");
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN, "a peer cannot say so");
    o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 450, "4.2.0",
                     "host greylist.example[192.0.2.1]:25 said: 450 no");
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN,
              "the peer's name does not speak");
    o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 450, "4.2.0", "450 greylisted");
    is_number(reply_class_classify(&o), REPLY_CLASS_GREYLIST,
              "a text without our frame");
    o = outcome_make(VERDICT_DEFERRED, BLAME_ADDRESS, 550, "4.7.25",
                     "550 no PTR record");
    is_number(reply_class_classify(&o), REPLY_CLASS_ADDRESS,
              "our IPv6 address is refused");
    char long_words[2000];
    memset(long_words, 'x', sizeof(long_words));
    long_words[sizeof(long_words) - 1] = '\0';
    o = refusal(451, "4.7.1", long_words);
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN, "a text at its limit");
    memset(long_words, '.', sizeof(long_words) - 1);
    o = refusal(451, "4.7.1", long_words);
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN, "no words at all");
    o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, 451, "4.7.1", "%s", "");
    is_number(reply_class_classify(&o), REPLY_CLASS_PLAIN, "an empty text");
}

static int64_t
delay(enum reply_class_class class, const char *words, int64_t age)
{
    struct outcome o = refusal(451, "4.7.1", words);
    return reply_class_delay_ms(class, &o, age, 5 * MINUTE, 66 * MINUTE);
}

TEST(delays)
{
    static const enum reply_class_class plain[] = {REPLY_CLASS_PLAIN, REPLY_CLASS_BUSY,
                                                   REPLY_CLASS_DNS};
    for (size_t i = 0; i < 3; i++) {
        is_number(delay(plain[i], "wait for 10 minutes", 0), 5 * MINUTE,
                  "plain, young");
        is_number(delay(plain[i], "", 20 * MINUTE), 20 * MINUTE, "plain, the age");
        is_number(delay(plain[i], "", 9 * HOUR), 66 * MINUTE, "plain, old");
    }
    is_number(delay(REPLY_CLASS_GREYLIST, "", 0), 5 * MINUTE, "greylisting: 5 minutes");
    is_number(delay(REPLY_CLASS_GREYLIST, "", 30 * MINUTE - 1), 5 * MINUTE,
              "5 minutes still");
    is_number(delay(REPLY_CLASS_GREYLIST, "", 30 * MINUTE), 30 * MINUTE,
              "then as plain");
    is_number(delay(REPLY_CLASS_RATE, "", 0), MINUTE, "rate: a minute, below minimal");
    is_number(delay(REPLY_CLASS_RATE, "", 3 * MINUTE), 3 * MINUTE,
              "rate: then the age");
    is_number(delay(REPLY_CLASS_RATE, "", 9 * HOUR), 66 * MINUTE, "rate: to maximal");
    is_number(delay(REPLY_CLASS_FULL_MAILBOX, "", 0), HOUR, "full mailbox: an hour");
    is_number(delay(REPLY_CLASS_FULL_MAILBOX, "", 2 * HOUR), 2 * HOUR, "doubles");
    is_number(delay(REPLY_CLASS_FULL_MAILBOX, "", 90 * HOUR), 4 * HOUR, "to four");
    is_number(delay(REPLY_CLASS_FULL_MAILBOX, "in 5 minutes", -7), HOUR,
              "born in the future");
    struct outcome o = refusal(451, "4.7.1", "");
    is_number(
        reply_class_delay_ms(REPLY_CLASS_FULL_MAILBOX, &o, 9 * HOUR, MINUTE, 6 * HOUR),
        6 * HOUR, "plain when that is later");
    is_number(reply_class_delay_ms(REPLY_CLASS_GREYLIST, &o, 0, 1000, 2000), 2000,
              "greylisting: not above maximal");
    is_number(reply_class_delay_ms(REPLY_CLASS_RATE, &o, 0, 1000, 2000), MINUTE,
              "rate: a minute always");
    ok_named(reply_class_counts(REPLY_CLASS_PLAIN) &&
                 reply_class_counts(REPLY_CLASS_GREYLIST) &&
                 reply_class_counts(REPLY_CLASS_FULL_MAILBOX) &&
                 reply_class_counts(REPLY_CLASS_BUSY) &&
                 reply_class_counts(REPLY_CLASS_DNS) &&
                 !reply_class_counts(REPLY_CLASS_RATE) &&
                 !reply_class_counts(REPLY_CLASS_TOKEN) &&
                 !reply_class_counts(REPLY_CLASS_ADDRESS),
             "a rate limit and a token that lacks are no attempts");
    is_number(reply_class_delay_ms(REPLY_CLASS_TOKEN, &o, 0, 1000, 2000), 1000,
              "token: as plain");
    is_number(reply_class_delay_ms(REPLY_CLASS_ADDRESS, &o, 4 * HOUR, MINUTE, HOUR),
              1000, "address: at once, whatever its age");
}

TEST(told)
{
    static const struct {
        const char *words;
        int64_t seconds; /* 300: also what none told gives */
    } told[] = {
        {"Greylisted, try again in 900 seconds", 900 },
        {"come back in 10 minutes",              600 },
        {"Greylisted for 10 minutes",            600 },
        {"please retry after 00:07:30.",         450 },
        {"come back in 04:10",                   250 },
        {"try again in 00:00:07",                60  },
        {"Retry in 120s",                        120 },
        {"please wait at least 2 min!",          120 },
        {"wait 1 hour",                          3600},
        {"try in 5 hours",                       3600},
        {"try in 999999 hours",                  3600},
        {"in 3 days or in 8 minutes",            480 },
        {"in 99999999999999999999 seconds",      300 },
        {"in 0 seconds",                         300 },
        {"seen 700 seconds ago",                 300 },
        {"in 7:7:7:7",                           300 },
        {"in 12:",                               300 },
        {"in 700",                               300 },
        {"in",                                   300 },
        {"in 00:00:00 there are 900 seconds",    300 },
        {"<in 900 seconds@example>",             300 },
    };
    for (size_t i = 0; i < sizeof(told) / sizeof(*told); i++)
        is_number(delay(REPLY_CLASS_GREYLIST, told[i].words, MINUTE),
                  told[i].seconds * 1000, told[i].words);
    is_number(delay(REPLY_CLASS_RATE, "retry after 30 minutes", 0), 30 * MINUTE,
              "a time told by a rate limit");
    is_number(delay(REPLY_CLASS_GREYLIST, "in 10 minutes", 9 * HOUR), 10 * MINUTE,
              "what is told holds at any age");
}

TEST(recipients)
{
    static const struct {
        bool is_of_recipients;
        int code;
        const char *enhanced, *words;
    } all[] = {
        {true,  452, "4.5.3", "Error: too many recipients"            },
        {true,  452, "4.5.3", ""                                      },
        {true,  450, "4.5.3", "enough"                                },
        {true,  550, "5.5.3", "too many recipients"                   },
        {true,  452, "4.0.0", "too many recipients"                   },
        {true,  452, "4.0.0", "Too many recipients received this hour"},
        {true,  552, "4.0.0", "mailbox list full"                     },
        {true,  452, "4.0.0", ""                                      },
        {false, 421, "4.5.3", "too many recipients"                   },
        {false, 452, "4.2.2", "mailbox full"                          },
        {false, 452, "4.3.1", "Insufficient system storage"           },
        {false, 452, "4.0.0", "Mailbox is full"                       },
        {false, 452, "4.7.1", "slow down"                             },
        {false, 451, "4.0.0", "too many recipients"                   },
        {false, 450, "4.2.0", "greylisted"                            },
        {false, 550, "5.1.1", "no such user"                          },
        {false, 0,   "4.5.3", "not a reply"                           },
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
        struct outcome o = refusal(all[i].code, all[i].enhanced, all[i].words);
        ok_named(reply_class_is_of_recipients(&o) == all[i].is_of_recipients, o.text);
    }
}
