#!/usr/bin/perl
# A disk without room, blocks or inodes, under the real program: new mail is put off, accepted mail reaches its end, with any kill
# meanwhile; with room again all goes on and the spool runs empty.
use lib 't/e2e';
use E2E;
use Mount;

Mount::namespace() or plan skip_all => 'nothing may be mounted here';

sub content { my ($name, $size) = @_; return "Subject: $name\r\n\r\n" . ("$name is all here\r\n" x ($size / 20)) . "end of $name\r\n" }

sub send_to {
    my ($petrel, $name, $size, @to) = @_;
    my $client = Client->greeted($petrel->{port}) or return 'no connection';
    my $reply = $client->send(from => "$name\@source.test", to => [map { "$_\@x.test" } @to], data => content($name, $size));
    $client->close;
    return $reply;
}

# The reply to MAIL alone.
sub ask {
    my ($petrel, $parameters) = @_;
    my $client = Client->greeted($petrel->{port}) or return 'no connection';
    my $reply = $client->say("MAIL FROM:<a\@source.test>$parameters");
    $client->quit;
    return $reply;
}

sub rooms { my ($petrel, $rooms) = @_; return grep { -f } glob "$petrel->{settings}{spool}/{$rooms}/*" }

# The daemon asks for free space once a second.
sub becomes { my ($petrel, $what, $title) = @_; return ok Petrel::wait_for(sub { ask($petrel, '') =~ $what }), $title }

sub petrel_on {
    my ($disk, $sink, %settings) = @_;
    return Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}", spool => "$disk->{dir}/spool", journal_size => '8M',
        journal_message_max => '100K', minimal_backoff_time => '1s', maximal_backoff_time => '1s', %settings);
}

# How often each address got which message, damage included: {"name>to" => count}.
sub arrivals {
    my $sink = shift;
    my %arrived;
    for my $message ($sink->messages) {
        my ($name) = $message->{data} =~ /^Subject: (\w+)\r$/m;
        my $whole = $message->{from} eq '' || $message->{data} =~ /\r\nend of \Q$name\E\r\n\z/;
        $arrived{ ($message->{from} eq '' ? 'bounce' : $whole ? $name : "damaged $name") . ">$_" }++ for @{ $message->{to} };
    }
    return \%arrived;
}

sub is_drained {
    my ($petrel, $title) = @_;
    ok $petrel->wait_empty, "$title: the queue is empty" or diag $petrel->run(qw(queue ls));
    is $petrel->stop, 0, "$title: Petrel ends well";
    is join(' ', rooms($petrel, 'pid,mess,intd,todo,info,local,remote,bounce,hold,corrupt')), '', "$title: and the spool";
    unlike $petrel->log, qr/Assertion|Sanitizer|corrupt|unhealthy/, "$title: nothing else went wrong";
    return;
}

# --- Below the low-water marks: of bytes, of inodes

sub low_water {
    my ($title, $disk, $fill) = @_;
    my $sink = Sink->start;
    my $petrel = petrel_on($disk, $sink)->start;
    $sink->stop;
    like send_to($petrel, 'small', 500, 'a', 'b'), qr/^250 /, "$title: there is room";
    like send_to($petrel, 'large', 300_000, 'c'), qr/^250 /, "$title: also for a large one";
    $fill->($disk);
    becomes($petrel, qr/^452 4\.3\.1 /, "$title: MAIL gets 452 4.3.1");
    like send_to($petrel, 'more', 10, 'd'), qr/^452 4\.3\.1 /, "$title: again";
    like $petrel->status, qr/"accepting":\s*false.*disk is full/s, "$title: status tells why";
    is(($petrel->run('status', $_))[0], 75, "$title: and $_ as its exit code") for qw(--json --sites);
    my ($code, $said) = Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', 'e@x.test');
    is $code, 75, "$title: sendmail says: later" or diag $said;
    like $said, qr/^sendmail: Insufficient system storage: \d+\.\d MB and \d+ files are free in \Q$disk->{dir}\E\/spool; \d+\.\d MB and \d+ files are reserved/,
        "$title: and where, and how much";
    is Petrel::count($petrel->log, qr/queue: warning: spool \Q$disk->{dir}\E\/spool: .* free: mail is refused until .* are free/), 1,
        "$title: the log tells once that mail is refused";
    $sink->again;
    ok Petrel::wait_for(sub { $sink->count('messages') >= 2 }), "$title: what was accepted goes on";
    ok $petrel->wait_empty, "$title: to its end";
    like ask($petrel, ''), qr/^452 4\.3\.1 /, "$title: there still is no room";
    $disk->relieve;
    becomes($petrel, qr/^250 /, "$title: with room mail is taken again");
    is Petrel::count($petrel->log, qr/ free: accepting mail again/), 1, "$title: which the log tells once";
    like send_to($petrel, 'after', 500, 'f'), qr/^250 /, "$title: and stored";
    $sink->wait_for('f@x.test');
    is_deeply arrivals($sink), { 'small>a@x.test' => 1, 'small>b@x.test' => 1, 'large>c@x.test' => 1, 'after>f@x.test' => 1 }, "$title: everything came once";
    is_drained($petrel, $title);
    $sink->stop;
    return;
}

