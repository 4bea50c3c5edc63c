/* The arguments of MAIL and RCPT: path and ESMTP parameters (RFC 5321 §4.1.1, 1870,
 * 3030, 6152, 6531, 3461, 6710). Pure. */
#ifndef SMTP_SERVER_PARAMETERS_H
#define SMTP_SERVER_PARAMETERS_H

#include "mime/address.h"
#include "queue/envelope/envelope.h"
#include "smtp/reply.h"

/* The path in MAIL and RCPT: as RFC 5321 has it, and as devices and programs write it.
 *
 *                                            all clients   forgiving
 *   <a@b>  <@route:a@b>  <>  <postmaster>    taken         taken
 *   a@b  <a@b  a@b>  <a@b.>                  taken         taken
 *   <root>  root                             no domain     root@hostname
 *   < a@b >  <a @ b>  <<a@b>>                refused       a@b
 *   Name <a@b>  <Name <a@b>>  <a@b (note)>   refused       a@b */

struct path_rules {
    bool forgiving;       /* the client sends its own mail, or is an old device */
    struct text hostname; /* completes an address without a domain */
};

struct path {
    /* Slices of the argument, of kept, or of the rules; as address_judge_path() has it. */
    struct address address;
    char kept[ADDRESS_MAX + 2]; /* the mailbox, if it had to be put together */
};

/* Cuts the path off the front of *argument, which then begins with a blank or is empty.
 * NULL, or the rule that the path breaks, in words for the reply. */
const char *parameters_read_path(struct text *argument, const struct path_rules *rules,
                                 struct path *out);

enum {
    PARAMETER_ENVID_MAX = 100, /* RFC 3461 §4.4, as written */
    PARAMETER_AUTH_MAX = 500,  /* RFC 4954 §5, as written */
    PARAMETER_ORCPT_MAX = 500, /* RFC 3461 §4.2, as written */
    PARAMETER_REFUSAL_MAX = 120
};

/* "bad sender address: two @": the refusal of a path with its reason. */
struct parameter_refusal {
    struct refusal refusal; /* its text is the one here */
    char text[PARAMETER_REFUSAL_MAX];
};

/* Texts are slices of the argument, and of the struct itself: it must not be copied. */
struct mail_parameters {
    struct path sender;
    struct parameter_refusal bad;
    int64_t size; /* SIZE=, 0 when absent */
    bool eight_bit, utf8;
    bool binary;       /* BINARYMIME; then eight_bit, too */
    bool has_priority; /* MT-PRIORITY is present, valid or not */
    int priority;
    enum envelope_return ret;
    struct text envelope_id; /* ENVID as given, valid xtext; or empty */
    char coded[PARAMETER_ENVID_MAX];
    bool has_set_mark;    /* XDEFRAG is present, valid or not */
    struct text set_mark; /* as given, valid */
    /* RFC 4865, and as given, valid: seconds, or a time; 0: not that one. */
    bool has_hold;
    int64_t hold_s, hold_until_ms;
    struct text hold;
    bool requires_tls; /* REQUIRETLS */
};
struct rcpt_parameters {
    struct path recipient; /* never the null path */
    struct parameter_refusal bad;
    unsigned notify;
    struct text original; /* ORCPT as given, valid; or empty */
    char coded[PARAMETER_ORCPT_MAX];
};

/* argument: the text after the verb. NULL: valid; otherwise the reply, which may be a
 * part of *out. With forgiving rules ENVID and ORCPT that are no xtext are encoded, or
 * dropped where that does not fit, and AUTH is not looked at. */
const struct refusal *parameters_read_mail(struct text argument,
                                           const struct path_rules *rules,
                                           struct mail_parameters *out);
/* utf8: the transaction has SMTPUTF8. */
const struct refusal *parameters_read_rcpt(struct text argument,
                                           const struct path_rules *rules, bool utf8,
                                           struct rcpt_parameters *out);

#endif
