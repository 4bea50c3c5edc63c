package MoodySmarthost;

# A smarthost with a login that refuses what it is told to: new(DIRECTORY) starts it at {port}, and it ends with the test.
# It is `good`, refuses the `login` or the `sender`, or is `down`: it then hangs up.
use strict;
use warnings;
use IO::Socket::INET;
use Petrel;
use POSIX ();

my @servers;

sub mode { my ($self, $mode) = @_; Petrel::spit("$self->{dir}/mode.new", $mode); return rename "$self->{dir}/mode.new", "$self->{dir}/mode" || die $! }
sub is_down { my $self = shift; return Petrel::slurp("$self->{dir}/mode") eq 'down' }
# Its input: a command a line, of AUTH the mechanism alone.
sub heard { my $self = shift; return Petrel::slurp("$self->{dir}/heard") }
sub forget { my $self = shift; Petrel::spit("$self->{dir}/heard", ''); return }

sub converse {
    my ($self, $s, $mode) = @_;
    open my $log, '>>', "$self->{dir}/heard" or die;
    $log->autoflush;
    $s->autoflush;
    print $s "220 smarthost.test\r\n";
    while (defined(my $line = <$s>)) {
        $line =~ s/\r\n\z//;
        print $log $line =~ s/^(AUTH \S+).*/$1/r, "\n";
        if ($line =~ /^EHLO/) { print $s "250-smarthost.test\r\n250 AUTH PLAIN\r\n" }
        elsif ($line =~ /^AUTH/) { print $s $mode eq 'login' ? "535 5.7.8 bad password\r\n" : "235 2.7.0 ok\r\n" }
        elsif ($line =~ /^MAIL/) { print $s $mode eq 'sender' ? "553 5.7.1 sender not owned by this account\r\n" : "250 2.1.0 ok\r\n" }
        elsif ($line =~ /^DATA/) { print $s "354 go on\r\n"; while (defined($line = <$s>) && $line ne ".\r\n") { } print $s "250 2.0.0 taken\r\n" }
        elsif ($line =~ /^QUIT/) { print $s "221 2.0.0 bye\r\n"; last }
        else { print $s "250 2.0.0 ok\r\n" }
    }
    return;
}

sub new {
    my ($class, $dir) = @_;
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 20, ReuseAddr => 1) or die;
    my $self = bless { dir => $dir, port => $listener->sockport }, $class;
    $self->mode('good');
    $self->forget;
    my $server = fork // die;
    if ($server == 0) {
        $SIG{CHLD} = 'IGNORE';
        while (1) {
            my $s = $listener->accept or next;
            my $mode = Petrel::slurp("$dir/mode");
            if ($mode eq 'down') { close $s; next }
            if (fork == 0) { $self->converse($s, $mode); POSIX::_exit(0) }
            close $s;
        }
    }
    push @servers, $server;
    return $self;
}
END { local $?; kill KILL => @servers if @servers }

1;
