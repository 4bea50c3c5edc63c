/* A tag-list, as that of DKIM; unknown tags are ignored. */
#include "mime/auth/dmarc.h"

static const struct text policies[] = {
    [DMARC_POLICY_NONE] = TEXT("none"),
    [DMARC_POLICY_QUARANTINE] = TEXT("quarantine"),
    [DMARC_POLICY_REJECT] = TEXT("reject"),
};

static bool
dmarc_read_policy(struct text value, enum dmarc_policy *out)
{
    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
        if (text_equal_nocase(value, policies[i])) {
            *out = (enum dmarc_policy)i;
            return true;
        }
    return false;
}

/* v= is the first tag, in this case of letters (§6.3). */
static bool
dmarc_is_record(struct text text)
{
    struct text first;
    if (!text_cut(&text, ';', &first))
        return false;
    size_t equals = text_find(first, '=');
    return equals != TEXT_NONE &&
           text_equal(text_trim(text_before(first, equals)), TEXT("v")) &&
           text_equal(text_trim(text_after(first, equals + 1)), TEXT("DMARC1"));
}

static bool
dmarc_read_tags(struct dmarc_record *out)
{
    struct text rest = out->text, tag;
    bool has_policy = false, has_other = false;
    while (text_cut(&rest, ';', &tag)) {
        size_t equals = text_find(tag, '=');
        if (equals == TEXT_NONE)
            continue;
        struct text name = text_trim(text_before(tag, equals));
        struct text value = text_trim(text_after(tag, equals + 1));
        if (text_equal_nocase(name, TEXT("p")))
            has_policy = dmarc_read_policy(value, &out->policy);
        else if (text_equal_nocase(name, TEXT("sp")))
            has_other = dmarc_read_policy(value, &out->subdomains);
        else if (text_equal_nocase(name, TEXT("adkim")))
            out->strict_dkim = text_equal_nocase(value, TEXT("s"));
        else if (text_equal_nocase(name, TEXT("rua")))
            out->reports = value;
    }
    if (!has_other)
        out->subdomains = out->policy;
    return has_policy;
}

enum dmarc_found
dmarc_read(const struct text *texts, size_t count, struct dmarc_record *out)
{
    size_t found = 0;
    *out = (struct dmarc_record){.reports = TEXT("")};
    for (size_t i = 0; i < count; i++)
        if (dmarc_is_record(texts[i])) {
            out->text = texts[i];
            found++;
        }
    if (found != 1)
        return found == 0 ? DMARC_NONE : DMARC_SEVERAL;
    return dmarc_read_tags(out) ? DMARC_FOUND : DMARC_MALFORMED;
}

struct text
dmarc_parent(struct text domain)
{
    size_t labels = 1;
    for (size_t i = 0; i < domain.length; i++)
        labels += domain.at[i] == '.';
    size_t wanted = labels > DMARC_LABELS_MAX ? DMARC_LABELS_MAX : labels - 1;
    for (; labels > wanted; labels--) {
        size_t dot = text_find(domain, '.');
        if (dot == TEXT_NONE)
            return TEXT("");
        domain = text_after(domain, dot + 1);
    }
    return text_find(domain, '.') != TEXT_NONE ? domain : TEXT("");
}

const char *
dmarc_policy_word(enum dmarc_policy policy)
{
    return policies[policy].at;
}
