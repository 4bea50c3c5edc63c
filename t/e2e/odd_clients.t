#!/usr/bin/perl
# Commands, content and headers as devices, programs and people write them: what Postfix 3.7 makes of each, what we do for a
# client that may relay, for an old device and for an untrusted client, and why that differs. One row is one case; the
# column of Postfix is asserted where the package is unpacked.
use lib 't/e2e';
use E2E;
use Peer;

my @columns = qw(postfix trusted legacy untrusted);
my $dump = $ENV{ODD_CLIENTS_DUMP};

# --- The rows

# \t \r \n \0 \xNN, and {N*text}.
sub plain {
    my $text = shift;
    $text =~ s/\{(\d+)\*(.*?)\}/$2 x $1/ge;
    return $text =~ s/\\(?:x(..)|([trn0p]))/defined $1 ? chr hex $1 : { t => "\t", r => "\r", n => "\n", 0 => "\0", p => '|' }->{$2}/ger;
}

# The same backwards, and long runs of one letter as {N*letter}.
sub shown { my $text = shift; $text =~ s/(\w)\1{30,}/'{' . length($&) . "*$1}"/ge; return $text =~ s/([^ -~])/sprintf '\\x%02x', ord $1/ger =~ s/\\x0d\\x0a/\\r\\n/gr =~ s/\|/\\p/gr }

