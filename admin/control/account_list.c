/* Tells of accounts and their tokens. */
#include "admin/control/account_list.h"

#include "admin/control/listing.h"
#include "smtp/oauth/tokens.h"

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
