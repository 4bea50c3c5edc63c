/* Enough file descriptors for the sessions that the settings allow. */
#ifndef ADMIN_SETTINGS_DESCRIPTORS_H
#define ADMIN_SETTINGS_DESCRIPTORS_H

#include "admin/settings/options.h"
#include "base/log/log.h"

/* Raises the limit as far as it may; a shortage is logged. */
void descriptors_want(const struct options *options, struct log *log);

#endif
