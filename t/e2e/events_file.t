#!/usr/bin/perl
# Events into a file that others rotate while the daemon writes: moved away, made anew, removed, truncated, with and without a
# reload; a file of another user's, and a directory that cannot be written. Each event is in one of the files, or waits.
use lib 't/e2e';
use E2E;

my $sink = Sink->start;
my $petrel = Petrel->new(relay_from => '127.0.0.1', relay => "smtp://127.0.0.1:$sink->{port}?tls=none", events_linger => '5ms', events_types => 'delivered');
my $dir = "$petrel->{dir}/events";
mkdir $dir;
my $file = "$dir/events.jsonl";
my $is_root = $> == 0 && defined getpwnam 'nobody';
chmod 0755, $petrel->{dir};
chown +(getpwnam 'nobody')[2, 3], $dir if $is_root;
$petrel->configure(events => "file:$file", $is_root ? (user => 'nobody') : ());
$petrel->start;

my ($sent, %kept) = (0);
sub mail { my $n = shift; for (1 .. $n) { $sent++; $petrel->send_mail('a@example.org', 'r@a.example', "X-Petrel-Tag: t$sent\n\nx") =~ /^250/ or die } return }
# The lines that the file has gained since the last look, before something happens to it. Half a line is none.
sub tags { my %tags = map { (eval { decode_json($_) } // {})->{tag} // '?' => 1 } map { -e $_ ? Petrel::slurp($_) =~ /^(.+)\n/mg : () } @_; return \%tags }
sub all_of { my ($from, @files) = @_; return Petrel::wait_for(sub { my $have = tags(@files); !grep { !$have->{"t$_"} } $from .. $sent }) }

mail(3);
ok all_of(1, $file), 'each event is a line';
my $first = $sent + 1;
rename $file, "$file.1";
mail(3);
ok all_of($first, $file), 'moved away: the next are in a new file, without a reload' or diag $petrel->log;
is_deeply [sort keys %{ tags("$file.1") }], ['t1', 't2', 't3'], 'the old one is complete';
$first = $sent + 1;
rename $file, "$file.2";
Petrel::spit($file, '');
chown +(getpwnam 'nobody')[2, 3], $file if $is_root;
mail(3);
ok all_of($first, $file), 'what was made in its place is used' or diag $petrel->log;
$first = $sent + 1;
unlink $file;
mail(3);
ok all_of($first, $file), 'removed: another is made';
# copytruncate, while nothing is under way: its own race is described in doc/events.md.
$first = $sent + 1;
truncate $file, 0;
mail(3);
ok all_of($first, $file), 'truncated: it goes on';
unlike Petrel::slurp($file), qr/\0/, 'at the beginning, without a hole';

# All the time, while mail flows: each event is in one of the files.
$first = $sent + 1;
my @rotated;
for my $n (1 .. 30) {
    mail(2);
    rename $file, "$dir/rotated.$n" and push @rotated, "$dir/rotated.$n";
    kill 'HUP', $petrel->{pid} if $n % 10 == 0;
}
ok all_of($first, $file, @rotated), 'rotated again and again: each event is in one of the files' or diag $petrel->log;
my @lines = map { -e $_ ? Petrel::slurp($_) =~ /^(.*)$/mg : () } $file, @rotated;
is scalar(grep { !eval { decode_json($_) } } @lines), 0, 'and all lines are whole';

SKIP: {
    skip 'only root has other users', 9 unless $is_root;
    $first = $sent + 1;
    unlink $file;
    Petrel::spit($file, "{}\n");
    chown 0, 0, $file;
    chmod 0600, $file;
    mail(2);
    ok $petrel->wait_log(qr/events: warning: file:\Q$file\E does not take events, which wait: cannot append to it: Permission denied/), 'a file of root\'s: a warning';
    like +($petrel->run('status'))[1], qr/^events .*Permission denied/m, 'status says so, too';
    is Petrel::slurp($file), "{}\n", 'it stays as it is';
    is $petrel->queued, 0, 'mail does not wait';
    chmod 0666, $file;
    ok all_of($first, $file), 'it may be written again: nothing is lost' or diag $petrel->log;
    like Petrel::slurp($file), qr/^\{\}\n\{"id"/, 'behind what is there';
    is +(stat $file)[4], 0, 'which is still root\'s';
    # The directory lets nobody make a file: moved away, and nothing in its place.
    chown 0, 0, $dir;
    $first = $sent + 1;
    rename $file, "$file.3";
    mail(2);
    ok Petrel::wait_for(sub { () = $petrel->log =~ /does not take events/g; ($petrel->run('status'))[1] =~ /^events .*Permission denied/m }), 'no file can be made: they wait';
    chown +(getpwnam 'nobody')[2, 3], $dir;
    ok all_of($first, $file), 'and come when it can' or diag $petrel->log;
}
is $petrel->stop, 0, 'it ends well';
done_testing;
