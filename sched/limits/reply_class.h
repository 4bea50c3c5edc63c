/* The class of a temporary refusal, by its code, enhanced code and words. Pure.
 *
 * Receivers use the same 4yz for very different things: come back in five minutes, you
 * send too fast, this mailbox is full (doc/scheduler.md "Backoff"). A table of codes
 * and phrases tells them apart. Only a deferral with a 4yz reply has a class other than
 * plain, and one without any reply when a name was not resolved: texts of our own must
 * not feed back. The words are searched in the text of the peer, not in its name, nor
 * in addresses that it repeats, which must stand in angle brackets to be skipped. A
 * peer that lies gets the delay it asked for, within bounds. */
#ifndef SCHED_LIMITS_REPLY_CLASS_H
#define SCHED_LIMITS_REPLY_CLASS_H

#include "base/outcome.h"

enum reply_class_class {
    REPLY_CLASS_PLAIN,    /* anything else */
    REPLY_CLASS_GREYLIST, /* the sender is new to it: retry in some minutes */
    /* We send too much. With BLAME_MESSAGE the limit is that of a mailbox (450 4.2.1),
     * not one for us at the site. */
    REPLY_CLASS_RATE,
    REPLY_CLASS_FULL_MAILBOX,
    REPLY_CLASS_BUSY, /* the site has too many sessions, no space, or too much load */
    REPLY_CLASS_DNS,  /* a name was not resolved, by us or by them */
    REPLY_CLASS_ADDRESS, /* another source address may carry it */
    REPLY_CLASS_TOKEN    /* we have no token to log in with: nothing was tried */
};
/* The code of our own deferrals for lack of a token, which have no reply. */
#define REPLY_CLASS_TOKEN_ENHANCED "4.7.0"

enum reply_class_class reply_class_classify(const struct outcome *outcome);

/* The delay until the next attempt, without jitter. age_ms and the bounds are those of
 * retry_delay_ms, which gives the delay for the classes plain, busy, DNS and token.
 * Greylisting: 5 minutes (or maximal_ms, if less) while the message is younger than 30
 * minutes, then as plain. Rate: the age, at least 60 s, regardless of minimal_ms. Full
 * mailbox: the age between 1 h and 4 h, or as plain if that is later. Address:
 * 1 s. For greylisting and rate, a time given in words ("in 300 seconds", "after 5
 * minutes", "in 00:05:00") takes precedence, between 60 s and 1 h. */
int64_t reply_class_delay_ms(enum reply_class_class class,
                             const struct outcome *outcome, int64_t age_ms,
                             int64_t minimal_ms, int64_t maximal_ms);

/* The first time that the reply gives after "in", "after" and the like. 0: none. */
int64_t reply_class_asked_ms(const struct outcome *outcome);

/* Whether a refusal of RCPT means that the transaction has too many recipients: x.5.3, or
 * a 452 or 552 without an enhanced code that has no other reason. */
bool reply_class_is_of_recipients(const struct outcome *outcome);

/* Whether a host has rejected our user or password (4.7.8, RFC 4954 §6). That says
 * nothing about the mail, and a quick retry may lock us out. */
bool reply_class_refuses_us(const struct outcome *outcome);

/* Whether an attempt that ended with that class counts as one. One refused for the rate
 * does not: it says nothing about the message; nor does one for our address, nor one that
 * lacked a token. */
bool reply_class_counts(enum reply_class_class class);

#endif
