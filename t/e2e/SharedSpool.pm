package SharedSpool;

# Daemons of several hosts with one spool on a file system that they share, and what they have acknowledged. A host has a
# {name}, an {address} at which it is reached, a {gateway} at which it reaches us, the directory {mount}, and {at}: what a
# command of it begins with.
use strict;
use warnings;
use Exporter qw(import);
use IO::Socket::INET;
use lib 't/e2e';
use Petrel;
use Sink;
use Test::More;

our @EXPORT = qw(host_daemon take_over submit missing all_there twice);
my (%acknowledged, $number, $sink);

# Starts it; nobody waits.
sub host_daemon {
    my ($host) = @_;
    $sink //= Sink->start('--listen', '0.0.0.0:0', '--delay', 'dot:20');
    my $petrel = $host->{petrel} //= Petrel->new(hostname => "$host->{name}.test", listen => "$host->{address}:2525", relay_from => '10.77.0.0/16',
        routes => "* smtp://$host->{gateway}:$sink->{port}?concurrency=2", spool => "$host->{mount}/spool", user => '');
    $petrel->{pid} = Petrel::spawn($petrel->{log}, @{ $host->{at} }, $Petrel::binary, '-c', $petrel->conf, 'run');
    return $petrel;
}

# As a service manager does: until the lock of the host before is gone.
sub take_over {
    my ($host) = @_;
    return Petrel::wait_for(sub {
        my $size = length Petrel::slurp($host->{petrel} ? $host->{petrel}{log} : '');
        my $petrel = host_daemon($host);
        return 1 if Petrel::wait_for(sub { substr($petrel->log, $size) =~ /main: petrel \S+ is / || waitpid($petrel->{pid}, 1) == $petrel->{pid} }, 20)
            && substr($petrel->log, $size) =~ /main: petrel \S+ is /;
        Petrel::reap($petrel->{pid}, 'KILL', 5);
        return 0;
    }, 120);
}

# Sends one message and notes that it was acknowledged. Returns the reply; 'slow' if there is none within the seconds.
sub submit {
    my ($host, $seconds) = @_;
    my $to = 'r' . ++$number . '@example.org';
    my $socket = IO::Socket::INET->new(PeerAddr => $host->{address}, PeerPort => 2525, Timeout => 5) or return "none: $@";
    my $reply = '';
    local $SIG{ALRM} = sub { die "slow\n" };
    eval {
        alarm($seconds // 20);
        for my $line ('', 'EHLO client', 'MAIL FROM:<a@example.org>', "RCPT TO:<$to>", 'DATA', "Subject: $to\r\n\r\nx\r\n.") {
            print $socket "$line\r\n" if $line;
            do { $reply = <$socket> // 'closed' } while $reply =~ /^\d+-/;
            last if $reply !~ /^[23]/;
        }
    };
    alarm 0;
    $acknowledged{$to} = 1 if !$@ && $reply =~ /^250.*queued as/;
    return $@ || $reply;
}

sub arrivals { my %has; $has{$_}++ for map { @{ $_->{to} } } $sink->messages; return \%has }
sub missing { my $has = arrivals(); return grep { !$has->{$_} } sort keys %acknowledged }
# What came more than once, of all that was sent.
sub twice { my $has = arrivals(); return grep { $has->{$_} > 1 } sort keys %$has }
sub count { return scalar keys %acknowledged }

sub all_there {
    my $name = shift || 'all that was acknowledged has arrived';
    ok(Petrel::wait_for(sub { !missing() }, 120), $name) || diag join ' ', missing();
    return;
}

1;
