package Client;

# An SMTP client by hand: bytes out as they are, replies in.
use strict;
use warnings;
use IO::Select;
use IO::Socket::INET;
use lib 't/e2e';
use Petrel;

$SIG{PIPE} = 'IGNORE'; # a peer that goes away is what some tests are about

# connect(PORT, socket options...): undef when nobody listens.
sub connect {
    my ($class, $port, %option) = @_;
    my $socket = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => $Petrel::patience, %option)
        or return;
    $socket->autoflush(1);
    return bless {socket => $socket, buffer => ''}, $class;
}

# connect, banner and EHLO.
sub greeted {
    my ($class, $port, %option) = @_;
    my $self = $class->connect($port, %option) or return;
    return unless $self->reply =~ /^220/ && $self->say('EHLO client.test') =~ /^250/;
    return $self;
}

# False when the peer is gone.
sub put {
    my ($self, $bytes) = @_;
    my $at = 0;
    while ($at < length $bytes) {
        my $wrote = syswrite $self->{socket}, $bytes, length($bytes) - $at, $at;
        return 0 unless $wrote;
        $at += $wrote;
    }
    return 1;
}

# One (multi-line) reply; '' when the connection has ended or the time is over.
sub reply {
    my ($self, $seconds) = @_;
    my $wait = IO::Select->new($self->{socket});
    while (1) {
        return $1 if $self->{buffer} =~ s/\A((?:\d{3}-.*\n)*\d{3}(?: .*|\r?)\n)//;
        return '' unless $wait->can_read($seconds // $Petrel::patience);
        sysread($self->{socket}, $self->{buffer}, 65536, length $self->{buffer}) or return '';
    }
}

# Sends so many messages without waiting for replies.
sub burst {
    my ($self, $count) = @_;
    my $content = "Subject: x\r\n\r\nhello\r\n";
    my $one = "MAIL FROM:<s\@x.example>\r\nRCPT TO:<ok\@example.org>\r\nBDAT " . length($content) . " LAST\r\n$content";
    return $self->put($one x $count);
}

sub say { my ($self, $line) = @_; return $self->put("$line\r\n") ? $self->reply : '' }

# Everything until the peer closes, or says nothing for so many seconds.
sub rest {
    my ($self, $seconds) = @_;
    my $wait = IO::Select->new($self->{socket});
    while ($wait->can_read($seconds // $Petrel::patience)) {
        sysread($self->{socket}, $self->{buffer}, 65536, length $self->{buffer}) or last;
    }
    my $all = $self->{buffer};
    $self->{buffer} = '';
    return $all;
}

sub stuffed { my $content = shift; $content =~ s/(\A|\r\n)\./$1../g; return $content }

# The commands of one envelope; %mail: from, to (list), mail_parameters, rcpt_parameters.
sub envelope {
    my %mail = @_;
    my @to = ref $mail{to} ? @{ $mail{to} } : $mail{to};
    my ($m, $r) = map { $mail{$_} ? " $mail{$_}" : '' } qw(mail_parameters rcpt_parameters);
    return ("MAIL FROM:<$mail{from}>$m", map { "RCPT TO:<$_>$r" } @to);
}

# One message, step by step; the last reply, or the first that is no 2xx. data has CRLF lines.
sub send {
    my ($self, %mail) = @_;
    for my $line (envelope(%mail)) {
        my $reply = $self->say($line);
        return $reply unless $reply =~ /^2/;
    }
    my $reply = $self->say('DATA');
    return $reply unless $reply =~ /^354/;
    return $self->put(stuffed($mail{data}) . ".\r\n") ? $self->reply : '';
}

# The same with the envelope in one piece.
sub send_pipelined {
    my ($self, %mail) = @_;
    my @lines = (envelope(%mail), 'DATA');
    $self->put(join '', map { "$_\r\n" } @lines) or return '';
    my @replies = map { $self->reply } @lines;
    my ($bad) = grep { !/^[23]/ } @replies;
    return $bad if defined $bad;
    return $self->put(stuffed($mail{data}) . ".\r\n") ? $self->reply : '';
}

# The same in chunks (RFC 3030), all in one go; sizes are those of the chunks, the last takes the rest.
sub send_chunks {
    my ($self, $sizes, %mail) = @_;
    my @lines = envelope(%mail);
    my ($all, $count, $at) = (join('', map { "$_\r\n" } @lines), scalar @lines, 0);
    for my $size (@$sizes) {
        last if $at + $size >= length $mail{data};
        $all .= "BDAT $size\r\n" . substr $mail{data}, $at, $size;
        $at += $size;
        $count++;
    }
    $all .= 'BDAT ' . (length($mail{data}) - $at) . " LAST\r\n" . substr $mail{data}, $at;
    $self->put($all) or return '';
    my @replies = map { $self->reply } 0 .. $count;
    my ($bad) = grep { !/^2/ } @replies;
    return $bad // $replies[-1];
}

sub quit { my $self = shift; my $reply = $self->say('QUIT'); CORE::close $self->{socket}; return $reply }
sub close { my $self = shift; return CORE::close $self->{socket} }

1;
