/* The outcome of one delivery attempt to one recipient. The same value goes from the
 * SMTP client to the log and the bounce. */
#ifndef BASE_OUTCOME_H
#define BASE_OUTCOME_H

#include "base/text.h"

enum verdict { VERDICT_DELIVERED, VERDICT_DEFERRED, VERDICT_FAILED };

/* The cause of a failure: the scheduler slows down a site, never a mailbox. */
enum blame {
    BLAME_NONE,    /* delivered */
    BLAME_MESSAGE, /* this message or this recipient */
    BLAME_SITE,    /* the site cannot be reached, or asks to slow down */
    BLAME_ADDRESS, /* the site does not accept this source address: another carries it */
    BLAME_DEMAND   /* a host has not met the destination's demand for TLS */
};

enum { OUTCOME_TEXT_MAX = 480, OUTCOME_REMOTE_MAX = 320 };

struct outcome {
    enum verdict verdict;
    enum blame blame;
    int code;                        /* SMTP reply code; 0 without a reply */
    char enhanced[12];               /* RFC 3463, "4.4.1"; never empty */
    char text[OUTCOME_TEXT_MAX];     /* one line; peer bytes are still unescaped */
    char remote[OUTCOME_REMOTE_MAX]; /* "host[ip]:port", "/path", or "" */
    bool notifies; /* DELIVERED: the next hop notifies the sender if asked to (DSN) */
    bool may_be_sent; /* the session ended while the reply to the content was awaited */
};

/* remote stays empty. The text is cut at its limit. */
struct outcome outcome_make(enum verdict verdict, enum blame blame, int code,
                            const char *enhanced, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* The end of a session that has carried all its mail: DELIVERED, nothing is wrong. */
extern const struct outcome outcome_no_trouble;

/* Blames the message: deferred with a 4yz code, failed with 5yz. Always false. */
bool outcome_refuse(struct outcome *refusal, int code, const char *enhanced,
                    const char *text);

/* The sentence of a refusal: "host NAME[IP] said: 550 5.1.1 words (in reply to RCPT TO
 * command)". It is written and taken apart here alone. A text from a file, or from
 * another host, may have any form. */
struct outcome_sentence {
    struct text host;  /* NAME; empty without a name */
    struct text reply; /* "550 5.1.1 words"; the whole text if it is no such sentence */
};

/* where: "NAME[IP]". answered: "in reply to ...". The reply is cut so that the end of
 * the sentence is always there. */
void outcome_say_reply(struct outcome *outcome, const char *where, struct text reply,
                       const char *answered);
/* False: the text is not the sentence of a host's reply. Never reads outside of text. */
bool outcome_sentence_read(struct text text, struct outcome_sentence *sentence);
/* The sentence of the outcome, with host and code from its members. False: it is none, or
 * there is no code. */
bool outcome_reply_read(const struct outcome *outcome,
                        struct outcome_sentence *sentence);

/* "sent", "deferred", "bounced". */
const char *outcome_word(enum verdict verdict);

#endif
