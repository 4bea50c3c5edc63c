/* Tells of accounts and their tokens. */
#include "admin/control/account_list.h"

#include "admin/control/format_time.h"
#include "admin/control/json_field.h"
#include "admin/control/listing.h"
#include "smtp/oauth/tokens.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void
account_list_add(void *context, const struct tokens_view *view)
{
    static const char *const states[] = {[TOKENS_NO_ACCOUNT] = "failed",
                                         [TOKENS_READY] = "ready",
                                         [TOKENS_ASKED] = "asked",
                                         [TOKENS_FAILED] = "failed"};
    const struct oauth_account *a = view->account;
    json_t *account =
        json_pack("{s:o,s:i,s:o,s:s}", "host", listing_text(text_from(a->host)), "port",
                  (int)a->port, "user", listing_text(text_from(a->user)), "state",
                  states[view->status]);
    if (view->until_ms > 0)
        json_object_set_new(account, "until_ms", json_integer(view->until_ms));
    if (view->trouble[0] != '\0')
        json_object_set_new(account, "reason", listing_text(text_from(view->trouble)));
    json_array_append_new(context, account);
}

json_t *
account_list_make(const struct tokens *tokens)
{
    json_t *accounts = json_array();
    if (tokens != NULL)
        tokens_each(tokens, account_list_add, accounts);
    return accounts;
}

static void
account_print(const json_t *account, int64_t now_ms)
{
    char until[FORMAT_TIME_MAX];
    const char *state = json_field_string(account, "state"),
               *reason = json_field_string(account, "reason");
    printf("oauth      %s at %s", json_field_string(account, "user"),
           json_field_string(account, "host"));
    if (json_field_number(account, "port") > 0)
        printf(":%" PRId64, json_field_number(account, "port"));
    if (strcmp(state, "ready") == 0)
        printf(
            ": token until %s",
            format_time_until(json_field_number(account, "until_ms"), now_ms, until));
    else
        printf(": %s", strcmp(state, "asked") == 0 ? "the provider is being asked"
                                                   : "no token");
    printf("%s%s\n", reason[0] != '\0' ? ": " : "", reason);
}

void
account_list_print(const json_t *accounts, int64_t now_ms)
{
    size_t index;
    json_t *account;
    json_array_foreach (accounts, index, account)
        account_print(account, now_ms);
}
