package configs

import (
	"fmt"
	"strings"
	"testing"
)

// at puts keys into an endpoint that is valid otherwise: they begin at line 4, column 5.
func at(keys string) string {
	return "endpoints:\n  - name: a\n    url: https://partner.example/\n    " + strings.ReplaceAll(keys, "\n", "\n    ") + "\n"
}

func TestMistakesInEndpoints(t *testing.T) {
	checkMistakes(t, []mistake{
		{"no name", "endpoints:\n  - url: https://partner.example/\n", []string{"2:5: endpoints[0].name: the key is missing…"}},
		{"no url", "endpoints: [{ name: a }]\n", []string{"1:13: endpoints[0].url: the key is missing…"}},
		{"nothing", "endpoints:\n  -\n", []string{"2:5: endpoints[0]: a mapping with the keys name, url,…"}},
		{"a mapping of endpoints", "endpoints: { a: { url: https://partner.example/ } }\n", []string{"1:12: endpoints: a list is wanted here…"}},
		{"bad name", "endpoints: [{ name: a/b, url: https://partner.example/ }]\n", []string{`1:21: endpoints[0].name: "a/b" is not a name…`}},
		{"an origin as name", "endpoints: [{ name: \"https://x.example\", url: https://x.example/ }]\n", []string{"1:21: endpoints[0].name: …is not a name"}},
		{"long name", "endpoints: [{ name: " + strings.Repeat("n", 65) + ", url: https://x.example/ }]\n", []string{"1:21: endpoints[0].name: …is not a name"}},
		{"dots", "endpoints: [{ name: .., url: https://x.example/ }]\n", []string{"1:21: endpoints[0].name: …cannot be a name"}},
		{"the metrics' name", "endpoints: [{ name: ad_hoc, url: https://x.example/ }]\n", []string{"1:21: endpoints[0].name: …choose another name"}},
		{"name taken", at("") + "  - { name: a, url: https://x.example/ }\n", []string{`5:13: endpoints[1].name: the name "a" is taken by endpoints[0]…`}},
		{"url with a blank at its end", "endpoints: [{ name: a, url: \"https://x.example/?k=SECRET \" }]\n", []string{"1:29: endpoints[0].url: the URL begins or ends with a blank…"}},
		{"url as a block", "endpoints:\n  - name: a\n    url: |\n      https://x.example/?k=SECRET\n", []string{"3:10: endpoints[0].url: the URL begins or ends with a blank or line break…"}},
		{"url with a blank inside", "endpoints: [{ name: a, url: \"https://x.example/SEC RET\" }]\n", []string{"1:29: endpoints[0].url: …percent-encode"}},
		{"url without scheme", "endpoints: [{ name: a, url: SECRET.example/x }]\n", []string{"1:29: endpoints[0].url: …http:// or https://"}},
		{"url with a variable", "endpoints: [{ name: a, url: \"https://x.example/?k=${SET}\" }]\n", []string{"1:29: endpoints[0].url: ${VAR} works only in secrets…"}},
		{"in a circle", "endpoints: [{ name: a, url: \"http://LOCALHOST:8089/to/a\" }]\n", []string{"1:29: endpoints[0].url: this is where Postern itself listens…"}},
		{"in a circle through all interfaces", "listen: \":80\"\ntoken_file: postern.yaml\nendpoints: [{ name: a, url: \"http://127.0.0.2/\" }]\n", []string{
			"2:13: token_file: …one word", "3:29: endpoints[0].url: this is where…",
		}},
		{"match", at(`match: ["x", "https://u@x.example/", "https://x.example/?a=SEC"]`), []string{
			"4:13: endpoints[0].match[0]: …http:// or https://", "4:18: endpoints[0].match[1]: …no user info", "4:42: endpoints[0].match[2]: …question mark",
		}},
		{"same prefix", at(`match: ["https://x.example/p", "https://X.example:443/p/"]`), []string{"4:36: endpoints[0].match[1]: the same prefix is in endpoints[0].match…"}},
		{"prefix of two", at(`match: ["https://x.example"]`) + "  - { name: b, url: https://x.example/, match: [\"https://x.example/\"] }\n",
			[]string{"5:49: endpoints[1].match[0]: the same prefix is in endpoints[0].match…"}},
	})
}

