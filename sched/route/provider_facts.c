/* The table; from the providers' own manuals. */
#include "sched/route/provider_facts.h"

#define GOOGLE "the Admin console, Gmail, Authenticate email"

/* One row a provider. An include stands here only where published instructions for
 * domains agree on it. Zoho's depends on the data centre of the account; Yahoo and GMX
 * publish none for domains of others. */
/* clang-format off */
static const struct provider_facts provider_table[] = {
    {"smtp.gmail.com", "Gmail", true, "_spf.google.com", "", GOOGLE},
    {"smtp-relay.gmail.com", "Google Workspace", true, "_spf.google.com", "", GOOGLE},
    {"smtp.office365.com", "Microsoft 365", true, "spf.protection.outlook.com", "",
     "the Defender portal, Email authentication settings, DKIM"},
    {"email-smtp.*.amazonaws.com", "Amazon SES", false, "", "the SMTP credentials of SES",
     "the SES console, Identities, DKIM"},
    {"smtp.sendgrid.net", "SendGrid", false, "", "apikey", "Settings, Sender Authentication"},
    {"smtp.mailgun.org", "Mailgun", false, "", "", "Sending, Domains, DNS records"},
    {"smtp.eu.mailgun.org", "Mailgun", false, "", "", "Sending, Domains, DNS records"},
    {"smtp-relay.brevo.com", "Brevo", false, "", "", "Senders, Domains & Dedicated IPs"},
    {"smtp.postmarkapp.com", "Postmark", false, "", "the server token, as password, too",
     "Sender Signatures, DNS Settings"},
    {"smtp.resend.com", "Resend", false, "", "resend", "Domains"},
    {"in-v3.mailjet.com", "Mailjet", false, "", "the API key", "Account Settings, Domains"},
    {"smtp.fastmail.com", "Fastmail", true, "spf.messagingengine.com", "",
     "Settings, Domains, DNS records"},
    {"smtp.mail.yahoo.com", "Yahoo", true, "", "", "its help pages on domains of your own"},
    {"smtp.zoho.com", "Zoho Mail", true, "", "",
     "the Admin Console, Domains, SPF and DKIM"},
    {"mail.gmx.net", "GMX", true, "", "", "its help pages on domains of your own"},
    {"smtp.mail.me.com", "iCloud Mail", true, "icloud.com", "",
     "iCloud settings, Custom Email Domain"},
    {"smtp.protonmail.ch", "Proton Mail", true, "_spf.protonmail.ch", "",
     "Settings, Domain names, SPF and DKIM"},
};
/* clang-format on */

enum { PROVIDER_COUNT = sizeof(provider_table) / sizeof(provider_table[0]) };

const struct provider_facts *
provider_facts_at(size_t index)
{
    return index < PROVIDER_COUNT ? &provider_table[index] : NULL;
}

const struct provider_facts *
provider_facts_find(struct text host)
{
    for (size_t i = 0; i < PROVIDER_COUNT; i++) {
        struct text known = text_from(provider_table[i].host);
        size_t star = text_find(known, '*');
        if (star == TEXT_NONE
                ? text_equal_nocase(host, known)
                : host.length >= known.length &&
                      text_starts_nocase(host, text_before(known, star)) &&
                      text_ends_nocase(host, text_after(known, star + 1)))
            return &provider_table[i];
    }
    return NULL;
}
