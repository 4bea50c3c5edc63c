/* Facts on smarthosts: found by host, in any case, and no other host is taken for one. */
#include "sched/route/provider_facts.h"

#include "t/support/tap.h"

int
main(void)
{
    const struct provider_facts *f = provider_facts_find(TEXT("SMTP.Gmail.com"));
    ok(f != NULL && f->keeps_sender);
    is_string(f->include, "_spf.google.com", "Google's include");
    f = provider_facts_find(TEXT("email-smtp.eu-west-1.amazonaws.com"));
    ok(f != NULL && !f->keeps_sender);
    ok(provider_facts_find(TEXT("email-smtp.amazonaws.com")) == NULL);
    ok(provider_facts_find(TEXT("email-smtp..amazonaws.com.evil.test")) == NULL);
    ok(provider_facts_find(TEXT("smtp.gmail.com.evil.test")) == NULL);
    ok(provider_facts_find(TEXT("")) == NULL);
    is_string(provider_facts_find(TEXT("smtp.resend.com"))->user, "resend", "its user");
    size_t count = 0;
    for (; (f = provider_facts_at(count)) != NULL; count++) {
        ok_named(provider_facts_find(text_from(f->host)) == f, f->host);
        ok_named(f->keeps_sender || f->include[0] == '\0', "an include only where SPF of our domain counts");
        ok_named(f->include[0] != '\0' || f->setup[0] != '\0', "without one, where it is told");
    }
    is_number(count, 17, "so many");
    is_string(provider_facts_find(TEXT("smtp.mail.me.com"))->include, "icloud.com", "Apple's include");
    is_string(provider_facts_find(TEXT("smtp.zoho.com"))->include, "", "that of Zoho depends on the account");
    return done();
}
