#!/usr/bin/perl
# Mail in, and nothing out: messages a second at 200 clients, Petrel and, in turn with it, Postfix; and how long one
# message takes through an idle relay.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Socket::INET;
use lib dirname(abs_path(__FILE__));
use Bench;
use Time::HiRes qw(sleep);

my $rounds = $ENV{ROUNDS} || 3;
my $seconds = $ENV{SECONDS_EACH} || 3;
my $work = Bench::work_dir();
# No connection is ever greeted: accepted mail waits.
my $mute = IO::Socket::INET->new(Listen => 100, LocalAddr => '127.0.0.1') or die;

sub petrel {
    my ($relay, %settings) = @_;
    my $server = Petrel->new(dir => $work, relay => "smtp://127.0.0.1:$relay", %settings)->start;
    return { port => $server->{port}, stop => sub { $server->stop; system 'rm', '-rf', "$work/spool", "$work/log" } };
}

sub postfix {
    my ($relay, @mode) = @_;
    system('sh', "$Bench::here/postfix.sh", 'start', $relay, @mode) == 0 or return;
    chomp(my $port = `sh $Bench::here/postfix.sh port`);
    Bench::wait_banner($port) or die 'postfix does not answer';
    return { port => $port, stop => sub { system 'sh', "$Bench::here/postfix.sh", 'stop' } };
}

# --- Accepting

my @intake = (
    ['a ring that holds all', sub { petrel($mute->sockport, journal_size => '1G') }],
    ['the preset ring, overrun', sub { petrel($mute->sockport) }],
);
push @intake, ['Postfix, HOLD', sub { postfix($mute->sockport, 'hold') }] if Bench::have_postfix();
END { my $code = $?; system 'sh', "$Bench::here/postfix.sh", 'stop' if Bench::have_postfix(); $? = $code }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };
$| = 1;

my %rate;
for (1 .. $rounds) {
    for my $way (@intake) {
        my ($name, $start) = @$way;
        my $server = $start->();
        my %load = (size => 1024, connections => 200, pipeline => undef, 'give-up' => 60);
        my $warm = Bench::load($server->{port}, %load, messages => 2000);
        my $run = Bench::load($server->{port}, %load, messages => int(($warm->{per_second} || 1000) * $seconds));
        $server->{stop}->();
        push @{ $rate{$name} }, $run->{per_second} || 0;
    }
}
print "Accept only, 1 KiB, 200 clients: messages/s, the median of $rounds (each)\n";
for my $way (@intake) {
    my $name = $way->[0];
    my $theirs = Bench::median(@{ $rate{'Postfix, HOLD'} || [0] });
    my $ours = Bench::median(@{ $rate{$name} });
    printf "%-26s %8.0f  (%s)%s\n", $name, $ours, join(' ', map { sprintf '%.0f', $_ } @{ $rate{$name} }),
        $theirs && $name !~ /Postfix/ ? sprintf('  %.1fx', $ours / $theirs) : '';
}

# --- One message through an idle relay

my $sink = Bench::sink();
my @idle = (['Petrel', sub { petrel($sink->{port}) }]);
push @idle, ['Postfix', sub { postfix($sink->{port}) }] if Bench::have_postfix();

# From connecting to the sink's answer, in ms.
sub one_way {
    my $port = shift;
    Bench::ask($sink, 'reset');
    Bench::answered($sink, 10);
    Bench::ask($sink, 'wait 1 10');
    my $start = Time::HiRes::time();
    my $s = IO::Socket::INET->new("127.0.0.1:$port") or die;
    my $say = sub { print {$s} @_ if @_; my $l; do { $l = <$s> // die 'gone' } while $l =~ /^\d{3}-/; return $l };
    $say->();
    $say->("EHLO x\r\n");
    $say->("MAIL FROM:<a\@example.org>\r\n");
    $say->("RCPT TO:<b\@example.com>\r\n");
    $say->("DATA\r\n");
    $say->("Subject: x\r\n\r\nx\r\n.\r\n");
    Bench::answered($sink, 10) // die 'not delivered';
    return (Time::HiRes::time() - $start) * 1000;
}

sub percentile { my ($p, @sorted) = (shift, sort { $a <=> $b } @_); return $sorted[ int($#sorted * $p) ] }

print "\nOne message through an idle relay, connect to delivered: ms\n";
my %time;
for (1 .. $rounds) {
    for my $way (@idle) {
        my $server = $way->[1]->();
        one_way($server->{port}) for 1 .. 5;
        push @{ $time{ $way->[0] } }, map { sleep 0.01; one_way($server->{port}) } 1 .. 100;
        $server->{stop}->();
    }
}
printf "%-26s median %7.2f   p99 %7.2f\n", $_->[0], percentile(0.5, @{ $time{ $_->[0] } }), percentile(0.99, @{ $time{ $_->[0] } }) for @idle;
printf "%-26s        %6.2fx       %6.2fx\n", 'ratio', map { percentile($_, @{ $time{Petrel} }) / percentile($_, @{ $time{Postfix} }) } 0.5, 0.99 if $time{Postfix};
Petrel::reap($sink->{pid}, 'TERM');