func TestMistakesInPolicies(t *testing.T) {
	checkMistakes(t, []mistake{
		{"schedule and attempts", at("retry: { max_attempts: 3, schedule: [1s] }"), []string{"4:41: endpoints[0].retry.schedule: …exclude each other: a schedule of 1 means 2 attempts"}},
		{"schedule", at("retry: { schedule: [1s, -1s, x] }"), []string{"4:29: endpoints[0].retry.schedule[1]: …negative", "4:34: endpoints[0].retry.schedule[2]: …not a duration"}},
		{"long schedule", at("retry: { schedule: [" + strings.Repeat("1s,", 10_000) + "1s] }"), []string{"4:24: endpoints[0].retry.schedule: …too many entries"}},
		{"delays", at("retry: { base_delay: 2h }"), []string{"4:26: endpoints[0].retry.base_delay: base_delay (2h) is more than max_delay (1h)…"}},
		{"delays the other way", at("retry: { max_delay: 1s }"), []string{"4:25: endpoints[0].retry.max_delay: base_delay (30s) is more than max_delay (1s)…"}},
		{"delays of the defaults, said once", "defaults: { retry: { base_delay: 2h } }\n" + at("timeout: 1s"), []string{"1:34: defaults.retry.base_delay: …"}},
		{"nothing follows from what was unreadable", "defaults: { retry: { max_delay: x, base_delay: 2h } }\n" + at("retry: { base_delay: 3h }"), []string{"1:33: defaults.retry.max_delay: …"}},
		{"statuses", at("retry: { statuses: [200, 5xx, 404] }"), []string{"4:25: endpoints[0].retry.statuses[0]: …300 to 599", "4:30: endpoints[0].retry.statuses[1]: …300 to 599"}},
		{"cooldowns", at("breaker: { cooldown: 2h }"), []string{"4:26: endpoints[0].breaker.cooldown: cooldown (2h) is more than…"}},
		{"thresholds", at("breaker: { failure_threshold: 0, slow_failure_threshold: -1 }"), []string{
			"4:35: endpoints[0].breaker.failure_threshold: 0 is out of range…", "4:62: endpoints[0].breaker.slow_failure_threshold: -1 is out of range…",
		}},
		{"zero limit", at(`limits: ["0/1s"]`), []string{"4:14: endpoints[0].limits[0]: …out of range (1 to 1000000); to send nothing, pause the endpoint"}},
		{"zero burst", at("burst: 0"), []string{"4:12: endpoints[0].burst: a burst of 0 lets nothing through; write 1…"}},
		{"limits", at(`limits: [100, "5/m", "x/1s", "5/0s", "5/9000h", "1.5/1s", "5/1s", "6/1s"]`), []string{
			"4:14: endpoints[0].limits[0]: …such as \"100/1m\"", "4:19: endpoints[0].limits[1]: …its window needs a number", "4:26: endpoints[0].limits[2]: …is not a limit",
			"4:34: endpoints[0].limits[3]: …from 1ms to 744h", "4:42: endpoints[0].limits[4]: …from 1ms to 744h", "4:53: endpoints[0].limits[5]: …is not a limit",
		}},
		{"two limits of one window", at(`limits: ["5/60s", "6/1m"]`), []string{"4:13: endpoints[0].limits: two limits have the window 1m…"}},
		{"burst over the limit", at("limits: [\"100/1h\", \"5/1s\"]\nburst: 6"), []string{"5:12: endpoints[0].burst: a burst of 6 is more than the limit 5/1s…write 5 or less"}},
		{"inherited burst", "defaults: { burst: 6 }\n" + at(`limits: ["5/1s"]`), []string{"5:13: endpoints[0].limits: a burst of 6 is more than…"}},
		{"expression", at(`success: { body_matches: '(', body_rejects: "a\\8" }`), []string{
			"4:30: endpoints[0].success.body_matches: not a valid RE2 expression (missing closing )…", "4:49: endpoints[0].success.body_rejects: not a valid RE2…single quotes",
		}},
		{"certificate alone", at("tls: { cert_file: c.pem }"), []string{"4:23: endpoints[0].tls.cert_file: …belong together"}},
		{"files not there", at("tls: { ca_file: ca.pem, cert_file: c.pem, key_file: k.pem }"), []string{
			"4:21: endpoints[0].tls.ca_file: cannot be read:…", "4:40: endpoints[0].tls.cert_file: the client certificate cannot be loaded:…",
		}},
		{"old TLS", at("tls: { min_version: \"1.1\" }"), []string{`4:25: endpoints[0].tls.min_version: "1.1" is not known; did you mean 1.2?`}},
		{"TLS in words", at("tls: { min_version: TLSv1.2 }"), []string{"4:25: endpoints[0].tls.min_version: …write one of 1.2, 1.3"}},
		{"server name with a port", at("tls: { server_name: \"x.example:443\" }"), []string{"4:25: endpoints[0].tls.server_name: …without scheme, port or wildcard; a name with other letters than a to z in its xn-- form"}},
		{"server name as a URL", at("tls: { server_name: \"https://x.example\" }"), []string{"4:25: endpoints[0].tls.server_name: …xn-- form"}},
		{"server name with a wildcard", at("tls: { server_name: \"*.x.example\" }"), []string{"4:25: endpoints[0].tls.server_name: …xn-- form"}},
		{"server name with other letters", at("tls: { server_name: käse.example }"), []string{"4:25: endpoints[0].tls.server_name: …xn-- form"}},
		{"http2", at("http2: yes"), []string{"4:12: endpoints[0].http2: …neither true nor false; write one of them"}},
		{"no certificate in it", at("tls: { ca_file: postern.yaml }"), []string{"4:21: endpoints[0].tls.ca_file: there is no certificate in the file…"}},
	})
}

