/* The facts about logins and keys of delivery that findings judge. */
#ifndef ADMIN_STARTUP_FINDINGS_DELIVERY_H
#define ADMIN_STARTUP_FINDINGS_DELIVERY_H

#include "admin/findings/findings.h"

struct daemon;

/* Names accounts of OAuth2 that are refused, and keys of DKIM that fail. */
void findings_delivery_collect(const struct daemon *daemon,
                               struct finding_facts *facts);

#endif
