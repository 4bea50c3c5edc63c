/* For the tests of deferral_reasons.c. No other file includes this. */
#ifndef QUEUE_MANAGER_DEFERRAL_REASONS_INTERNAL_H
#define QUEUE_MANAGER_DEFERRAL_REASONS_INTERNAL_H

#include "queue/manager/deferral_reasons.h"

/* Bytes allocated. */
size_t deferral_reasons_memory(const struct deferral_reasons *r);

#endif
