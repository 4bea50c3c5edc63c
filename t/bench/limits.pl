#!/usr/bin/perl
# A receiver that takes five sessions and answers 421 to more: table 3 of Postfix's paper on its scheduler, at a tenth of its time
# (100 ms a recipient), over sockets. One message with 2000 recipients, two a delivery, five sessions at first, twenty at most.
# Refusals, deferrals, and the share of the receiver's capacity that is used. Postfix in turn with Petrel where it is set up, with
# each kind of feedback.
use strict;
use warnings;
use Cwd qw(abs_path);
use File::Basename qw(dirname);
use IO::Socket::INET;
use Time::HiRes qw(sleep time);
use lib dirname(abs_path(__FILE__));
use Bench;
use Sink;

my $recipients = $ENV{RECIPIENTS} || 2000;
my $sessions = 5;
my $each = 0.1;
my $work = Bench::work_dir();
my $capacity = $sessions / $each;
my $patience = 20 + 5 * $recipients / $capacity;

sub receiver { return Sink->start('--address', "127.0.0.1:0,sessions=$sessions,delay.rcpt=" . 1000 * $each) }

sub submit {
    my $port = shift;
    my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port") or die "no connection: $!";
    my $reply = sub { my $line; do { $line = <$s> // die 'hung up' } while $line =~ /^\d{3}-/; $line =~ /^[23]/ or die $line; return };
    $reply->();
    my $say = sub { print $s map { "$_\r\n" } @_; $reply->() for @_; return };
    $say->('EHLO bench.example');
    $say->('MAIL FROM:<list@bench.example>');
    my @to = map { "RCPT TO:<u$_\@limited.example>" } 1 .. $recipients;
    $say->(splice @to, 0, 50) while @to;
    $say->('DATA');
    print $s "Subject: table 3\r\n\r\nx\r\n.\r\n";
    $reply->();
    $say->('QUIT');
    return;
}

# Until every recipient has had an attempt, by the log; then { refused, deferred, time }.
sub run_table {
    my ($name, $start) = @_;
    my $sink = receiver();
    my ($at) = @{ $sink->{addresses} };
    my $server = $start->($at =~ /:(\d+)$/);
    submit($server->{port});
    my $began = time;
    my %first;
    Petrel::wait_for(sub {
        %first = ();
        for (split /\n/, Petrel::slurp($server->{log})) { $first{$1} //= $2 if /to=<([^>]+)>.*status=(\w+)/ }
        return keys %first >= $recipients;
    }, $patience);
    my $took = time - $began;
    my $site = $sink->site($at);
    $server->{stop}->();
    $sink->stop;
    my $sent = grep { $_ eq 'sent' } values %first;
    my $deferred = grep { $_ eq 'deferred' } values %first;
    printf "%-38s %5d %6.1f %6.1f %7.1f %6.0f%%\n", $name, scalar keys %first, 100 * $deferred / $recipients,
        100 * ($site->{refused} // 0) / ($sent / 2 || 1), $took, 100 * $sent / $took / $capacity;
    return;
}

sub petrel {
    my %settings = @_;
    return sub {
        my $port = shift;
        my $server = Petrel->new(dir => $work, routes => "* smtp://127.0.0.1:$port", recipient_limit => $recipients, log_style => 'postfix',
            default_destination_recipient_limit => 2, %settings)->start;
        return { port => $server->{port}, log => $server->{log}, stop => sub { $server->stop; system 'rm', '-rf', "$work/spool", "$work/log" } };
    };
}

sub postfix {
    my $feedback = shift;
    return sub {
        my $port = shift;
        local $ENV{PETREL_BENCH_POSTFIX_SETTINGS} = join "\n",
            "relayhost = [127.0.0.1]:$port", 'smtpd_recipient_limit = 5000', 'smtp_destination_recipient_limit = 2',
            'default_destination_concurrency_limit = 20', 'initial_destination_concurrency = 5', 'default_destination_concurrency_failed_cohort_limit = 100',
            "default_destination_concurrency_positive_feedback = $feedback", "default_destination_concurrency_negative_feedback = $feedback", '';
        system('sh', "$Bench::here/postfix.sh", 'start', $port) == 0 or die;
        chomp(my $listen = `sh $Bench::here/postfix.sh port`);
        Bench::wait_banner($listen) or die 'postfix does not answer';
        return { port => $listen, log => "$Bench::postfix/root/var/log/postfix.log", stop => sub { system 'sh', "$Bench::here/postfix.sh", 'stop' } };
    };
}

END { my $code = $?; system 'sh', "$Bench::here/postfix.sh", 'stop' if Bench::have_postfix(); $? = $code }
$SIG{INT} = $SIG{TERM} = sub { exit 1 };
$| = 1;
printf "Table 3: %d recipients, %d sessions at the receiver, 421 above, %d ms a recipient\n", $recipients, $sessions, 1000 * $each;
print "deferred: recipients, %, at their first attempt. refused: connections for 100 deliveries. of capacity: in the time it took\n\n";
printf "%-38s %5s %6s %6s %7s %7s\n", '', 'tried', 'def. %', 'ref.', 'time s', 'of cap.';
run_table('Petrel', petrel());
run_table('Petrel, adaptive=no, feedback 1/N', petrel(default_destination_adaptive => 'no', default_destination_concurrency_failed_cohort_limit => 100,
    map { ("default_destination_concurrency_${_}_feedback" => '1/concurrency') } qw(positive negative)));
run_table('Petrel, adaptive=no, feedback 1', petrel(default_destination_adaptive => 'no', default_destination_concurrency_failed_cohort_limit => 100));
if (Bench::have_postfix()) { run_table("Postfix, feedback $_", postfix($_)) for '1/concurrency', '1' }
