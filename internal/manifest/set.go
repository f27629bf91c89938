// Package manifest loads manifests of our kinds from files, as an API server would take them: strict decoding,
// defaults, schema and CEL rules. A manifest that is refused is a Problem that says whose calls it was about, so that
// a gate can block these and go on to serve the others.
package manifest

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"gatewright.dev/gatewright/api/v1alpha1"
)

// Limits of what is read.
const (
	// MaxFileBytes bounds one file; an API server takes 3 MiB an object.
	MaxFileBytes = 16 << 20
	// MaxObjectBytes bounds one object: what an API server takes in one request.
	MaxObjectBytes = 3 << 20
)

// Object is one good object and where it stands.
type Object struct {
	File string
	// Document is its place in the file, from 1.
	Document int
	Kind     string
	// Object is one of our kinds, with defaults.
	Object interface {
		runtime.Object
		metav1.Object
	}
}

// Problem is one manifest that is refused, and what could be read of it.
type Problem struct {
	File string
	// Document is its place in the file, from 1; 0 if the file as a whole could not be read.
	Document int
	// Kind, Namespace and Name are empty where they could not be read. A ToolPolicy without a namespace is in default.
	Kind, Namespace, Name string
	// Scope says whose calls the manifest was about.
	Scope Scope
	// Err says what is wrong, field by field, and what to do.
	Err error
}

// Scope says whose calls a refused manifest was about. What could not be read for certain counts as everybody.
type Scope struct {
	// Nobody is true for kinds that select no caller, such as a DeciderModel.
	Nobody bool
	// Namespaces that it was about. Empty: all.
	Namespaces []string
	// Subjects are the service accounts in these namespaces that it was about. Empty: all.
	Subjects []string
}

// Covers says whether the calls of this service account are in the scope.
func (s Scope) Covers(namespace, serviceAccount string) bool {
	return !s.Nobody &&
		(len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, namespace)) &&
		(len(s.Subjects) == 0 || slices.Contains(s.Subjects, serviceAccount))
}

// Error names file, object, field, value and remedy.
func (p Problem) Error() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Document > 1 {
		fmt.Fprintf(&b, " (document %d)", p.Document)
	}
	b.WriteString(": ")
	if id := identity(p.Kind, p.Namespace, p.Name); id != "" {
		b.WriteString(id + ": ")
	}
	b.WriteString(p.Err.Error())
	return b.String()
}

// Unwrap gives what is wrong.
func (p Problem) Unwrap() error { return p.Err }

// Ignored is a document or file that was left alone, and why.
type Ignored struct {
	File     string
	Document int
	Reason   string
}

// Set is what a folder or file holds, in the order of file names.
type Set struct {
	Objects  []Object
	Problems []Problem
	Ignored  []Ignored
}

// Err joins the problems; nil if there are none.
func (s *Set) Err() error {
	errs := make([]error, len(s.Problems))
	for i, p := range s.Problems {
		errs[i] = p
	}
	return errors.Join(errs...)
}

// ToolPolicies lists the good objects of that kind.
func (s *Set) ToolPolicies() []*v1alpha1.ToolPolicy { return of[*v1alpha1.ToolPolicy](s) }

// ClusterToolPolicies lists the good objects of that kind.
func (s *Set) ClusterToolPolicies() []*v1alpha1.ClusterToolPolicy {
	return of[*v1alpha1.ClusterToolPolicy](s)
}

// DeciderModels lists the good objects of that kind.
func (s *Set) DeciderModels() []*v1alpha1.DeciderModel { return of[*v1alpha1.DeciderModel](s) }

// ToolApprovals lists the good objects of that kind.
func (s *Set) ToolApprovals() []*v1alpha1.ToolApproval { return of[*v1alpha1.ToolApproval](s) }

// DeciderEvaluations lists the good objects of that kind.
func (s *Set) DeciderEvaluations() []*v1alpha1.DeciderEvaluation {
	return of[*v1alpha1.DeciderEvaluation](s)
}

func of[T any](s *Set) []T {
	var found []T
	for _, o := range s.Objects {
		if t, ok := o.Object.(T); ok {
			found = append(found, t)
		}
	}
	return found
}

// identity is kind, namespace and name as people write them.
func identity(kind, namespace, name string) string {
	if namespace != "" && name != "" {
		name = namespace + "/" + name
	}
	return strings.TrimSpace(kind + " " + name)
}

// refuseDuplicates takes out all objects that share kind, namespace and name. Which of them was meant is not known, so
// none of them holds.
func (s *Set) refuseDuplicates() {
	places := map[string][]string{}
	key := func(o Object) string { return identity(o.Kind, o.Object.GetNamespace(), o.Object.GetName()) }
	for _, o := range s.Objects {
		places[key(o)] = append(places[key(o)], fmt.Sprintf("%s (document %d)", o.File, o.Document))
	}
	var good []Object
	for _, o := range s.Objects {
		at := places[key(o)]
		if len(at) == 1 {
			good = append(good, o)
			continue
		}
		s.Problems = append(s.Problems, Problem{
			File: o.File, Document: o.Document, Kind: o.Kind, Namespace: o.Object.GetNamespace(), Name: o.Object.GetName(),
			Scope: scopeOfObject(o.Object),
			Err:   fmt.Errorf("metadata.name: %q is there %d times, in %s: none of them holds; keep one", o.Object.GetName(), len(at), strings.Join(at, " and ")),
		})
	}
	s.Objects = good
}
