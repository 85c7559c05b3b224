package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// secretPath is a file that only the place where an example runs has.
var secretPath = regexp.MustCompile(`file:(/run/secrets|/etc/postern-secrets)/[a-z-]+`)

// Every configuration in examples/ is one that `postern config check` takes without a warning.
func TestExampleConfigurations(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte(whsec([]byte("a secret"))), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(examples + "/*/postern.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v: those for compose, kubernetes and systemd are wanted", files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		config := filepath.Join(dir, "postern.yaml")
		if err := os.WriteFile(config, secretPath.ReplaceAll(text, []byte("file:"+secret)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), binary, "config", "check", "--config", config).CombinedOutput(); err != nil || strings.Contains(string(out), "warning") {
			t.Errorf("%s: %v\n%s", file, err, out)
		}
	}
}

// TestSystemdUnit: systemd itself has nothing to say about the unit, where its tool is there; its settings are there in
// any case.
func TestSystemdUnit(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(examples, "systemd", "postern.service"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"ExecReload=/bin/kill -HUP $MAINPID", "DynamicUser=yes", "ProtectSystem=strict", "StateDirectory=postern", "RestartPreventExitStatus=2"} {
		if !strings.Contains(string(text), "\n"+want+"\n") {
			t.Errorf("the unit has no %s", want)
		}
	}
	tool, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Log("systemd-analyze is not on this machine: the unit is checked as text alone")
		return
	}
	unit := filepath.Join(t.TempDir(), "postern.service")
	// Neither the binary nor the man page is where a package would have put them.
	here := strings.NewReplacer("/usr/local/bin/postern", binary, "Documentation=man:postern(1)\n", "").Replace(string(text))
	if err := os.WriteFile(unit, []byte(here), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), tool, "verify", "--man=no", unit).CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "postern.service") { // other units of this machine are none of our business
			t.Error(line)
		}
	}
	if err != nil && len(out) == 0 {
		t.Error(err)
	}
}

// What the kustomization names is there; where kubectl is, it builds.
func TestKustomization(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(examples, "kubernetes")
	text, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`[a-z]+\.yaml`).FindAllString(string(text), -1)
	if len(names) < 3 {
		t.Fatalf("only %q", names)
	}
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("kubectl is not on this machine: the kustomization is checked as text alone")
		return
	}
	out, err := exec.CommandContext(t.Context(), kubectl, "kustomize", dir).CombinedOutput()
	for _, want := range []string{"kind: StatefulSet", "kind: NetworkPolicy", "kind: ConfigMap", "name: postern-", "image: registry.example/postern:1.0"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v, or no %q:\n%s", err, want, out)
			break
		}
	}
}
