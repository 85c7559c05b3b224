// Package manifests holds the manifests of examples/ to their published schemas: Kubernetes' own types, read strictly, and
// the Compose specification. It is a module of its own, so that Postern itself depends on none of them.
package manifests

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kinds are those that the examples use.
var kinds = map[string]func() any{
	"v1/Service":                         func() any { return &corev1.Service{} },
	"apps/v1/StatefulSet":                func() any { return &appsv1.StatefulSet{} },
	"networking.k8s.io/v1/NetworkPolicy": func() any { return &networkingv1.NetworkPolicy{} },
}

// read decodes every document of a file; a key that there is not, or a wrong type, fails the test.
func read(t *testing.T, name string) (all []any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../kubernetes", name))
	if err != nil {
		t.Fatal(err)
	}
	for _, document := range bytes.Split(text, []byte("\n---\n")) {
		var meta metav1.TypeMeta
		if err := yaml.Unmarshal(document, &meta); err != nil {
			t.Fatal(err)
		}
		make, ok := kinds[meta.APIVersion+"/"+meta.Kind]
		if !ok {
			t.Fatalf("%s: %s/%s is not in the table kinds", name, meta.APIVersion, meta.Kind)
		}
		object := make()
		if err := yaml.UnmarshalStrict(document, object); err != nil {
			t.Errorf("%s: %s: %v", name, meta.Kind, err)
		}
		all = append(all, object)
	}
	return all
}

func TestKubernetes(t *testing.T) {
	app := read(t, "app.yaml")
	read(t, "networkpolicy.yaml")
	set := app[1].(*appsv1.StatefulSet)
	pod := set.Spec.Template.Spec
	sidecar := pod.InitContainers[0]
	if sidecar.RestartPolicy == nil || *sidecar.RestartPolicy != corev1.ContainerRestartPolicyAlways {
		t.Error("postern is no native sidecar")
	}
	volumes := map[string]bool{set.Spec.VolumeClaimTemplates[0].Name: true}
	for _, v := range pod.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range sidecar.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("there is no volume %s", m.Name)
		}
	}
	ports := map[string]bool{}
	for _, p := range sidecar.Ports {
		ports[p.Name] = true
	}
	for name, probe := range map[string]*corev1.Probe{"startup": sidecar.StartupProbe, "liveness": sidecar.LivenessProbe, "readiness": sidecar.ReadinessProbe} {
		if probe == nil || probe.HTTPGet == nil || !ports[probe.HTTPGet.Port.StrVal] {
			t.Errorf("%s: %+v", name, probe)
		}
	}
	for _, c := range append(pod.InitContainers, pod.Containers...) {
		if s := c.SecurityContext; s == nil || *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: %+v", c.Name, c)
		}
	}
}

func TestCompose(t *testing.T) {
	file := "../compose/docker-compose.yaml"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir: "../compose", ConfigFiles: []types.ConfigFile{{Filename: file, Content: text}},
	}, func(o *loader.Options) { o.SetProjectName("example", true) })
	if err != nil {
		t.Fatal(err)
	}
	postern := project.Services["postern"]
	if postern.NetworkMode != "service:app" || !postern.ReadOnly || len(postern.Volumes) != 2 || postern.HealthCheck == nil {
		t.Errorf("%+v", postern)
	}
	if _, ok := project.Volumes[postern.Volumes[0].Source]; !ok {
		t.Errorf("there is no volume %s", postern.Volumes[0].Source)
	}
}