# --- Small file systems, with the settings as they are by themselves

sub small_one {
    my ($title, $disk) = @_;
    my $sink = Sink->start;
    my $petrel = petrel_on($disk, $sink, journal_size => undef, journal_message_max => undef)->start;
    like send_to($petrel, "mail$_", 100_000, "to$_"), qr/^250 /, "$title: mail is taken" for 1 .. 3;
    ok $petrel->wait_empty, "$title: and delivered";
    my ($code, $said) = Petrel::command("Subject: x\n\nx\n", $Petrel::binary, '-c', $petrel->conf, 'sendmail', 'e@x.test');
    is $code, 0, "$title: also from sendmail" or diag $said;
    $sink->wait_for('e@x.test');
    like $petrel->log, qr/the journal is limited to a quarter of that, instead of 67\.1 MB/, "$title: the journal is small";
    unlike $petrel->log, qr/too small|mail is refused/, "$title: nothing is refused";
    $disk->leave_bytes(1 << 20);
    becomes($petrel, qr/^452 4\.3\.1 /, "$title: until it is full");
    $petrel->kill9;
    $petrel->start;
    is Petrel::count($petrel->log, qr/mail is refused until/), 2, "$title: a start tells that at once";
    $disk->relieve;
    ok $petrel->wait_log(qr/accepting mail again/), "$title: and, though nobody asks, when it goes on";
    is_drained($petrel, $title);
    $sink->stop;
    return;
}

sub too_small {
    my ($title, $disk) = @_;
    my $sink = Sink->start;
    my $petrel = petrel_on($disk, $sink, journal_size => undef, journal_message_max => undef)->start;
    like $petrel->log, qr/queue: error: spool \S+: its file system is too small: it has .*, a spool needs 6\.3 MB and 64 files; set `spool`/,
        "$title: the start says so, with numbers and remedy";
    is $petrel->stop, 0, "$title: it ends well";
    $sink->stop;
    return;
}

# --- SIZE beyond what is left

sub too_large_for_it {
    my ($title, $disk) = @_;
    my $sink = Sink->start;
    my $petrel = petrel_on($disk, $sink, message_size_limit => '100M')->start;
    $disk->leave_bytes((16 + 4) << 20);
    ok Petrel::wait_for(sub { ask($petrel, ' SIZE=' . (8 << 20)) =~ /^452 4\.3\.1 / }), "$title: SIZE beyond what is left is refused";
    like ask($petrel, ' SIZE=' . (1 << 20)), qr/^250 /, "$title: what fits is not";
    like ask($petrel, ''), qr/^250 /, "$title: nor what says nothing";
    like ask($petrel, ' SIZE=' . (101 << 20)), qr/^552 5\.3\.4 /, "$title: beyond the limit it never comes in";
    $disk->relieve;
    ok Petrel::wait_for(sub { ask($petrel, ' SIZE=' . (8 << 20)) =~ /^250 / }), "$title: with room it may come";
    is_drained($petrel, $title);
    $sink->stop;
    return;
}

# --- Not a byte left

sub syncs { my $petrel = shift; return $petrel->status =~ /"syncs":\s*(\d+)/ ? $1 : 0 }

