/* The daemon reports the truth (the law "truth"): at a quiet moment, in which the log
 * has no new line between two answers, `status`, the list and the metrics have the mail
 * that the log has accepted and not removed, each message in its place and its recipients
 * with their fates; and `queue why` names what holds a message that waits. */
#ifndef T_ROOF_LAW_TRUTH_H
#define T_ROOF_LAW_TRUTH_H

/* Asks, now and again. Nothing is judged when the host does not run, or is at work. */
void law_truth_ask(void);
/* `queue why` of the message is to say these words, or those others; borrowed. */
void law_truth_reason(const char *id, const char *words, const char *others);
/* How often all was compared, and a message's reason was judged. */
unsigned law_truth_compared(void);
unsigned law_truth_explained(void);

#endif
