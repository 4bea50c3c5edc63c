#!/usr/bin/perl
# petrel(8), petrel.conf(5): each example does what the page says, as it is written there.
use lib 't/e2e';
use E2E;

my $scratch = tempdir('man-XXXXXX', TMPDIR => 1, CLEANUP => 1);

# The literal blocks of a section (.EX to .EE, .nf to .fi), as man(1) shows them: [the sentence before it, its text].
sub examples {
    my ($page, $section) = @_;
    my ($text) = Petrel::slurp("$Petrel::root/man/$page") =~ /^\.SH \Q$section\E\n(.*?)(?=^\.SH |\z)/ms or die "$page: $section";
    my @found;
    while ($text =~ /([^\n]*)\n(?:\.[PI]P\n)?\.(?:EX|nf)\n(.*?)^\.(?:EE|fi)$/msg) {
        my ($before, $block) = ($1, $2);
        $block =~ s/^    //mg;
        $block =~ s/\\([-e])/$1 eq 'e' ? '\\' : '-'/eg;
        push @found, [$before, $block];
    }
    return @found;
}

# A shell with this binary as `petrel`: (exit code, output).
sub shell {
    my ($script, %environment) = @_;
    delete local @ENV{ grep { /^PETREL/ } keys %ENV };
    local @ENV{ keys %environment } = values %environment;
    local $ENV{PATH} = "$scratch/bin:$ENV{PATH}";
    return Petrel::command('', 'sh', '-e', Petrel::spit("$scratch/example.sh", $script));
}

# --- petrel(8) ---------------------------------------------------------------------------

# Its first example is the daemon; the others talk to it.
my $relay = Petrel::free_port();
my $petrel = Petrel->new(routes => "example.org smtp://127.0.0.1:$relay\n    * discard", local_domains => '');
mkdir "$scratch/bin" or die;
chmod 0755, Petrel::spit("$scratch/bin/petrel", qq{#!/bin/sh\nexec "$Petrel::binary" -c "} . $petrel->conf . qq{" "\$@"\n});

my ($start, $waits, $hold, $monitor, $submit, @more) = examples('petrel.8', 'EXAMPLES');
is_deeply \@more, [], 'all examples of petrel(8) are known';

my ($check, $run) = $start->[1] =~ /\A(petrel check)\npetrel (.* run)\n\z/;
ok $check && $run, 'first the settings are checked, then the daemon runs';
my ($code, $said) = shell($check);
is $code, 0, $start->[0];
like $said, qr/^routes = .*\n    example\.org smtp:/m, '    the settings in effect' or diag $said;
{
    local $ENV{PATH} = "$scratch/bin:$ENV{PATH}";
    $petrel->{pid} = Petrel::spawn($petrel->{log}, 'sh', '-c', "exec petrel $run");
}
ok $petrel->wait_log(qr/listening on /), '    and the daemon listens' or diag $petrel->log;

($code, $said) = shell($monitor->[1]);
is "$code $said", '0 ', $monitor->[0];

($code, $said) = shell($submit->[1]);
is $code, 0, $submit->[0];
like $said, qr/alice\@example\.org.*127\.0\.0\.1:$relay/s, '    by this route';

my $sendmail = 'petrel sendmail -i -f list@example.org bob@example.org < /dev/null';
is +(shell($sendmail))[0], 0, 'a message that waits';
ok Petrel::wait_for(sub { $petrel->log =~ /bob\@example\.org.*status=deferred/ }), '    as its relay is down' or diag $petrel->log;
($code, $said) = shell($waits->[1]);
is $code, 0, $waits->[0] or diag $said;
like $said, qr/-> <bob\@example\.org>.*because: .* is due/s, '    listed, explained, due';
ok $petrel->wait_log(qr/ smtp: connecting to /), '    with a log of that level' or diag $petrel->log;

is +(shell($sendmail))[0], 0, 'one more';
my $deferred = 'petrel queue ls --queue deferred';
ok Petrel::wait_for(sub { Petrel::count((shell($deferred))[1], qr/<bob\@/) == 2 }), '    waits, too' or diag $petrel->log;
($code, $said) = shell($hold->[1]);
is $code, 0, $hold->[0] or diag $said;
is Petrel::count($said, qr/ held$/m), 2, '    both are held, and neither is old';

$petrel->stop;
($code, $said) = shell($monitor->[1]);
like $said, qr/^petrel: exit code 69$/m, 'without a daemon the monitor reports it';

# --- petrel.conf(5) -----------------------------------------------------------------------

my @prints = (
    qr{^    partner\.example  mx\n    \* +smtp://mail\.example\.net:587\n}m,
    qr{^    \.lists\.example\.org +lmtp://unix:/run/dovecot/lmtp\n.*^local = maildir:/var/mail/%u  }ms,
    qr{^    partner\.example  mx\?tls=verify\n}m,
    qr{^relay = mail\.example\.net:25  .* environment\n}m,
);
my @files = examples('petrel.conf.5', 'EXAMPLES');
is scalar @files, scalar @prints, 'all examples of petrel.conf(5) are known';
for my $i (0 .. $#files) {
    my ($name, $text) = @{ $files[$i] };
    my %environment = $text =~ /^(PETREL_\w+)=(.*)$/mg;
    my $file = Petrel::spit("$scratch/example.conf", %environment ? '' : $text);
    ($code, $said) = shell(qq{"$Petrel::binary" -c "$file" -o spool=$scratch/spool check}, %environment);
    is $code, 0, $name;
    like $said, $prints[$i], '    the settings in effect' or diag $said;
}
done_testing;
