#!/usr/bin/perl
# The open-relay list: every known way to have a stranger's mail sent on, from an address that may not relay. Nothing is
# relayed; mail for here still comes in. Once with mailboxes here, once as a gateway of another host.
use lib 't/e2e';
use E2E;

my ($own, $ext, $host, $ip) = ('own.test', 'ext.test', 'petrel.own.test', '127.0.0.1');
my $user = "victim\@$ext";
my @utf8 = ("\xef\xbc\xa0", "\xe3\x80\x82"); # full-width @ and full stop

# name => what stands behind RCPT TO:
my %recipients = (
    'plain' => "<$user>", 'no brackets' => $user, 'no brackets, a blank' => " $user", 'a blank in' => "< $user>", 'a blank behind' => "<$user >",
    'percent at host' => "<victim%$ext\@$host>", 'percent at IP' => "<victim%$ext\@[$ip]>", 'percent at domain' => "<victim%$ext\@$own>", 'percent twice' => "<victim%$ext%$own\@$own>",
    'percent alone' => "<victim%$ext>", 'percent in quotes' => "<\"victim%$ext\"\@$own>", 'percent at ext' => "<anna%$own\@$ext>",
    'quoted' => "<\"$user\">", 'quoted at domain' => "<\"$user\"\@$own>", 'quoted at host' => "<\"$user\"\@$host>", 'quoted at IP' => "<\"$user\"\@[$ip]>",
    'two @' => "<$user\@$own>", 'two @, own first' => "<anna\@$own\@$ext>", 'escaped @' => "<victim\\\@$ext\@$own>", 'escaped @ in quotes' => "<\"victim\\\@$ext\"\@$own>", 'escaped @ alone' => "<victim\\\@$ext>",
    'route by domain' => "<\@$own:$user>", 'route by host' => "<\@$host:$user>", 'route by IP' => "<\@[$ip]:$user>", 'route of two' => "<\@$own,\@$host:$user>", 'route, own last' => "<\@$ext:anna\@$own\@$ext>",
    'route without address' => "<\@$ext:>", 'route, quoted' => "<\@$own:\"$user\">", 'route, percent' => "<\@$own:victim%$ext\@$own>",
    'bang' => "<$ext!victim>", 'bang at domain' => "<$ext!victim\@$own>", 'bang at host' => "<$ext!victim\@$host>", 'bang at IP' => "<$ext!victim\@[$ip]>", 'bang, own first' => "<$own!$ext!victim>",
    'bang and percent' => "<$ext!victim%$ext\@$own>", 'bang at ext' => "<$own!anna\@$ext>", 'bang, quoted' => "<\"$ext!victim\"\@$own>",
    'DECnet' => "<$ext\:\:victim>", 'DECnet at domain' => "<$ext\:\:victim\@$own>", 'DECnet, quoted' => "<\"$ext\:\:victim\"\@$own>",
    'suffix' => "<victim\@evil$own>", 'prefix' => "<victim\@$own.$ext>", 'subdomain' => "<victim\@sub.$own>", 'leading dot' => "<victim\@.$own>", 'trailing dot' => "<victim\@$ext.>", 'trailing dots' => "<victim\@$ext..>",
    'two dots' => "<victim\@own..test>", 'case' => "<Victim\@EXT.Test>", 'case of the prefix' => "<victim\@OWN.test.EXT.test>", 'own, hyphen' => "<victim\@own-test>",
    'IPv4 literal' => '<victim@[192.0.2.1]>', 'IPv6 literal' => '<victim@[IPv6:2001:db8::1]>', 'mapped literal' => '<victim@[IPv6:::ffff:192.0.2.1]>', 'decimal' => '<victim@3221225985>', 'hash' => '<victim@#3221225985>',
    'IP without brackets' => '<victim@192.0.2.1>', 'loopback literal' => "<$user\@[127.0.0.1]>", 'loopback IPv6' => "<$user\@[IPv6:::1]>", 'empty literal' => '<victim@[]>', 'open literal' => '<victim@[192.0.2.1>',
    'blank inside' => "<victim\@$own $ext>", 'tab inside' => "<victim\@$own\t$ext>", 'CR inside' => "<anna\@$own\r$ext>", 'LF inside' => "<anna\@$own\n$ext>", 'CRLF inside' => "<anna\@$own>\r\nRCPT TO:<$user>",
    'NUL inside' => "<anna\@$own\0.$ext>", 'NUL behind' => "<$user\0\@$own>", '8-bit' => "<victim\@$ext\xff>", '8-bit local' => "<vict\xefm\@$ext>", 'encoded CRLF' => "<victim+0D+0A\@$ext>",
    'comma' => "<anna\@$own,$user>", 'semicolon' => "<anna\@$own;$user>", 'two paths' => "<anna\@$own><$user>", 'two paths, blank' => "<anna\@$own> <$user>", 'display name' => "\"anna\@$own\" <$user>", 'comment' => "<victim(anna\@$own)\@$ext>",
    'comment behind' => "<$user(\@$own)>", 'ORCPT' => "<$user> ORCPT=rfc822;anna\@$own", 'NOTIFY' => "<$user> NOTIFY=NEVER", 'full-width @' => "<victim$utf8[0]$ext\@$own>", 'full-width @ alone' => "<victim$utf8[0]$ext>",
    'full-width dot' => "<victim\@ext$utf8[1]test>", 'full-width dot, own' => "<victim\@$own$utf8[1]$ext>", 'null' => '<>', 'no domain' => '<victim>', 'only @' => '<@>', 'no local part' => "<\@$ext>",
    'postmaster of ext' => "<postmaster\@$ext>", 'Postmaster, case' => "<POSTMASTER\@$ext>", 'postmaster, percent' => "<postmaster%$ext>", 'pipe' => "<\"|/bin/sh\"\@$ext>", 'file' => "<\"/etc/passwd\"\@$ext>", 'angle in angle' => "<<$user>>", 'open' => "<$user",
    'apostrophe' => "<'$user'>", 'url' => "<mailto:$user>", 'backslash' => "<\\$user>", 'long route' => '<' . join(',', ("\@$own") x 40) . ":$user>",
);
my %senders = ('plain' => '<spam@ext.test>', 'null' => '<>', 'bare' => '<spam>', 'own domain' => "<anna\@$own>", 'own host' => "<spam\@$host>", 'own IP' => "<spam\@[$ip]>", 'localhost' => '<root@localhost>',
    'that of the recipient' => "<$user>", 'postmaster' => '<postmaster>', 'no brackets' => 'spam@ext.test', 'AUTH=' => "<anna\@$own> AUTH=anna\@$own", 'AUTH=<>' => "<anna\@$own> AUTH=<>", 'a route' => "<\@$own:spam\@ext.test>",
    '8-bit' => "<sp\xe4m\@$own>", 'SMTPUTF8' => "<sp\xc3\xa4m\@$own> SMTPUTF8");
