#!/usr/bin/perl
# petrel import: configurations as people publish them, in a table (t/e2e/import.cases): the files, the settings that come of
# them, the files beside these, and what is said of each line. IMPORT_RECORD=1 writes the table anew: read the difference.
use lib 't/e2e';
use E2E;
use File::Path qw(make_path);

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $base = tempdir('import-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $table = "$Petrel::root/t/e2e/import.cases";
sub mode { my @stat = stat shift; return sprintf '%o', ($stat[2] // 0) & 07777 }
sub import_ { return Petrel::command('', $Petrel::binary, 'import', @_) }

my (@cases, $section);
for (split /^/, Petrel::slurp($table)) {
    if (/^==== (.*)/) { push @cases, { name => $1, order => [] }; $section = undef }
    elsif (/^---- (.*)/) { $section = $1; push @{ $cases[-1]{order} }, $section; $cases[-1]{files}{$section} = '' }
    else { $cases[-1]{files}{$section} .= $_ }
}
cmp_ok scalar(@cases), '>=', 65, 'configurations';

my (%seen, $record);
system('openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=mail.example.org', '-keyout', "$base/key.pem", '-out', "$base/cert.pem") == 0 or die 'openssl';
for my $case (@cases) {
    my $dir = "$base/" . ++$seen{number};
    my ($source, %is);
    for my $name (@{ $case->{order} }) {
        next if $name =~ /^=/;
        my $content = $case->{files}{$name} =~ s/\@(?=\/)/$dir/gr;
        $content = Petrel::slurp("$base/$name") if $content =~ /^\((?:certificate|key)\)$/;
        make_path("$dir/$name" =~ s{/[^/]*\z}{}r);
        $source //= $name =~ m{^nullmailer/} ? "$dir/nullmailer" : "$dir/$name";
        Petrel::spit("$dir/$name", $content);
    }
    make_path("$dir/out");
    my ($code, $said) = import_('--output', "$dir/out/petrel.conf", $source);
    is $code, 0, $case->{name} or diag $said;
    my ($checks, $errors) = Petrel::command('', $Petrel::binary, '-c', "$dir/out/petrel.conf", 'check', '--changed');
    is $checks, 0, '  petrel check agrees' or diag $errors;
    my $settings = Petrel::slurp("$dir/out/petrel.conf");
    $is{'= settings'} = join '', grep { !/^#(?! (?:relay|sender_routes) =|     )|^$|^user =/ } map { "$_\n" } split /\n/, $settings;
    for my $file (qw(passwords aliases.imported)) {
        $is{"= $file"} = Petrel::slurp("$dir/out/$file") if -e "$dir/out/$file";
    }
    is mode("$dir/out/passwords"), '600', '  passwords are for one user' if $is{'= passwords'};
    $is{'= report'} = $said =~ s/^petrel import: written.*\n//mr;
    s{\Q$dir\E/}{\@/}g for values %is;
    my %host = (hostname => (Petrel::command('', 'hostname'))[1] =~ s/\s//gr);
    s/\b\Q$host{hostname}\E\b/HOST/g for grep { length $host{hostname} } values %is;
    my @wanted = grep { /^=/ } @{ $case->{order} };
    is_deeply { map { $_ => $is{$_} } keys %is }, { map { $_ => $case->{files}{$_} } @wanted }, '  settings, files and report' unless $ENV{IMPORT_RECORD};
    # Each line of the source has its line in the report.
    my ($first) = @{ $case->{order} };
    my @missing = grep { $is{'= report'} !~ /^\@\/\Q$first\E:$_: /m } lines($case, $first);
    is "@missing", '', '  nothing is dropped in silence';
    unlike $said, qr/se cret|sec:ret|two words|abcd efgh|secret#1|from a file/, '  no password is shown';
    $record .= "==== $case->{name}\n" . join '', map { "---- $_\n" . ($is{$_} // $case->{files}{$_}) } (grep { !/^=/ } @{ $case->{order} }), sort keys %is;
}
Petrel::spit($table, $record) if $ENV{IMPORT_RECORD};

# The numbers of lines that are not empty, comments, or go on.
sub lines {
    my ($case, $name) = @_;
    my ($number, $goes_on, @found) = (0, 0);
    for (split /^/, $case->{files}{$name}) {
        $number++;
        push @found, $number unless /^\s*(?:#|$)/ || $goes_on || ($name eq 'main.cf' && /^\s/);
        $goes_on = /\\$/;
    }
    return @found;
}

# --- The command

my $dir = "$base/command";
make_path("$dir/out");
Petrel::spit("$dir/main.cf", "relayhost = [smtp.provider.example]:587\nmyhostname = vps.example.org\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_password_maps = static:joe:very-secret\n");
Petrel::spit("$dir/odd", "account default\nhost smtp.provider.example\nfrom a\@example.org\n");
my ($code, $said) = import_("$dir/main.cf");
is $code, 0, 'to standard output';
like $said, qr{^relay = submission://joe\@smtp\.provider\.example$}m, 'the settings';
unlike $said, qr/very-secret/, 'without the password';
like $said, qr/^petrel import: passwords are not printed: --output FILE/m, 'it says where that goes';
my @out = ('--output', "$dir/out/petrel.conf", "$dir/main.cf");
is((import_(@out))[0], 0, '--output');
Petrel::spit("$dir/out/passwords", "mine\n");
($code, $said) = import_(@out);
is $code, 73, 'nothing is replaced';
like $said, qr/petrel\.conf: it is there already; run it with --force/, 'it says how';
is Petrel::slurp("$dir/out/passwords"), "mine\n", 'the file of passwords neither';
is((import_('--force', @out))[0], 0, '--force');
like Petrel::slurp("$dir/out/passwords"), qr/^smtp\.provider\.example:587 joe very-secret$/m, 'replaces both';
Petrel::spit("$dir/out/passwords", "mine\n");
Petrel::spit("$dir/out/petrel.conf", "# mine\n");
mkdir "$dir/out/petrel.conf.new" or die;
is((import_('--force', @out))[0], 73, 'settings that cannot be written');
is Petrel::slurp("$dir/out/passwords"), "mine\n", 'nothing else is replaced';
is_deeply [sort map { s{.*/}{}r } glob "$dir/out/*"], [qw(passwords petrel.conf petrel.conf.new)], 'and nothing is left';
rmdir "$dir/out/petrel.conf.new" or die;
unlink "$dir/out/petrel.conf";
mkdir "$dir/out/petrel.conf" or die;
is((import_('--force', @out))[0], 73, 'a directory in the place of the settings');
is Petrel::slurp("$dir/out/passwords"), "mine\n", 'nothing else is replaced';
rmdir "$dir/out/petrel.conf" or die;
unlink "$dir/out/passwords";
symlink "$dir/elsewhere", "$dir/out/passwords" or die;
($code) = import_('--force', @out);
is $code, 73, 'never through a link';
ok !-e "$dir/elsewhere", 'nor into its file';
($code, $said) = import_("$dir/odd");
like $said, qr/^petrel import: msmtp:/m, 'the content says what it is';
($code, $said) = import_('--from', 'dma', "$dir/odd");
like $said, qr/^petrel import: dma: 0 lines taken, 0 not needed, 0 not imported, 3 unknown$/m, '--from overrides it';
($code, $said) = import_('--json', "$dir/main.cf");
my $json = decode_json($said);
is_deeply [map { "$_->{line} $_->{name} $_->{result} " . ($_->{setting} // '') } grep { $_->{line} && $_->{name} ne '*' } @{ $json->{lines} }],
    ['1 relayhost taken relay', '2 myhostname taken hostname', '3 smtp_sasl_auth_enable taken auth_passwords', '4 smtp_sasl_password_maps taken auth_passwords'], '--json';
like $json->{config}, qr/^hostname = vps\.example\.org$/m, 'with the settings';
is((import_("$dir/no_such_file"))[0], 66, 'a file that is not there');
Petrel::spit("$dir/nothing", "\0\1\2 binary\n");
is((import_("$dir/nothing"))[0], 65, 'a file of nobody');
is((import_('--from', 'sendmail', "$dir/odd"))[0], 64, 'a program that is not known');
is((import_())[0], 64, 'no file');
is((import_('--force', "$dir/odd"))[0], 64, '--force without --output');

# --- Mail leaves by these settings, through a smarthost that verifies no less than we do: TLS with a certificate of its
# name, a login, and mail of the login's own address alone

SKIP: {
    skip 'python3 is not installed', 1 unless Petrel::have('python3');
    my $certificates = "$base/certificates";
    mkdir $certificates or die;
    system("sh t/support/tls_certificates.sh $certificates >$base/certificates.log 2>&1") == 0 or die Petrel::slurp("$base/certificates.log");
    Petrel::spawn("$base/smarthost.out", 'python3', 't/e2e/login_smarthost.py', $certificates, "$base/smarthost.log");
    my $port = Petrel::wait_for(sub { Petrel::slurp("$base/smarthost.out") =~ /^(\d+)$/m ? $1 : 0 }) or die;
    my ($ca, $user, $password) = ("$certificates/ca.pem", 'you@example.org', 'p4ss:%w"rd');
    my %sources = (
        'main.cf' => "relayhost = [127.0.0.1]:$port\nsmtp_tls_security_level = secure\nsmtp_tls_CAfile = $ca\nsmtp_sasl_auth_enable = yes\nsmtp_sasl_password_maps = hash:@/sasl_passwd\nmyhostname = vps.example.org\nsmtp_generic_maps = hash:@/generic\nmydestination =\n",
        msmtprc => "tls on\nhost 127.0.0.1\nport $port\nfrom $user\nuser $user\nauth on\npassword $password\ntls_trust_file $ca\n",
        'ssmtp.conf' => "mailhub=127.0.0.1:$port\nUseSTARTTLS=YES\nAuthUser=$user\nAuthPass=$password\nTLS_CA_File=$ca\nhostname=vps.example.org\n",
        remotes => "127.0.0.1 smtp --port=$port --starttls --user=$user --pass='$password' --x509cafile=$ca\n",
        'dma.conf' => "SMARTHOST 127.0.0.1\nPORT $port\nSECURETRANSFER\nSTARTTLS\nAUTHPATH auth.conf\nMASQUERADE $user\n",
        'smtpd.conf' => "ca x cert \"$ca\"\ntable secrets file:@/secrets\naction out relay host smtp+tls://me\@127.0.0.1:$port auth <secrets> mail-from \"$user\"\nmatch for any action out\n",
    );
    my %beside = ('main.cf' => { sasl_passwd => "[127.0.0.1]:$port $user:$password\n", generic => "\@vps.example.org $user\n" }, 'ssmtp.conf' => { revaliases => "root:$user\n" },
        'dma.conf' => { 'auth.conf' => "$user|127.0.0.1:$password\n" }, 'smtpd.conf' => { secrets => "me $user:$password\n" });
    for my $name (sort keys %sources) {
        my $dir = "$base/send-$name";
        mkdir $dir or die;
        chmod 0711, $dir;
        my %files = ($name => $sources{$name}, %{ $beside{$name} || {} });
        Petrel::spit("$dir/$_", $files{$_} =~ s/\@(?=\/)/$dir/gr) for keys %files;
        my ($code, $said) = import_('--output', "$dir/petrel.conf", "$dir/$name");
        is $code, 0, "$name: imported" or diag $said;
        my $listen = Petrel::free_port();
        my $petrel = bless { dir => $dir, port => $listen, log => "$dir/log", starts => 0, settings => { spool => "$dir/spool" } }, 'Petrel';
        local $ENV{PETREL_SPOOL} = "$dir/spool";
        local $ENV{PETREL_LISTEN} = "127.0.0.1:$listen";
        local $ENV{PETREL_TLS_CA} = $ca if $name eq 'dma.conf'; # it has no such setting
        local $ENV{PETREL_REWRITE} = "* $user" if $name eq 'remotes'; # nullmailer has a file for it
        my $before = () = Petrel::slurp("$base/smarthost.log") =~ /^message$/mg;
        $petrel->start;
        is +($petrel->run({ input => "Subject: Cron <root\@vps> backup\n\nfailed\n" }, 'sendmail', '-oi', '-f', 'root', 'friend@far.test'))[0], 0, '  mail of cron';
        ok Petrel::wait_for(sub { (() = Petrel::slurp("$base/smarthost.log") =~ /^message$/mg) > $before }, 20), '  is delivered' or diag $said, Petrel::slurp("$dir/petrel.conf"), $petrel->log, Petrel::slurp("$base/smarthost.log");
        my ($last) = reverse Petrel::slurp("$base/smarthost.log") =~ /^auth tls ([0-9a-f]+)$/mg;
        is pack('H*', $last // ''), "\0$user\0$password", '  by that user, with that password, in TLS';
        $petrel->stop;
    }
    unlike Petrel::slurp("$base/smarthost.log"), qr/^refused|^auth clear/m, 'no sender is refused, no password in cleartext';
}

# --- Hostile input: bounded, and no assertion fails

Petrel::spit("$dir/main.cf", join('', map { "x$_ = \${x" . ($_ + 1) . "}\${x" . ($_ + 1) . "}\n" } 0 .. 200) . "myhostname = \$x0\nmynetworks = " . '1.2.3.4 ' x 30000 . "\n" . "y = z\n" x 30000);
my $start = times;
($code, $said) = import_("$dir/main.cf");
is $code, 0, 'a billion dollars';
like $said, qr/more than 20,000 lines/, 'the last line that counts says so';
Petrel::spit("$dir/main.cf", "alias_maps = hash:$dir/main.cf\nvirtual_alias_maps = hash:$dir/main.cf hash:/dev/zero hash:/proc/self/mem\nmynetworks = $dir\n" . join '', map { chr } grep { $_ != 10 } 0 .. 255);
is((import_("$dir/main.cf"))[0], 0, 'files that name themselves, and are none');
done_testing;
