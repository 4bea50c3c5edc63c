/* `petrel status --site NAME`: one site, and its last failed conversation. */
#ifndef ADMIN_CONTROL_SITE_SHOW_H
#define ADMIN_CONTROL_SITE_SHOW_H

#include "admin/settings/options.h"

#include <jansson.h>

struct sched;

/* As site_view.h; NULL: no site has that name. Letters' case does not matter. */
json_t *site_show_find(const struct sched *sched, const char *name);
/* A sysexits code: EX_DATAERR without such a site or conversation. */
int site_show_command(const char *name, bool json, const struct options *options);

#endif
