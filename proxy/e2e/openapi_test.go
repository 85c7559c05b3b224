package e2e

import (
	"bytes"
	"encoding/json"
	"io"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// openAPI is docs/openapi.yaml, and what of it was seen.
type openAPI struct {
	t        *testing.T
	p        *postern
	doc      map[string]any
	compiler *jsonschema.Compiler
	seen     map[string]bool // "get /path 200"
}

const openAPIFile = "openapi.json"

func readOpenAPI(t *testing.T) *openAPI {
	t.Helper()
	text, err := os.ReadFile("../../docs/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if text, err = yaml.YAMLToJSON(text); err != nil {
		t.Fatal(err)
	}
	o := &openAPI{t: t, compiler: jsonschema.NewCompiler(), seen: map[string]bool{}}
	resource, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &o.doc); err != nil {
		t.Fatal(err)
	}
	o.compiler.AssertFormat()
	if err := o.compiler.AddResource(openAPIFile, resource); err != nil {
		t.Fatal(err)
	}
	return o
}

// at follows a JSON pointer's parts, and references on the way. It returns the pointer where it ended.
func (o *openAPI) at(parts ...string) (any, string) {
	var here any = o.doc
	pointer := ""
	for _, part := range parts {
		object, _ := here.(map[string]any)
		if ref, ok := object["$ref"].(string); ok {
			here, pointer = o.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
			object, _ = here.(map[string]any)
		}
		here = object[part]
		pointer += "/" + url.PathEscape(strings.NewReplacer("~", "~0", "/", "~1").Replace(part))
	}
	return here, pointer
}

// call makes a request and holds the answer to the document. base is where; path has the template, at what is asked for.
func (o *openAPI) call(method, base, path, at, body string, header ...string) (map[string]any, int) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), method, base+at, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	for _, field := range header {
		name, value, _ := strings.Cut(field, ": ")
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	if kind := resp.Header.Get("Content-Type"); kind == "text/event-stream" {
		o.check(method, path, resp.StatusCode, kind, []byte("read no further"))
		return nil, resp.StatusCode
	}
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	o.check(method, path, resp.StatusCode, resp.Header.Get("Content-Type"), text)
	var out map[string]any
	_ = json.Unmarshal(text, &out) // metrics are no JSON
	return out, resp.StatusCode
}

func (o *openAPI) check(method, path string, status int, contentType string, text []byte) {
	o.t.Helper()
	method = strings.ToLower(method)
	code := strconv.Itoa(status)
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		o.t.Fatalf("%s %s %d: %v", method, path, status, err)
	}
	if answer, _ := o.at("paths", path, method, "responses", code); answer == nil {
		code = "default"
	}
	o.seen[method+" "+path+" "+code] = true
	schema, pointer := o.at("paths", path, method, "responses", code, "content", kind, "schema")
	if schema == nil {
		o.t.Errorf("%s %s: the document has no %d with %s", method, path, status, kind)
		return
	}
	compiled, err := o.compiler.Compile(openAPIFile + "#" + pointer)
	if err != nil {
		o.t.Fatal(err)
	}
	var value any = string(text)
	if strings.HasSuffix(kind, "json") {
		if value, err = jsonschema.UnmarshalJSON(bytes.NewReader(text)); err != nil {
			o.t.Fatalf("%s %s: %v in %s", method, path, err, text)
		}
	}
	if err := compiled.Validate(value); err != nil {
		o.t.Errorf("%s %s %d: %v\n%s", method, path, status, err, text)
	}
}

