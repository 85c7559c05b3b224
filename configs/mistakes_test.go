package configs

import (
	"errors"
	"strings"
	"testing"
)

// mistake is one kind of mistake: the file, and for each problem where it is and what its text says.
type mistake struct {
	name, yaml string
	want       []string // "LINE:COL: KEY: …" as the error begins, then "…" and a part of what follows
}

// checkMistakes wants exactly the problems of each row, in their order.
func checkMistakes(t *testing.T, rows []mistake) {
	t.Helper()
	for _, tc := range rows {
		t.Run(tc.name, func(t *testing.T) {
			_, err := loadText(t, tc.yaml, env{"SET": "SECRET", "BROKEN": "SEC\nRET", "EMPTY": ""})
			var lines []string
			if joined, ok := err.(interface{ Unwrap() []error }); ok {
				for _, err := range joined.Unwrap() {
					if _, ok := errors.AsType[*Problem](err); !ok {
						t.Errorf("%v is not a *Problem", err)
					}
					lines = append(lines, err.Error())
				}
			}
			for i := range max(len(lines), len(tc.want)) {
				switch {
				case i >= len(lines):
					t.Errorf("missing: %s", tc.want[i])
				case i >= len(tc.want):
					t.Errorf("too many: %s", lines[i])
				default:
					begin, part, _ := strings.Cut(tc.want[i], "…")
					if !strings.HasPrefix(lines[i], "postern.yaml:"+begin) || !strings.Contains(lines[i], part) {
						t.Errorf("got  %s\nwant %s", lines[i], tc.want[i])
					}
				}
			}
			if err != nil && strings.Contains(err.Error(), "SEC") {
				t.Errorf("the error repeats a secret: %v", err)
			}
		})
	}
}

func TestMistakesInTheFile(t *testing.T) {
	checkMistakes(t, []mistake{
		{"a bracket left open", "listen: [\n", []string{"1:9: not valid YAML:…']'"}},
		{"a tab", "admin:\n\tlisten: x\n", []string{"2:1: not valid YAML:…cannot start"}},
		{"a blank after a quote", "log:\n  level: \"x\n", []string{"2:10: not valid YAML:…double-quoted"}},
		{"two colons", "listen: a: SECRET\n", []string{"1:9: not valid YAML:…put the value in quotes"}},
		{"a reserved character", "listen: @SECRET\n", []string{"1:9: not valid YAML:…put the value in quotes"}},
		{"a tab", "spool:\n\tdir: SECRET\n", []string{"2:1: not valid YAML:…tabs do not indent"}},
		{"a list", "- listen\n", []string{"1:1: a mapping with the keys listen,…"}},
		{"a word", "listen\n", []string{"1:1: a mapping with the keys…"}},
		{"a second document", "listen: 127.0.0.1:1\n---\nlisten: 127.0.0.1:2\n", []string{"3:1: …second YAML document"}},
		{"nested without end", "a: " + strings.Repeat("[", 300), []string{"1: …too deep"}},
		{"dashes without end", "a: 1\n" + strings.Repeat("- ", 100_000), []string{"2: …too deep"}},
		{"unknown key", "lisen: x\n", []string{"1:1: lisen: unknown key; did you mean listen?…"}},
		{"unknown key below", "spool: { dirr: x, max_byte: 1 }\n", []string{"1:10: spool.dirr: …did you mean dir?", "1:19: spool.max_byte: …did you mean max_bytes?"}},
		{"key of another section", "max_retry_after: 1h\n", []string{"1:1: max_retry_after: …it belongs under defaults.retry or endpoints[].retry"}},
		{"headers for everybody", "defaults: { headers: { set: { X-Key: SECRET } } }\n", []string{"1:13: defaults.headers: …it belongs under endpoints[]"}},
		{"key from nowhere", "log: { colour: true }\n", []string{"1:8: log.colour: …known here: level, format"}},
		{"case matters", "Listen: x\n", []string{"1:1: Listen: …did you mean listen?"}},
		{"a number as key", "8089: x\n", []string{"1:1: 8089: unknown key;…"}},
		{"twice", "spool:\n  dir: a\n  max_bytes: 4MiB\n  dir: b\n", []string{"4:3: spool.dir: …there twice"}},
		{"twice in a second section", "spool: { dir: a }\nadmin: {}\nspool: { dir: b }\n", []string{"3:1: spool: …there twice"}},
		{"list for a value", "listen: [127.0.0.1:1]\n", []string{"1:9: listen: a single value is wanted here…"}},
		{"mapping for a value", "spool:\n  dir:\n    x: y\n", []string{"3:5: spool.dir: a single value is wanted here…"}},
		{"value for a mapping", "spool: ./data\n", []string{"1:8: spool: a mapping with the keys dir, max_bytes,…"}},
		{"value for a list", "query_keys_in_logs: cid\n", []string{"1:21: query_keys_in_logs: a list is wanted here; write [a, b]…"}},
		{"value for labels", "sync: { labels: eu }\n", []string{"1:17: sync.labels: a mapping of labels…"}},
		{"no value", "listen:\nconcurrency: ~\n", []string{"1:8: listen: the value is missing…", "2:14: concurrency: the value is missing…"}},
		{"no value in a list", "query_keys_in_logs:\n  - cid\n  -\n", []string{"3:5: query_keys_in_logs[1]: the value is missing…"}},
		{"alias of nothing", "spool: *nope\n", []string{"1:8: …names no anchor above it"}},
		{"merge of a value", "spool:\n  <<: x\n", []string{"2:7: spool: …<<: *common"}},
		{"all at once", "listen: x\nconcurrency: y\nspool: { dir: [], bad: 1 }\n", []string{
			"1:9: listen: …not an address", "2:14: concurrency: …whole number", "3:15: spool.dir: a single value…", "3:19: spool.bad: unknown key…",
		}},
	})
}

