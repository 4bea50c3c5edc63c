#!/usr/bin/perl
# `make demo`, as README has it: both letters arrive, nothing frightens, and the end says what comes next.
use lib 't/e2e';
use E2E;

plan skip_all => 'swaks is not installed' unless Petrel::have('swaks');
plan skip_all => 'the system has no authorities' unless -s '/etc/ssl/certs/ca-certificates.crt';
my ($code, $said) = Petrel::command('', 'sh', 't/e2e/demo.sh');
is $code, 0, 'it goes well' or diag $said;
like $said, qr/^It flew through the storm\.\s.*^No daemon is needed to hand this in\.$/ms, 'both letters are shown';
is scalar(() = $said =~ /status=sent/g), 2, 'and what became of them';
unlike $said, qr/warning|error: /, 'nothing frightens';
like $said, qr/stopped in good order\.\n\nNext: make install install-sendmail, petrel init, systemctl enable --now petrel, petrel test YOU\@EXAMPLE\.ORG: see README\.md\.\n\z/, 'the end says what comes next';
done_testing;
