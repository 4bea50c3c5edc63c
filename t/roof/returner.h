/* Next hops that have taken mail with a tagged sender, and say later what became of it: by a delivery status, or as a
 * complaint to the plain address. Some of what comes is forged: another tag, another recipient, no tag.
 *
 * Laws ("truth"): the host tells nothing of a recipient that no true report was about; and a true report that it has
 * taken is told. */
#ifndef T_ROOF_RETURNER_H
#define T_ROOF_RETURNER_H

#include "t/roof/model.h"

#define RETURNER_SETTINGS                                                              \
    "bounces = bounce@came.test\nverp = yes\nsrs_secret = a-secret-of-the-roof\n"

void returner_begin(void);
/* A hop has stored it; from: as in MAIL FROM. stamp: the content, as it came. */
void returner_stored(struct text from, const struct model_rcpt *r, struct text content);
/* A line of a log about a report that came back: true, and it has been judged. */
bool returner_line(struct text line);
/* Reports that are to come, or are on their way. */
unsigned returner_open(void);
/* For how long some may come after the mail. */
int64_t returner_wait_ms(void);
void returner_judge(void);
/* Reports that were taken, and forged ones that were, or were refused. */
void returner_tally(unsigned *told, unsigned *forged);

#endif
