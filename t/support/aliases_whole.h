/* A table of aliases in one call. */
#ifndef T_SUPPORT_ALIASES_WHOLE_H
#define T_SUPPORT_ALIASES_WHOLE_H

#include "sched/route/aliases.h"

/* As aliases_begin() and aliases_end(). */
static inline struct aliases *
aliases_whole(const struct aliases_settings *settings, struct buffer *errors)
{
    struct aliases_making *making = aliases_begin(settings, errors);
    while (!aliases_go_on(making))
        ;
    return aliases_end(&making);
}

#endif
