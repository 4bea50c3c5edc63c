#!/usr/bin/perl
# README.md and doc/*.md: `petrel check` accepts each block of settings as it is written there, and the commands in them exist.
use lib 't/e2e';
use E2E;

delete @ENV{ grep { /^PETREL/ } keys %ENV };
my $scratch = tempdir('blocks-XXXXXX', TMPDIR => 1, CLEANUP => 1);
sub petrel { return Petrel::command('', $Petrel::binary, @_) }

# The names of settings are those that check knows.
my %known = map { /^(\w+) =/ ? ($1 => 1) : () } split /\n/, (petrel('-c', '/dev/null', '-o', "spool=$scratch/spool", 'check'))[1];
ok keys %known > 100, 'the names of settings';

# [line, text]: the indented blocks of a page outside its fences; of the recipes, those in fences.
sub blocks {
    my ($page, @found, $open, $in_fence) = shift;
    my $is_fenced = $page eq 'doc/recipes.md';
    my @lines = split /\n/, Petrel::slurp("$Petrel::root/$page");
    for my $number (1 .. @lines) {
        my $line = $lines[$number - 1];
        $in_fence = !$in_fence if $line =~ /^```/;
        if (!$is_fenced && $in_fence) { $open = 0; next }
        if ($is_fenced ? $line =~ /^```$/ || !$open && $line !~ /^```conf/ : $line !~ s/^    //) { $open = 0; next }
        push @found, [$number, ''] unless $open;
        $found[-1][1] .= "$line\n" unless $line =~ /^```/;
        $open = 1;
    }
    return @found;
}

# The settings among its lines, with the rows of their tables: a block may have the command that comes before them.
sub settings {
    my ($text, $in, $found) = (shift, 0, '');
    for (split /^/, $text) {
        $in = /^[a-z_]+ =\s/ if /^\S/;
        $found .= $_ if $in;
    }
    return $found;
}

# The files that they name, below $scratch, with the needed content.
mkdir "$scratch/$_" for qw(etc etc/petrel run run/secrets mail);
sub secret { my ($name, $text) = @_; Petrel::spit("$scratch/$name", $text); chmod 0600, "$scratch/$name"; return }
secret("etc/petrel/$_", "a-secret-of-thirty-two-octets-0123456789\n") for qw(password events.secret http_token http_read);
secret('etc/petrel/users', (Petrel::command("long enough for alice\n", $Petrel::binary, 'passwd', 'alice'))[1]);
secret('etc/aliases', "sales: alice\@example.org\n");
my ($cert_code, $made) = petrel('cert', '--out', "$scratch/etc/petrel", 'mail.example.org');
is $cert_code, 0, 'a certificate' or diag $made;
# Certbot's hook gives them these names.
rename "$scratch/etc/petrel/mail.example.org.$_->[0]", "$scratch/etc/petrel/$_->[1]" or die "$_->[0]: $!" for ['pem', 'fullchain.pem'], ['key', 'key.pem'];
Petrel::spit("$scratch/etc/petrel/out.$_->[0]", Petrel::slurp("$scratch/etc/petrel/$_->[1]")) for ['pem', 'fullchain.pem'], ['key', 'key.pem'];
chmod 0600, "$scratch/etc/petrel/out.key";
mkdir "$scratch/etc/petrel/dkim";
is +(petrel('-c', '/dev/null', 'dkim-key', 'example.org', 's1', '--bits', '1024', '--directory', "$scratch/etc/petrel/dkim"))[0], 0, 'a key';

my @pages = ('README.md', 'SECURITY.md', map { s{.*/(doc/)}{$1}r } sort glob "$Petrel::root/doc/{*,dev/*}.md");
my ($count, %of_page);
for my $page (@pages) {
    for (blocks($page)) {
        my ($number, $text) = @$_;
        my $settings = settings($text) or next;
        $count++;
        $of_page{$page}++;
        for my $name ($settings =~ /^([a-z_]+) =\s/mg) {
            ok $known{$name} || (petrel('-c', '/dev/null', '-o', "$name=x", 'check'))[1] !~ /unknown setting/, "$page:$number: $name is a setting";
        }
        $settings =~ s{(?<![\w.])/(?=etc/|run/|var/mail)}{$scratch/}g;
        my $more = join '', map { $settings =~ /^\Q$_->[0]\E = /m ? '' : "$_->[0] = $_->[1]\n" } ['spool', "$scratch/spool"], ['hostname', 'mail.example.org'];
        # A route with a user, whose password stands in an earlier block.
        $more .= "relay_password_file = $scratch/etc/petrel/password\n" if $settings =~ /^relay = \S+@/m && $settings !~ /^(?:relay_password_file|oauth) = /m;
        $settings =~ s/^user = petrel$/user =/m;
        my $file = Petrel::spit("$scratch/conf", $settings . $more);
        chmod 0600, $file;
        my ($code, $said) = petrel('-c', $file, 'check');
        is $code, 0, "$page:$number: is accepted" or diag $settings, $said =~ s/^\w+ = .*\n//gmr;
        unlike $said, qr/^\S*conf:\d+: |unknown/m, '    without an error';
    }
}
# --- Commands

# For blocks and for code within sentences: the help of the command has each of its flags.
my (%help, %asked);
for my $page (@pages) {
    my $text = Petrel::slurp("$Petrel::root/$page");
    while ($text =~ /(?:^(?:    )?|`|&& |; )petrel ((?:-[co] \S+ )*)([a-z][a-z-]*)\b([^`\n#|;&)]*)/mg) {
        my ($name, $rest) = ($2, $3);
        $help{$name} //= [petrel('help', $name)];
        is $help{$name}[0], 0, "$page: petrel $name is a command" or diag $help{$name}[1] unless $asked{$name}++;
        for my $flag ($rest =~ /(?<=\s)(--[a-z][a-z-]*)/g) {
            like $help{$name}[1], qr/\Q$flag\E(?![a-z-])/, "$page: petrel $name $flag" unless $asked{"$name $flag"}++;
        }
    }
}
ok keys %asked > 25, 'many of them';

ok $of_page{$_}, "$_ has settings" for map { "doc/$_.md" } qw(recipes events forwarding tls); # guide.t has those of the guide
ok $count >= 15, 'all blocks were found';
done_testing;
