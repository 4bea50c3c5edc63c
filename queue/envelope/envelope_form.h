/* The form of the files and records that this program writes: one digit, in their first
 * line. It reads those of earlier versions, too. Tests have programs with a higher one. */
#ifndef QUEUE_ENVELOPE_ENVELOPE_FORM_H
#define QUEUE_ENVELOPE_ENVELOPE_FORM_H

#ifndef ENVELOPE_FORM
#define ENVELOPE_FORM 1
#endif

unsigned envelope_form(void);

#endif