# Said first, as one who might be somebody else.
my %before = ('EHLO with our name' => ["EHLO $host"], 'EHLO with our domain' => ["EHLO $own"], 'EHLO with our IP' => ['EHLO [127.0.0.1]'], 'HELO localhost' => ['HELO localhost'],
    'XCLIENT' => ['EHLO x', 'XCLIENT ADDR=127.0.0.1 NAME=localhost'], 'XFORWARD' => ['EHLO x', 'XFORWARD ADDR=127.0.0.1 NAME=localhost'], 'XCLIENT LOGIN' => ['EHLO x', 'XCLIENT LOGIN=anna'], 'PROXY' => ['PROXY TCP4 127.0.0.1 127.0.0.1 1 25', 'EHLO x'],
    'PROXY later' => ['EHLO x', 'PROXY TCP4 127.0.0.1 127.0.0.1 1 25'], 'a failed AUTH' => ['EHLO x', 'AUTH PLAIN AGFubmEAYW5uYQ=='], 'AUTH ANONYMOUS' => ['EHLO x', 'AUTH ANONYMOUS Zm9v'], 'AUTH EXTERNAL' => ['EHLO x', 'AUTH EXTERNAL ='],
    'a good recipient' => ['EHLO x', 'MAIL FROM:<spam@ext.test>', "RCPT TO:<anna\@$own>"], 'ETRN' => ['EHLO x', "ETRN $ext"], 'ETRN all' => ['EHLO x', 'ETRN @ext.test'], 'TURN' => ['EHLO x', 'TURN'], 'VRFY' => ['EHLO x', "VRFY $user"], 'EXPN' => ['EHLO x', "EXPN $user"],
    'SEND' => ['EHLO x', "SEND FROM:<anna\@$own>"], 'SAML' => ['EHLO x', "SAML FROM:<anna\@$own>"], 'SOML' => ['EHLO x', "SOML FROM:<anna\@$own>"], 'WIZ' => ['EHLO x', 'WIZ', 'wiz'], 'DEBUG' => ['EHLO x', 'DEBUG']);

