/* Clients of the daemon's HTTP: probes of its health, programs with a token, browsers;
 * and those that never end a request, never read an answer, or only hold a connection.
 * Probes are answered in time, whatever the others do. */
#ifndef T_ROOF_VISITOR_H
#define T_ROOF_VISITOR_H

#include <stdbool.h>

#define VISITOR_HTTP  "http = 10.0.0.1:8080"
#define VISITOR_TOKEN "a-token-of-the-roof"

/* is_narrow: paths may be, so that no time is certain. */
void visitors_begin(bool is_narrow);
/* One more of any kind. */
void visitors_act(void);
/* All end but the probes. */
void visitors_become_good(void);
/* Answers that were whole. */
unsigned visitors_answered(void);

#endif
