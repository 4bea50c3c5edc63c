/* The value of Content-Type and of Content-Disposition: type and parameters.
 *
 * RFC 2045 §5.1 with the comments and folding of RFC 5322, RFC 2183, RFC 2231. Lenient:
 * all that can be parsed is returned; `broken` says that something could not. */
#ifndef MIME_PARTS_PARAMETER_H
#define MIME_PARTS_PARAMETER_H

#include "base/text.h"

/* Parameters and RFC 2231 sections of parameters; later ones are omitted, and the value
 * is `broken`. */
enum { PARAMETER_MAX = 256 };

struct parameter {
    struct text name;  /* lower case, without RFC 2231's marks */
    struct text value; /* unquoted, concatenated, percent-decoded: any bytes */
    bool twice;        /* duplicate with another value: this is the first */
    bool both;         /* given in plain form (value) and in RFC 2231's */
};

/* Zeroed by its owner before the first use. */
struct parameters {
    struct text type, subtype; /* lower case; either may be empty */
    bool broken;
    size_t count; /* of list, sorted by name */
    struct parameter *list;
    char *store; /* private to parameter.c */
};

/* Parses a value, folded or not, and replaces the content of p. O(n log n) time, 2n
 * bytes of memory. */
void parameters_read(struct parameters *p, struct text value);
void parameters_free(struct parameters *p);

/* NULL when there is none; name in lower case. */
const struct parameter *parameters_find(const struct parameters *p, const char *name);
/* Compares type and subtype with two names in lower case. */
bool parameters_is(const struct parameters *p, const char *type, const char *subtype);

/* Cuts the next RFC 2045 token off *rest, after white space and comments: for fields
 * of one token. Empty at the end. */
struct text parameter_token(struct text *rest);

#endif