func TestMistakesInValues(t *testing.T) {
	checkMistakes(t, []mistake{
		{"duration without unit", "shutdown_grace: 25\n", []string{`1:17: shutdown_grace: "25" is not a duration; a unit is missing: write 25s for seconds…`}},
		{"duration in words", "shutdown_grace: soon\n", []string{`1:17: shutdown_grace: "soon" is not a duration; write a number and a unit…`}},
		{"duration with a blank", "shutdown_grace: 25 s\n", []string{"1:17: shutdown_grace: …write it without blanks: 25s"}},
		{"days", "spool: { dedupe_window: 30d }\n", []string{"1:25: spool.dedupe_window: …days are written in hours: 720h"}},
		{"negative duration", "shutdown_delay: -1s\n", []string{"1:17: shutdown_delay: …cannot be negative"}},
		{"no time at all", "defaults: { timeout: 0s }\n", []string{`1:22: defaults.timeout: "0s" is too short; write 1ms or more…`}},
		{"hot loop", "defaults: { retry: { base_delay: 0s } }\n", []string{"1:34: defaults.retry.base_delay: …too short"}},
		{"size in words", "spool: { max_bytes: much }\n", []string{"1:21: spool.max_bytes: …is not a size; write bytes"}},
		{"size with a strange unit", "spool: { max_bytes: 4Mb/s }\n", []string{"1:21: spool.max_bytes: …KiB, MiB, GiB (1024)"}},
		{"size with a fraction", "spool: { max_bytes: 1.5GiB }\n", []string{"1:21: spool.max_bytes: …whole number"}},
		{"size beyond counting", "spool: { max_bytes: 99999999TiB }\n", []string{"1:21: spool.max_bytes: …more bytes than can be counted"}},
		{"negative size", "spool: { max_bytes: -1 }\n", []string{"1:21: spool.max_bytes: …is not a size"}},
		{"spool too small", "spool: { max_bytes: 1000KiB }\n", []string{"1:21: spool.max_bytes: …too small; write 1MiB or more"}},
		{"events too large", "spool: { max_bytes: 4MiB, max_event_bytes: 2MiB }\n", []string{"1:44: spool.max_event_bytes: 2MiB is too large…write 1MiB or less"}},
		{"history too large", "spool: { max_bytes: 64MiB, history_max_bytes: 32MiB }\n", []string{"1:47: spool.history_max_bytes: 32MiB is more than an eighth…write 8MiB or less"}},
		{"backlog over history", "spool: { history_max_bytes: 1MiB }\nsync: { max_backlog_bytes: 2MiB }\n", []string{"2:28: sync.max_backlog_bytes: 2MiB is more than…write 1MiB or less"}},
		{"share of nothing", "spool: { max_endpoint_share: 0 }\n", []string{"1:30: spool.max_endpoint_share: …over 0 and at most 1"}},
		{"share in per cent", "spool: { max_endpoint_share: 50% }\n", []string{"1:30: spool.max_endpoint_share: …over 0 and at most 1"}},
		{"share not a number", "spool: { max_endpoint_share: .nan }\n", []string{"1:30: spool.max_endpoint_share: …over 0 and at most 1"}},
		{"number in words", "concurrency: many\n", []string{"1:14: concurrency: …not a whole number"}},
		{"fraction", "concurrency: 1.5\n", []string{"1:14: concurrency: …not a whole number"}},
		{"octal or not", "concurrency: 010\n", []string{"1:14: concurrency: …not a whole number"}},
		{"none at once", "concurrency: 0\n", []string{"1:14: concurrency: 0 is out of range…"}},
		{"yes", "targets: { ad_hoc: yes }\n", []string{"1:20: targets.ad_hoc: …neither true nor false"}},
		{"socket mode", "listen: unix:/run/p.sock\nsocket_mode: \"0777\"\n", []string{"2:14: socket_mode: \"0777\" has more than read and write in it…"}},
		{"socket mode for nobody", "listen: unix:/run/p.sock\nsocket_mode: 0060\n", []string{"2:14: socket_mode: \"0060\" keeps out the user that Postern runs as…"}},
		{"socket mode in words", "admin: { listen: unix:/run/p.sock, socket_mode: g+w }\n", []string{"1:49: admin.socket_mode: \"g+w\" is not a file mode; write it as chmod takes it, such as \"0660\""}},
		{"decimal socket mode", "admin: { listen: unix:/run/p.sock, socket_mode: 384 }\n", []string{"1:49: admin.socket_mode: \"384\" is not a file mode…"}},
		{"socket mode without a socket", "admin: { socket_mode: 0660 }\n", []string{"1:23: admin.socket_mode: \"127.0.0.1:8090\" is not a Unix socket and has no mode…"}},
		{"connections", "max_connections: 0\nprobes: { max_connections: 100000 }\n", []string{"1:18: max_connections: 0 is out of range…", "2:28: probes.max_connections: 100000 is out of range…"}},
		{"level", "log: { level: warning, format: jsno }\n", []string{"1:15: log.level: …did you mean warn?", "1:32: log.format: …did you mean json?"}},
		{"payloads", "sync: { payloads: some }\n", []string{"1:19: sync.payloads: …write one of none, dead_letters, all"}},
		{"schema", "sync: { schema: My-Schema }\n", []string{"1:17: sync.schema: …a-z, 0-9 and _"}},
		{"system schema", "sync: { schema: pg_x }\n", []string{"1:17: sync.schema: …does not begin with pg_"}},
		{"labels", "sync: { labels: { \"a b\": x, c: \"\", d: { e: f } } }\n", []string{
			"1:19: sync.labels.a b: not a label…", "1:32: sync.labels.c: a label's value has…", "1:39: sync.labels.d: a single value…",
		}},
		{"empty path", "spool: { dir: \"\" }\n", []string{"1:15: spool.dir: the path is empty…"}},
		{"path with a blank", "spool: { dir: \"data \" }\n", []string{"1:15: spool.dir: the path begins or ends with a blank…"}},
		{"query key", "query_keys_in_logs: [\"cid=\"]\n", []string{"1:22: query_keys_in_logs[0]: …write its name alone"}},
		{"keys that are not there", "spool: { encryption_key_files: [absent, postern.yaml, \"\"] }\n", []string{
			"1:33: spool.encryption_key_files[0]: cannot be read:…relative to the configuration file",
			"1:41: spool.encryption_key_files[1]: the file \"postern.yaml\": it holds no key: …openssl rand -base64 32",
			"1:55: spool.encryption_key_files[2]: the path is empty…",
		}},
		{"variable where no secret is", "spool: { dir: \"${HOME}/data\" }\n", []string{"1:15: spool.dir: ${VAR} works only in secrets…write the value itself"}},
		{"variable in a list", "query_keys_in_logs: [\"${SET}\"]\n", []string{"1:22: query_keys_in_logs[0]: ${VAR} works only in secrets…"}},
		{"allow", "targets: { allow: [\"https://u:SEC@x.example/\", 10.1.2.3/16, 300.0.0.0/8, \"*\", \"a b\", \"x.example:80\"] }\n", []string{
			"1:20: targets.allow[0]: a URL is not a host…", "1:48: targets.allow[1]: …write 10.1.0.0/16", "1:61: targets.allow[2]: not a network…",
			"1:74: targets.allow[3]: …allow_private", "1:79: targets.allow[4]: not a host…", "1:86: targets.allow[5]: not a host…",
		}},
	})
}

