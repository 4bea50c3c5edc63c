#!/usr/bin/perl
# The Helm chart: rendered by what of its language it uses, it is what etc/kubernetes/relay.yaml has, and its settings have no errors.
use strict;
use warnings;
use lib 't/e2e';
use Petrel;
use Test::More;

Petrel::have('python3') && system(q{python3 -c 'import yaml' 2>/dev/null}) == 0 or plan skip_all => 'python3-yaml is not installed: make deps-test';
my $said = `exec 2>&1; python3 t/release/chart.py`;
is $? >> 8, 0, 'the chart is the manifest' or diag $said;
my %settings = $said =~ /^(PETREL_\w+)=(.*)$/mg;
delete $settings{PETREL_RELAY_PASSWORD_FILE};
cmp_ok scalar keys %settings, '>', 4, 'with settings';
my ($code, $text) = Petrel::command('', 'env', (map { "$_=$settings{$_}" } sort keys %settings), 'PETREL_RELAY_PASSWORD=x', 'PETREL_SPOOL=/tmp', $Petrel::binary, '-c', '/dev/null', 'check');
is $code, 0, 'that have no errors' or diag $text;

# With a copy of each message in Redis.
my %copies = $said =~ /^copies (PETREL_\w+)=(.*)$/mg;
is $copies{PETREL_COPIES}, 'redis://a, redis://b', 'copies';
is delete $copies{"PETREL_${_}_PASSWORD_FILE"}, '/secrets-redis/password', "the password of $_" for qw(CLUSTER_REDIS COPIES);
my @given = map { "$_=$copies{$_}" } sort keys %copies;
($code, $text) = Petrel::command('', 'env', 'PETREL_RELAY=smtp://b.test', @given, 'PETREL_SPOOL=/tmp', $Petrel::binary, '-c', '/dev/null', 'check');
is $code, 0, 'have settings without errors' or diag $text;
like $text, qr/^\L$_\E = \S.*# environment/m, "$_ is a setting" for map { s/^PETREL_//r } sort keys %copies;
done_testing;
