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
done_testing;
