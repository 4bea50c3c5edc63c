#!/usr/bin/perl
# Messages of mixed size and shape come out of Petrel byte for byte as they went in, but for the
# lines that it puts before them, and each recipient exactly once.
use lib 't/e2e';
use E2E;

my $seed = $ENV{SEED} || time;
my $count = $ENV{MESSAGES} || 250;
my @modes = qw(plain pipelined chunks dribble);
diag "SEED=$seed";

# --- The messages

my @shapes = (
    ['one octet short of nothing' => sub { '' }],
    ['one line end' => sub { "\r\n" }],
    ['empty body' => sub { "Subject: none\r\n\r\n" }],
    ['header only' => sub { "Subject: none\r\nX-Long: " . 'y' x (1 + int rand 900) . "\r\n" }],
    ['lone dots' => sub { header() . ".\r\n" x (1 + int rand 50) }],
    ['dots at line starts' => sub { header() . join '', map { '.' x int(rand 5) . ('', 'x', ' ', '.x.')[rand 4] . "\r\n" } 1 .. 60 }],
    ['dots first' => sub { '..' . ('', '.', 'a')[rand 3] . "\r\n." . "\r\n" }],
    ['lines of 998' => sub { header() . (octets(998) . "\r\n") x 20 }],
    ['lines of 998 dots' => sub { header() . ('.' x 998 . "\r\n") x 5 }],
    ['a line of 100,000' => sub { header() . octets(100_000) . "\r\n" }],
    ['a line of 100,000 dots' => sub { header() . '.' x 100_000 . "\r\n.\r\n" }],
    ['8 bit' => sub { header() . join '', map { octets(int rand 200) . "\r\n" } 1 .. 20 }],
    ['8 bit in the header' => sub { "Subject: \xfcber \xe2\x82\xac\r\nFrom: \xff\xfe <a\@b>\r\n\r\n\xff\r\n" }],
    ['all of its own header' => sub { "Received: from x by y; Sat, 1 Jan 2000 00:00:00 +0000\r\nDate: Sat, 1 Jan 2000 00:00:00 +0000\r\nMessage-ID: <x\@y>\r\n\r\nb\r\n" }],
    ['only a date' => sub { "Date: Sat, 1 Jan 2000 00:00:00 +0000\r\nSubject: d\r\n\r\nb\r\n" }],
    ['only an id, folded' => sub { "message-id:\r\n <x\@y>\r\nSubject: d\r\n\r\nb\r\n" }],
    ['date in the body' => sub { "Subject: d\r\n\r\nDate: x\r\nMessage-ID: <no\@header>\r\n" }],
    ['blank lines' => sub { "\r\n" x (1 + int rand 2000) }],
    ['ten kilobytes' => sub { header() . text(10_000) }],
    ['at the edge of 64 K' => sub { my $h = header(); $h . text(65536 - length($h) - 2 + int rand 5) }],
    ['a few hundred octets' => sub { header() . text(int rand 500) }],
);

sub header {
    my $text = "From: <a\@source.test>\r\nTo: \"Some, body\" <b\@x.test>\r\nSubject: number " . int(rand 1e9) . "\r\n";
    $text .= "Date: Mon, 2 Feb 2026 10:00:00 +0100\r\n" if rand() < 0.5;
    $text .= "Message-ID:\t<" . int(rand 1e9) . "\@source.test>\r\n" if rand() < 0.5;
    return "$text\r\n";
}

# Octets without NUL, CR and LF.
my @octets = map { chr } grep { $_ != 10 && $_ != 13 } 1 .. 255;
sub octets { my $n = shift; return join '', map { $octets[rand @octets] } 1 .. $n }

# About so many octets of lines of any length, some of which start with dots.
my @lines = map { ('.' x int rand 3) . substr('The quick brown fox jumps over the lazy dog. ' x 3, 0, int rand 120) . "\r\n" } 1 .. 50;
sub text {
    my $n = shift;
    my $block = join '', map { $lines[rand @lines] } 1 .. 200;
    my $text = $block x (1 + $n / (length($block) || 1));
    return substr($text, 0, $n > 2 ? $n - 2 : 0) =~ s/\r\z/x/r . "\r\n";
}

