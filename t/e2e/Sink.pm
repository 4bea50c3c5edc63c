package Sink;

# A sink of t/bench on a port of its own: what came in, and how often. It may go away and come back
# on the same port; what it took before is not forgotten.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use JSON::PP ();
use lib 't/e2e';
use Petrel;

# start(OPTIONS...): a new one; --listen chooses another address than 127.0.0.1:0. Each --address
# ADDRESS:PORT,KEY=VALUE... is one more: {addresses} has them as they came, with their ports.
sub start {
    my ($class, @options) = @_;
    my $self = bless {listen => '127.0.0.1:0', base => tempdir('sink-XXXXXX', TMPDIR => 1, CLEANUP => 1), lives => 0, files => {}}, $class;
    if (@options && $options[0] eq '--listen') { $self->{listen} = (splice @options, 0, 2)[1] }
    $self->again(@options) or die "no sink on $self->{listen}: " . Petrel::slurp("$self->{base}/1.log");
    return $self;
}

# Starts after stop, with other options if wanted. False when it does not come up.
sub again {
    my ($self, @options) = @_;
    my $life = ++$self->{lives};
    my $log = "$self->{base}/$life.log";
    $self->{pid} = Petrel::spawn($log, "$Petrel::root/$Petrel::build/t/bench/sink", '--listen', $self->{listen},
        '--control', '127.0.0.1:0', '--directory', "$self->{base}/$life", @options);
    Petrel::wait_for(sub { Petrel::slurp($log) =~ /^control /m || waitpid($self->{pid}, 1) == $self->{pid} });
    my ($at, $port, $more, $control) = Petrel::slurp($log) =~ /^listening (\S*?(\d+)?)\n((?:address \S+\n)*)control (\S+)$/m;
    return 0 unless $control;
    @$self{qw(listen port control)} = ($at, $port, $control);
    $self->{addresses} = [$more =~ /^address (\S+)$/mg];
    return 1;
}

sub stop {
    my $self = shift;
    delete $self->{asking};
    my $pid = delete $self->{pid} or return;
    return Petrel::reap($pid, 'TERM');
}

# The answer on the control port to one line: a hash.
sub ask {
    my ($self, $line) = @_;
    $self->{asking} //= IO::Socket::INET->new(PeerAddr => $self->{control}) // die "sink control: $!";
    print { $self->{asking} } "$line\n";
    return JSON::PP::decode_json(readline($self->{asking}) // die "the sink is gone");
}

# One of the counters of all addresses, e.g. messages, recipients, bytes, connections, refused, sessions_max.
sub count {
    my ($self, $key) = @_;
    return $self->ask('stats')->{$key} // die "no counter $key";
}

# The counters of an address.
sub site { my ($self, $address) = @_; return $self->ask("site $address") }
# Changes an address: tell(ADDRESS, 'set sessions=3 delay.dot=20').
sub tell {
    my ($self, $address, $what) = @_;
    my $answer = $self->ask("site $address $what");
    die "$what: $answer->{error}" if $answer->{error};
    return $answer;
}
# Nothing is answered at a stage any more (dot, data, ...); until it is let go.
sub hold { my ($self, $stage) = @_; return $self->tell($self->{listen}, "set delay.$stage=1000000") }
sub let_go { my ($self, $stage) = @_; $self->tell($self->{listen}, "set delay.$stage=0"); return $self->ask('hurry') }
# Waits until content comes in, of which the end has not been answered.
sub wait_content { my $self = shift; return Petrel::wait_for(sub { -s $_ && return 1 for glob "$self->{base}/*/incoming.*"; 0 }) }
# One message as it lies in the directory.
sub read_message {
    my $eml = shift;
    my $envelope = Petrel::slurp($eml =~ s/\.eml\z/.envelope/r);
    my ($from) = $envelope =~ /^X-Sink-From: <(.*)>$/m;
    my ($parameters) = $envelope =~ /^X-Sink-From-Parameters: (.*)$/m;
    my ($connection) = $envelope =~ /^X-Sink-Connection: (\d+)$/m;
    my ($protocol) = $envelope =~ /^X-Sink-Protocol: (\S+)$/m;
    return {
        from => $from, to => [$envelope =~ /^X-Sink-To: <(.*)>$/mg], to_parameters => [$envelope =~ /^X-Sink-To-Parameters: (.*)$/mg], parameters => $parameters // '',
        connection => $connection, protocol => $protocol, file => $eml, data => Petrel::slurp($eml),
    };
}

# Names of the files of all messages, oldest first.
sub files {
    my $self = shift;
    return map { sort glob "$self->{base}/$_/*.eml" } 1 .. $self->{lives};
}

# All messages: {from, to, parameters, to_parameters, connection, protocol, file, data}.
sub messages {
    my $self = shift;
    return map { $self->{files}{$_} //= read_message($_) } $self->files;
}

# Those for one address.
sub for_address { my ($self, $to) = @_; return grep { grep { $_ eq $to } @{ $_->{to} } } $self->messages }

# Waits for N messages for an address; the last of them, or undef.
sub wait_for {
    my ($self, $to, $count) = @_;
    Petrel::wait_for(sub { my @m = $self->for_address($to); @m >= ($count || 1) });
    return ($self->for_address($to))[-1];
}

1;
