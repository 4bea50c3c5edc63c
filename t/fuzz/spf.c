/* Fuzz target: SPF. The input is the records of a zone, a line each: the n-th name that is
 * asked for gets the n-th line. It ends within its limits, for any records. */
#include "mime/auth/spf.h"

#include "t/support/must.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWERS_MAX = 400 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct fuzz_zone {
    struct text rest;
    unsigned asked;
    struct text record;
    struct net_address addresses[2];
    struct spf_answer answer;
};

static const struct spf_answer *
answer_next(void *context, enum spf_type type, const char *name)
{
    struct fuzz_zone *z = context;
    must(strlen(name) < SPF_NAME_MAX && name[0] != '\0');
    must(++z->asked < ANSWERS_MAX);
    z->answer = (struct spf_answer){.found = SPF_VOID};
    if (z->rest.length == 0 || !text_cut(&z->rest, '\n', &z->record))
        return &z->answer;
    if (text_equal(z->record, TEXT("?")))
        return NULL;
    z->answer.found = text_equal(z->record, TEXT("!")) ? SPF_UNKNOWN : SPF_RECORDS;
    z->answer.texts = z->answer.hosts = &z->record;
    z->answer.addresses = z->addresses;
    z->answer.count = type == SPF_ADDRESSES ? 2 : 1;
    return &z->answer;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_zone z = {.rest = text_of(data, size)};
    struct spf_report report;
    struct spf_query q = {.helo = TEXT("helo.test"),
                          .local = TEXT("strong-bad"),
                          .domain = TEXT("a.test"),
                          .look_up = answer_next,
                          .context = &z};
    net_address_parse_ip(TEXT("192.0.2.1"), &z.addresses[0]);
    net_address_parse_ip(TEXT("2001:db8::1"), &z.addresses[1]);
    q.client = z.addresses[size % 2];
    q.is_survey = size % 3 == 0;
    must(spf_check(&q, &report) == report.result);
    must(report.look_ups <= SPF_LOOK_UPS_MAX + 1 && report.voids <= SPF_VOIDS_MAX + 1);
    must(strlen(report.why) < SPF_WHY_MAX);
    must((report.why[0] != '\0') ==
         (report.result == SPF_PERMERROR || report.result == SPF_TEMPERROR));
    return 0;
}
