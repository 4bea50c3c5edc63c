/* Captures standard output between begin and end. */
#ifndef T_SUPPORT_PRINTED_H
#define T_SUPPORT_PRINTED_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct printed {
    FILE *file;
    int saved;
    char text[8192];
};

void printed_begin(struct printed *p);

const char * printed_end(struct printed *p);

#endif