# Message number $i: {shape, from, to, data, mail_parameters}. The same every time.
sub message {
    my $i = shift;
    srand($seed + $i);
    my ($shape, $make) = @{ $shapes[$i % @shapes] };
    my $data = $make->();
    my %large = (41 => 1, 82 => 2, 123 => 5, 164 => 10, 205 => 20);
    if ($large{$i}) { $shape = "$large{$i} MB"; $data = header() . text($large{$i} * 1024 * 1024) }
    my $recipients = $i % 10 ? 1 + int rand 3 : $large{$i} ? 2 : 1 + int rand 200;
    $recipients = 200 if $i == 50;
    return {
        shape => $shape, from => $i % 17 ? "s$i\@source.test" : '', to => [map { "m${i}r$_\@x.test" } 1 .. $recipients],
        data => $data, mail_parameters => $data =~ /[\x80-\xff]/ && $i % 2 ? 'BODY=8BITMIME' : 'SIZE=' . length $data,
    };
}

# --- The senders, each a process with one connection and a way of its own

sub send_one {
    my ($client, $mode, $message) = @_;
    return $client->send(%$message) if $mode eq 'plain';
    return $client->send_pipelined(%$message) if $mode eq 'pipelined';
    if ($mode eq 'chunks') {
        my $most = 1 + length($message->{data}) / 3;
        return $client->send_chunks([map { int rand $most } 1 .. 4], %$message);
    }
    # The content cut anywhere into writes of its own, while it is small.
    $client->say($_) for Client::envelope(%$message), 'DATA';
    my $wire = Client::stuffed($message->{data}) . ".\r\n";
    while (length $wire) {
        my $piece = length $wire < 3000 ? 1 + int rand 40 : 1 + int rand 70_000;
        $client->put(substr $wire, 0, $piece, '');
    }
    return $client->reply;
}

sub sender {
    my ($petrel, $which) = @_;
    my $client = Client->greeted($petrel->{port}) or die 'no greeting';
    my $answers = '';
    for (my $i = $which; $i < $count; $i += @modes) {
        my $reply = send_one($client, $modes[$which], message($i));
        $answers .= "$i $reply" =~ s/\r?\n?\z/\n/r;
        last unless $reply;
    }
    Petrel::spit("$petrel->{dir}/answers.$which", $answers);
    return $client->quit =~ /^221/;
}

my $sink = Sink->start;
my $petrel = Petrel->new(routes => "* smtp://127.0.0.1:$sink->{port}")->start;
my @senders;
for my $which (0 .. $#modes) {
    my $pid = fork // die;
    if ($pid == 0) { my $good = eval { sender($petrel, $which) }; warn $@ if $@; POSIX::_exit($good ? 0 : 1) }
    push @senders, $pid;
}
for my $which (0 .. $#modes) {
    waitpid $senders[$which], 0;
    is $?, 0, "all were sent $modes[$which]";
}
my %answer = map { split / /, $_, 2 } map { split /\n/, Petrel::slurp("$petrel->{dir}/answers.$_") } 0 .. $#modes;
is scalar(grep { /^250 2\.0\.0 Ok: queued as / } values %answer), $count, "all $count are accepted";
ok $petrel->wait_empty(120), 'the queue runs empty';

# --- Arrivals

my (%seen, %wrong, $stray);
sub wrong { my ($kind, $about) = @_; return if $wrong{$kind}++ > 5; diag "$kind: $about"; return }

