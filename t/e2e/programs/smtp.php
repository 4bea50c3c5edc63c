<?php
// What the mail classes of PHP do: fgets(), fwrite(), and TLS that is switched on between them. Sends $FILE.
$tls = getenv('TLS');
$context = stream_context_create(['ssl' => ['cafile' => getenv('CA'), 'peer_name' => '127.0.0.1']]);
$s = stream_socket_client(($tls == 'implicit' ? 'ssl' : 'tcp') . '://127.0.0.1:' . getenv('PORT'), $number, $text, 60, STREAM_CLIENT_CONNECT, $context);
if (!$s)
    die("$text\n");
function heard($want)
{
    global $s;
    for ($all = ''; ($line = fgets($s, 515)) !== false;) {
        $all .= $line;
        if (substr($line, 3, 1) != '-')
            break;
    }
    if (substr($all, 0, strlen($want)) != $want) {
        echo "SMTP Error: $all";
        exit(1);
    }
    return $all;
}
function say($line, $want)
{
    global $s;
    fwrite($s, "$line\r\n");
    return heard($want);
}
heard('220');
say('EHLO client.test', '250');
if ($tls == 'starttls') {
    say('STARTTLS', '220');
    if (!stream_socket_enable_crypto($s, true, STREAM_CRYPTO_METHOD_TLS_CLIENT))
        exit(1);
    say('EHLO client.test', '250');
}
if (getenv('AUTH_USER') != '') {
    say('AUTH LOGIN', '334');
    say(base64_encode(getenv('AUTH_USER')), '334');
    say(base64_encode(getenv('AUTH_PASSWORD')), '235');
}
$content = file_get_contents(getenv('FILE'));
say('MAIL FROM:<' . getenv('FROM') . '>', '250');
say('RCPT TO:<' . getenv('TO') . '>', '250');
say('DATA', '354');
fwrite($s, preg_replace('/^\./m', '..', $content)); // it may fail: an answer in between says why
echo say('.', '250');
say('QUIT', '221');
