#!/usr/bin/perl
# Hosts that end a session before they have heard a message: bytes behind the last reply of the handshake, 421, a
# close, a reset, TLS that ends. Each of them has an outcome: one message is deferred with the host's words, the next
# host gets it where there is one, the site is blamed, and mail expires in time.
use strict;
use warnings;
use FindBin;
BEGIN { chdir "$FindBin::Bin/../.." }
use lib 't/e2e';
use File::Temp 'tempdir';
use IO::Select;
use IO::Socket::INET;
use JSON::PP;
use Petrel;
use POSIX ();
use Sink;
use Socket qw(SOL_SOCKET SO_LINGER TCP_NODELAY IPPROTO_TCP);
use Test::More;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

plan skip_all => 'no sink' unless -x "$Petrel::root/$Petrel::build/t/bench/sink";
my $dir = tempdir('ends-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $hello = "250-x\r\n250 AUTH PLAIN\r\n";

# What a host does: its greeting, the reply to EHLO and to AUTH, what to do after it (an answer to all else follows);
# and what the log says of it. words undef: nothing is said of a login.
my %kinds = (
    ehlo_421 => { ehlo => "250 hi\r\n421 4.7.0 too many connections\r\n", words => qr/said: 421 4\.7\.0 too many connections/ },
    ehlo_keyword => { ehlo => "250 hi\r\nSIZE\r\n", words => qr/not an SMTP reply/ },
    ehlo_surplus => { ehlo => "250-hi\r\n250 SIZE\r\n250 OK\r\n", words => qr/it sent a reply to no command/ },
    ehlo_close => { ehlo => "250 hi\r\n", then => 'close', words => qr/lost connection with/ },
    ehlo_421_later => { ehlo => "250 hi\r\n", later => "421 4.3.2 going down\r\n", then => 'close', words => qr/said: 421 4\.3\.2 going down/ },
    ehlo_reset => { ehlo => "250 hi\r\n", then => 'reset', words => qr/lost connection with/ },
    auth_421 => { login => 1, ehlo => $hello, auth => "235 2.7.0 ok\r\n421 4.3.2 account suspended\r\n", words => qr/said: 421 4\.3\.2 account suspended/ },
    greeting_421 => { greeting => "220 x\r\n421 4.7.0 one too many\r\n", ehlo => "250 hi\r\n", words => qr/said: 421 4\.7\.0 one too many/ },
    greeting_garbage => { greeting => "220 x\r\nwelcome\r\n", ehlo => "250 hi\r\n", words => qr/protocol error from/ },
    mail_421 => { ehlo => "250 hi\r\n", mail => "421 4.7.0 not you\r\n", words => qr/said: 421 4\.7\.0 not you/ },
    kept_421 => { ehlo => "250 hi\r\n", dot => "250 2.0.0 taken\r\n", after => "421 4.4.2 idle too long\r\n", kept => 1 },
    kept_closed => { ehlo => "250 hi\r\n", dot => "250 2.0.0 taken\r\n", after => '', kept => 1 },
    kept_421_now => { ehlo => "250 hi\r\n", dot => "250 2.0.0 taken\r\n421 4.7.0 one is enough\r\n", kept => 1 },
    tls_closed => { ehlo => "250-hi\r\n250 STARTTLS\r\n", tls => 'close', words => qr/lost connection with|failed in the TLS handshake/ },
    tls_alert => { ehlo => "250-hi\r\n250 STARTTLS\r\n", tls => 'alert', words => qr/lost connection with|failed in the TLS handshake/ },
);

sub converse {
    my ($c, $k) = @_;
    syswrite $c, $k->{greeting} // "220 x\r\n";
    my $in_content = 0;
    while (my $line = <$c>) {
        $in_content = 0 if $line =~ /^\.\r/;
        next if $in_content;
        $in_content = 1 if $line =~ /^DATA/;
        if ($line =~ /^STARTTLS/) {
            syswrite $c, "220 go\r\n";
            sysread $c, my $hello, 5;
            syswrite $c, "\x15\x03\x01\x00\x02\x02\x28" if $k->{tls} eq 'alert'; # handshake_failure
            return;
        }
        if ($line =~ /^\.\r/) {
            syswrite $c, $k->{dot} // "250 ok\r\n";
            next unless exists $k->{after};
            # The next message comes before, or the connection is idle for a moment.
            next if IO::Select->new($c)->can_read(0.3);
            syswrite $c, $k->{after};
            return;
        }
        my $is_last = $line =~ /^(?:EHLO|AUTH)/;
        syswrite $c, $line =~ /^EHLO/ ? $k->{ehlo} : $line =~ /^AUTH/ ? $k->{auth} : $line =~ /^MAIL/ && $k->{mail} ? $k->{mail} : $line =~ /^DATA/ ? "354 go\r\n" : "250 ok\r\n";
        next unless $is_last && $k->{then};
        syswrite $c, $k->{later} if $k->{later};
        setsockopt $c, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0) if $k->{then} eq 'reset';
        return;
    }
    return;
}

