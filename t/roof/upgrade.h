/* Two versions of the program: the newer one writes files of a form that has a number one
 * higher (queue/envelope/envelope_form.h). One of them is installed, and is what starts. */
#ifndef T_ROOF_UPGRADE_H
#define T_ROOF_UPGRADE_H

#include "base/text.h"

struct host;

/* Without this all is of the older version. */
void upgrade_begin(void);
/* Another version is installed, or hosts start as the one that is. */
void upgrade_act(void);
/* The newer version is installed, and runs everywhere. */
void upgrade_become_good(void);
/* A newer one has been, or will be installed: the host cannot read all of its spool. */
bool upgrade_is_older(const struct host *h);
/* A line of the log of any host, without time: what an older daemon cannot read of a newer
 * sendmail(1) is quarantined, until the newer version runs and its user releases it; so is
 * mail in whose processing the daemon was killed six times. */
void upgrade_line(struct text line);
void upgrade_release(void);
/* Calls from now on are those of a host, or of a program that starts now: NULL. */
void upgrade_enter(const struct host *h);
/* The host starts as the version that is installed; and this came of it. code: of
 * sysexits.h. */
void upgrade_starts(struct host *h);
void upgrade_started(const struct host *h, int code);

#endif
