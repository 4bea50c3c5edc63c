#!/usr/bin/perl
# etc/container/Dockerfile without Docker (make check-packages, as root): its instructions in their order, each RUN in a bare root of the
# Debian that FROM names, by chroot, and what COPY takes into the second stage; the image that comes of it runs as USER with its ENV,
# is healthy by its HEALTHCHECK, and delivers a message. An instruction that is not known here fails the test.
use strict;
use warnings;
use JSON::PP;
use lib 't/e2e', 't/packages';
use Client;
use Petrel;
use Roots;
use Test::More;

my $top = $Petrel::root;
my @lines = grep { /\S/ && !/^\s*#/ } split /\n/, Petrel::slurp("$top/etc/container/Dockerfile") =~ s/\\\n//gr;
my %name = (12 => 'bookworm', 13 => 'trixie');
my ($debian) = $lines[0] =~ /^FROM debian:(\d+) AS \w+$/ or die "its first stage is no Debian: $lines[0]";
plan skip_all => "the Dockerfile is for Debian $debian" if $suite ne ($name{$debian} // '');
Roots::enter(qw(ip nsenter));
is join(' ', sort grep { /\S/ } split /\n/, Petrel::slurp("$top/.dockerignore")), '.git build* petrel petrel-static', 'docker build sends what is copied here';

# --- The stages

my (%stage, $root, %is); # by their names
my $place = '/'; # WORKDIR
my %does = (
    FROM => sub {
        my ($from, $as) = $_[0] =~ /^(\S+)(?: AS (\w+))?$/ or return 0;
        $root = $from eq 'scratch' ? "$work/image" : fresh('dockerfile');
        mkdir $root;
        chmod 0755, $root;
        $stage{ $as // '' } = $root;
        ($place, %is) = ('/');
        return 1;
    },
    WORKDIR => sub { $place = shift; return system('mkdir', '-p', "$root$place") == 0 },
    RUN => sub { into("RUN $_[0]", $root, "cd $place; export MAKEFLAGS=-j2; $_[0]"); return 1 },
    COPY => sub {
        my ($from, $owner, $source, $to) = $_[0] =~ /^(?:--from=(\w+) )?(?:--chown=(\S+) )?(\S+) (\S+)$/ or return 0;
        if (!$from) { Roots::source($root); return "$source $to $place" eq '. . /src' }
        my $what = "$stage{$from}$source";
        return system(-d $what ? "mkdir -p $root$to && cp -R --preserve=mode $what/. $root$to" : "cp --preserve=mode $what $root$to") == 0
            && (!-d $what || system('chmod', "--reference=$what", "$root$to") == 0) && system('chown', '-R', $owner // '0:0', "$root$to") == 0;
    },
    ENV => sub { my ($key, $value) = split /=/, shift, 2; $is{env}{$key} = $value; return defined $value },
    map({ my $key = lc; ($_ => sub { $is{$key} = shift; return 1 }) } qw(USER VOLUME EXPOSE)),
    ENTRYPOINT => sub { return $is{entrypoint} = decode_json(shift) },
    HEALTHCHECK => sub { return $_[0] =~ /^CMD (.*)/ && ($is{healthcheck} = decode_json($1)) },
);
for (@lines) {
    my ($instruction, $words) = /^([A-Z]+) +(.*?)\s*$/;
    ok $does{$instruction} && $does{$instruction}->($words), $_;
}
is join(' ', sort map { s{.*/}{}r } glob "$root/*"), 'etc petrel spool', 'the image has nothing else';

# --- The image, as Docker would run it

hosts($root); # of every engine
my $mail = network('dockerfile');
my ($user, $group) = split /:/, $is{user};
my %environment = (%{ $is{env} }, PETREL_HOSTNAME => 'app.example.org', PETREL_RELAY => 'smtp://mailhub.example.org');
sub enter { return alone('env', '-i', (map { "$_=$environment{$_}" } sort keys %environment), '/usr/sbin/chroot', "--userspec=$user:$group", "--groups=$group", $root, @_) }
my $pid = Petrel::spawn("$work/log", enter(@{ $is{entrypoint} }));
ok Petrel::wait_for(sub { (Petrel::command('', enter(@{ $is{healthcheck} })))[0] == 0 }), 'it is healthy' or diag Petrel::slurp("$work/log");
like Petrel::slurp("$work/log"), qr/ listening on 0\.0\.0\.0:$_$/m, "it listens on $_" for split / /, $is{expose};
like Petrel::slurp("/proc/$pid/status"), qr/^Uid:\s+$user\s+$user\b/m, 'as its user';
is $is{volume}, $is{env}{PETREL_SPOOL}, 'its spool is the volume';
my ($code, $said) = Petrel::command('', enter('/petrel', 'test', 'friend@friends.example'));
is $code, 0, 'docker exec petrel /petrel test' or diag $said;
ok Petrel::wait_for(sub { grep { Petrel::slurp($_) =~ /friend\@friends\.example/ } glob "$mail/*.eml" }), 'the message is there';
is Petrel::reap($pid, 'TERM'), 0, 'it ends in good order';
network();
done_testing;
