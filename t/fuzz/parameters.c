/* Fuzz target: arguments of MAIL and RCPT. An accepted argument is within its limits,
 * lies within the argument, and holds no control, also once decoded. */
#include "smtp/server/parameters.h"

#include "queue/envelope/set_mark.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct path_rules strict = {.hostname = TEXT("mx.example")},
                               forgiving = {true, TEXT("mx.example")};

static void
check_within(struct text part, struct text all)
{
    must(part.length == 0 ||
         (part.at >= all.at && part.at + part.length <= all.at + all.length));
    must(!text_has_control(part));
}

/* With forgiving rules it may have been put together. */
static void
check_path(const struct path *p, const struct path_rules *rules, struct text all)
{
    struct text kept = text_of(p->kept, sizeof(p->kept));
    const struct address *a = &p->address;
    bool is_kept = a->local.at >= kept.at && a->local.at < kept.at + kept.length;
    check_within(a->local, is_kept ? kept : all);
    if (a->domain.at != rules->hostname.at)
        check_within(a->domain, is_kept ? kept : all);
    must(a->local.length + a->domain.length < ADDRESS_MAX);
    must(text_is_utf8(a->local) && text_is_utf8(a->domain));
}

static void
policy_check_mail(struct text argument, const struct path_rules *rules)
{
    struct mail_parameters p;
    const struct refusal *refusal = parameters_read_mail(argument, rules, &p);
    must(refusal == NULL || (refusal->code >= 400 && refusal->code < 600));
    if (refusal != NULL)
        return;
    check_path(&p.sender, rules, argument);
    check_within(p.envelope_id, p.envelope_id.at == p.coded
                                    ? text_of(p.coded, sizeof(p.coded))
                                    : argument);
    must(p.envelope_id.length <= PARAMETER_ENVID_MAX);
    must(p.size >= 0 && (!p.binary || p.eight_bit));
    must(!p.sender.address.utf8 || p.utf8);
    must(p.priority >= -9 && p.priority <= 9);
    struct set_mark mark;
    check_within(p.set_mark, argument);
    must(p.has_set_mark ? set_mark_read(p.set_mark, &mark) : p.set_mark.length == 0);
}

static void
check_rcpt(struct text argument, const struct path_rules *rules, bool utf8)
{
    struct rcpt_parameters p;
    const struct refusal *refusal = parameters_read_rcpt(argument, rules, utf8, &p);
    must(refusal == NULL || (refusal->code >= 400 && refusal->code < 600));
    if (refusal != NULL)
        return;
    check_path(&p.recipient, rules, argument);
    check_within(p.original, p.original.at == p.coded
                                 ? text_of(p.coded, sizeof(p.coded))
                                 : argument);
    must(p.recipient.address.local.length > 0 &&
         p.original.length <= PARAMETER_ORCPT_MAX);
    must(utf8 || !p.recipient.address.utf8);
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
    const struct path_rules *rules = data[0] & 4 ? &forgiving : &strict;
    if (data[0] & 1)
        policy_check_mail(argument, rules);
    else
        check_rcpt(argument, rules, (data[0] & 2) != 0);
    free(copy);
    return 0;
}