func TestMistakesInListeners(t *testing.T) {
	checkMistakes(t, []mistake{
		{"port alone", "listen: 8089\n", []string{`1:9: listen: "8089" is not an address to listen on; write host:port…`}},
		{"port too large", "listen: 127.0.0.1:80890\n", []string{"1:9: listen: the port…from 0 to 65535"}},
		{"port by name", "listen: localhost:http\n", []string{"1:9: listen: the port…from 0 to 65535"}},
		{"a URL", "listen: http://localhost:8089\n", []string{"1:9: listen: …not an address"}},
		{"host with a blank", "listen: \"local host:1\"\n", []string{"1:9: listen: the host…not valid"}},
		{"socket without path or quotes", "listen: unix:\n", []string{"1:9: not valid YAML: …something is missing behind it (unix:/run/postern.sock)"}},
		{"socket without path", "listen: \"unix:\"\n", []string{"1:9: listen: the path of the Unix socket is missing…"}},
		{"socket with a long path", "listen: unix:/" + strings.Repeat("x", 110) + "\n", []string{"1:9: listen: …111 bytes"}},
		{"open to all without a token", "listen: 0.0.0.0:8089\nadmin: { listen: \":8090\" }\n", []string{
			"1:9: listen: …write token_file: PATH", "2:18: admin.listen: …write admin.token_file: PATH",
		}},
		{"a name is not loopback", "listen: sidecar.local:8089\n", []string{"1:9: listen: …needs a token"}},
		{"token file not there", "listen: 0.0.0.0:8089\ntoken_file: none\n", []string{"2:13: token_file: cannot be read:…relative to the configuration file"}},
		{"same address", "listen: localhost:8090\n", []string{"1:9: listen: admin.listen and listen are the same…"}},
		{"same port of all interfaces", "probes: { listen: \":8090\" }\n", []string{"1:19: probes.listen: probes.listen and admin.listen…"}},
		{"same socket", "listen: unix:/run/p\nadmin: { listen: \"unix:/run/p\" }\n", []string{"2:18: admin.listen: admin.listen and listen are…"}},
		{"nothing to listen on", "admin: { listen: \"\" }\n", []string{`1:18: admin.listen: "" is not an address…`}},
	})
}

