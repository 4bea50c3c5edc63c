#!/usr/bin/perl
# The command line: check, version, and sendmail(1) with its names and flags, with and without a daemon, for root and for nobody.
use lib 't/e2e';
use E2E;
use FindBin;
use File::Copy qw(copy);

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $scratch = tempdir('commands-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
chdir $scratch or die; # so that no petrel.conf lies here

sub petrel { return Petrel::command('', $Petrel::binary, @_) }
sub with_environment { my ($environment, @arguments) = @_; local %ENV = (%ENV, %$environment); return petrel(@arguments) }

sub with_json { my ($code, $text) = outputs(@_); is $code, 0, "@_"; return decode_json($text)->{settings} }

# --- check

Petrel::spit("$scratch/good.conf", "# a comment\nhostname = petrel.test\nspool = $scratch/spool\nroutes = a.test smtp://127.0.0.1:1\n    * mx\n");
my ($code, $text) = petrel('-c', 'good.conf', 'check');
is $code, 0, 'check: good settings' or diag $text;
like $text, qr/^hostname = petrel\.test\s+# good\.conf:2$/m, 'with the source of a value';
like $text, qr/^recipient_limit = 1000\s+# default$/m, 'and with the defaults';
($code, $text) = with_environment({ PETREL_RECIPIENT_LIMIT => 7, PETREL_HOSTNAME => 'env.test' }, '-c', 'good.conf', '-o', 'hostname=arg.test', 'check');
is $code, 0, 'check: from everywhere';
like $text, qr/^hostname = arg\.test\s+# command line$/m, 'the command line wins';
like $text, qr/^recipient_limit = 7\s+# environment$/m, 'then the environment';
($code, my $printed) = outputs('-c', 'good.conf', 'check');
$printed =~ s/\s+# (?:default|good\.conf:\d+|\S+)$//mg;
Petrel::spit("$scratch/printed.conf", $printed);
($code, $text) = petrel('-c', 'printed.conf', 'check');
is $code, 0, 'what check prints is itself a good file' or diag $text;
($code, $text) = with_environment({ PETREL_CONFIG => "$scratch/good.conf" }, 'check');
like $text, qr/^hostname = petrel\.test /m, 'PETREL_CONFIG names the file';

($code, $text) = petrel('-c', 'good.conf', 'check', '--changed');
is $code, 0, 'check --changed';
like $text, qr/^hostname = petrel\.test\s+# good\.conf:2$/m, 'has what was set';
is scalar(() = $text =~ /^\w+ =/mg), 3, 'and nothing else' or diag $text;
like $text, qr/^# These settings have no errors\.\n\z/m, 'and ends as check does';
{
    my $changed = with_json('-c', 'good.conf', 'check', '--json', '--changed');
    my $all = with_json('-c', 'good.conf', '-o', 'routes=', '-o', 'relay_password=sesame', '-o', 'relay=submission://me@a.test', 'check', '--json');
    is_deeply [sort keys %$changed], [qw(hostname routes spool)], 'check --json --changed';
    is_deeply $changed->{routes}, { value => "a.test smtp://127.0.0.1:1\n* mx", source => 'good.conf:4', default => '* mx', changed => JSON::PP::true }, 'value, source, default';
    is +with_json('-c', 'good.conf', '-o', "log_to=syslog:/a\xff", 'check', '--json')->{log_to}{value}, 'syslog:/a\xff', 'a byte that is not UTF-8 is escaped';
    my @example = (petrel('check', '--example'))[1] =~ /^#(\w+) =/mg;
    is_deeply [sort keys %$all], [sort @example], 'check --json has every setting';
    is $all->{relay_password}{value}, '********', 'but no secret';
    is_deeply $all->{recipient_limit}, { value => '1000', source => 'default', default => '1000', changed => JSON::PP::false }, 'a default';
}
($code, $text) = with_environment({ PETREL_RELAY_USER => 'me', PETREL_SERVICE_HOST => '10.0.0.1', PETREL_PORT_25_TCP => 'x' }, '-c', 'good.conf', 'check');
is $code, 0, 'check: an unknown variable is no error';
like $text, qr/warning: environment: PETREL_RELAY_USER: unknown setting, ignored; the nearest is 'PETREL_RELAY\w*'$/m, 'but is told with the nearest';
unlike $text, qr/PETREL_SERVICE|PETREL_PORT/, 'those of Kubernetes are not';
is +(with_environment({ PETREL_RELAY_USER => 'me' }, '-c', 'good.conf', 'check', '--json'))[0], 0, 'and JSON stays JSON';

my @bad = (
    ["routs = * mx\n", qr/^bad\.conf:1: routs: unknown setting; did you mean 'routes'\?$/],
    ["\nserver_session_limt = 3\n", qr/^bad\.conf:2: server_session_limt: unknown setting; did you mean 'server_session_limit'\?$/],
    ["nothing_like_it = 3\n", qr/^bad\.conf:1: nothing_like_it: unknown setting$/],
    ["recipient_limit = many\n", qr/^bad\.conf:1: recipient_limit: .*'many'/],
    ["recipient_limit = 0\n", qr/^bad\.conf:1: recipient_limit: /],
    ["message_size_limit = 5Q\n", qr/^bad\.conf:1: message_size_limit: .*'5Q'/],
    ["smtpd_timeout = soon\n", qr/^bad\.conf:1: smtpd_timeout: .*'soon'/],
    ["hostname = two words\n", qr/hostname: .*'two words'/],
    ["relay_from = 0.0.0.0/0\n", qr/relay_from: '0\.0\.0\.0\/0': .*allow_open_relay/],
    ["relay_from = 10.0.0.1/8\n", qr/relay_from: '10\.0\.0\.1\/8': /],
    ["listen = 127.0.0.1\n", qr/listen: '127\.0\.0\.1': /],
    ["routes = * nowhere:\n", qr/routes: /],
    ["routes = * lmtp:\n", qr/routes: /],
    ["log_style = loud\n", qr/log_style: .*'loud'/],
    ["no equals sign\n", qr/^bad\.conf:1: /],
    ["hostname = a.test\nhostname = b.test\n", qr/^bad\.conf:2: hostname: .*line 1/],
);
for my $case (@bad) {
    my ($content, $message) = @$case;
    Petrel::spit("$scratch/bad.conf", $content);
    (my $name = $content) =~ s/\n/ /g;
    ($code, $text) = petrel('-c', 'bad.conf', 'check');
    is $code, 78, "check: $name";
    like $text, $message, 'is explained';
    is scalar(() = $text =~ /\n/g), 1, 'in one line' or diag $text;
}
Petrel::spit("$scratch/bad.conf", "routs = x\nrecipient_limit = x\nlog_style = x\nspool = $scratch/never\n");
for my $command ('check', 'run', 'queue ls', 'sendmail a@b.test') {
    ($code, $text) = petrel('-c', 'bad.conf', split / /, $command);
    is $code, 78, "three mistakes: $command";
    is scalar(() = $text =~ /^bad\.conf:[123]: /mg), 3, 'all are told' or diag $text;
}
ok !-e "$scratch/never", 'and nothing has been made';
($code, $text) = petrel('-c', 'absent.conf', 'check');
is $code, 78, 'check: no such file';
like $text, qr/^absent\.conf: .*No such file/, 'is explained';
($code, $text) = petrel('-o', 'routs=* mx', 'check');
is $code, 78, 'check: a mistake on the command line';
like $text, qr/did you mean 'routes'\?/, 'is explained';
($code, $text) = with_environment({ PETREL_ROUTS => '* mx' }, 'check');
is $code, 78, 'check: a mistake in the environment';
like $text, qr/PETREL_ROUTS: .*did you mean 'PETREL_ROUTES'\?/, 'is explained';
is +(petrel('-c', 'good.conf', $_))[0], 64, "usage: $_" for 'frobnicate', '--hlep', '-x', '-c';
is +(petrel('-c', 'good.conf', split / /, $_))[0], 64, "usage: $_" for 'check twice', 'check --example --json', 'check --json=1', 'queue', 'queue frob', 'version loudly';

# --- help: on standard output, without settings, so that it helps where these have errors

sub outputs { # exit code, standard output, standard error
    my $code = system(join ' ', (map { quotemeta } $Petrel::binary, @_), ">$scratch/out", "2>$scratch/err", '</dev/null') >> 8;
    return ($code, map { Petrel::slurp("$scratch/$_") } qw(out err));
}

my ($status, $usage, $errors) = outputs('help');
is_deeply [$status, $errors], [0, ''], 'help: exit code 0, and nothing on standard error';
my @commands = $usage =~ /^  ([a-z][-a-z]*) +\S/mg;
@commands = grep { $_ ne 'petrel' } @commands;
cmp_ok scalar @commands, '>=', 17, 'has every command in one line';
is_deeply [outputs($_)], [0, $usage, ''], "$_ is the same" for '-h', '--help';
is_deeply [outputs('-c', '/missing', '-o', 'routs=x', '--help')], [0, $usage, ''], 'and it reads no settings';
for my $command (@commands) {
    my @said = outputs('help', $command);
    like $said[1], qr/\Ausage: petrel \Q$command\E[ \n].*^example: petrel .*\b\Q$command\E/ms, "help $command: arguments and an example";
    is_deeply [@said[0, 2]], [0, ''], 'exit code 0';
    is_deeply [outputs($command, $_)], \@said, "$command $_ is the same" for '--help', '-h';
}
is_deeply [outputs('queue', 'ls', $_)], [outputs('help', 'queue')], "so is queue ls $_" for '--help', '-h';
for my $both (qw(cluster oauth suppress)) {
    like +(outputs('help', $both))[1], qr/\Ausage: petrel $both .*^The setting of that name:\n$both =/ms, "help $both: the command, and the setting of that name";
}
unlike +(outputs('help', 'status'))[1], qr/The setting/, 'others have none';
like +(outputs('help', 'routes'))[1], qr/\Aroutes = \* mx\n  Where mail goes: .*see\s+ROUTES\s+in\s+petrel\.conf\(5\)\.\n\z/s, 'nothing is `below` in a paragraph by itself';
like +(outputs('help', 'http'))[1], qr/\bSee HTTP\s+in\s+petrel\.conf\(5\)\.\n\z/, 'nor is a section of the manual unnamed';
like +(outputs('help', 'dkim_keys'))[1], qr{^ +dkim_keys = /etc/petrel/dkim\n +dkim_keys = example\.org s1}m, 'lines of an example stay lines';
like +(outputs('help', 'events_secret'))[1], qr/\Aevents_secret =\nevents_secret_file\n  Secrets/, 'so do the names of a setting';
my @version = outputs('version');
is_deeply [outputs($_)], \@version, "$_ is `version`" for '-V', '--version';
is_deeply [outputs('quue', 'ls')], [64, '', "petrel: quue: unknown command (did you mean 'queue'?); `petrel help` lists all\n"], 'an unknown command is named';
is_deeply [outputs('help', 'frobnicate')], [64, '', "petrel: frobnicate: unknown command; `petrel help` lists all\n"], 'and nothing is near some';
my $manual = join('', map { Petrel::slurp($_) } glob "$Petrel::root/man/petrel*.8") =~ s/\\-/-/gr;
like $manual, qr/^\.(?:B|BR|BI) "?\Q$_\E\b/m, "petrel(8) has $_" for @commands;

# --- version

($code, $text) = petrel('version');
is $code, 0, 'version';
like $text, qr/^petrel \d+\.\d+\.\d+\b.*\n/, 'is told';
like $text, qr/^\Q$_\E \d/m, "as is that of $_" for 'libev', 'c-ares', 'mbedTLS', 'jansson';
my ($version) = $text =~ /^petrel (\S+)/;
($code, $text) = petrel('version', '--json');
is $code, 0, 'version --json';
my $json = eval { decode_json($text) } || {};
is $json->{version}, $version, 'is JSON with the same';
is ref $json->{libraries}, 'ARRAY', 'the libraries';
is ref $json->{features}, 'ARRAY', 'and the features';
my %needs = (idna => 'libidn2', redis => 'hiredis', ed25519 => 'libsodium', seccomp => 'libseccomp');
for my $feature (sort keys %needs) {
    is scalar(grep { /^\Q$needs{$feature}\E \d/ } @{ $json->{libraries} }), scalar(grep { $_ eq $feature } @{ $json->{features} }), "$feature is one where $needs{$feature} is there";
}
is_deeply [grep { !$needs{$_} } @{ $json->{features} }], [], 'and no other';
my $has_redis = grep { $_ eq 'redis' } @{ $json->{features} };
is +(petrel('-c', 'good.conf', '-o', 'defrag_registry=redis://127.0.0.1', 'check'))[0], $has_redis ? 0 : 78, 'redis is told exactly when it can be named';

# --- sendmail

my $sink = Petrel::sink();
my $relay = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", sender_turns => 'no');
chmod 0755, $relay->{dir};
$ENV{PETREL_CONFIG} = $relay->conf;
mkdir "$scratch/bin" or die;
copy($Petrel::binary, "$scratch/bin/petrel") or die; # where nobody may come
chmod 0755, "$scratch/bin/petrel";
symlink 'petrel', "$scratch/bin/$_" or die for qw(sendmail mailq newaliases);
link "$scratch/bin/petrel", "$scratch/bin/mail" and rename "$scratch/bin/mail", "$scratch/bin/hard" or die;
my $arrived = 0;
my $me = (getpwuid $<)[0];
my $is_root = $> == 0;
my @as_nobody = $is_root && Petrel::have('setpriv') ? ('setpriv', '--reuid', 65534, '--regid', 65534, '--clear-groups') : ();
my @as_no_one = @as_nobody ? ('setpriv', '--reuid', 54321, '--regid', 54321, '--clear-groups', '--no-new-privs') : ();

sub sendmail { my ($input, @arguments) = @_; return Petrel::command($input, "$scratch/bin/sendmail", @arguments) }

my $letter = "From: Me <me\@here.test>\nTo: A <a\@x.test>,\n  b\@y.test\nCc: (see) <c\@z.test>\nBcc: d\@hidden.test\nSubject: hi\n"
    . "Date: Sat, 21 Nov 2026 03:00:00 +0000\nMessage-ID: <1\@here.test>\n\n";
(my $without_bcc = $letter) =~ s/^Bcc:.*\n//m;
my $to_all = 'a@x.test b@y.test c@z.test d@hidden.test';

# name, arguments, input, sender, recipients, what arrives (lines; a pattern, or all of it but the trace header)
my @letters = (
    ['recipients', ['a@x.test', 'b@y.test'], "${letter}one\n", "$me\@petrel.test", 'a@x.test b@y.test', "${without_bcc}one\n"],
    ['-f separate', ['-f', 'f@g.test', 'a@x.test'], "${letter}f\n", 'f@g.test', 'a@x.test', "${without_bcc}f\n"],
    ['-f glued', ['-ff@g.test', 'a@x.test'], "${letter}f\n", 'f@g.test', 'a@x.test', "${without_bcc}f\n"],
    ['-f <>', ['-f', '<>', 'a@x.test'], "${letter}f\n", '', 'a@x.test', "${without_bcc}f\n"],
    ['-f empty', ['-f', '', 'a@x.test'], "${letter}f\n", '', 'a@x.test', "${without_bcc}f\n"],
    ['-f without a domain', ['-fjohn', 'a@x.test'], "${letter}f\n", 'john@petrel.test', 'a@x.test', "${without_bcc}f\n"],
    ['-r', ['-r', 'r@g.test', 'a@x.test'], "${letter}r\n", 'r@g.test', 'a@x.test', "${without_bcc}r\n"],
    ['-t', ['-t', '-fme@here.test'], "${letter}t\n", 'me@here.test', $to_all, "${without_bcc}t\n"],
    ['-t and recipients', ['-t', '-fme@here.test', 'e@w.test', 'a@x.test'], "${letter}t\n", 'me@here.test', "e\@w.test $to_all", "${without_bcc}t\n"],
    ['-ti', ['-ti', '-fme@here.test'], "${letter}t\n.\nu\n", 'me@here.test', $to_all, "${without_bcc}t\n.\nu\n"],
    ['-oi -t', ['-oi', '-t', '-fme@here.test'], "${letter}t\n.\n..\n.u\n", 'me@here.test', $to_all, "${without_bcc}t\n.\n..\n.u\n"],
    ['-i', ['-i', '-fme@here.test', 'a@x.test'], "${letter}.\ni\n", 'me@here.test', 'a@x.test', "${without_bcc}.\ni\n"],
    ['a dot ends', ['-fme@here.test', 'a@x.test'], "${letter}before\n.\nafter\n", 'me@here.test', 'a@x.test', "${without_bcc}before\n"],
    ['-bm -oem -om', ['-bm', '-oem', '-om', '-fme@here.test', '--', 'a@x.test'], "${letter}bm\n", 'me@here.test', 'a@x.test', "${without_bcc}bm\n"],
    ['CRLF', ['-fme@here.test', 'a@x.test'], "${letter}x\n.dot\n\n" =~ s/\n/\r\n/gr, 'me@here.test', 'a@x.test', "${without_bcc}x\n.dot\n\n"],
    ['8-bit, no last line end', ['-fme@here.test', 'a@x.test'], "${letter}\xe4\xf6\xfc", 'me@here.test', 'a@x.test', "${without_bcc}\xe4\xf6\xfc\n"],
    ['UTF-8 address', ['-fme@here.test', "j\xc3\xb6rg\@x.test"], "${letter}u\n", 'me@here.test', "j\xc3\xb6rg\@x.test", "${without_bcc}u\n"],
    ['-F', ['-F', 'Doctor No', '-fno@here.test', 'a@x.test'], "Subject: F\n\nx\n", 'no@here.test', 'a@x.test', qr/^From: Doctor No <no\@here\.test>\r$/m],
    ['-F glued', ['-FDoctor "No"', '-fno@here.test', 'a@x.test'], "Subject: F\n\nx\n", 'no@here.test', 'a@x.test', qr/^From: "Doctor \\"No\\"" <no\@here\.test>\r$/m],
    ['no header', ['-fme@here.test', 'a@x.test'], "just text\n", 'me@here.test', 'a@x.test',
        qr/\A.*^From: [^\n]*<me\@here\.test>\r\nDate: [^\n]+ [+-]\d{4}\r\nMessage-ID: <[^\n>]+\@petrel\.test>\r\n\r\njust text\r\n\z/ms],
    ['an empty message', ['-fme@here.test', 'a@x.test'], '', 'me@here.test', 'a@x.test', qr/\r\n\r\n\z/],
    ['an mbox line', ['-fme@here.test', 'a@x.test'], "From x\@y Sat Nov 21 03:00:00 2026\n${letter}m\n", 'me@here.test', 'a@x.test', "${without_bcc}m\n"],
    ['-v', ['-v', '-fme@here.test', 'a@x.test'], "${letter}v\n", 'me@here.test', 'a@x.test', "${without_bcc}v\n"],
    ['an unknown flag', ['-fme@here.test', '-Z', 'a@x.test'], "${letter}Z\n", 'me@here.test', 'a@x.test', "${without_bcc}Z\n"],
    ['two megabytes', ['-fme@here.test', 'a@x.test'], $letter . "0123456789abcde\n" x 131072, 'me@here.test', 'a@x.test', $without_bcc . "0123456789abcde\n" x 131072],
    ['-bs', ['-bs'], "EHLO me.test\r\nMAIL FROM:<s\@g.test>\r\nRCPT TO:<a\@x.test>\r\nDATA\r\n" . ("${letter}bs\n..\n" =~ s/\n/\r\n/gr) . ".\r\nQUIT\r\n",
        's@g.test', 'a@x.test', "${without_bcc}bs\n.\n"],
);

# Runs one; its id is known when the daemon's log or the spool tells it.
sub send_letter {
    my ($letter) = @_;
    my ($name, $arguments, $input) = @$letter;
    my ($code, $text) = sendmail($input, @$arguments);
    is $code, 0, "sendmail $name" or diag $text;
    if ($name eq '-v') { like $text, qr/^queued as [0-9A-Z]{10}-[0-9A-Z]{8}\n\z/, '-v: tells the id' }
    elsif ($name eq 'an unknown flag') { like $text, qr/\A[^\n]*unknown[^\n]*-Z\n\z/, 'is told' }
    elsif ($name eq '-bs') {
        is join(' ', $text =~ /^(\d{3}) /mg), '220 250 250 250 354 250 221', '-bs: the replies';
        like $text, qr/^250 2\.0\.0 Ok: queued as [0-9A-Z]{10}-[0-9A-Z]{8}\r$/m, '-bs: tells the id';
    }
    else { is $text, '', 'says nothing' }
    return;
}

# Whether it is what the sink got as the next.
sub letter_arrived {
    my ($letter) = @_;
    my ($name, undef, undef, $from, $to, $wanted) = @$letter;
    my $got = Petrel::wait_arrived($sink, ++$arrived) or return fail("$name: arrives");
    is $got->{from}, $from, "$name: from";
    is "@{ $got->{to} }", $to, "$name: to";
    like $got->{content}, qr/\AReceived: (?:by|from) .*petrel\.test/, "$name: has a trace header";
    return like $got->{content}, $wanted, "$name: the message" if ref $wanted;
    $wanted =~ s/\n/\r\n/g;
    my $content = Petrel::untraced($got->{content});
    ok $content eq $wanted, "$name: the message" or diag length $wanted > 3000 ? length $content : $content;
    return;
}

# First without a daemon: what is sent waits in the spool.
is scalar(my @none = glob "$relay->{dir}/spool/mess/*"), 0, 'an empty spool';
for my $letter (@letters) { send_letter($letter) }
is $relay->queued, scalar @letters, 'all wait in the spool';
my ($mailq_code, $mailq) = Petrel::command('', "$scratch/bin/mailq");
is $mailq_code, 0, 'mailq';
is scalar(() = $mailq =~ /^[0-9A-Z]{10}-[0-9A-Z]{8} maildrop /mg), scalar @letters, 'shows them' or diag $mailq;
($code, $text) = sendmail('', '-bp');
s/ maildrop +\d+s/ maildrop/g for $mailq, $text; # it has become older meanwhile
is_deeply [$code, $text], [0, $mailq], 'as does sendmail -bp';
($code, $text) = Petrel::command('', 'perl', '-e', 'exec { $ARGV[0] } "l", "-bp"', "$scratch/bin/sendmail");
$text =~ s/ maildrop +\d+s/ maildrop/g;
is_deeply [$code, $text], [0, $mailq], 'by whatever name the caller gives it';
($code, $text) = sendmail('', '-q');
is $code, 69, 'sendmail -q without a daemon';
like $text, qr/\Asendmail: no daemon[^\n]*\n\z/, 'says so';
is scalar(() = glob "$relay->{dir}/spool/pid/*"), 0, 'no half-made message is left';

$relay->configure(default_destination_concurrency_limit => 1, initial_destination_concurrency => 1)->start; # so that they come in order
my @waiting = @letters;
Petrel::wait_arrived($sink, scalar @letters);
# The order in which they were sent is the order of arrival.
letter_arrived($_) for @waiting;
ok $relay->wait_empty, 'the daemon has delivered what was there at its start';

# With a daemon: the trigger.
for my $letter (@letters) {
    send_letter($letter);
    letter_arrived($letter);
}
ok $relay->wait_empty, 'with a daemon all is delivered at once';
is_deeply [Petrel::command('', "$scratch/bin/mailq")], [0, "Mail queue is empty\n"], 'mailq shows nothing';
is_deeply [sendmail('', '-q')], [0, ''], 'sendmail -q';
is_deeply [sendmail('', '-v', '-q')], [0, "all that waits is due now\n"], 'sendmail -v -q';
is_deeply [Petrel::command('', "$scratch/bin/newaliases")], [0, "aliases is not set: no file is read\n"], 'newaliases';
is_deeply [sendmail('', '-bi')], [0, "aliases is not set: no file is read\n"], 'sendmail -bi';

# Other names of the program.
($code, $text) = Petrel::command("${letter}s\n", $Petrel::binary, 'sendmail', '-fme@here.test', 'a@x.test');
is $code, 0, 'petrel sendmail' or diag $text;
letter_arrived(['petrel sendmail', [], '', 'me@here.test', 'a@x.test', "${without_bcc}s\n"]);
rename "$scratch/bin/sendmail", "$scratch/bin/soft";
rename "$scratch/bin/hard", "$scratch/bin/sendmail";
($code, $text) = sendmail("${letter}s\n", '-fme@here.test', 'a@x.test');
is $code, 0, 'a hard link' or diag $text;
letter_arrived(['a hard link', [], '', 'me@here.test', 'a@x.test', "${without_bcc}s\n"]);
unlink "$scratch/bin/sendmail";
rename "$scratch/bin/soft", "$scratch/bin/sendmail";

# Mail that cannot be sent.
for my $case (
    ['nobody', [], "x\n", 64],
    ['-t without anybody', ['-t'], "Subject: x\n\nx\n", 64],
    ['a bad recipient', ['a@@b'], "x\n", 65],
    ['a recipient with a line end', ["a\@b.test\nRCPT TO:<c\@d.test>"], "x\n", 65],
    ['a bad sender', ['-f', 'a b@c', 'a@x.test'], "x\n", 65],
    ['a bad address in To', ['-t'], "To: a\@\@b\n\nx\n", 65],
    ['a flag without its value', ['-f'], "x\n", 64],
    ['-bd', ['-bd'], '', 64],
    ['too large', ['-fme@here.test', 'a@x.test'], "x\n" x 100, 65, { PETREL_MESSAGE_SIZE_LIMIT => 1024 }, 1024],
    )
{
    my ($name, $arguments, $input, $wanted, $environment) = @$case;
    $input = "x" x 70 . "\n" . $input x 20 if $name eq 'too large';
    local %ENV = (%ENV, %{ $environment || {} });
    ($code, $text) = sendmail($input, @$arguments);
    is $code, $wanted, "sendmail, $name: the code" or diag $text;
    like $text, qr/\Asendmail: [^\n]+\n\z/, "sendmail, $name: one line";
}
is_deeply [sendmail('', '-bv', 'a@x.test')], [0, "a\@x.test... deliverable: smtp 127.0.0.1:$sink->{port}\n"], 'sendmail -bv';
is $relay->queued, 0, 'nothing is left of these';

# --- Rights

SKIP: {
    skip 'root and setpriv are needed to become somebody else', 1 unless @as_nobody;
    my @people = (['root, no new privileges', 'root', 'setpriv', '--no-new-privs'], ['nobody', 'nobody', @as_nobody], ['a user without a name', 'uid54321', @as_no_one]);
    for my $owner (undef, 'daemon') {
        my $spool = $owner ? "the spool of $owner" : 'the spool of root';
        if ($owner) {
            is $relay->stop, 0, 'stops';
            $relay->configure(user => $owner, spool => "$relay->{dir}/spool2")->start;
        }
        for my $daemon (1, 0) {
            my $how = $daemon ? 'with a daemon' : 'without one';
            is $relay->stop, 0, "$how: stopped" unless $daemon;
            for my $person (@people) {
                my ($who, $user, @become) = @$person;
                ($code, $text) = Petrel::command("${letter}$who\n", @become, "$scratch/bin/sendmail", '-i', 'a@x.test');
                is $code, 0, "$who, $spool, $how: sendmail" or diag $text;
                is $text, '', 'says nothing';
                letter_arrived([$who, [], '', "$user\@petrel.test", 'a@x.test', "${without_bcc}$who\n"]) if $daemon;
            }
            next if $daemon;
            is scalar(() = glob "$relay->{settings}{spool}/todo/*"), 3, "$spool: they wait";
            $relay->start;
            letter_arrived([$_->[0], [], '', "$_->[1]\@petrel.test", 'a@x.test', "${without_bcc}$_->[0]\n"]) for @people;
            ok Petrel::wait_for(sub { !glob "$relay->{settings}{spool}/mess/*" }), "$spool: and are delivered at the start";
        }
    }
    # The queue is not theirs.
    ($code, $text) = Petrel::command('', @as_nobody, "$scratch/bin/mailq");
    isnt $code, 0, 'nobody does not see the queue';
    like $text, qr/\A[^\n]+\n\z/, 'and is told so in one line';
}
is $relay->stop, 0, 'the daemon stops in good order';
unlike $relay->log, qr/ error: |deferred|bounced/, 'and had no trouble';

# Who only reads makes no spool, which would be another user's than the daemon's.
Petrel::spit("$scratch/never.conf", "hostname = h.test\nspool = $scratch/never\n");
for my $command (['queue', 'ls'], ['queue', 'ls', '--json'], ['queue', 'shape'], ['queue', 'retry', '--all'], ['trace', $letters[0]], ['sendmail', '-bp']) {
    ($code, $text) = Petrel::command('', $Petrel::binary, '-c', "$scratch/never.conf", @$command);
    is $code, 69, "@$command: no spool" or diag $text;
    like $text, qr/\Apetrel \w+: spool \Q$scratch\E\/never does not exist: a daemon makes it when it first starts\n\z/, "@$command: one line";
    ok !-e "$scratch/never", "@$command: and none is made";
}

# A spool that cannot be had.
Petrel::spit("$scratch/file", '');
($code, $text) = Petrel::command("x\n", '/usr/bin/env', "PETREL_SPOOL=$scratch/file/spool", "$scratch/bin/sendmail", 'a@x.test');
is $code, 73, 'no spool: cannot create' or diag $text;
like $text, qr/\Asendmail: [^\n]*\Q$scratch\E\/file\/spool[^\n]*\n\z/, 'one line';

chdir '/';
done_testing;
