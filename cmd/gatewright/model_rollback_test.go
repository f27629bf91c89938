package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/names"
)

func TestRollbackAsksForARevisionOfTheHistory(t *testing.T) {
	tests := map[string]struct {
		options rollbackOptions
		model   string
		before  string // the annotation
		want    string // the annotation afterwards
		out     string
		err     string
	}{
		"the one before":                 {model: "judge", want: "judge-b", out: "DeciderModel judge is to serve revision judge-b"},
		"one that is named":              {options: rollbackOptions{to: "judge-a"}, model: "judge", want: "judge-a", out: "revision judge-a"},
		"the one that serves":            {options: rollbackOptions{to: "judge-c"}, model: "judge", want: "judge-c", out: "revision judge-c"},
		"one that nobody knows":          {options: rollbackOptions{to: "judge-x"}, model: "judge", err: "revision judge-x is not in the history: judge-b, judge-a"},
		"a model that is not there":      {model: "other", err: "reading DeciderModel other"},
		"a model without a history":      {model: "new", err: "no revision served before this one"},
		"following the spec again":       {options: rollbackOptions{clear: true}, model: "judge", before: "judge-a", out: "follows its spec again"},
		"a list changes nothing":         {options: rollbackOptions{list: true}, model: "judge", before: "judge-a", want: "judge-a", out: "judge-c   active"},
		"two things at once":             {options: rollbackOptions{clear: true, to: "judge-a"}, model: "judge", err: "--to, --clear and --list exclude each other"},
		"a list that is to do something": {options: rollbackOptions{list: true, clear: true}, model: "judge", err: "--to, --clear and --list exclude each other"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			scheme := runtime.NewScheme()
			if err := v1alpha1.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			m := &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "judge"}}
			if test.before != "" {
				m.Annotations = map[string]string{names.RollbackAnnotation: test.before}
			}
			m.Status.Active = &v1alpha1.DeciderRevision{Name: "judge-c", Fingerprint: "f"}
			m.Status.History = []v1alpha1.DeciderRevision{{Name: "judge-b"}, {Name: "judge-a"}}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(m, &v1alpha1.DeciderModel{ObjectMeta: metav1.ObjectMeta{Name: "new"}}).Build()
			var out strings.Builder
			err := test.options.run(t.Context(), c, test.model, &out)
			if (err == nil) != (test.err == "") || err != nil && !strings.HasPrefix(err.Error(), test.err) {
				t.Fatalf("%v, want %q", err, test.err)
			}
			if !strings.Contains(out.String(), test.out) {
				t.Errorf("it says %q, want %q", out.String(), test.out)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Name: "judge"}, m); err != nil {
				t.Fatal(err)
			}
			if got := m.Annotations[names.RollbackAnnotation]; err == nil && got != test.want {
				t.Errorf("asks for %q, want %q", got, test.want)
			}
		})
	}
}

func TestRollbackNeedsACluster(t *testing.T) {
	const wantStart = "finding the API server: "
	absent := filepath.Join(t.TempDir(), "kubeconfig")
	tests := map[string]struct{ options rollbackOptions }{
		"no file that names an API server":      {},
		"a file that is named and is not there": {options: rollbackOptions{kubeconfig: absent}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Setenv("KUBECONFIG", absent)
			t.Setenv("KUBERNETES_SERVICE_HOST", "")
			_, err := test.options.connect()
			var e exit
			if !errors.As(err, &e) || e.code != exitUsage || !strings.HasPrefix(e.message, wantStart) {
				t.Fatalf("%v, want exit status %d and %q", err, exitUsage, wantStart)
			}
		})
	}
}