// TestOpenAPI asks a running Postern for everything that the document has, and holds each answer to it.
func TestOpenAPI(t *testing.T) {
	t.Parallel()
	recv := newReceiver(t, func(_ int, q request) reply {
		switch {
		case strings.Contains(q.Line, "/no"):
			return reply{Status: 401, Body: "no"}
		case strings.Contains(q.Line, "/later"):
			return status(503)
		}
		return reply{Status: 200, Body: "yes"}
	})
	o := readOpenAPI(t)
	o.p = startPostern(t, calm+"spool: { max_event_bytes: 4KiB }\nendpoints:\n  - { name: a, url: \""+recv.url("/a")+"\", limits: [\"1000/1m\"] }\n")
	o.ingest(recv)
	o.probes()
	o.events(recv)
	o.endpoints(recv)
	o.letters(recv)
	for _, path := range []string{"status", "activity", "latency", "spool/keys", "sync/refused"} {
		o.admin("GET", path, path, "")
		o.admin("GET", path, path+"?nonsense=1", "")
	}
	o.admin("GET", "stream", "stream", "")
	o.admin("POST", "sync/retry", "sync/retry", "")
	o.everythingSeen()
}

func (o *openAPI) admin(method, path, at, body string) (map[string]any, int) {
	o.t.Helper()
	return o.call(method, o.p.admin, "/api/v1/"+path, "/api/v1/"+at, body)
}

func (o *openAPI) ingest(recv *receiver) {
	in := func(path, at, body string, header ...string) {
		o.call("POST", o.p.ingest, path, at, body, header...)
	}
	in("/{target}", "/"+recv.url("/x"), "body", "Idempotency-Key: one", "Postern-Event-Id: evt_1")
	in("/{target}", "/"+recv.url("/x"), "body", "Idempotency-Key: one", "Postern-Event-Id: evt_1")
	in("/{target}", "/"+recv.url("/x"), "other", "Idempotency-Key: one")
	in("/{target}", "/ftp://partner.example/", "")
	in("/{target}", "/"+recv.url("/x"), strings.Repeat("x", 5000))
	in("/{target}", "/http://169.254.169.254/", "")
	in("/to/{endpoint}", "/to/a?x=1", "body")
	in("/to/{endpoint}", "/to/nobody", "")
	in("/", "/", "body", "Postern-Url: "+recv.url("/header"))
	in("/", "/", "body")
}

func (o *openAPI) probes() {
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		o.call("GET", o.p.admin, path, path, "")
	}
}

func (o *openAPI) events(recv *receiver) {
	o.p.waitState("evt_1", "delivered", patience)
	dead := o.p.accept("POST", "/"+recv.url("/no"), "\xff\xfe", "X-One: 1")
	o.p.waitState(dead, "dead_letter", patience)
	waits := o.p.accept("POST", "/"+recv.url("/x"), "body", "Postern-Delay: 1h")
	o.admin("GET", "events", "events", "")
	o.admin("GET", "events", "events?state=nonsense", "")
	for _, at := range []string{"evt_1", "evt_1?reveal=1", dead, dead + "?reveal=1", waits, "nobody"} {
		o.admin("GET", "events/{id}", "events/"+at, "")
	}
	for _, id := range []string{dead, "evt_1", "nobody"} {
		o.admin("POST", "events/{id}/retry", "events/"+id+"/retry", "")
	}
	for _, id := range []string{waits, "nobody"} {
		o.admin("DELETE", "events/{id}", "events/"+id, "")
	}
}

func (o *openAPI) endpoints(recv *receiver) {
	o.admin("GET", "endpoints", "endpoints", "")
	for _, name := range []string{"a", url.PathEscape(strings.TrimSuffix(recv.url(""), "/")), "nobody"} {
		o.admin("GET", "endpoints/{name}", "endpoints/"+name, "")
		o.admin("GET", "endpoints/{name}/latency", "endpoints/"+name+"/latency", "")
		for _, act := range []string{"pause", "resume", "reset"} {
			o.admin("POST", "endpoints/{name}/"+act, "endpoints/"+name+"/"+act, "")
		}
	}
}

