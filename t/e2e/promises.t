#!/usr/bin/perl
# doc/promises.md: what version 1.0 had is there, as t/promises/1.0 recorded it: settings with their defaults, commands with
# their flags, members of JSON with their types, metrics with their types and labels, keys of the log. PROMISES_RECORD=1 adds
# what is new; no line ever goes, or changes. Elsewhere: spools of earlier builds (t/unit/queue/old_spools.c), two versions
# together (rolling_upgrade.t), exit codes of a start (first_incident.t), replies (t/dialog), the styles of the log (logs.t).
use lib 't/e2e';
use E2E;

plan skip_all => 'curl is not installed' unless Petrel::have('curl');
my $record = "$Petrel::root/t/promises/1.0";
my %is; # KIND NAME => the rest of its line
sub output { my @words = @_; local %ENV = (PATH => $ENV{PATH}); return (Petrel::command('', $Petrel::binary, @words))[1] }

# --- Settings, and a file that sets each to its default

my $example = output('check', '--example');
$is{"setting $1"} = $2 while $example =~ /^#([a-z_0-9]+) =[ \t]*(.*)$/mg;
my %own = map { $_ => 1 } qw(user); # of the host
my $path = Petrel->new->{dir} . '/all.conf';
Petrel::spit($path, join '', map { /^setting (\w+)/ && !$own{$1} && length $is{$_} ? "$1 = $is{$_}\n" : () } sort keys %is);
my ($code, $said) = Petrel::command('', $Petrel::binary, '-c', $path, '-o', 'hostname=mail.example.org', 'check');
is $code, 0, 'a file with every setting' or diag $said;

# --- Commands

for my $command (output('help') =~ /^  ([a-z][a-z-]*) +\S/mg) {
    my $help = output('help', $command) =~ s/^The setting of that name:.*//msr;
    $is{"command $command"} = '';
    $is{"command $command $_"} = '' for $help =~ /(?<![\w-])(--[a-z][a-z-]*)/g;
    $is{"command $command $_"} = '' for map { split /\|/ } $help =~ /^usage: petrel \Q$command\E (?:\[--json\] )?(?:\| )?([a-z]+(?:\|[a-z]+)+)/mg;
}

# --- JSON, by the schemas that each output of a test fulfils

sub members {
    my ($kind, $schema, $all, $path) = @_;
    return unless ref $schema eq 'HASH';
    if ($schema->{'$ref'} && $path !~ /(?:\.[^.]*){12}/) {
        my ($name) = $schema->{'$ref'} =~ m{/([^/]+)\z};
        return members($kind, ($all->{'$defs'} || $all->{definitions} || {})->{$name}, $all, $path);
    }
    my $type = $schema->{type} // '';
    $is{"json $kind$path"} = join '|', ref $type ? sort @$type : $type if length $path;
    members($kind, $schema->{properties}{$_}, $all, "$path.$_") for sort keys %{ $schema->{properties} || {} };
    return members($kind, $schema->{items}, $all, "$path\[]");
}
for my $file (glob "$Petrel::root/t/e2e/schema/*.json") {
    my $schema = decode_json(Petrel::slurp($file));
    members($file =~ m{([^/]+)\.json\z}, $schema, $schema, '');
}

# --- Metrics and the log, of a delivery

my $sink = Sink->start;
for my $style (qw(petrel json)) {
    my $port = Petrel::free_port();
    my $petrel = Petrel->new(log_style => $style, http => "127.0.0.1:$port", routes => "* smtp://127.0.0.1:$sink->{port}")->start;
    like $petrel->send_mail('a@b.example', 'you@fine.example', "Subject: x\r\n\r\nx\r\n"), qr/^250 /, "$style: mail";
    ok $petrel->wait_log($style eq 'json' ? qr/"status":"sent"/ : qr/ status=sent/), '  is delivered';
    my ($line) = grep { /status"?[=:]"?sent/ } split /\n/, $petrel->log;
    my %keys = $style eq 'json' ? map { ($_ => 1) } keys %{ decode_json($line) } : map { ($_ => 1) } $line =~ /[ ,]([a-z_]+)=/g;
    $is{"log $style $_"} = '' for keys %keys;
    if ($style eq 'petrel') {
        my $page = (Petrel::command('', 'curl', '-s', '-m', '20', "http://127.0.0.1:$port/metrics"))[1];
        my %type = $page =~ /^# TYPE (\S+) (\S+)/mg;
        for my $name (keys %type) {
            my %labels = map { $_ => 1 } map { /([a-z_]+)="/g } $page =~ /^\Q$name\E(?:_bucket|_sum|_count)?\{(.*)\} /mg;
            $is{"metric $name"} = join ' ', $type{$name}, sort keys %labels;
        }
    }
    is $petrel->stop, 0, '  it stops';
}

# --- The record

my %was = map { /^(\w+ [^=]*?) =(?: (.*))?$/ ? ($1 => $2 // '') : () } split /\n/, Petrel::slurp($record);
if ($ENV{PROMISES_RECORD}) {
    %was = (%is, %was);
    Petrel::spit($record, join '', map { "$_ = $was{$_}" =~ s/ +\z//r . "\n" } sort keys %was);
}
for my $kind (qw(setting command json metric log)) {
    my @of = grep { /^$kind / } sort keys %was;
    cmp_ok scalar @of, '>', 5, "$kind: is recorded";
    is_deeply [grep { !exists $is{$_} } @of], [], '  all are there';
    # A metric keeps its labels, a member of JSON its type.
    is_deeply [map { "$_: was $was{$_}, is $is{$_}" } grep { exists $is{$_} && $is{$_} ne $was{$_} } @of], [], '  as they were';
}
done_testing;
