# A name server of our own, for what a real one does not do: it is late, and it cuts or breaks what it says.
package Resolver;

use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use Socket qw(AF_INET6 SOL_SOCKET SO_LINGER inet_aton inet_pton);
use lib 't/e2e';
use Nsd;
use Petrel;

my %number = (A => 1, MX => 15, AAAA => 28);

sub name_octets { my $name = shift; return join('', map { pack 'C/a*', $_ } split /\./, $name) . "\0" }

# The answer to a query: its records of that type; NXDOMAIN for a name without any.
sub answer {
    my ($zone, $query) = @_;
    my ($at, @labels) = (12);
    while (my $size = unpack 'C', substr $query, $at, 1) {
        push @labels, lc substr $query, $at + 1, $size;
        $at += $size + 1;
    }
    my ($name, $type) = (join('.', @labels), unpack 'n', substr $query, $at + 1, 2);
    my $of = $zone->{$name};
    my @records;
    push @records, map { my ($preference, $host) = split ' '; [15, pack('n', $preference) . name_octets($host)] } @{ $of->{MX} || [] } if $type == $number{MX};
    push @records, map { [1, inet_aton($_)] } @{ $of->{A} || [] } if $type == $number{A};
    push @records, map { [28, inet_pton(AF_INET6, $_)] } @{ $of->{AAAA} || [] } if $type == $number{AAAA};
    my $head = pack 'a2 C2 n4', $query, 0x81, $of ? 0x80 : 0x83, 1, scalar @records, 0, 0;
    return ($name, $type, $head . substr($query, 12, $at - 12 + 5) . join '', map { pack 'n3 N n/a*', 0xc00c, $_->[0], 1, 60, $_->[1] } @records);
}

sub truncated { my $reply = shift; return pack('a2 C C n4', $reply, 0x83, 0x80, 1, 0, 0, 0) . substr $reply, 12 }

# One query by TCP: what the zone says of "tcp" is done.
sub serve_tcp {
    my ($zone, $peer, $kept) = @_;
    my $query;
    return unless $peer->sysread($query, 4096) && length $query > 14;
    my ($name, undef, $reply) = answer($zone, substr $query, 2);
    my $how = $zone->{$name}{tcp} // 'good';
    if ($how eq 'silent') { push @$kept, $peer; return }
    setsockopt $peer, SOL_SOCKET, SO_LINGER, pack('ii', 1, 0) if $how eq 'reset';
    $reply = pack 'n/a*', $reply;
    $peer->syswrite($reply, $how eq 'half' ? length($reply) / 2 : length $reply) if $how eq 'half' || $how eq 'good';
    return;
}

# Never returns. By UDP, names with "tcp" are truncated; names with "behind" are answered when as many
# queries by TCP were seen (or, where TCP is refused, truncated replies given).
sub serve {
    my ($zone, $udp, $tcp) = @_;
    my ($cut, @late, @kept) = (0);
    my $select = IO::Select->new($udp, $tcp ? $tcp : ());
    while (1) {
        for my $ready ($select->can_read(0.1)) {
            if ($tcp && $ready == $tcp) {
                my $peer = $tcp->accept or next;
                serve_tcp($zone, $peer, \@kept);
                $cut++;
                next;
            }
            my $from = $udp->recv(my $query, 4096) // next;
            my ($name, $type, $reply) = answer($zone, $query);
            my $of = $zone->{$name};
            if ($type == $number{MX} && $of->{tcp}) {
                $udp->send(truncated($reply), 0, $from);
                $cut++ unless $tcp;
            }
            elsif ($of->{behind} && $cut < $of->{behind}) { push @late, [$of->{behind}, $reply, $from] }
            else { $udp->send($reply, 0, $from) }
        }
        $udp->send($_->[1], 0, $_->[2]) for grep { $cut >= $_->[0] } @late;
        @late = grep { $cut < $_->[0] } @late;
    }
}

# start(\%zone, tcp => 1): {name => {MX => ['10 host'], A => [address], tcp => HOW, behind => NUMBER}}.
# HOW: good, silent, reset, half (an answer), dead (closed). Returns an object with {port}.
sub start {
    my ($class, $zone, %option) = @_;
    my ($port, $udp, $tcp);
    for (1 .. 20) {
        $port = Petrel::free_port();
        $udp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Proto => 'udp') or next;
        last unless $option{tcp};
        $tcp = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $port, Listen => 64) and last;
    }
    my $parent = $$;
    my $pid = fork // die "fork: $!";
    if ($pid == 0) {
        $SIG{$_} = 'DEFAULT' for qw(INT TERM HUP);
        serve($zone, $udp, $tcp);
    }
    return bless {port => $port, pid => $pid, parent => $parent}, $class;
}

sub stop { my $self = shift; my $pid = delete $self->{pid} or return; kill 'KILL', $pid; waitpid $pid, 0; return }
sub DESTROY { my $self = shift; local ($?, $@); $self->stop if $self->{parent} == $$; return }

1;
