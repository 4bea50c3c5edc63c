/* Clients of the daemon's HTTP: probes of its health, programs with a token, browsers;
 * and those that never end a request, never read an answer, or only hold a connection.
 * Probes are answered in time, whatever the others do. */
#ifndef T_ROOF_VISITOR_H
#define T_ROOF_VISITOR_H

#include "base/text.h"

#include <stdbool.h>

#define VISITOR_HTTP  "http = 10.0.0.1:8080"
#define VISITOR_TOKEN "a-token-of-the-roof"

/* is_narrow: paths may be, so that no time is certain. */
void visitors_begin(bool is_narrow);
/* One more of any kind. */
void visitors_act(void);
/* All end but the probes. */
void visitors_become_good(void);
/* One that asks for this path and reads. body: of a whole answer of 200; "": none came. */
typedef void visitor_heard(void *context, struct text body);
void visitors_read(const char *path, visitor_heard *heard, void *context);
/* Answers that were whole. */
unsigned visitors_answered(void);

#endif