my (@rows, %seen);
while (my $line = <DATA>) {
    next if $line =~ /^(?:#|\s*$)/;
    chomp $line;
    my ($kind, $input, @rest) = split / \| ?/, $line, -1;
    push @rows, { kind => $kind, input => $input, why => $rest[4], number => $., map { $columns[$_] => ($rest[$_] // '') =~ s/\s+\z//r } 0 .. 3 };
    ok !$seen{"$kind $input"}++, "$kind $input: one row" if $seen{"$kind $input"};
}

# --- The servers

my $sink = Sink->start;
my $behind = Sink->start; # what Postfix relays to
my $next = "smtp://127.0.0.1:$sink->{port}";
my $legacy = Petrel::free_port();
my $petrel = Petrel->new(
    routes => "dest.test $next\npetrel.test $next\n* $next", local_domains => 'dest.test, petrel.test', relay_from => '127.0.0.1/32', root => 'operator@far.test',
    server_session_limit => 1000, client_session_limit => 1000, smtpd_hard_error_limit => 10000, smtpd_soft_error_limit => 10000,
);
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$legacy?profile=legacy")->start;
my $postfix;
if (my $why = Peer::missing('postfix')) {
    diag "the column of Postfix is not tried: $why";
} else {
    $postfix = Peer::postfix($behind->{port}, smtpd_error_sleep_time => 0, smtpd_soft_error_limit => 10000, smtpd_hard_error_limit => 100000, smtpd_junk_command_limit => 100000, smtputf8_enable => 'yes');
}
my %port = (trusted => $petrel->{port}, legacy => $legacy, untrusted => $petrel->{port}, $postfix ? (postfix => $postfix->{port}) : ());
my %session;

# A session with who, greeted unless $raw.
sub session {
    my ($who, $raw) = @_;
    my @from = $who eq 'untrusted' ? (LocalAddr => '127.0.0.2') : ();
    return Client->greeted($port{$who}, @from) unless $raw;
    my $client = Client->connect($port{$who}, @from);
    $client->reply;
    return $client;
}

sub code { return substr($_[0], 0, 3) || 'closed' }

# --- One case each: the reply, and what is to arrive behind it

my $id = 0;
my %due; # "who id" => [row, column]

sub content { my ($who, $number) = @_; return "From: a\@b.test\r\nX-Row: $who-$number\r\nSubject: s\r\n\r\nx\r\n" }

# DATA of what is open, to be looked for at the next hop.
sub finish {
    my ($client, $who, $row, $content) = @_;
    $client->say('DATA') =~ /^354/ or return;
    $client->put(($content // content($who, $row->{number})) . ".\r\n");
    my $reply = $client->reply;
    $due{"$who-$row->{number}"} = $row if $reply =~ /^250/;
    return $reply;
}

my %try = (
    MAIL => sub {
        my ($row, $who, $client) = @_;
        $client->say('RSET');
        my $reply = $client->say('MAIL FROM:' . plain($row->{input}));
        if ($reply =~ /^250/ && $who =~ /trusted|postfix/ && $who ne 'untrusted') {
            $client->say('RCPT TO:<b@dest.test>');
            finish($client, $who, $row);
        }
        return $reply;
    },
    RCPT => sub {
        my ($row, $who, $client) = @_;
        $client->say('RSET');
        $client->say('MAIL FROM:<a@b.test>');
        my $reply = $client->say('RCPT TO:' . plain($row->{input}));
        finish($client, $who, $row) if $reply =~ /^250/ && $who =~ /^(?:trusted|postfix)$/;
        return $reply;
    },
    LINE => sub { my ($row, $who, $client) = @_; $client->say('RSET'); return $client->say(plain($row->{input})) },
    FIRST => sub { my ($row, $who) = @_; return session($who, 1)->say(plain($row->{input})) },
    BODY => sub {
        my ($row, $who) = @_;
        my $client = session($who);
        $client->say($_) for 'MAIL FROM:<a@b.test>', 'RCPT TO:<b@dest.test>';
        return finish($client, $who, $row, "From: a\@b.test\r\nX-Row: $who-$row->{number}\r\nSubject: s\r\n\r\n" . plain($row->{input}) . "\r\n");
    },
    HEAD => sub {
        my ($row, $who) = @_;
        my $client = session($who);
        $client->say($_) for 'MAIL FROM:<sender@client.test>', 'RCPT TO:<b@dest.test>';
        return finish($client, $who, $row, "X-Row: $who-$row->{number}\r\nDate: Sat, 21 Nov 2026 03:00:00 +0000\r\n" . plain($row->{input}) . "\r\n\r\nx\r\n");
    },
    SENDMAIL => sub {
        my ($row, $who) = @_;
        return '' unless $who eq 'trusted' || ($who eq 'postfix' && $postfix);
        my ($arguments, $header) = split / <<< /, $row->{input};
        my @arguments = map { /^'(.*)'$/ ? $1 : $_ } $arguments =~ /'[^']*'|\S+/g;
        my @command = $who eq 'postfix' ? (Petrel::have('chroot'), $postfix->{root}, '/usr/sbin/sendmail') : ($Petrel::binary, '-c', $petrel->conf, 'sendmail');
        my ($code) = Petrel::command(plain($header) . "\nX-Row: $who-$row->{number}\nSubject: s\n\nx\n", @command, @arguments);
        $due{"$who-$row->{number}"} = $row if $code == 0;
        return $code;
    },
);
for my $who (grep { $port{$_} } @columns) {
    for my $row (@rows) {
        my $client = $session{$who};
        if ($row->{kind} =~ /^(?:MAIL|RCPT|LINE)$/) {
            $client = $session{$who} = session($who) unless $client && $who ne 'untrusted' && $client->say('NOOP') =~ /^250/;
        }
        my $reply = $try{ $row->{kind} }->($row, $who, $client);
        $row->{got}{$who} = $row->{kind} eq 'SENDMAIL' ? $reply : code($reply // '');
        $row->{said}{$who} = $reply;
    }
}

# --- What left

ok $petrel->wait_empty(60), 'all mail of Petrel has left' or diag $petrel->log =~ s/^.*status=sent.*\n//mgr;
my %arrived;
sub collect { for my $message (map { $_->messages } $sink, $behind) { my ($row) = $message->{data} =~ /^X-Row: (\S+)\r?$/m or next; $arrived{$row} = $message unless $message->{data} =~ /^Content-Type: multipart\/report/m } return }
Petrel::wait_for(sub { %arrived = (); collect(); !grep { !$arrived{$_} } keys %due }, $dump ? 10 : 60);

sub outcome {
    my ($row, $who) = @_;
    my $code = $row->{got}{$who};
    my $message = $arrived{"$who-$row->{number}"} or return $code;
    my ($head, $body) = split /\r\n\r\n/, $message->{data}, 2;
    my %what = (
        MAIL => sub { shown("<$message->{from}>") }, RCPT => sub { shown(join ',', map { "<$_>" } @{ $message->{to} }) }, BODY => sub { shown($body =~ s/\r\n\z//r) },
        HEAD => sub { join ' ', map { shown($_) } $head =~ /^((?:X-Original-)?From:[^\r\n]*(?:\r\n[ \t][^\r\n]*)*)/mg },
        SENDMAIL => sub { shown("<$message->{from}> " . join ',', map { "<$_>" } @{ $message->{to} }) },
    );
    return $what{ $row->{kind} } ? "$code " . $what{ $row->{kind} }->() : $code;
}
for my $row (@rows) {
    my %got = map { $_ => outcome($row, $_) } grep { $port{$_} } @columns;
    if ($dump) {
        my @all = map { $row->{kind} eq 'SENDMAIL' && !/^(?:postfix|trusted)$/ ? '-' : $got{$_} // '?' } @columns;
        print STDERR join(' | ', $row->{kind}, $row->{input}, @all, $row->{why} // ''), "\n";
        next;
    }
    for my $who (grep { $port{$_} && $row->{$_} ne '-' } @columns) {
        is $got{$who} =~ s/\s+\z//r, $row->{$who}, "$who: $row->{kind} $row->{input}" or diag $row->{said}{$who};
    }
    ok $row->{why} || $row->{postfix} =~ s/postfix\.test/petrel.test/gr eq $row->{trusted}, "$row->{kind} $row->{input}: why another answer than Postfix's";
}
cmp_ok scalar(@rows), '>=', 150, 'rows';

# The entry of To that is no address goes back to the sender, named.
my ($report) = grep { $_->{from} eq '' && $_->{to}[0] eq 'me@b.test' && $_->{data} =~ /multipart\/report/ } $sink->messages;
like $report->{data}, qr/^Final-Recipient: rfc822; x y z\r\n(?:\S[^\r]*\r\n)*Status: 5\.1\.3\r$/m, 'sendmail -t: a bad recipient is returned to the sender';
# Once a message, and with what was done.
like $petrel->log, qr/ smtpd\S*: \S+: repaired: NUL;$/m, 'a repair is logged';
like $petrel->log, qr/: repaired: no empty line behind the header;$/m, 'so is a missing empty line';
is $petrel->stop, 0, 'Petrel ends well';
$postfix->stop if $postfix;
done_testing;
__DATA__
# kind | input | Postfix 3.7 | may relay | old device | untrusted | why
MAIL | <a@b.test> | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <> | 250 <> | 250 <> | 250 | 250
MAIL |  <a@b.test> | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | \t<a@b.test> | 250 <a@b.test> | 250 <a@b.test> | 250 | 500 | untrusted: what cannot be misread
MAIL | a@b.test | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL |  a@b.test SIZE=10 | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | a@b.test AUTH=<> | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a@b.test | 501 | 250 <a@b.test> | 250 | 250 | one bracket means the same
MAIL | a@b.test> | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a@b.test.> | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | a@b.test. | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a@b.test..> | 501 | 501 | 501 | 501
MAIL | <root> | 250 <root@postfix.test> | 250 <root@petrel.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | root | 250 <root@postfix.test> | 250 <root@petrel.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | printer SIZE=10 | 250 <printer@postfix.test> | 250 <printer@petrel.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <postmaster> | 250 <postmaster@postfix.test> | 250 <postmaster@petrel.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | < a@b.test > | 250 <a@b.test> | 250 <a@b.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <a @ b.test> | 250 <a@b.test> | 250 <a@b.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <<a@b.test>> | 250 <a@b.test> | 250 <a@b.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <<a@b.test> | 501 | 250 <a@b.test> | 250 | 501 | one bracket means the same
MAIL | Web <a@b.test> | 555 | 250 <a@b.test> | 250 | 501 | a name says nothing about the address
MAIL | Web App <a@b.test> SIZE=10 | 555 | 250 <a@b.test> | 250 | 501 | a name says nothing about the address
MAIL | "Web, App" <a@b.test> | 555 | 250 <a@b.test> | 250 | 501 | a name says nothing about the address
MAIL | <Web App <a@b.test>> | 250 <a@b.test> | 250 <a@b.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <a@b.test (note)> | 250 <a@b.test> | 250 <a@b.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <a@b.test>\tSIZE=10 | 250 <a@b.test> | 250 <a@b.test> | 250 | 500 | untrusted: what cannot be misread
MAIL | < > | 250 <> | 250 <> | 250 | 501 | untrusted: what cannot be misread
MAIL | <a..b@b.test> | 250 <"a..b"@b.test> | 250 <"a..b"@b.test> | 250 | 250
MAIL | <.a@b.test> | 250 <".a"@b.test> | 250 <".a"@b.test> | 250 | 250
MAIL | <a.@b.test> | 250 <"a."@b.test> | 250 <"a."@b.test> | 250 | 250
MAIL | <"a..b"@b.test> | 250 <"a..b"@b.test> | 250 <"a..b"@b.test> | 250 | 250
MAIL | <..@b.test> | 250 <".."@b.test> | 501 | 501 | 501 | no such mailbox; two readers see two things
MAIL | <{64*a}@b.test> | 250 <{64*a}@b.test> | 250 <{64*a}@b.test> | 250 | 250
MAIL | <{65*a}@b.test> | 250 <{65*a}@b.test> | 250 <{65*a}@b.test> | 250 | 250
MAIL | <{247*a}@b.test> | 250 <{247*a}@b.test> | 250 <{247*a}@b.test> | 250 | 250
MAIL | <{248*a}@b.test> | 250 <{248*a}@b.test> | 501 | 501 | 501 | a path has 254 octets (RFC 5321 4.5.3.1.3)
MAIL | <bounces+1234567-ab12-firstname.lastname=some-longer-company-name.example@em1234.b.test> | 250 <bounces+1234567-ab12-firstname.lastname=some-longer-company-name.example@em1234.b.test> | 250 <bounces+1234567-ab12-firstname.lastname=some-longer-company-name.example@em1234.b.test> | 250 | 250
MAIL | <prvs=0123456789=a@b.test> | 250 <prvs=0123456789=a@b.test> | 250 <prvs=0123456789=a@b.test> | 250 | 250
MAIL | <SRS0=AbCd=XY=other.test=a@b.test> | 250 <SRS0=AbCd=XY=other.test=a@b.test> | 250 <SRS0=AbCd=XY=other.test=a@b.test> | 250 | 250
MAIL | <a@> | 501 | 501 | 501 | 501
MAIL | <@b.test> | 250 <""@b.test> | 501 | 501 | 501 | an empty local part is nobody
MAIL | <a@b@c.test> | 250 <"a@b"@c.test> | 501 | 501 | 501 | two @ are two readings
MAIL | <a b@c.test> | 501 | 501 | 501 | 501
MAIL | <"a b"@c.test> | 250 <"a b"@c.test> | 250 <"a b"@c.test> | 250 | 250
MAIL | <a@b..test> | 501 | 501 | 501 | 501
MAIL | <a@-b.test> | 501 | 501 | 501 | 501
MAIL | <a@b_c.test> | 250 <a@b_c.test> | 250 <a@b_c.test> | 250 | 250
MAIL | <a@[127.0.0.1]> | 250 <a@[127.0.0.1]> | 250 <a@[127.0.0.1]> | 250 | 250
MAIL | <a@[127.0.0.1> | 250 <a@[127.0.0.1]> | 501 | 501 | 501 | the literal does not end
MAIL | <@r.test:a@b.test> | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a%c.test@b.test> | 250 <a%c.test@b.test> | 250 <a%c.test@b.test> | 250 | 250
MAIL | <c.test!a@b.test> | 250 <c.test!a@b.test> | 250 <c.test!a@b.test> | 250 | 250
MAIL | <a@b.test>x | 501 | 501 | 501 | 501
MAIL | <a@b.test> <c@d.test> | 555 | 555 | 555 | 555
MAIL | <a@b.test>, <c@d.test> | 555 | 501 | 501 | 501 | another code
MAIL | <a@b.test> SIZE= | 501 | 501 | 501 | 501
MAIL | <a@b.test> SIZE=10 | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a@b.test> BODY=8BITMIME SIZE=10 | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a@b.test> BODY=QUOTED | 555 | 501 | 501 | 501 | another code
MAIL | <a@b.test> AUTH=<> | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a@b.test> AUTH=a+b | 250 <a@b.test> | 250 <a@b.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <a@b.test> ENVID=ab=c | 250 <a@b.test> | 250 <a@b.test> | 250 | 501 | untrusted: what cannot be misread
MAIL | <a@b.test> ENVID=abc | 250 <a@b.test> | 250 <a@b.test> | 250 | 250
MAIL | <a@b.test> RET=ALL | 501 | 501 | 501 | 501
MAIL | <a@b.test> FOO=1 | 555 | 555 | 555 | 555
MAIL | <\xfc@b.test> | 500 | 501 | 501 | 501 | another code
MAIL | <\xc3\xbc@b.test> SMTPUTF8 | 250 <\xc3\xbc@b.test> | 250 <\xc3\xbc@b.test> | 250 | 250
MAIL |  | 501 | 501 | 501 | 501
RCPT | <b@dest.test> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 250
RCPT |  <b@dest.test> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 250
RCPT | b@dest.test | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 250
RCPT | <b@dest.test | 501 | 250 <b@dest.test> | 250 | 250 | one bracket means the same
RCPT | b@dest.test> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 250
RCPT | <b@dest.test.> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 250
RCPT | <B@DEST.test> | 250 <B@DEST.test> | 250 <B@dest.test> | 250 | 250 | a domain leaves in lower case
RCPT | <root> | 250 <root@postfix.test> | 250 <operator@far.test> | 250 | 501 | the setting root
RCPT | root | 250 <root@postfix.test> | 250 <operator@far.test> | 250 | 501 | the setting root
RCPT | <sales> | 250 <sales@postfix.test> | 250 <sales@petrel.test> | 250 | 501 | untrusted: what cannot be misread
RCPT | <postmaster> | 250 <postmaster@postfix.test> | 250 <operator@far.test> | 250 | 250 | the setting root
RCPT | <PostMaster> | 250 <PostMaster@postfix.test> | 250 <operator@far.test> | 250 | 250 | the setting root
RCPT | < b@dest.test > | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 501 | untrusted: what cannot be misread
RCPT | <b@ dest.test> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 501 | untrusted: what cannot be misread
RCPT | <<b@dest.test>> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 501 | untrusted: what cannot be misread
RCPT | Bob <b@dest.test> | 555 | 250 <b@dest.test> | 250 | 501 | a name says nothing about the address
RCPT | <Bob B <b@dest.test>> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 501 | untrusted: what cannot be misread
RCPT | <Bob B <b@dest.test> | 501 | 250 <b@dest.test> | 250 | 501 | one bracket means the same
RCPT | "Bob B" <b@dest.test> NOTIFY=NEVER | 555 | 250 <b@dest.test> | 250 | 501 | a name says nothing about the address
RCPT | \t<b@dest.test> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 500 | untrusted: what cannot be misread
RCPT | <b@dest.test>\tNOTIFY=NEVER | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 500 | untrusted: what cannot be misread
RCPT | <a..b@dest.test> | 250 <"a..b"@dest.test> | 250 <"a..b"@dest.test> | 250 | 250
RCPT | <a.@dest.test> | 250 <"a."@dest.test> | 250 <"a."@dest.test> | 250 | 250
RCPT | <.a@dest.test> | 250 <".a"@dest.test> | 250 <".a"@dest.test> | 250 | 250
RCPT | <"a..b"@dest.test> | 250 <"a..b"@dest.test> | 250 <"a..b"@dest.test> | 250 | 250
RCPT | <"a b"@dest.test> | 250 <"a b"@dest.test> | 250 <"a b"@dest.test> | 250 | 250
RCPT | <reply+000c89caea14b0bf53caf17fd0c9c67fce378f51fd1af05492cf000000011292f3d892a169ce07601530@dest.test> | 250 <reply+000c89caea14b0bf53caf17fd0c9c67fce378f51fd1af05492cf000000011292f3d892a169ce07601530@dest.test> | 250 <reply+000c89caea14b0bf53caf17fd0c9c67fce378f51fd1af05492cf000000011292f3d892a169ce07601530@dest.test> | 250 | 250
RCPT | <{86*x}@dest.test> | 250 <{86*x}@dest.test> | 250 <{86*x}@dest.test> | 250 | 250
RCPT | <{244*x}@dest.test> | 250 <{244*x}@dest.test> | 250 <{244*x}@dest.test> | 250 | 250
RCPT | <{245*x}@dest.test> | 250 <{245*x}@dest.test> | 501 | 501 | 501 | a path has 254 octets (RFC 5321 4.5.3.1.3)
RCPT | <x-SRS0={60*a}@dest.test> | 250 <x-SRS0={60*a}@dest.test> | 250 <x-SRS0={60*a}@dest.test> | 250 | 250
RCPT | <> | 501 | 501 | 501 | 501
RCPT | < > | 501 | 501 | 501 | 501
RCPT | <@> | 501 | 501 | 501 | 501
RCPT | <b@> | 501 | 501 | 501 | 501
RCPT | <@dest.test> | 250 <""@dest.test> | 501 | 501 | 501 | an empty local part is nobody
RCPT | <b@dest..test> | 501 | 501 | 501 | 501
RCPT | <b@dest.test@other.test> | 250 <"b@dest.test"@other.test> | 501 | 501 | 501 | two @ are two readings
RCPT | <b c@dest.test> | 501 | 501 | 501 | 501
RCPT | <b@dest.test>, <c@dest.test> | 555 | 501 | 501 | 501 | another code
RCPT | b@dest.test c@dest.test | 555 | 501 | 501 | 555 | another code
RCPT | <b,c@dest.test> | 501 | 501 | 501 | 501
RCPT | <@r.test:b@dest.test> | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 250
RCPT | <b@dest.test> ORCPT=rfc822;a=b@dest.test | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 501 | untrusted: what cannot be misread
RCPT | <b@dest.test> ORCPT=rfc822;a+3Db@dest.test | 250 <b@dest.test> | 250 <b@dest.test> | 250 | 250
RCPT | <b@dest.test> ORCPT=b@dest.test | 501 | 250 <b@dest.test> | 250 | 501 | a word for notifications refuses no mail
RCPT | <b@dest.test> NOTIFY=NEVER,SUCCESS | 501 | 501 | 501 | 501
RCPT | <b@dest.test> SIZE=10 | 555 | 555 | 555 | 555
RCPT | <b%far.test@dest.test> | 250 <b%far.test@dest.test> | 250 <b%far.test@dest.test> | 250 | 554 | untrusted: no relay
RCPT | <far.test!b@dest.test> | 250 <far.test!b@dest.test> | 250 <far.test!b@dest.test> | 250 | 554 | untrusted: no relay
RCPT | <"b@far.test"@dest.test> | 250 <"b@far.test"@dest.test> | 250 <"b@far.test"@dest.test> | 250 | 554 | untrusted: no relay
RCPT | <b@far.test> | 250 <b@far.test> | 250 <b@far.test> | 250 | 554 | untrusted: no relay
RCPT | <b%far.test> | 250 <b@far.test> | 250 <b%far.test@petrel.test> | 250 | 501 | no routing by the local part
RCPT | <"b@far.test"> | 250 <b@far.test> | 250 <"b@far.test"@petrel.test> | 250 | 501 | no routing by the local part
RCPT | <\xfc@dest.test> | 500 | 501 | 501 | 501 | another code
LINE |  MAIL FROM:<a@b.test> | 250 | 250 | 250 | 500 | untrusted: to the letter
LINE | \tNOOP | 250 | 250 | 250 | 500 | untrusted: to the letter
LINE | mail from:<a@b.test> | 250 | 250 | 250 | 250
LINE | MAIL\tFROM:<a@b.test> | 250 | 250 | 250 | 500 | untrusted: to the letter
LINE | MAIL FROM:  | 501 | 501 | 501 | 501
LINE | MAIL <a@b.test> | 501 | 501 | 501 | 501
LINE | MAIL TO:<a@b.test> | 501 | 501 | 501 | 501
LINE | RCPT TO:<b@dest.test> | 503 | 503 | 503 | 503
LINE | DATA | 503 | 503 | 503 | 503
LINE | VRFY b@dest.test | 252 | 252 | 252 | 252
LINE | NOOP x | 250 | 250 | 250 | 250
LINE | RSET x | 501 | 501 | 501 | 501
LINE | HELP | 500 | 214 | 214 | 214 | RFC 5321 has it
LINE | FOO | 500 | 500 | 500 | 500
LINE | NO\rOP | 500 | 521 | 521 | 521 | a command must not have two readings (smuggling)
LINE | NOOP\0 | 250 | 521 | 521 | 521 | a command must not have two readings (smuggling)
LINE | QUIT now | 221 | 221 | 221 | 501 | untrusted: to the letter
FIRST | EHLO client.test | 250 | 250 | 250 | 250
FIRST | EHLO | 501 | 501 | 250 | 501
FIRST | HELO | 501 | 501 | 250 | 501
FIRST | HELO  | 501 | 501 | 250 | 501
FIRST | EHLO B\xfcro-PC | 500 | 501 | 250 | 501 | the name is only for Received, and an old device may have any
FIRST | EHLO B\xc3\xbcro-PC | 250 | 250 | 250 | 250
FIRST | HELO my pc | 250 | 250 | 250 | 250
FIRST | HELO {300*x} | 250 | 501 | 250 | 501 | a name of a host has 255 octets; an old device may have any
FIRST | HELO [192.0.2.1] | 250 | 250 | 250 | 250
FIRST | HELO localhost | 250 | 250 | 250 | 250
FIRST | HELO client_1 | 250 | 250 | 250 | 250
FIRST | MAIL FROM:<a@b.test> | 250 | 503 | 250 | 503 | EHLO first, but for an old device (RFC 5321 4.1.4)
FIRST | RCPT TO:<b@dest.test> | 503 | 503 | 503 | 503
FIRST | NOOP | 250 | 250 | 250 | 250
FIRST | QUIT | 221 | 221 | 221 | 221
FIRST |  EHLO client.test | 250 | 250 | 250 | 500 | untrusted: to the letter
BODY | a | 250 a | 250 a | 250 a | 250 a
BODY | a\nb | 250 a\r\nb | 250 a\r\nb | 250 a\r\nb | 521 | untrusted: no repair (smuggling)
BODY | a\rb | 250 a b | 250 a\r\nb | 250 a\r\nb | 521 | a bare CR is a line end
BODY | a\r\r\nb | 250 a\r\nb | 250 a\r\nb | 250 a\r\nb | 521 | untrusted: no repair (smuggling)
BODY | a\0b | 250 a\x00b | 250 ab | 250 ab | 521 | NUL is no character of mail, and is nobody's line end
BODY | a\n.\nb | 250 a | 250 a\r\n.\r\nb | 250 a | 521 | only CRLF.CRLF ends content, but for an old device
BODY | a\r.\rb | 250 a . b | 250 a\r\n.\r\nb | 250 a\r\n.\r\nb | 521 | a bare CR is a line end, and a dot beside it is content
BODY | a\r\n.\rb | 250 a\r\n b | 250 a\r\n.\r\nb | 250 a\r\n.\r\nb | 521 | a bare CR is a line end, and a dot beside it is content
BODY | a\n.\r\nb | 250 a | 250 a\r\n.\r\nb | 250 a | 521 | only CRLF.CRLF ends content, but for an old device
BODY | a\r\r\n.\r\r\nb | 250 a | 250 a\r\n.\r\nb | 250 a | 521 | only CRLF.CRLF ends content, but for an old device
BODY | a\r\n\0.\r\nb | 250 a\r\n\x00.\r\nb | 250 a\r\n.\r\nb | 250 a\r\n.\r\nb | 521 | NUL is no character of mail, and is nobody's line end
BODY | ..a | 250 .a | 250 .a | 250 .a | 250 .a
BODY | {990*a} | 250 {990*a} | 250 {990*a} | 250 {990*a} | 250 {990*a}
BODY | {1500*a} | 250 {998*a}\r\n {502*a} | 250 {1500*a} | 250 {1500*a} | 250 {1500*a} | a line is broken by nobody: signatures
BODY | Gr\xfc\xdfe | 250 Gr\xfc\xdfe | 250 Gr\xfc\xdfe | 250 Gr\xfc\xdfe | 250 Gr\xfc\xdfe
HEAD | From: a@other.test | 250 From: a@other.test | 250 From: a@other.test | 250 From: a@other.test | 250 From: a@other.test
HEAD | From: Joe <a@other.test> | 250 From: Joe <a@other.test> | 250 From: Joe <a@other.test> | 250 From: Joe <a@other.test> | 250 From: Joe <a@other.test>
HEAD | From: root | 250 From: root@postfix.test | 250 From: root@petrel.test | 250 From: root@petrel.test | 250 From: root
HEAD | From: root (Cron Daemon) | 250 From: root@postfix.test (Cron Daemon) | 250 From: root@petrel.test (Cron Daemon) | 250 From: root@petrel.test (Cron Daemon) | 250 From: root (Cron Daemon)
HEAD | From:  | 250 From: | 250 From: sender@client.test | 250 From: sender@client.test | 250 From: | receivers refuse such a From
HEAD | From: <> | 250 From: <> | 250 From: sender@client.test X-Original-From: <> | 250 From: sender@client.test X-Original-From: <> | 250 From: <> | receivers refuse such a From
HEAD | From: Joe <> | 250 From: Joe <> | 250 From: "Joe <>" <sender@client.test> X-Original-From: Joe <> | 250 From: "Joe <>" <sender@client.test> X-Original-From: Joe <> | 250 From: Joe <> | receivers refuse such a From
HEAD | Subject: no From | 250 From: sender@client.test | 250 From: sender@client.test | 250 From: sender@client.test | 250
HEAD | From: Backup Job | 250 From: Backup@postfix.test, Job@postfix.test | 250 From: "Backup Job" <sender@client.test> X-Original-From: Backup Job | 250 From: "Backup Job" <sender@client.test> X-Original-From: Backup Job | 250 From: Backup Job | receivers refuse such a From
HEAD | From: "Web <a@other.test> | 250 From: "Web <a@other.test>"@postfix.test | 250 From: "\"Web <a@other.test>" <sender@client.test> X-Original-From: "Web <a@other.test> | 250 From: "\"Web <a@other.test>" <sender@client.test> X-Original-From: "Web <a@other.test> | 250 From: "Web <a@other.test> | receivers refuse such a From
HEAD | From: Web (prod <a@other.test> | 250 From: Web@postfix.test (prod <a@other.test> | 250 From: "Web (prod <a@other.test>" <sender@client.test> X-Original-From: Web (prod <a@other.test> | 250 From: "Web (prod <a@other.test>" <sender@client.test> X-Original-From: Web (prod <a@other.test> | 250 From: Web (prod <a@other.test> | receivers refuse such a From
HEAD | From: Doe, John <a@other.test> | 250 From: Doe@postfix.test, John <a@other.test> | 250 From: "Doe, John" <a@other.test> | 250 From: "Doe, John" <a@other.test> | 250 From: Doe, John <a@other.test> | a person with a comma
HEAD | From: a@other.test. | 250 From: a@other.test | 250 From: a@other.test. | 250 From: a@other.test. | 250 From: a@other.test. | left alone where nothing else changes
HEAD | From: a..b@docomo.test | 250 From: "a..b"@docomo.test | 250 From: a..b@docomo.test | 250 From: a..b@docomo.test | 250 From: a..b@docomo.test | left alone: all readers take it
HEAD | From: {70*x}@other.test | 250 From: {70*x}@other.test | 250 From: {70*x}@other.test | 250 From: {70*x}@other.test | 250 From: {70*x}@other.test
HEAD | From: <<a@other.test>> | 250 From: <<a@other.test>> | 250 From: "<<a@other.test>>" <sender@client.test> X-Original-From: <<a@other.test>> | 250 From: "<<a@other.test>>" <sender@client.test> X-Original-From: <<a@other.test>> | 250 From: <<a@other.test>> | receivers refuse such a From
HEAD | From: a@other.test@b.test | 250 From: "a@other.test"@b.test | 250 From: "a@other.test@b.test" <sender@client.test> X-Original-From: a@other.test@b.test | 250 From: "a@other.test@b.test" <sender@client.test> X-Original-From: a@other.test@b.test | 250 From: a@other.test@b.test | receivers refuse such a From
HEAD | From: a@other.test, b@other.test | 250 From: a@other.test, b@other.test | 250 From: a@other.test, b@other.test | 250 From: a@other.test, b@other.test | 250 From: a@other.test, b@other.test
HEAD | From: Joe <a@other.test> x | 250 From: Joe <a@other.test>, x@postfix.test | 250 From: "Joe <a@other.test> x" <sender@client.test> X-Original-From: Joe <a@other.test> x | 250 From: "Joe <a@other.test> x" <sender@client.test> X-Original-From: Joe <a@other.test> x | 250 From: Joe <a@other.test> x | receivers refuse such a From
HEAD | From: undisclosed-recipients:; | 250 From: undisclosed-recipients:; | 250 From: "undisclosed-recipients:;" <sender@client.test> X-Original-From: undisclosed-recipients:; | 250 From: "undisclosed-recipients:;" <sender@client.test> X-Original-From: undisclosed-recipients:; | 250 From: undisclosed-recipients:; | receivers refuse such a From
HEAD | From: =?utf-8?q?J=C3=B6?= <a@other.test> | 250 From: =?utf-8?q?J=C3=B6?= <a@other.test> | 250 From: =?utf-8?q?J=C3=B6?= <a@other.test> | 250 From: =?utf-8?q?J=C3=B6?= <a@other.test> | 250 From: =?utf-8?q?J=C3=B6?= <a@other.test>
HEAD | From: 'a@other.test' | 250 From: 'a@other.test' | 250 From: 'a@other.test' | 250 From: 'a@other.test' | 250 From: 'a@other.test'
HEAD | From : a@other.test | 250 From: a@other.test | 250 From: a@other.test | 250 From: a@other.test | 250
HEAD | >From root Mon Nov 14\r\nFrom: a@other.test | 250 From: sender@client.test | 250 From: sender@client.test | 250 From: sender@client.test | 250 From: a@other.test
HEAD | From: Joe <a@other.test>\r\nno field | 250 From: Joe <a@other.test> | 250 From: Joe <a@other.test> | 250 From: Joe <a@other.test> | 250 From: Joe <a@other.test>
SENDMAIL | b@dest.test <<< From: a@b.test | 0 <root@postfix.test> <b@dest.test> | 0 <root@petrel.test> <b@dest.test> | - | -
SENDMAIL | -f me@b.test b@dest.test <<< From: a@b.test | 0 <me@b.test> <b@dest.test> | 0 <me@b.test> <b@dest.test> | - | -
SENDMAIL | -f 'Joe <me@b.test>' b@dest.test <<< From: a@b.test | 0 <me@b.test> <b@dest.test> | 0 <me@b.test> <b@dest.test> | - | -
SENDMAIL | -f 'Web \<me@b.test\>' b@dest.test <<< From: a@b.test | 0 <Web@postfix.test> <b@dest.test> | 0 <me@b.test> <b@dest.test> | - | - | PHP escapes the brackets
SENDMAIL | -f '' b@dest.test <<< From: a@b.test | 0 <> <b@dest.test> | 0 <> <b@dest.test> | - | -
SENDMAIL | -f me@b.test -t <<< To: b@dest.test | 0 <me@b.test> <b@dest.test> | 0 <me@b.test> <b@dest.test> | - | -
SENDMAIL | -f me@b.test -t <<< To: Bob <b@dest.test>, c@dest.test | 0 <me@b.test> <b@dest.test>,<c@dest.test> | 0 <me@b.test> <b@dest.test>,<c@dest.test> | - | -
SENDMAIL | -f me@b.test -t <<< To: {70*x}@dest.test | 0 <me@b.test> <{70*x}@dest.test> | 0 <me@b.test> <{70*x}@dest.test> | - | -
SENDMAIL | -f me@b.test -t <<< To: a..b@dest.test | 0 <me@b.test> <"a..b"@dest.test> | 0 <me@b.test> <"a..b"@dest.test> | - | -
SENDMAIL | -f me@b.test -t <<< To: b@dest.test\nBcc: c@dest.test | 0 <me@b.test> <b@dest.test>,<c@dest.test> | 0 <me@b.test> <b@dest.test>,<c@dest.test> | - | -
SENDMAIL | --read-envelope-from -t <<< To: b@dest.test | 75 | 64 | - | - | the code says what is wrong
SENDMAIL | -f me@b.test b@dest.test <<< >From root Mon Nov 14 23:42 UTC 2016\nFrom: a@b.test | 0 <me@b.test> <b@dest.test> | 0 <me@b.test> <b@dest.test> | - | -
SENDMAIL | -f me@b.test b@dest.test <<< From root Mon Nov 14 23:42 UTC 2016\nFrom: a@b.test | 0 <me@b.test> <b@dest.test> | 0 <me@b.test> <b@dest.test> | - | -
SENDMAIL | -f me@b.test -t <<< Subject: nobody | 75 | 64 | - | - | the code says what is wrong
SENDMAIL | -f me@b.test -t <<< To: b@dest.test, x y z | 0 <me@b.test> <b@dest.test>,<x@postfix.test>,<y@postfix.test>,<z@postfix.test> | 0 <me@b.test> <b@dest.test> | - | - | a list with blanks is no three users
SENDMAIL | -f me@b.test -t <<< To: x y z | 0 <me@b.test> <x@postfix.test>,<y@postfix.test>,<z@postfix.test> | 65 | - | - | a list with blanks is no three users
SENDMAIL | -f me@b.test '' <<< From: a@b.test | 0 <me@b.test> <MAILER-DAEMON@postfix.test> | 65 | - | - | an empty recipient is an error of the caller