# Mail that waits in files, that is young, and that is large, each for one who takes it, one who is refused, and one
# who is busy for long; in files there is one of the first two, too, who was busy as long as there was room.
sub no_room_at_all {
    my ($title, $disk, $fill) = @_;
    my @refusing = ('--fail-rcpt', 'nobody:550');
    my $sink = Sink->start('--fail-rcpt', 'busy:451', '--fail-rcpt', 'later:451', @refusing);
    my $petrel = petrel_on($disk, $sink)->start;
    my %due;
    my $accept = sub {
        my ($name, $size, @to) = @_;
        like send_to($petrel, $name, $size, map { "$name.$_" } @to), qr/^250 /, "$title: $name is accepted";
        $due{"$name>$name.$_\@x.test"} = 1 for grep { !/nobody/ } @to;
        $due{"bounce>$name\@source.test"} = 1;
        return;
    };
    $accept->('old', 2000, qw(good busy later.good later.nobody));
    ok Petrel::wait_for(sub { rooms($petrel, 'remote') == 1 }), "$title: it waits in files";
    kill 'STOP', $sink->{pid};
    $accept->('young', 3000, qw(good busy nobody));
    $accept->('large', 300_000, qw(good busy nobody));
    $accept->('lost', 1000, 'nobody');
    $fill->($disk);
    is 0 + (grep { $_ == 0 } $disk->free), 1, "$title: nothing is left";
    kill 'CONT', $sink->{pid};
    ok $sink->wait_for("$_.good\@x.test"), "$title: $_ is delivered to who takes it" for qw(young large);
    ok $sink->wait_for('lost@source.test'), "$title: without room there is a bounce";
    $sink->stop;
    $sink->again('--fail-rcpt', 'busy:451', @refusing);
    ok $sink->wait_for('old.later.good@x.test'), "$title: and mail in files goes on";
    becomes($petrel, qr/^452 4\.3\.1 /, "$title: new mail gets 452");
    # Mail that is to move into files tries that again and again, so there may be no quiet moment; each round writes all results.
    my ($before, $last, $since) = (syncs($petrel), -1, 0);
    ok Petrel::wait_for(sub {
        my $now = syncs($petrel);
        ($last, $since) = ($now, time) if $now != $last;
        return $now >= $before + 20 || time - $since > 1;
    }), "$title: all that has happened is written";
    $petrel->kill9;
    $petrel->start;
    ok Petrel::wait_for(sub { $petrel->queued == 3 }), "$title: after a kill the rest is there" or diag $petrel->run(qw(queue ls));
    $sink->stop;
    $sink->again(@refusing);
    ok $petrel->wait_empty, "$title: it reaches its end without room" or diag $petrel->run(qw(queue ls));
    ok $petrel->wait_quiet, "$title: which is written";
    is_deeply arrivals($sink), \%due, "$title: nothing is lost, nothing comes twice";
    like ask($petrel, ''), qr/^452 4\.3\.1 /, "$title: though there never was room";
    $petrel->kill9;
    $petrel->start;
    is $petrel->queued, 0, "$title: what has ended does not come back" or diag $petrel->run(qw(queue ls));
    $disk->relieve;
    becomes($petrel, qr/^250 /, "$title: with room mail is taken again");
    like send_to($petrel, 'after', 500, 'f'), qr/^250 /, "$title: and stored";
    $sink->wait_for('f@x.test');
    is_deeply arrivals($sink), { %due, 'after>f@x.test' => 1 }, "$title: and delivered";
    is_drained($petrel, $title);
    $sink->stop;
    return;
}

my $tried = 0;
for my $kind (qw(ext4 tmpfs)) {
    my $make = sub { return Mount->$kind(56, 900) };
    my $disk = $make->() or do { note "no $kind here"; next };
    $tried++;
    no_room_at_all("$kind, no block", $disk, sub { $_[0]->leave_bytes(0) });
    if ($tried == 1) { # what does not depend on the kind
        low_water("$kind, blocks", $disk, sub { $_[0]->leave_bytes(9 << 20) });
        low_water("$kind, inodes", $disk, sub { $_[0]->leave_inodes(100) });
        too_large_for_it("$kind, SIZE", $disk);
        no_room_at_all("$kind, no inode", $disk, sub { $_[0]->leave_inodes(0) });
    }
    $disk->unmount;
}
for my $kind (qw(ext4 tmpfs)) {
    my $disk = Mount->$kind(24, 6000) or next;
    small_one("$kind of 24 MB", $disk);
    $disk->unmount;
    $disk = Mount->$kind(4, 1000) or next;
    too_small("$kind of 4 MB", $disk);
    $disk->unmount;
}
ok $tried, 'there was a file system to fill';
done_testing;
