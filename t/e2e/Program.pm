# Mail programs that we did not write: how each sends one message by SMTP or sendmail(1), and whether it is there.
package Program;

use strict;
use warnings;
use FindBin;
use File::Path qw(make_path);
use MIME::Base64;
use MIME::QuotedPrint;
use Peer;
use Petrel;

# A job: name, for Subject; port; tls: '', 'starttls', 'implicit'; user, password ('' without AUTH); from, to; file and unix: the message
# with CRLF and with LF; body: its text with LF; ca; dir: a directory of
# its own. By sendmail(1): sendmail, conf (the daemon's settings) in place of port, tls, user and ca.

# Umlauts, dots, lines that programs spoil, one of almost the longest that RFC 5321 allows.
our $text = "Gr\xc3\xbc\xc3\x9fe, \xe2\x82\xac 5\n.\n..\n.dot\n...three\nFrom here on\n>From there\n \n\ttab \n=3D=\n-- \n" . 'x' x 990 . "\n\nlast line\n";
our $large = join '', map { "$_ " . 'z' x 60 . "\n" } 1 .. 1000;
my $scripts = "$FindBin::Bin/programs";
my $node_mailer = Peer::package_root('nodemailer') . '/usr/share/nodejs/nodemailer';

# Starts the program of a row for a job that has all but its files, output and pid.
sub begin {
    my ($program, $j) = @_;
    mkdir $j->{dir} or die;
    my $unix = "From: Me <$j->{from}>\nTo: $j->{to}\nSubject: $j->{name}\nDate: Sat, 21 Nov 2026 03:00:00 +0000\nMessage-ID: <$j->{from}>\n"
        . "MIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: 8bit\n\n$j->{text}";
    $j->{message} = $unix =~ s/\n/\r\n/gr;
    $j->{body} = Petrel::spit("$j->{dir}/body", $j->{text});
    $j->{unix} = Petrel::spit("$j->{dir}/unix", $unix);
    $j->{file} = Petrel::spit("$j->{dir}/file", $j->{message});
    my @command = $program->{command}->($j);
    $j->{output} = "$j->{dir}/output";
    $j->{pid} = Petrel::spawn($j->{output}, 'sh', '-c', 'f=$1; shift; exec "$@" <"$f"', 'sh', $program->{input} ? $j->{ $program->{input} } : '/dev/null', @command);
    return $j;
}

# Waits for its end: its status, and what it said.
sub end {
    my $j = shift;
    $j->{status} = Petrel::reap($j->{pid});
    $j->{said} = Petrel::slurp($j->{output});
    return;
}

