<?php
// The application calls the partner. When the partner is away, the postback is lost.
$partner = getenv('PARTNER') ?: 'https://partner.example/postback';

$answer = file_get_contents($partner . '?cid=a+b%20c', false, stream_context_create(['http' => [
    'method' => 'POST',
    'header' => ['Content-Type: application/json'],
    'content' => json_encode(['order' => 42, 'amount' => '9.90']),
    'timeout' => 15,
]]));
if ($answer === false) { // anything but a 2xx or 3xx
    exit(1);
}