my $sink = Sink->start;    # the world
my $inside = Sink->start;  # the host behind the gateway
my $mail = tempdir('relay-XXXXXX', TMPDIR => 1, CLEANUP => 1);
mkdir "$mail/anna" or die $!;
my %settings = (hostname => $host, relay_from => '127.0.0.1/32', local_domains => $own, smtpd_hard_error_limit => 10_000, smtpd_error_sleep_time => 0, smtpd_junk_command_limit => 0,
    default_destination_concurrency_limit => 50);
my %kind = (mailboxes => Petrel->new(%settings, routes => "* smtp://127.0.0.1:$sink->{port}", local => "maildir:$mail/%u"),
    gateway => Petrel->new(%settings, routes => "$own smtp://127.0.0.1:$inside->{port}\n* smtp://127.0.0.1:$sink->{port}"));

my ($petrel, $client);
sub stranger { $client = Client->connect($petrel->{port}, LocalAddr => '127.0.0.2') or die "no connection: $!"; return $client->reply }

# Tries to send; 'refused', or what was accepted to the end.
sub try {
    my ($sender, $recipient) = @_;
    my $reply = $client->say("RSET");
    if ($reply !~ /^2/) { stranger(); $client->say('EHLO stranger.test') }
    return 'refused' if $client->say("MAIL FROM:$sender" . ($recipient =~ /[^\x00-\x7f]/ && $sender !~ /SMTPUTF8/ ? ' SMTPUTF8' : '')) !~ /^250/;
    my $heard = $client->say("RCPT TO:$recipient");
    # Two lines have two answers.
    $heard .= $client->reply if $recipient =~ /\r\n/ && $heard ne '';
    return 'refused' unless $heard =~ /^250/m;
    return 'refused' if $client->say('DATA') !~ /^354/;
    $client->put("Subject: x\r\n\r\nx\r\n.\r\n");
    return $client->reply =~ /^250/ ? "taken: $heard" : 'refused';
}

for my $kind (sort keys %kind) {
    $petrel = $kind{$kind}->start;
    stranger();
    $client->say('EHLO stranger.test');
    my $bad = 0;
    for my $name (sort keys %recipients) {
        my $recipient = $recipients{$name};
        # The first of the two recipients lives here, and has its mail.
        my $wanted = $name =~ /^(?:CRLF inside)$/ ? qr/\Ataken: 250 [^\n]*\n55[04] / : qr/\Arefused\z/;
        my $got = try('<spam@elsewhere.test>', $recipient);
        like $got, $wanted, "$kind, to: $name" or diag $recipient;
    }
    for my $name (sort keys %senders) {
        is try($senders{$name}, "<$user>"), 'refused', "$kind, from: $name";
    }
    for my $name (sort keys %before) {
        stranger();
        my @heard = map { $client->say($_) } @{ $before{$name} };
        unlike $client->say('MAIL FROM:<spam@elsewhere.test>') =~ /^250|^503/ ? $client->say("RCPT TO:<$user>") : '', qr/^2/, "$kind, before: $name" or diag @heard;
        $client->close;
    }
    stranger();
    $client->say('EHLO stranger.test');
    for my $to ("anna\@$own", "anna\@OWN.test", $kind eq 'gateway' ? ('Anna.Other+tag@own.test', '"anna b"@own.test') : ()) {
        like try('<friend@elsewhere.test>', "<$to>"), qr/^taken/, "$kind: <$to> still has mail";
    }
    for my $sender ('<friend@elsewhere.test>', '<>') {
        like try($sender, "<anna\@$own>"), qr/^taken/, "$kind: mail from $sender comes in";
    }
    ok $petrel->wait_empty, "$kind: all of it is delivered" or diag $petrel->log;
    is $petrel->stop, 0, "$kind: Petrel ends well";
}
my %met;
for my $message ($sink->messages) { $met{$_}++ for @{ $message->{to} } }
is_deeply \%met, {}, 'nothing went out into the world';
is join(' ', grep { !/\Aanna(?:\.other\+tag)?\@own\.test\z|\A"anna b"\@own\.test\z/i } map { @{ $_->{to} } } $inside->messages), '', 'nor anything odd to the host inside';
cmp_ok keys(%recipients) + keys(%senders) + keys(%before), '>', 87, 'so many ways: ' . (keys(%recipients) + keys(%senders) + keys(%before));
done_testing;
