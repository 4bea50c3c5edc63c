/* Asks the servers of `copies` whether they can keep copies, on a loop of its own: before the
 * daemon starts, and for `petrel doctor`. */
#ifndef ADMIN_STARTUP_COPIES_TRIAL_H
#define ADMIN_STARTUP_COPIES_TRIAL_H

#include "admin/startup/configuration.h"

enum copies_trial {
    COPIES_TRIAL_GOOD, /* also: there are no copies */
    COPIES_TRIAL_AWAY, /* nobody answers, or only for now: the daemon waits for it */
    COPIES_TRIAL_UNFIT /* they say that they cannot, as they are set up */
};

enum { COPIES_TRIAL_WHY_MAX = 480 };

/* Waits for two seconds at most. why: in words, or "". */
enum copies_trial copies_trial(struct configuration *c, char why[COPIES_TRIAL_WHY_MAX]);

#endif
