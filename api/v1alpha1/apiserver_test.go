package v1alpha1_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/config/crd"
	"gatewright.dev/gatewright/internal/kubetest"
)

func TestMain(m *testing.M) { kubetest.Main(m) }

// relaxed is the group of definitions that say what fields there are, as ours do, and not what may stand in them.
const relaxed = "relaxed.gatewright.dev"

// TestNoFieldIsPruned asks the code that an API server runs. Here it is one, with its storage: every field of every kind,
// filled, is written, stored and read back.
func TestEveryFieldComesBackFromAnAPIServer(t *testing.T) {
	s := kubetest.Start(t)
	client, namespace := dynamic.NewForConfigOrDie(s.Config()), s.Namespace(t)
	all := definitions(t)
	for _, d := range all {
		relax(d)
		install(t, client, d)
	}
	for kind, d := range all {
		t.Run(kind, func(t *testing.T) {
			r := resourceOf(client, d, namespace)
			waitFor(t, "the kind is served", func() bool {
				_, err := r.List(t.Context(), metav1.ListOptions{})
				return err == nil
			})
			want := filled(t, kind)
			want.SetAPIVersion(relaxed + "/" + d.Spec.Versions[0].Name)
			want.SetName("full")
			made, err := r.Create(t.Context(), want.DeepCopy(), metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			made.Object["status"] = want.Object["status"]
			if _, err := r.UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
			got, err := r.Get(t.Context(), "full", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{"spec", "status"} {
				if diff := cmp.Diff(want.Object[part], got.Object[part]); diff != "" {
					t.Errorf("%s changed on the way (-want +got):\n%s", part, diff)
				}
			}
		})
	}
}

// The definitions as they are, with the samples: what is stored stands there as it was written, and still does after the
// definitions were changed and applied again.
func TestSamplesComeBackFromAnAPIServerAndOutliveAnUpgrade(t *testing.T) {
	s := kubetest.Start(t)
	client, namespace := dynamic.NewForConfigOrDie(s.Config()), s.Namespace(t)
	samples, err := kubetest.ReadManifests("../../config/samples")
	if err != nil {
		t.Fatal(err)
	}
	samples = append(samples, &unstructured.Unstructured{Object: object(t, "ToolApproval", approvalSpec)}, &unstructured.Unstructured{Object: object(t, "DeciderEvaluation",
		`{deciderRef: {name: d}, caseSet: {sha256: `+digest+`, type: ConfigMap, configMapName: c}}`)})
	resources, kinds := definitions(t), map[string]bool{}
	before := map[*unstructured.Unstructured]*unstructured.Unstructured{}
	of := func(o *unstructured.Unstructured) dynamic.ResourceInterface {
		return resourceOf(client, resources[o.GetKind()], namespace)
	}
	for _, o := range samples {
		if resources[o.GetKind()] == nil {
			continue // a suite, which is no object of an API server
		}
		kinds[o.GetKind()] = true
		o.SetNamespace("")
		if _, err := of(o).Create(t.Context(), o.DeepCopy(), metav1.CreateOptions{}); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			continue
		}
		got, err := of(o).Get(t.Context(), o.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if lost := missing("spec", o.Object["spec"], got.Object["spec"]); len(lost) > 0 {
			t.Errorf("%s %s: lost or changed: %v", o.GetKind(), o.GetName(), lost)
		}
		before[o] = got
	}
	if len(kinds) != len(resources) || len(before) < 14 {
		t.Errorf("%d samples of the kinds %v, want some of each of %d", len(before), kinds, len(resources))
	}
	upgrade(t, client)
	for o, want := range before {
		got, err := of(o).Get(t.Context(), o.GetName(), metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s %s is another one after the upgrade (-want +got):\n%s", o.GetKind(), o.GetName(), diff)
		}
	}
}

const approvalSpec = `{seal: s, call: {id: 00112233445566778899aabbccddeeff, callKey: "sha256:00aa", caller: a/b, tool: t, class: Write, argumentsDigest: "sha256:00aa", arguments: "{}", userTurnsDigest: "sha256:00aa", message: m, confirmReasons: [Irreversible], policyDigest: "sha256:00aa", approvers: {selfApproval: Forbid}, raisedAt: "2026-11-30T11:50:00Z", expiresAt: "2026-11-30T12:00:00Z"}}`

// definitions are the generated ones, as they are installed.
func definitions(t *testing.T) map[string]*apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	files, err := crd.Bases.ReadDir("bases")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]*apiextensionsv1.CustomResourceDefinition{}
	for _, f := range files {
		data, err := crd.Bases.ReadFile("bases/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(data, d); err != nil {
			t.Fatal(err)
		}
		out[d.Spec.Names.Kind] = d
	}
	if len(out) != len(types) {
		t.Fatalf("%d definitions for %d kinds", len(out), len(types))
	}
	return out
}

