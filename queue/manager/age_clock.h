/* The age of mail, when the clock is set.
 *
 * A device without a clock of its own boots in the past and learns the time later: mail
 * that came before would be days old then, and expire at its first deferral. So each
 * step of AGE_STEP_MS or more is remembered for this boot, ahead or back, and smaller ones
 * as one when their sum is as large. A birth belongs to
 * the last clock of this boot by which it can have been, and moves by the steps since; what
 * came before the boot belongs to the first. lock/clock keeps the steps over a restart of
 * the daemon: a title, the boot, "LEAD" (wall clock less monotonic clock), then "UNTIL BY"
 * for each step. It is a hint: damaged, or of another boot, it counts for nothing. Pure but
 * for the file. */
#ifndef QUEUE_MANAGER_AGE_CLOCK_H
#define QUEUE_MANAGER_AGE_CLOCK_H

#include "base/disk/disk.h"

enum {
    AGE_STEP_MS = 60 * 60 * 1000, /* less is time that has passed */
    AGE_STEPS_MAX = 32,           /* of a boot; then the oldest is forgotten */
    AGE_BOOT_MAX = 64             /* the name of a boot */
};

struct age_clock {
    char boot[AGE_BOOT_MAX]; /* "": not known, nothing is kept */
    int64_t lead_ms;
    struct age_step {
        int64_t until_ms, by_ms; /* by the clock before it; ahead or back */
    } steps[AGE_STEPS_MAX];
    size_t count;
};

/* now_ms, steady_ms: of the wall clock and of the monotonic one. Reads the file, and
 * writes it when it is not of this boot, or when the clock has been set since. */
void age_clock_start(struct age_clock *clock, struct disk *disk, const char *path,
                     const char *boot, int64_t now_ms, int64_t steady_ms);
/* The same while the daemon runs. Returns the step that it remembers, or 0. */
int64_t age_clock_note(struct age_clock *clock, struct disk *disk, const char *path,
                       int64_t now_ms, int64_t steady_ms);
/* When the mail would have come by the clock as it is now. */
int64_t age_clock_birth_ms(const struct age_clock *clock, int64_t birth_ms,
                           int64_t now_ms);
/* The birth to write for mail from elsewhere that has this birth by the clock as it is now:
 * age_clock_birth_ms() makes it this one again, wherever it can. */
int64_t age_clock_written_ms(const struct age_clock *clock, int64_t birth_ms,
                             int64_t now_ms);
/* As age_clock_birth_ms(), for a time that mail was to wait for: one that a step ahead has left
 * out came with that step. The time of now: it has not come. */
int64_t age_clock_release_ms(const struct age_clock *clock, int64_t release_ms,
                             int64_t now_ms);
/* The boot of this system, or "". */
void age_clock_boot(char out[AGE_BOOT_MAX]);

#endif
