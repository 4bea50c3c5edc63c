/* Fuzz target: arguments of MAIL and RCPT. An accepted argument is within its limits,
 * lies within the argument, and holds no control, also once decoded. */
#include "smtp/server/parameters.h"

#include "queue/set_mark.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
check_within(struct text part, struct text all)
{
    must(part.length == 0 ||
         (part.at >= all.at && part.at + part.length <= all.at + all.length));
    must(!text_has_control(part));
}

static void
sanity_mail(struct text argument)
{
    struct mail_parameters p;
    const struct refusal *refusal = parameters_read_mail(argument, &p);
    must(refusal == NULL || (refusal->code >= 400 && refusal->code < 600));
    if (refusal != NULL)
        return;
    check_within(p.sender.local, argument);
    check_within(p.sender.domain, argument);
    check_within(p.envelope_id, argument);
    must(p.envelope_id.length <= PARAMETER_ENVID_MAX);
    must(p.size >= 0 && (!p.binary || p.eight_bit));
    must(!p.sender.utf8 || p.utf8);
    must(p.priority >= -9 && p.priority <= 9);
    struct set_mark mark;
    check_within(p.set_mark, argument);
    must(p.has_set_mark ? set_mark_read(p.set_mark, &mark) : p.set_mark.length == 0);
}

static void
check_rcpt(struct text argument, bool utf8)
{
    struct rcpt_parameters p;
    const struct refusal *refusal = parameters_read_rcpt(argument, utf8, &p);
    must(refusal == NULL || (refusal->code >= 400 && refusal->code < 600));
    if (refusal != NULL)
        return;
    check_within(p.recipient.local, argument);
    check_within(p.recipient.domain, argument);
    check_within(p.original, argument);
    must(p.recipient.local.length > 0 && p.original.length <= PARAMETER_ORCPT_MAX);
    must(utf8 || !p.recipient.utf8);
    must((p.notify & NOTIFY_NEVER) == 0 || p.notify == NOTIFY_NEVER);
}

/* The first byte chooses. The machine lets no control through to here. */
int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    /* Exactly so many bytes: a read behind them is found. */
    char *copy = malloc(size);
    must(copy != NULL);
    memcpy(copy, data + 1, size - 1);
    struct text argument = text_of(copy, size - 1);
    if (text_has_control(argument)) {
        free(copy);
        return 0;
    }
    if (data[0] & 1)
        sanity_mail(argument);
    else
        check_rcpt(argument, (data[0] & 2) != 0);
    free(copy);
    return 0;
}