func TestMistakesInSecrets(t *testing.T) {
	checkMistakes(t, []mistake{
		{"unset", at(`headers: { set: { X-Key: "${UNSET}" } }`), []string{"4:30: endpoints[0].headers.set.X-Key: the environment variable UNSET is not set…"}},
		{"not closed", at(`headers: { set: { X-Key: "${SECRET" } }`), []string{"4:30: endpoints[0].headers.set.X-Key: ${ begins a variable…"}},
		{"no name", at(`headers: { set: { X-Key: "${SEC-RET}" } }`), []string{"4:30: endpoints[0].headers.set.X-Key: ${ begins a variable…"}},
		{"empty", at(`headers: { set: { X-Key: "${EMPTY}" } }`), []string{"4:30: endpoints[0].headers.set.X-Key: the header's value is empty…"}},
		{"line break inside", at(`headers: { set: { X-Key: "${BROKEN}" } }`), []string{"4:30: endpoints[0].headers.set.X-Key: …control character"}},
		{"blank at the end", at(`headers: { set: { X-Key: "SECRET " } }`), []string{"4:30: endpoints[0].headers.set.X-Key: …begins or ends with a blank"}},
		{"file not there", at(`headers: { set: { X-Key: "file:none" } }`), []string{"4:30: endpoints[0].headers.set.X-Key: cannot be read:…"}},
		{"file without name", at(`headers: { set: { X-Key: "file:" } }`), []string{"4:30: endpoints[0].headers.set.X-Key: the path is empty…"}},
		{"not a mapping", at(`headers: { set: [SECRET] }`), []string{"4:21: endpoints[0].headers.set: a mapping from header names…"}},
		{"twice in other letters", at(`headers: { set: { X-Key: SECRET, x-key: SECRET } }`), []string{"4:38: endpoints[0].headers.set.x-key: the header is there already as X-Key…"}},
		{"no secret to sign with", at("sign: { scheme: standard }"), []string{"4:21: endpoints[0].sign.scheme: …needs a secret"}},
		{"secrets that sign nothing", at("sign: { secrets: [SECRET] }"), []string{"4:22: endpoints[0].sign.secrets: the secrets are not used…"}},
		{"not base64", at("sign: { scheme: standard, secrets: [c2Vj, \"whsec_SECRET!\"] }"), []string{"4:47: endpoints[0].sign.secrets[1]: …is base64"}},
		{"nothing after the prefix", at("sign: { scheme: standard, secrets: [whsec_] }"), []string{"4:41: endpoints[0].sign.secrets[0]: …is base64"}},
		{"not base64 for the inherited scheme", "defaults: { sign: { scheme: standard, secrets: [c2Vj] } }\n" + at("sign: { secrets: [\"SECRET!\"] }"), []string{"5:23: endpoints[0].sign.secrets[0]: …is base64"}},
		{"empty secret", at(`sign: { scheme: hub, secrets: [""] }`), []string{"4:36: endpoints[0].sign.secrets[0]: the secret is empty…"}},
		{"scheme", at("sign: { scheme: stripes, secrets: [SECRET] }"), []string{"4:21: endpoints[0].sign.scheme: …did you mean stripe?"}},
		{"header of another scheme", at("sign: { scheme: hub, header: X-Sig, secrets: [SECRET] }"), []string{"4:34: endpoints[0].sign.header: only the schemes stripe and template…"}},
		{"template of another scheme", at("sign: { scheme: stripe, template: \"{hex({body})}\", secrets: [SECRET] }"), []string{"4:39: endpoints[0].sign.template: the template is not used by the scheme stripe…"}},
		{"template without anything", at("sign: { scheme: template, secrets: [SECRET] }"), []string{
			"4:21: endpoints[0].sign.scheme: the scheme template needs the name of a header…", "4:21: endpoints[0].sign.scheme: the scheme template needs sign.template…",
		}},
		{"template that signs nothing", at("sign: { scheme: template, header: X-Sig, template: \"{hex({id})}\", secrets: [SECRET] }"), []string{"4:56: endpoints[0].sign.template: the template does not sign the body…"}},
		{"the template's own header", at("sign: { scheme: template, header: X-Sig, template: \"{hex({body})}\", secrets: [SECRET] }\nheaders: { set: { x-sig: SECRET } }"), []string{"5:30: endpoints[0].headers.set.x-sig: the signature is in this header…"}},
		{"header that cannot be", at("sign: { scheme: stripe, header: Host, secrets: [SECRET] }"), []string{"4:37: endpoints[0].sign.header: the header follows from…"}},
		{"the signature's own header", at("sign: { scheme: standard, secrets: [c2Vj] }\nheaders: { set: { Webhook-Id: SECRET } }"), []string{"5:35: endpoints[0].headers.set.Webhook-Id: the signature is in this header…"}},
		{"proxy", "outbound_proxy: socks5://u:SECRET@x.example\n", []string{"1:17: outbound_proxy: not the URL of a proxy…"}},
		{"proxy with a path", "outbound_proxy: http://u:SECRET@x.example/x\n", []string{"1:17: outbound_proxy: …no path or query"}},
		{"proxy in a circle", "outbound_proxy: http://u:SECRET@LOCALHOST:8089\n", []string{"1:17: outbound_proxy: this is where Postern itself listens…"}},
		{"proxy in a circle at the usual port", "listen: 127.0.0.1:443\noutbound_proxy: https://localhost\n", []string{"2:17: outbound_proxy: this is where Postern itself listens…"}},
		{"dsn", "sync: { dsn: \"postgres://u:${UNSET}@SECRET/x\" }\n", []string{"1:14: sync.dsn: the environment variable UNSET is not set…"}},
		{"dsn with a line break", "sync: { dsn: \"${BROKEN}\" }\n", []string{"1:14: sync.dsn: …control character"}},
	})
}

// Headers of one connection, of the message, and Postern's own are refused by name, in any case of letters.
func TestHeadersThatCannotBeSet(t *testing.T) {
	for _, name := range []string{
		"Connection", "Keep-Alive", "Proxy-Authorization", "Proxy-Connection", "TE", "Trailer", "Transfer-Encoding", "Upgrade",
		"Content-Length", "Host", "Expect", "Forwarded", "Via", "X-Forwarded-For", "Postern-Event-Id", "Postern-Attempt",
		"X-Delivery-Timestamp", "Bad Name", "Bad:Name", "Bädname", "",
	} {
		for _, name := range []string{name, strings.ToLower(name)} {
			_, err := loadText(t, at(fmt.Sprintf("headers: { set: { %q: SECRET } }", name)), nil)
			if err == nil || !strings.HasPrefix(err.Error(), "postern.yaml:4:23: endpoints[0].headers.set."+name+": ") {
				t.Errorf("%q: %v", name, err)
			}
		}
	}
}
