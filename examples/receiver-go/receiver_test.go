package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"postern/proxy/signing"
)

const (
	newSecret = "whsec_bmV3IHNlY3JldCBvZiB0aGUgdGVzdA=="
	oldSecret = "whsec_b2xkIHNlY3JldCBvZiB0aGUgdGVzdA=="
)

// request is a delivery as Postern makes it, signed with the given secrets.
func request(t *testing.T, url, id, body string, at time.Time, secrets ...string) *http.Request {
	t.Helper()
	c := signing.Config{Scheme: signing.Standard}
	for _, text := range secrets {
		secret, err := signing.ParseSecret(signing.Standard, text)
		if err != nil {
			t.Fatal(err)
		}
		c.Secrets = append(c.Secrets, secret)
	}
	signer, err := signing.New(c)
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequest("POST", url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for _, field := range signer.Sign(id, at, []byte(body)) {
		r.Header.Set(field.Name, field.Value)
	}
	return r
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// open is a receiver on a journal, with both secrets.
func open(t *testing.T, journal string) (http.Handler, *book) {
	t.Helper()
	secrets, err := readSecrets(write(t, "secrets", newSecret+"\n"+oldSecret+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := openBook(journal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.close)
	return newHandler(secrets, b), b
}

func status(h http.Handler, r *http.Request) int {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Code
}

func TestAnswers(t *testing.T) {
	h, b := open(t, filepath.Join(t.TempDir(), "journal"))
	now := time.Now()
	for _, tc := range []struct {
		name string
		r    *http.Request
		want int
	}{
		{"an order", request(t, "/hook", "evt_1", `{"amount":5}`, now, newSecret), 204},
		{"once more, later", request(t, "/hook", "evt_1", `{"amount":5}`, now.Add(time.Minute), newSecret), 200},
		{"signed with the old secret", request(t, "/hook", "evt_2", `{"amount":7}`, now, oldSecret), 204},
		{"signed with both", request(t, "/hook", "evt_3", `{"amount":1}`, now, newSecret, oldSecret), 204},
		{"signed by a stranger", request(t, "/hook", "evt_4", `{"amount":100}`, now, "whsec_c3RyYW5nZXI="), 401},
		{"captured and kept", request(t, "/hook", "evt_5", `{"amount":100}`, now.Add(-time.Hour), newSecret), 401},
		{"no order", request(t, "/hook", "evt_6", `[]`, now, newSecret), 422},
		{"an order without an amount", request(t, "/hook", "evt_6", `{}`, now, newSecret), 422},
		{"too long", request(t, "/hook", "evt_7", strings.Repeat(" ", maxBody)+`{"amount":100}`, now, newSecret), 413},
		{"not signed", httptest.NewRequest("POST", "/hook", strings.NewReader(`{"amount":100}`)), 401},
	} {
		if got := status(h, tc.r); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
	if orders, total := b.total(); orders != 3 || total != 13 {
		t.Errorf("%d orders, %d in all, want 3 and 13", orders, total)
	}
}

// A captured signature does not carry another ID.
func TestTheIDIsSigned(t *testing.T) {
	h, b := open(t, filepath.Join(t.TempDir(), "journal"))
	r := request(t, "/hook", "evt_1", `{"amount":5}`, time.Now(), newSecret)
	again := r.Clone(t.Context())
	again.Body, _ = r.GetBody()
	again.Header.Set("Webhook-Id", "evt_2")
	if first, second := status(h, r), status(h, again); first != 204 || second != 401 {
		t.Errorf("%d, then %d under another ID", first, second)
	}
	if orders, _ := b.total(); orders != 1 {
		t.Errorf("%d orders", orders)
	}
}

// Many attempts of one event at once are one order.
func TestAtOnce(t *testing.T) {
	h, b := open(t, filepath.Join(t.TempDir(), "journal"))
	var wg sync.WaitGroup
	codes := make(chan int, 20)
	for range cap(codes) {
		r := request(t, "/hook", "evt_1", `{"amount":5}`, time.Now(), newSecret)
		wg.Go(func() { codes <- status(h, r) })
	}
	wg.Wait()
	close(codes)
	created := 0
	for code := range codes {
		if code == 204 {
			created++
		} else if code != 200 {
			t.Errorf("status %d", code)
		}
	}
	if orders, total := b.total(); created != 1 || orders != 1 || total != 5 {
		t.Errorf("booked %d times: %d orders, %d in all", created, orders, total)
	}
}

// What a crash cut short was not answered with yes, and comes again; what is damaged otherwise is not guessed at.
func TestJournal(t *testing.T) {
	path := write(t, "journal", `{"id":"evt_1","amount":5}`+"\n"+`{"id":"evt_2","amo`)
	h, b := open(t, path)
	if orders, total := b.total(); orders != 1 || total != 5 {
		t.Fatalf("%d orders, %d in all", orders, total)
	}
	for _, want := range []int{204, 200} {
		if got := status(h, request(t, "/hook", "evt_2", `{"amount":7}`, time.Now(), newSecret)); got != want {
			t.Errorf("status %d, want %d", got, want)
		}
	}
	text, err := os.ReadFile(path)
	if want := `{"id":"evt_1","amount":5}` + "\n" + `{"id":"evt_2","amount":7}` + "\n"; err != nil || string(text) != want {
		t.Errorf("the journal is %q, %v", text, err)
	}
	if _, err := openBook(write(t, "journal", "{}\nnot an entry\n{}\n")); err == nil {
		t.Error("a damaged journal is opened")
	}
}

// A journal that cannot be written is 503, so that the sender tries again.
func TestFailingJournal(t *testing.T) {
	h, b := open(t, filepath.Join(t.TempDir(), "journal"))
	b.close()
	for range 2 {
		if got := status(h, request(t, "/hook", "evt_1", `{"amount":5}`, time.Now(), newSecret)); got != 503 {
			t.Errorf("status %d, want 503", got)
		}
	}
	if orders, _ := b.total(); orders != 0 {
		t.Error("what could not be written is booked")
	}
}

func TestSecretsThatCannotBe(t *testing.T) {
	for _, text := range []string{"", "\n", "SECRET!\n", newSecret + "\nwhsec_\n"} {
		if secrets, err := readSecrets(write(t, "secrets", text)); err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%q: %d secrets, %v", text, len(secrets), err)
		}
	}
	if err := run("127.0.0.1:0", "absent", "absent"); err == nil {
		t.Error("it runs without secrets")
	}
}

// The program as a user starts it: killed and started again, it knows what it booked.
func TestProgram(t *testing.T) {
	dir := t.TempDir()
	binary := filepath.Join(dir, "receiver")
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	secrets := write(t, "secrets", newSecret+"\n")
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, want := range []int{204, 200} {
		cmd := exec.Command(binary, "-listen", "127.0.0.1:0", "-secrets", secrets, "-journal", filepath.Join(dir, "journal"))
		url := start(t, cmd)
		resp, err := client.Do(request(t, url+"/hook", "evt_1", `{"amount":5}`, time.Now(), newSecret))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("status %d, want %d", resp.StatusCode, want)
		}
		resp, err = client.Get(url + "/total")
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if string(text) != "1 orders, 5 in all\n" {
			t.Errorf("the total is %q", text)
		}
		cmd.Process.Kill()
		cmd.Wait()
	}
}

// start runs the receiver and returns its address.
func start(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	lines.Scan()
	url := regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	if url == "" {
		t.Fatalf("it says %q", lines.Text())
	}
	return url
}