func (o *openAPI) letters(recv *receiver) {
	for range 3 {
		o.p.waitState(o.p.accept("POST", "/"+recv.url("/no"), "x"), "dead_letter", patience)
	}
	o.admin("GET", "dead-letters", "dead-letters?status=401", "")
	o.admin("GET", "dead-letters/analysis", "dead-letters/analysis?hours=1", "")
	o.admin("POST", "dead-letters/replay", "dead-letters/replay", `{"dry_run":true}`)
	o.admin("POST", "dead-letters/replay", "dead-letters/replay", `{"nonsense":true}`)
	o.admin("POST", "dead-letters/replay", "dead-letters/replay", `{"error":"timeout"}`)
	started, _ := o.admin("POST", "dead-letters/replay", "dead-letters/replay", `{"rate":0.01}`)
	id, _ := started["id"].(string)
	o.admin("GET", "dead-letters/replays", "dead-letters/replays", "")
	for _, id := range []string{id, "nobody"} {
		o.admin("GET", "dead-letters/replays/{id}", "dead-letters/replays/"+id, "")
		o.admin("DELETE", "dead-letters/replays/{id}", "dead-letters/replays/"+id, "")
	}
	o.admin("POST", "dead-letters/purge", "dead-letters/purge", `{"dry_run":true}`)
	o.admin("POST", "dead-letters/purge", "dead-letters/purge", `{}`)
}

// notSeen are answers that need a broken disk, a full spool or a token, which other tests bring about.
var notSeen = regexp.MustCompile(` (default|401|405|503|409)$`)

// everythingSeen: each answer of the document was given, but for those that a well Postern does not give; those share
// their schemas with others.
func (o *openAPI) everythingSeen() {
	paths, _ := o.at("paths")
	for path, item := range paths.(map[string]any) {
		for method := range item.(map[string]any) {
			if method == "parameters" || method == "servers" {
				continue
			}
			responses, _ := o.at("paths", path, method, "responses")
			for code := range responses.(map[string]any) {
				key := method + " " + path + " " + code
				ingest := !strings.HasPrefix(path, "/api/") && method == "post" && path != "/{target}"                                                              // the same answers as that
				if !o.seen[key] && !notSeen.MatchString(key) && !(ingest && code != "202") && key != "post /{target} 404" && key != "post /api/v1/sync/retry 200" { // there is no Postgres
					o.t.Errorf("%s was not seen", key)
				}
			}
		}
	}
}

// pattern finds routes where the admin handlers register them.
var pattern = regexp.MustCompile(`Handle(?:Func)?\("(GET|POST|PUT|DELETE|PATCH) ("\+api\+")?(/?[a-z][^"]*)"`)

// Every route that the handlers have is in the document, and no other.
func TestOpenAPIHasEveryRoute(t *testing.T) {
	want := map[string]bool{"get /api/v1/endpoints/{name}": true, "get /api/v1/endpoints/{name}/latency": true, "post /{target}": true, "post /to/{endpoint}": true, "post /": true}
	for _, act := range []string{"pause", "resume", "reset"} {
		want["post /api/v1/endpoints/{name}/"+act] = true
	}
	files, err := filepath.Glob("../admin/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		for _, m := range pattern.FindAllStringSubmatch(string(text), -1) {
			path := m[3]
			if m[2] != "" {
				path = "/api/v1/" + path
			}
			want[strings.ToLower(m[1])+" "+path] = true
		}
	}
	if len(want) < 25 {
		t.Fatalf("only %d routes were found: look at pattern", len(want))
	}
	paths, _ := readOpenAPI(t).at("paths")
	for path, item := range paths.(map[string]any) {
		for method := range item.(map[string]any) {
			if key := method + " " + path; method != "parameters" && method != "servers" && !want[key] {
				t.Errorf("%s is in docs/openapi.yaml, and no handler has it", key)
			} else {
				delete(want, key)
			}
		}
	}
	for key := range want {
		t.Errorf("%s is not in docs/openapi.yaml", key)
	}
}

// A comma in a sentence that is not quoted would make a key without a value of what follows it.
func TestOpenAPIHasNoKeyWithoutValue(t *testing.T) {
	var walk func(path string, node any)
	walk = func(path string, node any) {
		switch node := node.(type) {
		case map[string]any:
			for key, value := range node {
				if value == nil {
					t.Errorf("%s/%s has no value", path, key)
				}
				walk(path+"/"+key, value)
			}
		case []any:
			for _, value := range node {
				walk(path, value)
			}
		}
	}
	walk("", readOpenAPI(t).doc)
}
