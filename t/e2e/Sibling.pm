package Sibling;

# A host of a group by hand, at the peer door of another: TLS by openssl, which is not ours.
use strict;
use warnings;
use Digest::SHA qw(hmac_sha256_hex sha256_hex);
use IO::Select;
use IPC::Open3;
use JSON::PP;
use lib 't/e2e';
use Petrel;

sub identity { my ($group, $secret) = @_; return "$group/" . substr sha256_hex($secret), 0, 8 }

# connect(PORT, SECRET, identity => ..., group => ..., options of s_client => [...]).
sub connect {
    my ($class, $port, $secret, %with) = @_;
    my $self = bless {buffer => '', errors => ''}, $class;
    my @tls = $with{options} ? @{ $with{options} } : (-psk => hmac_sha256_hex('petrel peer door 1', $secret), -psk_identity => $with{identity} // identity($with{group} // 'mail', $secret),
        '-tls1_2', -cipher => $with{cipher} // 'ECDHE-PSK-CHACHA20-POLY1305', $with{groups} ? ('-groups', $with{groups}) : ());
    open my $null, '>', '/dev/null' or die;
    $self->{pid} = open3($self->{out}, $self->{in}, undef, 'sh', '-c', 'exec "$@" 2>/dev/null', 'sh', 'openssl', 's_client', '-quiet', '-connect', "127.0.0.1:$port", @tls);
    $self->{out}->autoflush(1);
    push @Petrel::running, $self->{pid};
    return $self;
}

sub put { my ($self, $bytes) = @_; return syswrite $self->{out}, $bytes }

# One line without its end; '' when the connection has ended or the time is over.
sub line {
    my ($self, $seconds) = @_;
    my $wait = IO::Select->new($self->{in});
    while (1) {
        return $1 if $self->{buffer} =~ s/\A([^\n]*?)\r?\n//;
        return '' unless $wait->can_read($seconds // $Petrel::patience);
        sysread($self->{in}, $self->{buffer}, 65536, length $self->{buffer}) or return '';
    }
}

sub say { my ($self, $line) = @_; $self->put("$line\r\n"); return $self->line }

sub hello { my ($self, %more) = @_; return $self->say('XPEER 1 ' . JSON::PP->new->canonical->encode({host => 'relay2', group => 'mail', spool => 'aa', run => 7, version => '0.2', state => 'running', %more})) }

# The connection has ended.
sub is_over { my $self = shift; $self->line until eof_of($self); return 1 }
sub eof_of { my $self = shift; return !IO::Select->new($self->{in})->can_read($Petrel::patience) || !sysread($self->{in}, $self->{buffer}, 65536, length $self->{buffer}) }

sub close {
    my $self = shift;
    my $pid = delete $self->{pid} or return;
    CORE::close $self->{out};
    kill 'TERM', $pid;
    waitpid $pid, 0;
    @Petrel::running = grep { $_ != $pid } @Petrel::running;
    return;
}
sub DESTROY { my $self = shift; local $?; $self->close; return }

1;