sub host {
    my ($name) = @_;
    my $server = IO::Socket::INET->new(LocalAddr => '127.0.0.1:0', Listen => 50) or die "listen: $!";
    my $pid = fork // die "fork: $!";
    return $server->sockport if $pid && push @Petrel::running, $pid;
    @Petrel::running = ();
    $SIG{CHLD} = 'IGNORE';
    while (1) {
        my $c = $server->accept or next;
        open my $log, '>>', "$dir/$name" or die;
        syswrite $log, clock_gettime(CLOCK_MONOTONIC) . "\n";
        close $log;
        next if fork;
        setsockopt $c, IPPROTO_TCP, TCP_NODELAY, 1;
        converse($c, $kinds{$name});
        close $c;
        POSIX::_exit(0);
    }
}
sub connections { my ($name) = @_; return split /\n/, Petrel::slurp("$dir/$name") }
# The shortest time between two: a slow machine makes it longer.
sub is_paced {
    my ($name) = @_;
    my @at = connections($name);
    my @gaps = grep { $_ < 0.8 } map { $at[$_] - $at[$_ - 1] } 1 .. $#at;
    return is "@gaps", '', "$name: at least a second between two connections";
}

my $good = Sink->start;
my %port = map { $_ => host($_) } sort keys %kinds;
my @routes;
for my $name (sort keys %kinds) {
    my $k = $kinds{$name};
    my $options = $k->{login} ? '?auth_clear=yes&tls=none' : $k->{tls} ? '?tls=encrypt' : '?tls=none';
    my $url = 'smtp://' . ($k->{login} ? 'joe@' : '') . "127.0.0.1:$port{$name}";
    (my $domain = $name) =~ tr/_/-/;
    $k->{domain} = $domain;
    push @routes, "$domain.test $url$options", $k->{tls} ? () : "$domain-next.test $url|127.0.0.1:$good->{port}$options";
}
my $passwords = join '', map { "127.0.0.1:$port{$_} joe secret\n" } grep { $kinds{$_}{login} } sort keys %kinds;
my $petrel = Petrel->new(routes => join("\n", @routes), auth_passwords => Petrel::spit("$dir/.auth", $passwords), minimal_backoff_time => '10m', maximal_backoff_time => '20m')->start;

sub send_one {
    my ($to) = @_;
    my ($id) = $petrel->send_mail('me@here.test', $to, "Subject: hi\n\nletter") =~ /queued as (\S+)/ or die 'not accepted';
    return $id;
}

# Lines of no message.
sub host_lines { my $words = shift; return scalar(() = $petrel->log =~ /^\S+ smtp: (?!\w{10}-\w{8}: ).*$words/mg) }