func relax(d *apiextensionsv1.CustomResourceDefinition) {
	d.Spec.Group, d.Name = relaxed, d.Spec.Names.Plural+"."+relaxed
	d.Spec.Names.ShortNames, d.Spec.Names.Categories = nil, nil
	for i := range d.Spec.Versions {
		d.Spec.Versions[i].AdditionalPrinterColumns = nil
		relaxSchema(d.Spec.Versions[i].Schema.OpenAPIV3Schema)
	}
}

func relaxSchema(p *apiextensionsv1.JSONSchemaProps) {
	p.XValidations, p.Pattern, p.Enum = nil, "", nil
	p.MinLength, p.MaxLength, p.Minimum, p.Maximum, p.MinItems, p.MinProperties = nil, nil, nil, nil, nil, nil
	p.OneOf, p.AnyOf, p.AllOf, p.Not = nil, nil, nil, nil
	if p.XIntOrString {
		p.AnyOf = []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}
	}
	for name, sub := range p.Properties {
		relaxSchema(&sub)
		p.Properties[name] = sub
	}
	if p.Items != nil && p.Items.Schema != nil {
		relaxSchema(p.Items.Schema)
	}
	if p.AdditionalProperties != nil && p.AdditionalProperties.Schema != nil {
		relaxSchema(p.AdditionalProperties.Schema)
	}
}

// filled is an object in which every field of spec and status has a value.
func filled(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	full := types[kind]()
	v := reflect.ValueOf(full).Elem()
	fill(t, v.FieldByName("Spec"), "spec")
	fill(t, v.FieldByName("Status"), "status")
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(full)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: tree}
	o.SetKind(kind)
	return o
}

func resourceOf(client dynamic.Interface, d *apiextensionsv1.CustomResourceDefinition, namespace string) dynamic.ResourceInterface {
	r := client.Resource(schema.GroupVersionResource{Group: d.Spec.Group, Version: d.Spec.Versions[0].Name, Resource: d.Spec.Names.Plural})
	if d.Spec.Scope == apiextensionsv1.NamespaceScoped {
		return r.Namespace(namespace)
	}
	return r
}

// install applies a definition.
func install(t *testing.T, client dynamic.Interface, d *apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(d)
	if err != nil {
		t.Fatal(err)
	}
	delete(tree, "status")
	r := client.Resource(apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions"))
	o := metav1.ApplyOptions{FieldManager: "test", Force: true}
	if _, err := r.Apply(t.Context(), d.Name, &unstructured.Unstructured{Object: tree}, o); err != nil {
		t.Fatal(err)
	}
}

// upgrade applies the definitions again, each with a field more than before.
func upgrade(t *testing.T, client dynamic.Interface) {
	t.Helper()
	for _, d := range definitions(t) {
		spec := d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
		spec.Properties["addedLater"] = apiextensionsv1.JSONSchemaProps{Type: "string", MaxLength: new(int64(10))}
		d.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = spec
		install(t, client, d)
	}
	for kind, d := range definitions(t) {
		r := resourceOf(client, d, "default")
		waitFor(t, "the definition with another field is in force", func() bool {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"addedLater": strings.Repeat("long", 10)}}}
			o.SetAPIVersion(d.Spec.Group + "/" + d.Spec.Versions[0].Name)
			o.SetKind(kind)
			o.SetName("later")
			_, err := r.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err != nil && strings.Contains(err.Error(), "addedLater")
		})
	}
}

func waitFor(t *testing.T, what string, is func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if is() {
			return
		}
	}
	t.Fatalf("not so: %s", what)
}

// missing names what was given and is not there as it was. What was added by defaults is not named.
func missing(path string, want, got any) []string {
	switch want := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		var lost []string
		for k, v := range want {
			if v == nil {
				continue // a null counts as left out
			}
			lost = append(lost, missing(path+"."+k, v, g[k])...)
		}
		return lost
	case []any:
		g, _ := got.([]any)
		if len(g) != len(want) {
			return []string{path}
		}
		var lost []string
		for i := range want {
			lost = append(lost, missing(path+"[]", want[i], g[i])...)
		}
		return lost
	}
	if !cmp.Equal(want, got) {
		return []string{path}
	}
	return nil
}
