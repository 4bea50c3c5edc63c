package Sink;

# A sink of t/bench on a port of its own: what came in, and how often. It may go away and come back
# on the same port; what it took before is not forgotten.
use strict;
use warnings;
use File::Temp qw(tempdir);
use IO::Socket::INET;
use lib 't/e2e';
use Petrel;

# start(OPTIONS...): a new one; --listen chooses another address than 127.0.0.1:0.
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
    my ($at, $port, $control) = Petrel::slurp($log) =~ /^listening (\S*?(\d+)?)\ncontrol (\S+)$/m;
    return 0 unless $control;
    @$self{qw(listen port control)} = ($at, $port, $control);
    return 1;
}

sub stop {
    my $self = shift;
    delete $self->{asking};
    my $pid = delete $self->{pid} or return;
    return Petrel::reap($pid, 'TERM');
}

# One of the counters: messages, recipients, bytes, connections, refused, open.
sub count {
    my ($self, $key) = @_;
    $self->{asking} //= IO::Socket::INET->new(PeerAddr => $self->{control}) // die "sink control: $!";
    print { $self->{asking} } "stats\n";
    my $line = readline $self->{asking};
    return $line =~ /"$key": (\d+)/ ? $1 : die "no counter $key in $line";
}

# One message as it lies in the directory.
sub read_message {
    my $eml = shift;
    my $envelope = Petrel::slurp($eml =~ s/\.eml\z/.envelope/r);
    my ($from) = $envelope =~ /^X-Sink-From: <(.*)>$/m;
    my ($parameters) = $envelope =~ /^X-Sink-From-Parameters: (.*)$/m;
    my ($connection) = $envelope =~ /^X-Sink-Connection: (\d+)$/m;
    my ($protocol) = $envelope =~ /^X-Sink-Protocol: (\S+)$/m;
    return {
        from => $from, to => [$envelope =~ /^X-Sink-To: <(.*)>$/mg], parameters => $parameters // '',
        connection => $connection, protocol => $protocol, file => $eml, data => Petrel::slurp($eml),
    };
}

# Names of the files of all messages, oldest first.
sub files {
    my $self = shift;
    return map { sort glob "$self->{base}/$_/*.eml" } 1 .. $self->{lives};
}

# All messages: {from, to, parameters, connection, protocol, file, data}.
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
