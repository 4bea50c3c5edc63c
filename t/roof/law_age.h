/* Mail expires, and its sender is notified of the delay, in its time: no sooner, and with the
 * first attempt behind that time that fails (the law "in time"). Clocks that are set, and
 * disks that fail, blur it. */
#ifndef T_ROOF_LAW_AGE_H
#define T_ROOF_LAW_AGE_H

#include "t/roof/model.h"

/* is_short: mail of the run lives for minutes or hours. */
void law_age_begin(bool is_short);
bool law_age_is_short(void);
/* No judgement. */
void law_age_forgive(void);
/* Said by the log of the first host: an attempt has failed for now, which began when the
 * message was so old. */
void law_age_deferred(struct model_rcpt *r, int64_t begun_ms);
/* Said by a report. */
void law_age_notified(struct model_rcpt *r);

#endif
