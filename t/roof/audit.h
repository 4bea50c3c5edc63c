/* The audit: what trouble blurs is judged exactly once all mail is gone and the weather is
 * good, by the settings that the run has left behind. How many sessions, recipients and
 * octets a client may have; what RSET and a repeated recipient mean; when mail is tried
 * again, also over a restart; that held and removed mail rests; when it expires. */
#ifndef T_ROOF_AUDIT_H
#define T_ROOF_AUDIT_H

#include <stdbool.h>

/* The host runs and has no mail. */
void audit_run(void);
/* The same: a few of the questions, again and again, each time with another journal. */
void audit_drill(void);
/* Hosts of a group with copies (siblings.h): one is taken for lost while it lives, and drains; its
 * heir is cut off in the middle, and another goes on. */
void audit_siblings(void);
/* Hosts of a group: a host drains, and answers to its gifts are lost. */
void audit_gifts(void);
/* It has damaged a journal, whose bytes the host keeps in corrupt/. */
bool audit_has_damaged(void);

#endif
