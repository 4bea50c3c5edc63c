/* The arguments of MAIL and RCPT: path and ESMTP parameters (RFC 5321 §4.1.1, 1870,
 * 3030, 6152, 6531, 3461, 6710). Pure. */
#ifndef SMTP_SERVER_PARAMETERS_H
#define SMTP_SERVER_PARAMETERS_H

#include "mime/address.h"
#include "queue/envelope.h"
#include "smtp/reply.h"

enum {
    PARAMETER_ENVID_MAX = 100, /* RFC 3461 §4.4, as written */
    PARAMETER_AUTH_MAX = 500,  /* RFC 4954 §5, as written */
    PARAMETER_ORCPT_MAX = 500  /* RFC 3461 §4.2, as written */
};

/* Texts are slices of the argument. */
struct mail_parameters {
    struct address sender;
    int64_t size; /* SIZE=, 0 when absent */
    bool eight_bit, utf8;
    bool binary;       /* BINARYMIME; then eight_bit, too */
    bool has_priority; /* MT-PRIORITY is present, valid or not */
    int priority;
    enum envelope_return ret;
    struct text envelope_id; /* ENVID as given, valid xtext; or empty */
    bool has_set_mark;       /* XDEFRAG is present, valid or not */
    struct text set_mark;    /* as given, valid */
};
struct rcpt_parameters {
    struct address recipient; /* never the null path */
    unsigned notify;
    struct text original; /* ORCPT as given, valid; or empty */
};

/* argument: the text after the verb. NULL: valid; otherwise the reply. */
const struct refusal *parameters_read_mail(struct text argument,
                                           struct mail_parameters *out);
/* utf8: the transaction has SMTPUTF8. */
const struct refusal *parameters_read_rcpt(struct text argument, bool utf8,
                                           struct rcpt_parameters *out);

#endif
