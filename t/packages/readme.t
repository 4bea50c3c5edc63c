#!/usr/bin/perl
# README's two commands, each line typed as it stands there, in a bare Debian with a copy of the source and nothing else (make
# check-packages, as root): from nothing to a delivered message. `petrel init` asks on a terminal. The time is printed.
use strict;
use warnings;
use Time::HiRes qw(time);
use lib 't/e2e', 't/packages';
use Petrel;
use Roots;
use Test::More;

Roots::enter(qw(ip nsenter python3));
my ($section) = Petrel::slurp("$Petrel::root/README.md") =~ /^## Two commands\n(.*?)^## /ms;
my ($build, $first, @more) = ($section // '') =~ /^    (.*)$/mg;
ok $build && $first && !@more, 'README has two';

my $root = fresh('readme');
Roots::source($root);
stand_in($root, '/usr/local/bin/systemctl' => $service);
my $start = time;
into("README: $build", $root, "cd /src && export MAKEFLAGS=-j2; $build");
diag sprintf 'README: built and installed after %.0f s', time - $start;
hosts($root);
my $mail = network('readme');
my @answers = (['1. Name of this host', 'vps.example.org'], ['2. Where mail goes', 'smtp://mailhub.example.org'], ['3. User there', ''], ['Clients that may send mail here', ''], ['Reader of the mail of root', 'you@example.org'],
    ['Where health checks', ''], ['7. Sender of the mail', '']);
my @typed = alone(inside($root, $first));
my $said;
{
    (my $code, $said) = Petrel::command(join('', map { ("expect $_->[0]\n", 'send ' . unpack('H*', "$_->[1]\n") . "\n") } @answers) . "expect Written: \nexpect delivered\n", 'python3', 't/e2e/terminal.py', Petrel::have(shift @typed), @typed);
}
like $said, qr/^exit 0$/m, "README: $first" or diag $said, Petrel::slurp("$root/tmp/log");
ok Petrel::wait_for(sub { grep { Petrel::slurp($_) =~ /you\@example\.org/ } glob "$mail/*.eml" }), 'the message is there';
is readlink("$root/usr/sbin/sendmail"), '/usr/local/sbin/petrel', 'and Petrel is the sendmail';
diag sprintf 'README: delivered after %.0f s', time - $start;
network();
done_testing;
