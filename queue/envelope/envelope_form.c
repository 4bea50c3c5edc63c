/* The form alone: t/roof/upgrade.c stands in, and is several programs. */
#include "queue/envelope/envelope_form.h"

unsigned
envelope_form(void)
{
    return ENVELOPE_FORM;
}