// What is no mistake, although it is near to one.
func TestNotMistakes(t *testing.T) {
	for name, yaml := range map[string]string{
		"nothing":                       "",
		"a comment":                     "# listen: x\n",
		"a mark of order":               "\ufefflisten: 127.0.0.1:1\n",
		"carriage returns":              "listen: 127.0.0.1:1\r\nspool:\r\n  dir: x\r\n",
		"a directive":                   "%YAML 1.2\n---\nlisten: 127.0.0.1:1\n",
		"sections all commented out":    "spool:\n  # dir: x\nendpoints:\n  # - name: x\ndefaults: { retry: { schedule: , statuses: } }\n",
		"loopback of many kinds":        "listen: \"[::1]:1\"\nadmin: { listen: \"127.8.8.8:2\" }\nprobes: { listen: \"0.0.0.0:3\" }\n",
		"ports chosen by the system":    "listen: 127.0.0.1:0\nadmin: { listen: \"127.0.0.1:0\" }\n",
		"one port on two addresses":     "listen: 127.0.0.1:1\nadmin: { listen: \"127.0.0.2:1\" }\n",
		"anchors and merge keys":        "defaults: { retry: &r { max_delay: 2h } }\nendpoints:\n  - &a { name: a, url: http://partner.example/, retry: { <<: *r, base_delay: 1h } }\n  - { <<: [*a], name: b }\n",
		"tags":                          "concurrency: !!int 5\nlisten: !!str 127.0.0.1:1\n",
		"an explicit key":               "? listen\n: 127.0.0.1:1\n",
		"retry all of it":               "defaults: { retry: { statuses: [300, 404, 599], max_attempts: 1 } }\n",
		"an expression with a dollar":   "defaults: { success: { body_matches: '^1$' } }\n",
		"a breaker that never opens":    "defaults: { breaker: { failure_threshold: 1000000, slow_p95: 0s } }\n",
		"no burst without limits":       "defaults: { burst: 9 }\n",
		"http of a private address":     "endpoints: [{ name: a, url: \"http://10.0.0.1:8080\" }]\n",
		"names that differ in case":     "endpoints: [{ name: a, url: http://partner.example/ }, { name: A, url: http://partner.example/ }]\n",
		"prefixes inside one another":   "endpoints: [{ name: a, url: http://x.example/, match: [http://x.example/, http://x.example/a] }]\n",
		"signing switched off below":    "defaults: { sign: { scheme: hub, secrets: [x] } }\nendpoints: [{ name: a, url: http://x.example/, sign: { scheme: none } }]\n",
		"a header of another signature": "endpoints: [{ name: a, url: http://x.example/, headers: { set: { webhook-id: x } } }]\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := loadText(t, yaml, nil); err != nil {
				t.Error(err)
			}
		})
	}
}