# The lines that Petrel may put before this content, and no others.
sub prefix_pattern {
    my ($id, $data, $to) = @_;
    my ($header) = $data =~ /\A(.*?)(?:\r\n\r\n|\z)/s;
    $header = '' if $data =~ /\A\r\n/;
    my $date = qr/\w{3}, \d{1,2} \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}/;
    my $for = @$to == 1 ? qr/\s+for <\Q$to->[0]\E>;/ : qr/;/;
    my $received = qr/Received: from client\.test\s+\(\[127\.0\.0\.1\]\)\s+by petrel\.test \(Petrel\)\s+with ESMTP\s+id $id$for\s+$date\r\n/;
    $received = qr/$received(?:Date: $date\r\n)/ unless $header =~ /^Date:/mi;
    $received = qr/${received}Message-ID: <$id\@petrel\.test>\r\n/ unless $header =~ /^Message-ID:/mi;
    # A message whose first line is no field has no header: ours ends where its body begins.
    $received = qr/$received\r\n/ if $data ne '' && $data !~ /\A(?:\r\n|[!-9;-~]+[ \t]*:)/;
    return qr/\A$received\z/;
}

# A missing From is added on the way out.
sub without_from {
    my ($came, $message) = @_;
    my ($header) = $message->{data} =~ /\A(.*?)(?:\r\n\r\n|\z)/s;
    return if $header =~ /^From[ \t]*:/mi && $message->{data} !~ /\A\r\n/;
    my $sender = $message->{from} eq '' ? 'MAILER-DAEMON@petrel.test' : $message->{from};
    wrong(from => $came->{file}) if $came->{data} !~ s/^From: \Q$sender\E\r\n//m;
    return;
}

my %of; # number => files
for my $file ($sink->files) {
    my $envelope = Petrel::slurp($file =~ s/\.eml\z/.envelope/r);
    if ($envelope =~ /^X-Sink-To: <m(\d+)r/m) { push @{ $of{$1} }, $file } else { $stray++ }
}
for my $i (0 .. $count - 1) {
    my $message = message($i);
    my ($id) = ($answer{$i} // '') =~ /queued as (\S+)/ or next;
    my $pattern = prefix_pattern($id, $message->{data}, $message->{to});
    for my $file (@{ $of{$i} || [] }) {
        my $came = Sink::read_message($file);
        my $about = "message $i ($message->{shape}, $modes[$i % @modes]), $file";
        my $size = length $came->{data};
        without_from($came, $message);
        my $prefix = length($came->{data}) - length $message->{data};
        wrong(sender => $about) if $came->{from} ne $message->{from};
        wrong(parameters => $about) if $message->{mail_parameters} =~ /8BIT/ && $came->{parameters} !~ /BODY=8BITMIME/;
        wrong(size => $about) if $came->{parameters} !~ /SIZE=(\d+)/ || $1 != $size;
        wrong(stranger => $about) if grep { !/^m${i}r\d+\@/ } @{ $came->{to} };
        wrong(content => $about), next if $prefix < 0 || substr($came->{data}, $prefix) ne $message->{data};
        wrong(prefix => "$about: " . substr $came->{data}, 0, $prefix) if substr($came->{data}, 0, $prefix) !~ $pattern;
        $seen{$_}++ for @{ $came->{to} };
    }
    wrong(recipients => "message $i, " . @{ $message->{to} }) if grep { ($seen{$_} // 0) != 1 } @{ $message->{to} };
}
is $wrong{$_->[0]} // 0, 0, $_->[1] for
    [content => 'each content is what was sent, byte for byte'], [prefix => 'before it stand the trace header and what was missing, no more'],
    [recipients => 'each recipient got it exactly once'], [stranger => 'nobody else did'], [sender => 'senders are kept'],
    [parameters => '8BITMIME is told on'], [size => 'SIZE is exact'], [from => 'a missing From is added'];
is $stray // 0, 0, 'nothing else came';
my $bytes = 0;
$bytes += -s $_ for $sink->files;
diag sprintf '%d recipients, %d transactions over %d connections, %.1f MB', scalar(keys %seen), $sink->count('messages'), $sink->count('connections'), $bytes / 1e6;

unlike $petrel->log, qr/status=(?:deferred|bounced)/, 'nothing was ever deferred or bounced';
is $petrel->stop, 0, 'it ends well';
my @left = grep { -f } glob "$petrel->{dir}/spool/{pid,mess,intd,todo,info,local,remote,bounce,corrupt}/*";
is "@left", '', 'and leaves no file in the spool';
done_testing;