for my $name (grep { !$kinds{$_}{kept} } sort keys %kinds) {
    my ($domain, $words) = @{ $kinds{$name} }{qw(domain words)};
    my $host_lines = host_lines($words);
    my $id = send_one("u\@$domain.test");
    ok $petrel->wait_log(qr/to=<u\@\Q$domain\E\.test>.*status=deferred.*$words/), "$name: an attempt, with the reason" or diag $petrel->log;
    is host_lines($words), $host_lines, "$name: once, where there is no other host" unless $kinds{$name}{login};
    my $why = ($petrel->run('queue', 'why', $id))[1];
    like $why, $words, "$name: queue why has it";
    like $why, qr/attempts: +1 so far/, "$name: one attempt" or diag $why;
    like +($petrel->run(qw(queue ls)))[1], $words, "$name: queue ls, too";
    is_paced($name);
    next if $kinds{$name}{tls}; # the next host has no TLS either
    send_one("$_\@$domain-next.test") for qw(a b);
    ok $petrel->wait_log(qr/to=<$_\@\Q$domain\E-next\.test>.*status=sent/), "$name: the next host takes the mail of $_" or diag $petrel->log for qw(a b);
    unlike $petrel->log, qr/to=<[ab]\@\Q$domain\E-next\.test>.*status=deferred/, "$name: without a deferral";
    like $petrel->log, qr/info: .*$words|smtp: .*$words/, "$name: and the log names the host that was passed";
}
# A kept connection that ends between two messages: none of them is deferred, nor lost.
for my $name (grep { $kinds{$_}{kept} } sort keys %kinds) {
    my $domain = $kinds{$name}{domain};
    for my $number (1 .. 6) {
        send_one("$number\@$domain.test");
        next if $number % 2; # two of them together
        ok $petrel->wait_log(qr/to=<$number\@\Q$domain\E\.test>.*status=sent/), "$name: message $number is sent" or diag $petrel->log;
        Petrel::wait_for(sub { Petrel::count($petrel->log, qr/a kept connection has ended/) }, 1);
    }
    unlike $petrel->log, qr/to=<\d\@\Q$domain\E\.test>.*status=deferred/, "$name: none is deferred";
}
like $petrel->log, qr/a kept connection has ended: .*421 4\.4\.2 idle too long/, 'the log has the words';
my %sites = map { $_->{site} => $_ } @{ decode_json($petrel->status)->{sites} };
ok +(grep { $_->{is_dead} || $_->{dead} || ($_->{state} // '') eq 'dead' } values %sites), 'a site that does nothing else is dead' or diag $petrel->status;
is $petrel->stop, 0, 'stops';

# Mail for such a host expires: notices and bounces come in time, and the finding says what is wrong.
my $back = Sink->start;
$petrel = Petrel->new(relay => "smtp://127.0.0.1:$port{ehlo_421}?canary=yes", routes => "here.test smtp://127.0.0.1:$back->{port}", minimal_backoff_time => '2s', maximal_backoff_time => '3s',
    maximal_queue_lifetime => '14s', bounce_queue_lifetime => '14s', delay_warning_time => '4s')->start;
my $before = connections('ehlo_421');
send_one("$_\@far.test") for 1 .. 20;
ok Petrel::wait_for(sub { $petrel->status =~ /"code":\s*"upstream_down"/ }), 'the finding names the smarthost' or diag $petrel->status;
ok Petrel::wait_for(sub { my @m = $back->messages; 40 == @m }), 'each sender has its delay notification and its bounce' or diag scalar(my @m = $back->messages);
my $said = join '', map { $_->{data} } $back->messages;
like $said, qr/421 4\.7\.0 too many connections/, 'with the words of the host';
ok $petrel->wait_empty, 'nothing waits for ever';
cmp_ok connections('ehlo_421') - $before, '<', 40, 'and the host was not flooded';
is $petrel->stop, 0, 'stops';

# Mail that waits for its turn in memory expires in time, too.
$petrel = Petrel->new(routes => "here.test smtp://127.0.0.1:$back->{port}\n* smtp://127.0.0.1:$good->{port}?destination_rate=1/h", maximal_queue_lifetime => '6s', minimal_backoff_time => '2s', maximal_backoff_time => '3s')->start;
send_one("turn$_\@slow.test") for 1 .. 3;
ok Petrel::wait_for(sub { 2 == Petrel::count($petrel->log, qr/to=<turn\d\@slow\.test>.*status=expired \(it has waited for its turn at .*rate\)/) }), 'mail behind a rate expires when its lifetime is over' or diag $petrel->log;
ok $petrel->wait_empty, 'and leaves the queue';
is $petrel->stop, 0, 'stops';
done_testing;
