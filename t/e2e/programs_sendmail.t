#!/usr/bin/perl
# Mail programs that we did not write call sendmail(1): what arrives, and what they say of a refusal; mpack's parts.
use lib 't/e2e';
use E2E;
use Peer;
use Program;

delete @ENV{ grep { /^PETREL_/ } keys %ENV };
my $scratch = tempdir('programs-XXXXXX', TMPDIR => 1, CLEANUP => 1);
my $sink = Sink->start;
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}?defragment=yes", message_size_limit => '20K')->start;
$ENV{PETREL_CONFIG} = $petrel->conf;
symlink $Petrel::binary, "$scratch/sendmail" or die;
my @jobs = (
    { name => 'plain' },
    { name => 'bad recipient', to => 'you@there..test', refused => qr/sendmail: |501 5\.1\.3|exited.* 65|code 65|write EPIPE/ },
    { name => 'too large', text => $Program::large, refused => qr/sendmail: the message is larger|552 5\.3\.4|exited.* 65|code 65/ },
);

sub begin {
    my ($program, $job, $number) = @_;
    my $slug = "$program->{name}-$number" =~ s/[^A-Za-z0-9]+/-/gr;
    return Program::begin($program, { from => "$slug\@here.test", to => "$slug\@there.test", text => $Program::text, dir => "$scratch/$slug", sendmail => "$scratch/sendmail", %$job });
}

# The arguments choose some: prove t/e2e/programs_sendmail.t :: mutt swaks
my %chosen = map { $_ => 1 } @ARGV;
my $sent = 0;
for my $program (grep { !%chosen || $chosen{ $_->{name} } } Program::by_sendmail()) {
SKIP: {
        skip $program->{missing}, 1 if $program->{missing};
        my $number = 0;
        my ($good, @bad) = map { begin($program, $_, ++$number) } grep { !$_->{to} || !$program->{asks_no_bad} } @jobs;
        Program::end($_) for $good, @bad;
        for my $j (@bad) {
            isnt $j->{status}, 0, "$program->{name}, $j->{name}: fails" or diag $j->{said};
            like $j->{said}, $j->{refused}, "$program->{name}, $j->{name}: and says why";
        }
        is $good->{status}, 0, "$program->{name}: succeeds" or diag($good->{said}), next;
        my $got = $sink->wait_for($good->{to}) or fail("$program->{name}: arrives") || diag($good->{said}, $petrel->log), next;
        $sent++;
        is $got->{from}, $good->{from}, "$program->{name}: the sender";
        if ($program->{composes}) {
            ok Program::text_of($got->{data}) eq $good->{text} . ($program->{tail} // ''), "$program->{name}: the text is whole" or diag $got->{data};
            like $got->{data}, qr/^From: .*\Q$good->{from}\E/m, "$program->{name}: the author";
        }
        else {
            ok Petrel::untraced($got->{data}) eq $good->{message} . ($program->{tail} // ''), "$program->{name}: byte for byte" or diag $got->{data};
        }
    }
}

# mpack cuts a file into message/partial; Petrel joins them.
SKIP: {
    my $missing = %chosen && !$chosen{mpack} ? 'not chosen' : Peer::missing('mpack');
    skip $missing, 1 if $missing;
    my $j = begin({ name => 'mpack', command => \&Program::mpack }, { name => 'mpack', split => 1500, text => join '', map { chr $_ * 7 % 256 } 1 .. 5000 }, 1);
    Program::end($j);
    is $j->{status}, 0, 'mpack: succeeds' or diag $j->{said};
    my $got = $sink->wait_for($j->{to});
    ok $got, 'mpack: arrives' or diag $j->{said}, $petrel->log;
    my ($coded) = ($got->{data} // '') =~ /base64\r\n(?:\S[^\n]*\n)*\r\n([A-Za-z0-9+\/=\r\n]+)/i;
    ok MIME::Base64::decode_base64($coded // '') eq $j->{text}, 'mpack: the file is whole' or diag $got->{data};
    ok $petrel->wait_log(qr/fragments=[3-9], recipients=1, status=reassembled/), 'mpack: came in parts' or diag $petrel->log;
    $sent++;
}

ok $petrel->wait_empty, 'the queue is empty';
is scalar($sink->messages), $sent, 'nothing else came';
is $petrel->stop, 0, 'Petrel ends well';
done_testing;
