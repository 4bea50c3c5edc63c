#!/usr/bin/perl
# Exim and OpenSMTPD as next hops: in clear, STARTTLS, TLS from the first byte, a login; they defer a recipient (greylisting),
# refuse one of two, a wrong password, and a message that is too large.
use lib 't/e2e';
use E2E;
use Peer;
use Program;

my %missing = map { $_ => Peer::missing($_) } qw(opensmtpd exim);
plan skip_all => join ', ', values %missing unless grep { !$_ } values %missing;
plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $scratch = tempdir('hops-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $keys = "$scratch/keys";
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
my $secret = 'a-secret';
my $passwords = Petrel::spit("$scratch/passwords", "127.0.0.1 joe $secret\n127.0.0.1 jim wrong\n");
chmod 0600, $passwords;
my $sink = Sink->start;

# What runs, and where: port (open to all, STARTTLS), login, tls (from the first byte; both with a login). known: what
# ends the greylisting, where it has an end.
my %peer = (
    exim => sub {
        my $exim = Peer::exim($sink->{port}, password => $secret, files => { 'pair.pem' => "$keys/good-both.pem" }, main => "message_size_limit = 20K\nsmtp_return_error_details", rcpt => <<'END');
  defer local_parts = grey
        condition = ${if !exists{/var/spool/exim4/known}}
        message = 4.2.0 greylisted, come back later
  deny local_parts = nobody
       message = 5.1.1 user unknown
  accept authenticated = *
  accept domains = ! *login.test
  deny message = 5.7.1 log in
END
        return { peer => $exim, port => $exim->{port}, login => $exim->{port}, tls => $exim->{tls}, known => sub { Petrel::spit("$exim->{root}/var/spool/exim4/known", '') } };
    },
    opensmtpd => sub {
        my $smtpd = Peer::opensmtpd("smtp://127.0.0.1:$sink->{port}", ca => "$keys/ca.pem", pair => "$keys/good", password => $secret, main => 'smtp max-message-size 20K', filters => <<'END');
table greys { "grey@" }
table nobodies { "nobody@" }
filter "grey" phase rcpt-to match rcpt-to regex <greys> reject "451 4.2.0 greylisted, come back later"
filter "nobody" phase rcpt-to match rcpt-to regex <nobodies> reject "550 5.1.1 user unknown"
filter "checks" chain { "grey", "nobody" }
END
        return { peer => $smtpd, port => $smtpd->{port}, login => $smtpd->{auth}, tls => $smtpd->{tls} };
    },
);

# Whether it speaks TLS with openssl: with OpenSSL 3 the OpenSMTPD of Debian 12 breaks off.
sub speaks_tls {
    my $port = shift;
    return (Petrel::command("QUIT\r\n", 'openssl', 's_client', '-connect', "127.0.0.1:$port", '-starttls', 'smtp', '-ign_eof'))[1] !~ /alert internal error/;
}

my $by_tls = qr/TLS(?:v1\.|1\.)[23]/;
# NAME.test goes by a way, and Received says how it came.
my %ways = (
    clear => { url => 'smtp://127.0.0.1:%port?tls=none', exim => qr/with esmtp +\(Exim/, opensmtpd => qr/with ESMTP id \S+\s+for/ },
    starttls => { url => 'smtp://127.0.0.1:%port?tls=verify', exim => qr/with esmtps +\($by_tls/, opensmtpd => qr/with ESMTPS id \S+ \($by_tls/ },
    login => { url => 'submission+starttls://joe@127.0.0.1:%login', exim => qr/with esmtpsa +\($by_tls/, opensmtpd => qr/with ESMTPSA id \S+ \($by_tls/ },
    tls => { url => 'smtps://joe@127.0.0.1:%tls', exim => qr/with esmtpsa +\($by_tls/, opensmtpd => qr/with ESMTPSA id \S+ \($by_tls/ },
    wrong => { url => 'submission+starttls://jim@127.0.0.1:%login' },
);
# What our log says of a recipient that is not served.
my %refused = (
    'you@wrong.test' => qr/dsn=4\.7\.\d, status=deferred \(.*\b535\b/,
    'grey@clear.test' => qr/dsn=4\.2\.0, status=deferred \(.*451 4\.2\.0 greylisted, come back later/,
    'nobody@clear.test' => qr/dsn=5\.1\.1, status=bounced \(.*550 5\.1\.1 user unknown/,
    'large@clear.test' => qr/dsn=5\.3\.4, status=bounced \(/,
);
my $header = "From: me\@here.test\nTo: you\@there.test\nDate: Sat, 21 Nov 2026 03:00:00 +0000\nMessage-ID: <1\@here.test>\nMIME-Version: 1.0\n"
    . "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n";
my $text = $Program::text =~ s/\n\z//r; # send_mail ends the line

for my $name (sort keys %peer) {
SKIP: {
        skip $missing{$name}, 1 if $missing{$name};
        my $hop = $peer{$name}->();
        my $tls = speaks_tls($hop->{port});
        my @ways = grep { $ways{$_}{exim} && ($tls || $_ eq 'clear') } sort keys %ways;
        my %refused = %refused;
        delete $refused{'you@wrong.test'} unless $tls;
        my $petrel = Petrel->new(routes => join("\n", (map { "$_.test " . ($ways{$_}{url} =~ s/%(\w+)/$hop->{$1}/gr) } sort keys %ways), "* smtp://127.0.0.1:$sink->{port}"),
            tls_ca => "$keys/ca.pem", auth_passwords => $passwords)->start;
        like $petrel->send_mail("$name\@here.test", @$_), qr/^250/, "$name: takes the message" for (map { ["$name\@$_.test", "$header$text"] } @ways),
            (map { [$_, "$header$text"] } grep { $refused{$_} } 'you@wrong.test'), [['grey@clear.test', "$name-first\@clear.test"], "$header$text"],
            [['nobody@clear.test', "$name-other\@clear.test"], "$header$text"], ['large@clear.test', "$header$Program::large"];
        my $comes = sub {
            my ($to, $pattern) = @_;
            my $got = $sink->wait_for($to) or return fail("$name, $to: arrives") || diag $petrel->log, $hop->{peer}->log;
            like $got->{data}, $pattern, "$name, $to: as it should" if $pattern;
            return ok(Program::text_of($got->{data}) eq $Program::text, "$name, $to: the text is whole") || diag $got->{data};
        };
        $comes->("$name\@$_.test", $ways{$_}{$name}) for @ways;
        $comes->("$name-$_\@clear.test") for qw(first other);
        ok $petrel->wait_log(qr/to=<\Q$_\E>[^\n]* $refused{$_}/), "$name, $_: is refused" or diag $petrel->log for sort keys %refused;
        for my $what (qw(nobody large)) {
            my $report = Petrel::wait_for(sub { (grep { $_->{data} =~ /$what\@clear\.test/ } $sink->for_address("$name\@here.test"))[0] });
            ok $report && $report->{from} eq '', "$name: a report on $what";
        }
        if ($hop->{known}) {
            $hop->{known}->();
            is(($petrel->run('queue', 'retry', '--all'))[0], 0, "$name: again");
            $comes->('grey@clear.test');
        }
    SKIP: { skip "$name cannot serve TLS here", 1 unless $tls; pass "$name: by TLS, too" }
        unlike $petrel->log . $hop->{peer}->log, qr/\b(?:$secret)\b/, "$name: the password is in no log";
        is $petrel->stop, 0, "$name: Petrel ends well";
        $hop->{peer}->stop;
    }
}
is join(' ', grep { /^(?:nobody|large|you)\@/ } map { @{ $_->{to} } } $sink->messages), '', 'nothing of what was refused came';
done_testing;
