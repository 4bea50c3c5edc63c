/* The human-readable part of a delivery report. */
#ifndef MIME_REPORT_REPORT_TEXT_H
#define MIME_REPORT_REPORT_TEXT_H

#include "mime/report/emitter.h"
#include "mime/report/report.h"

/* Without line end. */
const char *report_subject(const struct report *r);
/* The reply of the next hop, "550 5.1.1 No such user", without our own words around it
 * ("host x said: ... (in reply to ...)"); empty if outcome has no reply. */
struct text report_reply(const struct outcome *outcome);
/* Body of the first part, CRLF ended: the introduction, for each action that occurs a
 * heading and the text about its recipients, and the closing. */
void report_write_introduction(const struct report *r, struct emitter *e);
void report_write_heading(const struct report *r, enum report_action action,
                          struct emitter *e);
void report_write_words(const struct report *r,
                        const struct report_recipient *recipient, struct emitter *e);
void report_write_closing(const struct report *r, struct emitter *e);

#endif
