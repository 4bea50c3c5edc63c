#!/usr/bin/perl
# Mail programs that we did not write send by SMTP: in clear, by STARTTLS and by TLS, with a login; and are refused: a
# wrong password, a recipient, a message that is too large. Judged by what arrives, and by what the program says.
use lib 't/e2e';
use E2E;
use Program;

plan skip_all => 'no openssl' unless Petrel::have('openssl');
my $scratch = tempdir('programs-XXXXXX', TMPDIR => 1, CLEANUP => 1);
chmod 0755, $scratch;
my $keys = "$scratch/keys";
is((Petrel::command('', 'sh', "$Petrel::root/t/support/tls_certificates.sh", $keys))[0], 0, 'certificates are made');
my $password = 'p&ncil+9';
my ($made, $stored) = Petrel::command("$password\n", $Petrel::binary, 'passwd', 'alice');
is $made, 0, 'a password is made' or diag $stored;
my $users = Petrel::spit("$scratch/users", $stored);
chmod 0600, $users;
my $sink = Sink->start;
my $tls = Petrel::free_port();
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", local => "maildir:$scratch/mail/%u", message_size_limit => '20K',
    tls_certificate => "$keys/good.pem", tls_key => "$keys/good.key", auth_users => $users, auth_failure_limit => 0);
$petrel->configure(listen => "127.0.0.1:$petrel->{port}, 127.0.0.1:$tls?tls")->start;

my @jobs = (
    { name => 'plain', arrives => 'E?SMTP' }, { name => 'STARTTLS', tls => 'starttls', arrives => 'ESMTPS' }, { name => 'TLS', tls => 'implicit', arrives => 'ESMTPS' },
    { name => 'AUTH', tls => 'starttls', user => 'alice', arrives => 'ESMTPSA' }, { name => 'AUTH by TLS', tls => 'implicit', user => 'alice', arrives => 'ESMTPSA' },
    { name => 'wrong password', tls => 'starttls', user => 'alice', password => 'another', refused => qr/535|[Aa]uthentication fail/, log => '535 5.7.8' },
    { name => 'unknown user', to => 'nobody@petrel.test', refused => qr/5\.1\.1 no such user here/, log => '550 5.1.1' },
    { name => 'too large', text => $Program::large, refused => qr/5\.3\.4 message is too large/, log => '552 5.3.4' },
);

# Starts a program for a job.
sub begin {
    my ($program, $job, $number) = @_;
    my $slug = "$program->{name}-$number" =~ s/[^A-Za-z0-9]+/-/gr;
    my %j = (tls => '', user => '', password => $job->{user} ? $password : '', from => "$slug\@here.test", to => "$slug\@there.test", text => $Program::text,
        ca => "$keys/ca.pem", dir => "$scratch/$slug", %$job);
    $j{port} = $j{tls} eq 'implicit' ? $tls : $petrel->{port};
    return Program::begin($program, \%j);
}

sub arrives {
    my ($program, $name, $j) = @_;
    is $j->{status}, 0, "$name: succeeds" or return diag $j->{said};
    my $got = $sink->wait_for($j->{to}) or return fail("$name: arrives") || diag $j->{said}, $petrel->log;
    is $got->{from}, $j->{from}, "$name: the sender";
    my ($protocol) = $got->{data} =~ /\AReceived:[^;]*?\swith (\w+)/;
    # Some say SMTPUTF8 for every message.
    like $protocol, qr/^(?:$j->{arrives}|${\($j->{arrives} =~ s{^E\??}{UTF8}r)})$/, "$name: $j->{arrives}";
    if ($program->{composes}) {
        return ok(Program::text_of($got->{data}) eq $j->{text}, "$name: the text is whole") || diag $got->{data};
    }
    my $content = Petrel::untraced($got->{data});
    $content = Petrel::untraced($content) if $program->{traces};
    ok $content eq $j->{message} . ($program->{tail} // ''), "$name: byte for byte" or diag $content;
    return;
}

sub refused {
    my ($program, $name, $j, $logged) = @_;
    ok Petrel::wait_for(sub { substr($petrel->log, $logged) =~ /refused=\Q$j->{log}\E, client=\[127\.0\.0\.1\]/ }), "$name: $j->{log} is logged";
    is scalar($sink->for_address($j->{to})), 0, "$name: nothing arrives";
    if ($program->{reports}) {
        return if $j->{user}; # it keeps its mail for another try
        my $got = $sink->wait_for($j->{from}) or return fail("$name: the sender gets a report") || diag $petrel->log;
        return like $got->{data}, $j->{refused}, "$name: the report has our words";
    }
    isnt $j->{status}, 0, "$name: fails" or diag $j->{said} unless $program->{never_fails} && !$j->{user};
    like $j->{said}, $j->{refused}, "$name: and says why";
    return;
}

# The arguments choose some: prove t/e2e/programs.t :: mutt swaks
my %chosen = map { $_ => 1 } @ARGV;
for my $program (grep { !%chosen || $chosen{ $_->{name} } } Program::all()) {
SKIP: {
        skip $program->{missing}, 1 if $program->{missing};
        my $number = 0;
        my $logged = length $petrel->log;
        my @begun = map { begin($program, $_, ++$number) } @jobs;
        Program::end($_) for @begun;
        for my $j (@begun) {
            my $name = "$program->{name}, $j->{name}";
            if ($j->{arrives}) { arrives($program, $name, $j) } else { refused($program, $name, $j, $logged) }
        }
        # Later logins need not wait for the failures of this one.
        is((Petrel::command('', $Petrel::binary, '-c', $petrel->conf, 'unlock', '127.0.0.1'))[0], 0, "$program->{name}: its failures are forgotten");
    }
}

ok $petrel->wait_empty, 'the queue is empty';
is $petrel->stop, 0, 'Petrel ends well';
done_testing;