# The text of a message, with LF: its program may have encoded it.
sub text_of {
    my $content = shift;
    my ($header, $body) = $content =~ /\A(.*?\r\n)\r\n(.*)\z/s or return '';
    $body =~ s/\r\n/\n/g;
    my ($encoding) = $header =~ /^Content-Transfer-Encoding:\s*(\S+)/mi;
    $body = decode_qp($body) if lc($encoding // '') eq 'quoted-printable';
    $body = decode_base64($body) if lc($encoding // '') eq 'base64';
    return $body =~ s/\r\n/\n/gr;
}

# Our scripts find all that in the environment.
sub environment {
    my $j = shift;
    return ('env', map { "$_->[0]=" . ($_->[1] // '') } ['SENDMAIL', $j->{sendmail}], ['PORT', $j->{port}], ['TLS', $j->{tls}], ['AUTH_USER', $j->{user}], ['AUTH_PASSWORD', $j->{password}],
        ['FROM', $j->{from}], ['TO', $j->{to}], ['FILE', $j->{file}], ['BODY', $j->{body}], ['CA', $j->{ca}], ['HOME', $j->{dir}]);
}

sub encoded { my $s = shift; $s =~ s/([^A-Za-z0-9.-])/sprintf '%%%02X', ord $1/ge; return $s }
sub runs { return (Petrel::command('', @_))[0] == 0 }
sub with_program { my $name = shift; return Petrel::have($name) ? '' : "no $name" }
sub with_perl { my @modules = @_; return runs('perl', (map { "-M$_" } @modules), '-e', 1) ? '' : "no Perl with @modules" }
sub no_git { return runs('git', 'send-email', '--dump-aliases') ? with_perl('Mail::Address') : 'no git send-email' }
sub no_nodemailer { return with_program('node') || (-d $node_mailer ? '' : 'no nodemailer') }
sub nodemailer { return (environment(@_), "NODEMAILER=$node_mailer", 'node', "$scripts/nodemailer.js") }

sub curl {
    my $j = shift;
    my $tls = $j->{tls};
    return ('curl', '-sSv', '--max-time', 60, ($tls eq 'implicit' ? 'smtps' : 'smtp') . "://127.0.0.1:$j->{port}/client.test", '--cacert', $j->{ca},
        ($tls eq 'starttls' ? '--ssl-reqd' : ()), ($j->{user} ? ('--user', "$j->{user}:$j->{password}") : ()),
        '--mail-from', $j->{from}, '--mail-rcpt', $j->{to}, '-T', $j->{file});
}

sub git_send_email {
    my ($j, @how) = @_;
    # It would repeat the author in the text.
    Petrel::spit("$j->{dir}/0001.patch", Petrel::slurp($j->{unix}) =~ s/^From: Me <(.*)>$/From: $1/mr);
    return ('env', "HOME=$j->{dir}", 'GIT_CONFIG_NOSYSTEM=1', 'git', '-C', $j->{dir}, 'send-email', '--quiet', '--confirm=never', '--suppress-cc=all',
        '--transfer-encoding=8bit', '--8bit-encoding=UTF-8', @how, "--from=$j->{from}", "--to=$j->{to}", "$j->{dir}/0001.patch");
}

sub git {
    my $j = shift;
    my %how = (starttls => ['--smtp-encryption=tls'], implicit => ['--smtp-encryption=ssl'], '' => []);
    return git_send_email($j, '--smtp-server=127.0.0.1', "--smtp-server-port=$j->{port}", '--smtp-domain=client.test', @{ $how{ $j->{tls} } },
        "--smtp-ssl-cert-path=$j->{ca}", ($j->{user} ? ("--smtp-user=$j->{user}", "--smtp-pass=$j->{password}") : ()));
}

sub msmtp {
    my $j = shift;
    Petrel::spit("$j->{dir}/password", "$j->{password}\n");
    return ('msmtp', '--host=127.0.0.1', "--port=$j->{port}", '--timeout=60', '--domain=client.test', "--from=$j->{from}",
        ($j->{tls} ? ('--tls=on', '--tls-starttls=' . ($j->{tls} eq 'starttls' ? 'on' : 'off'), "--tls-trust-file=$j->{ca}") : ()),
        ($j->{user} ? ('--auth=plain', # that of Debian 13 breaks off SCRAM within TLS by itself
            "--user=$j->{user}", "--passwordeval=cat $j->{dir}/password") : ()), $j->{to});
}

sub mutt_with {
    my ($j, $settings) = @_;
    Petrel::spit("$j->{dir}/muttrc", $settings . <<"END");
set from="$j->{from}" use_envelope_from=yes hostname=client.test copy=no charset=utf-8 send_charset=utf-8 assumed_charset=utf-8
END
    return ('env', "HOME=$j->{dir}", 'mutt', '-n', '-F', "$j->{dir}/muttrc", '-s', 'mutt', '--', $j->{to});
}

sub mutt {
    my $j = shift;
    my ($user, $scheme) = ($j->{user} ? "$j->{user}@" : '', $j->{tls} eq 'implicit' ? 'smtps' : 'smtp');
    my $force = $j->{tls} ? 'yes' : 'no';
    return mutt_with($j, <<"END");
set smtp_url="$scheme://${user}127.0.0.1:$j->{port}/" smtp_pass='$j->{password}'
set ssl_ca_certificates_file="$j->{ca}" ssl_starttls=$force ssl_force_tls=$force certificate_file="$j->{dir}/none"
END
}

sub s_nail_with {
    my ($j, @settings) = @_;
    return ('env', "HOME=$j->{dir}", 'MAILRC=/dev/null', 's-nail', '-n',
        (map { ('-S', $_) } 'v15-compat', 'sendwait', 'ttycharset=utf-8', 'sendcharsets=utf-8', 'nosave', "from=$j->{from}", @settings), '-r', $j->{from}, '-s', 's-nail', $j->{to});
}

sub s_nail {
    my $j = shift;
    my $user = $j->{user} ? join(':', map { encoded($_) } $j->{user}, $j->{password}) . '@' : '';
    return s_nail_with($j, 'mta=' . ($j->{tls} eq 'implicit' ? 'smtps' : 'smtp') . "://${user}127.0.0.1:$j->{port}", ($j->{tls} eq 'starttls' ? 'smtp-use-starttls' : ()),
        'smtp-auth=' . ($user ? 'plain' : 'none'), 'tls-verify=ignore', 'hostname=client.test'); # it looks for a certificate of 127.0.0.1:PORT
}

sub opensmtpd {
    my $j = shift;
    my %scheme = ('' => 'smtp+notls', starttls => 'smtp+tls', implicit => 'smtps');
    my $user = $j->{user} ? "$j->{user}:$j->{password}@" : '';
    # It takes no CA of ours.
    return (Peer::package_root('opensmtpd') . '/usr/bin/smtp', '-C', '-F', $j->{from}, '-H', 'client.test', '-s', "$scheme{$j->{tls}}://${user}127.0.0.1:$j->{port}", $j->{to});
}

sub swaks {
    my $j = shift;
    my %how = (starttls => ['--tls'], implicit => ['--tls-on-connect'], '' => []);
    return ('swaks', '--helo', 'client.test', '--server', "127.0.0.1:$j->{port}", '--from', $j->{from}, '--to', $j->{to}, '--data', "\@$j->{file}", @{ $how{ $j->{tls} } },
        ($j->{tls} ? ('--tls-verify', '--tls-ca-path', $j->{ca}) : ()), ($j->{user} ? ('--auth', '--auth-user', $j->{user}, '--auth-password', $j->{password}) : ()));
}

sub dma {
    my $j = shift;
    my $root = Peer::root('dma', ['usr/sbin/dma'], 'mail:x:8:8::/:/bin/false');
    $j->{root} = $root;
    make_path("$root/etc/dma", "$root/var/spool/dma");
    Petrel::spit("$root/etc/dma/dma.conf", join "\n", 'SMARTHOST 127.0.0.1', "PORT $j->{port}", 'MAILNAME client.test', 'NULLCLIENT',
        ($j->{user} ? 'AUTHPATH /etc/dma/auth.conf' : ()), ($j->{tls} ? 'SECURETRANSFER' : ()), ($j->{tls} eq 'starttls' ? 'STARTTLS' : ()), '');
    Petrel::spit("$root/etc/dma/auth.conf", "$j->{user}|127.0.0.1:$j->{password}\n");
    system 'chgrp', '-R', '8', "$root/etc/dma", "$root/var/spool/dma";
    chmod 02770, "$root/var/spool/dma";
    chmod 02755, "$root/usr/sbin/dma";
    return (Petrel::have('chroot'), $root, '/usr/sbin/dma', '-D', '-i', '-f', $j->{from}, $j->{to});
}

# It looks for sendmail in two places alone: this copy of it in our directory.
sub mpack {
    my $j = shift;
    Petrel::spit("$j->{dir}/mpack", Petrel::slurp(Peer::package_root('mpack') . '/usr/bin/mpack') =~ s{/usr/s?(?:bin|lib)/sendmail\0}{'./sendmail' . "\0" x (length($&) - 10)}ger);
    chmod 0755, "$j->{dir}/mpack";
    symlink $j->{sendmail}, "$j->{dir}/sendmail" or die;
    return ('env', '-C', $j->{dir}, "HOME=$j->{dir}", "SPLITSIZE=$j->{split}", './mpack', '-s', 'mpack', $j->{body}, $j->{to});
}

# name; missing: why it cannot run; command: the words of a job; input: what it reads; composes: it writes the header
# itself, and maybe encodes the text; reports: it has a queue, and reports a refusal to the sender; never_fails: its exit code is 0 in any case; traces: it adds a
# Received of its own; tail: what it adds behind the text.
sub all {
    return (
        { name => 'curl', missing => runs('curl', '--version') ? '' : 'no curl', command => \&curl },
        { name => 'dma', missing => Peer::missing('dma'), command => \&dma, input => 'unix', reports => 1, traces => 1 },
        { name => 'git send-email', missing => no_git() || with_perl(qw(IO::Socket::SSL Authen::SASL)), command => \&git, composes => 1 },
        { name => 'msmtp', missing => with_program('msmtp'), command => \&msmtp, input => 'file' },
        { name => 'mutt', missing => with_program('mutt'), command => \&mutt, input => 'body', composes => 1 },
        { name => 'Net::SMTP', missing => with_perl(qw(Net::SMTP IO::Socket::SSL Authen::SASL)), command => sub { return (environment(@_), 'perl', "$scripts/net_smtp.pl") } },
        { name => 'nodemailer', missing => no_nodemailer(), composes => 1, command => \&nodemailer },
        { name => 'OpenSMTPD smtp', missing => -x Peer::package_root('opensmtpd') . '/usr/bin/smtp' ? '' : 'no OpenSMTPD', command => \&opensmtpd, input => 'unix', never_fails => 1 },
        { name => 'PHP', missing => with_program('php'), command => sub { return (environment(@_), 'php', '-n', "$scripts/smtp.php") } },
        { name => 's-nail', missing => with_program('s-nail'), command => \&s_nail, input => 'body', composes => 1 },
        { name => 'smtplib', missing => runs('python3', '-c', 'import smtplib, ssl') ? '' : 'no python3', command => sub { return (environment(@_), 'python3', "$scripts/send.py") } },
        { name => 'swaks', missing => with_program('swaks') || with_perl('Net::SSLeay'), command => \&swaks, tail => "\r\n" },
    );
}

# The same by sendmail(1). asks_no_bad: a bad recipient is none of its arguments, or it refuses one itself.
sub by_sendmail {
    return (
        { name => 'git send-email', missing => no_git(), composes => 1, asks_no_bad => 1, command => sub { my $j = shift; return git_send_email($j, '--envelope-sender=auto', "--smtp-server=$j->{sendmail}") } },
        { name => 'mutt', missing => with_program('mutt'), input => 'body', composes => 1, command => sub { my $j = shift; return mutt_with($j, "set sendmail='$j->{sendmail} -oem -oi'\n") } },
        { name => 'nodemailer', missing => no_nodemailer(), composes => 1, command => \&nodemailer },
        { name => 'PHP mail()', missing => with_program('php'), composes => 1, asks_no_bad => 1, tail => "\n",
            command => sub { my $j = shift; return (environment($j), 'php', '-n', '-d', "sendmail_path=$j->{sendmail} -t -i", "$scripts/mail.php") } },
        { name => 's-nail', missing => with_program('s-nail'), input => 'body', composes => 1, command => sub { my $j = shift; return s_nail_with($j, "mta=$j->{sendmail}") } },
        { name => 'swaks', missing => with_program('swaks'), tail => "\r\n",
            command => sub { my $j = shift; return ('swaks', '--helo', 'client.test', '--pipe', "$j->{sendmail} -bs", '--from', $j->{from}, '--to', $j->{to}, '--data', "\@$j->{file}") } },
    );
}

1;
