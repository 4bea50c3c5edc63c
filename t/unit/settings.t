#!/usr/bin/perl
# config.example is what the table of settings says, and petrel.conf(5) knows every key with its default.
use strict;
use warnings;
use File::Basename qw(dirname);
use File::Temp qw(tempdir);
use Test::More;

my $root   = dirname(__FILE__) . '/../..';
my $petrel = $ENV{PETREL} || "$root/petrel";
delete $ENV{$_} for grep { /^PETREL_/ } keys %ENV;

sub slurp { my $f = shift; open my $h, '<', $f or die "$f: $!"; local $/; return scalar <$h> }

my $example = `$petrel check --example`;
is($?, 0, 'petrel check --example');
is(slurp("$root/config.example"), $example, 'config.example is its output (to make it: petrel check --example > config.example)');

# Every key, with its default; nothing else.
my $manual = slurp("$root/man/petrel.conf.5");
my (%in_table, %in_manual);
$in_table{$1} = $2 while $example =~ /^#(\w+) =(.*)$/mg;
$in_manual{$1} = $2 while $manual =~ /^\.TP\n\.B (\w+) =(.*)\n(?!\.TP)\S/mg;
cmp_ok(scalar keys %in_table, '>', 30, 'the table has keys');
is($in_manual{$_}, $in_table{$_}, "petrel.conf(5): $_") for sort keys %in_table;
is_deeply([sort keys %in_manual], [sort keys %in_table], 'petrel.conf(5) has no others');
unlike($example, qr/^[^#\n]/m, 'all of config.example is commented out');

# Other names of settings, of Postfix.
my $synonyms = slurp("$root/admin/settings/synonyms.c");
my (%accepted, %documented);
$accepted{$1} = $2 while $synonyms =~ /\bSAME\("(\w+)",\s*"(\w+)"\)/g;
$accepted{$1} = $2 while $synonyms =~ /\{"(\w+)",\s*"(\w+)",/g;
my @refused = $synonyms =~ /\bREFUSED\("(\w+)"/g;
my ($names) = $manual =~ /^\.SH OTHER NAMES\n(.*?)^\.SH /msg;
$documented{$1} = $2 while $names =~ /^\.BR (\w+) ": " (\w+)$/mg;
cmp_ok(scalar keys %accepted, '>', 12, 'the table of other names is read');
is_deeply(\%documented, \%accepted, 'petrel.conf(5) has the other names that are accepted');
is_deeply([sort $names =~ /^\.BR (\w+) [,.]$/mg], [sort @refused], 'and those that are refused');

# It is a settings file: as it is, and with every key that has a default set.
my $dir = tempdir('petrel-settings-XXXXXX', TMPDIR => 1, CLEANUP => 1);
sub check {
    my ($text) = @_;
    open my $h, '>', "$dir/petrel.conf" or die;
    print $h $text;
    close $h or die;
    my $out = `$petrel -c $dir/petrel.conf -o hostname=h.test -o spool=$dir/s check 2>&1`;
    return ($? >> 8, $out);
}
my ($code, $out) = check($example);
is($code, 0, 'config.example is valid') or diag $out;
my $defaults = $out;
$defaults =~ s/ +# .*//mg;
(my $set = $example) =~ s/^#(\w+ = .+)$/$1/mg;
($code, $out) = check($set);
is($code, 0, 'with every default written out too') or diag $out;
is(scalar(() = $out =~ /petrel\.conf:\d+$/mg), scalar(grep { /\S/ } values %in_table), 'each has its line as source');
$out =~ s/ +# .*//mg;
is($out, $defaults, 'and says the same');

# The manual's examples work.
my @blocks = $manual =~ /^\.nf\n(.*?)^\.fi$/msg;
is(scalar @blocks, 14, 'nine examples, four forms, and the index');
@blocks = grep { !/^ *HOST\[|^ *NAME: |\t|^ *dkim_keys.*^ *dkim_keys/ms } @blocks;
system('sh', 't/support/tls_certificates.sh', "$dir/tls") == 0 or die 'no certificates: is openssl there?';
open my $password, '>', "$dir/password" or die;
print $password "secret\n";
close $password or die;
chmod 0600, "$dir/password";
for my $block (@blocks) {
    $block =~ s/^ {4}//mg;
    $block =~ s{/etc/petrel/password$}{$dir/password}m;
    if ($block =~ /^PETREL_/) {
        local %ENV = (%ENV, map { split /=/, $_, 2 } split /\n/, $block);
        ($code, $out) = check('');
        like($out, qr/^relay = mail\.example\.net:25   # environment$/m, 'by environment');
    } else {
        ($code, $out) = check($block =~ s/^hostname.*\n//mr . "tls_ca = $dir/tls/ca.pem\n");
    }
    is($code, 0, 'an example of petrel.conf(5)') or diag $block, $out;
}

# An error is a line and 78.
($code, $out) = check("hostnmae = x\nrelay = smtp//x\n");
is($code, 78, 'EX_CONFIG');
is($out, "$dir/petrel.conf:1: hostnmae: unknown setting; did you mean 'hostname'?\n", 'file, line, key, meaning');
done_testing();
