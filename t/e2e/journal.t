#!/usr/bin/perl
# The journal, from outside: what a message costs the disk, and what operators see of journaled mail.
use lib 't/e2e';
use E2E;

sub rooms { my ($petrel, $rooms) = @_; return grep { -f } glob "$petrel->{dir}/spool/{$rooms}/*" }

sub mail {
    my ($name, $size) = @_;
    return (from => "$name\@source.test", to => ["$name\@x.test"], data => "Subject: $name\r\n\r\n" . ('x' x 70 . "\r\n") x ($size / 72) . "end\r\n");
}

# Over that many connections at the same time; the replies that were no 250.
sub send_many {
    my ($port, $connections, $count, $size, $label) = @_;
    my @clients = map { Client->greeted($port) } 1 .. $connections;
    my @bad;
    for my $number (1 .. $count) {
        my $client = $clients[$number % @clients];
        my $reply = $client->send_pipelined(mail("$label$number", $size));
        push @bad, $reply if $reply !~ /^250 2\.0\.0 Ok: queued as/;
    }
    $_->say('QUIT') for @clients;
    return @bad;
}

# --- The cost of a message

SKIP: {
    skip 'strace may not trace here', 5 if system('strace -D -o /dev/null true 2>/dev/null') != 0;
    my $sink = Sink->start;
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}");
    my $trace = "$petrel->{dir}/trace";
    my $script = Petrel::spit("$petrel->{dir}/traced", "#!/bin/sh\nexec strace -D -qq -y -o $trace -e trace=openat,openat2,linkat,unlinkat,renameat,mkdirat,pwrite64,fsync,fdatasync,io_submit $Petrel::binary \"\$@\"\n");
    chmod 0755, $script;
    { local $Petrel::binary = $script; $petrel->start; }
    send_many($petrel->{port}, 1, 5, 500, 'warm');
    ok Petrel::wait_for(sub { $sink->count('messages') == 5 }), 'it runs';
    my $before = length Petrel::slurp($trace);
    my @bad = send_many($petrel->{port}, 8, 200, 1000, 'm');
    is "@bad", '', '200 messages are taken';
    ok Petrel::wait_for(sub { $sink->count('messages') == 205 }), 'and delivered';
    my $calls = substr Petrel::slurp($trace), $before;
    my @files = $calls =~ /^(?:(?:openat2?|linkat|unlinkat|renameat|mkdirat)\(.*)$/mg;
    # The learnt state of sites is written once a minute, the disk is probed once, mail or not.
    my @made = grep { /O_CREAT|^(?:linkat|unlinkat|renameat|mkdirat)/ && !m{\block/} } @files;
    is scalar(@made), 0, 'no file was made, linked, renamed or removed for them' or diag @made;
    my $batches = () = $calls =~ /^pwrite64\(/mg;
    my $syncs = () = $calls =~ /^(?:fsync|fdatasync|io_submit)\(/mg;
    note "$batches batches, $syncs syncs";
    cmp_ok $syncs, '<=', 1.2 * $batches, 'a sync for each batch, no more';
    is $petrel->stop, 0, 'Petrel ends well';
    $sink->stop;
}

# --- The view of operators

{
    my $sink = Sink->start('--delay', 'dot:600000');
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", journal_message_max => '20K')->start;
    like +Client->greeted($petrel->{port})->send(mail('small', 3000)), qr/^250 /, 'a small one';
    like +Client->greeted($petrel->{port})->send(mail('large', 60_000)), qr/^250 /, 'a large one';
    is scalar(rooms($petrel, 'mess')), 1, 'the large content is a file';
    my ($ids) = [($petrel->run(qw(queue ls)))[1] =~ /^([0-9A-Z]{10}-[0-9A-Z]{8})/mg];
    is scalar(@$ids), 2, 'both are listed beside the daemon' or diag $petrel->run(qw(queue ls));
    like join('', $petrel->run('queue', 'cat', $ids->[0])), qr/^Subject: small\r?\n.*^end\r?$/ms, 'and can be read';
    $petrel->kill9;
    is scalar(() = join('', $petrel->run(qw(queue ls))) =~ /incoming/g), 2, 'both without it';
    like join('', $petrel->run('queue', 'cat', $ids->[0])), qr/^Subject: small\r?\n.*^end\r?$/ms, 'and can be read';
    like join('', $petrel->run('queue', 'rm', $ids->[0])), qr/removed/, 'one is removed without a daemon';
    is $petrel->queued, 1, 'the other stays';
    $sink->stop;
    ok $sink->again, 'the next hop is quicker now';
    $petrel->start;
    ok Petrel::wait_for(sub { $sink->count('messages') == 1 }), 'it is delivered';
    ok $petrel->wait_empty, 'and gone';
    ok Petrel::wait_for(sub { !rooms($petrel, 'mess') }), 'no file is left';
    is $petrel->stop, 0, 'Petrel ends well';
    is $sink->count('messages'), 1, 'the removed one is not';
    $sink->stop;
}

# --- A damaged piece

{
    my $sink = Sink->start;
    my $mute = IO::Socket::INET->new(Listen => 5, LocalAddr => '127.0.0.1') or die; # never greets: mail stays young
    my $petrel = Petrel->new(routes => '* smtp://127.0.0.1:' . $mute->sockport)->start;
    is join(' ', send_many($petrel->{port}, 1, 20, 3000, 'm')), '', '20 messages are taken';
    $petrel->kill9;
    my ($segment) = grep { Petrel::slurp($_) =~ /^Subject: m7\r/m } glob "$petrel->{dir}/spool/journal/*/*";
    my $bytes = Petrel::slurp($segment);
    substr($bytes, index($bytes, "Subject: m7\r") + 500, 1) ^= "\x01";
    open my $file, '+<:raw', $segment or die;
    print $file $bytes or die;
    close $file or die;
    $petrel->configure(routes => "* smtp://127.0.0.1:$sink->{port}");
    $petrel->start;
    ok Petrel::wait_for(sub { $sink->count('messages') == 19 }), 'all the others are delivered' or diag $petrel->log;
    ok $petrel->wait_log(qr/error: journal damaged at \S+ .* kept in corrupt\//), 'the damage is told' or diag $petrel->log;
    ok scalar(grep { Petrel::slurp($_) =~ /Subject: m7\r/ } glob "$petrel->{dir}/spool/corrupt/*"), 'what it had is kept';
    like +($petrel->run('status'))[1], qr/damaged pieces found at startup, kept in corrupt\/: 1$/m, 'and counted';
    is $petrel->stop, 0, 'Petrel ends well';
    $sink->stop;
}

# --- Without a journal

{
    my $sink = Sink->start;
    my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", journal_size => 0)->start;
    is join(' ', send_many($petrel->{port}, 4, 40, 3000, 'm')), '', 'without a journal mail is taken, too';
    ok Petrel::wait_for(sub { $sink->count('messages') == 40 }), 'and delivered';
    ok $petrel->wait_empty, 'and gone';
    is scalar(() = glob "$petrel->{dir}/spool/journal/*/*"), 0, 'there is none';
    is $petrel->stop, 0, 'Petrel ends well';
    $sink->stop;
}
done_testing;
