package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/deciders"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/inference/workload"
	"gatewright.dev/gatewright/internal/served"
)

const (
	// embeddedInFlight is how many calls the embedded judge answers at once: it computes and waits for nothing.
	embeddedInFlight = 256
	// podInFlight is how many requests a gate has at each replica of a decider: one that is worked on and one that waits,
	// so that the fair queue is here.
	podInFlight = 2
	// longestTimeout is the most that a policy may give a decider; the policy's own is the one that counts.
	longestTimeout = 10 * time.Second
	// podMinTimeout is how long a decider pod must have had before a time-out counts against it: it works on one request
	// after another, and a shorter time may have been spent behind another gate's.
	podMinTimeout = time.Second
	podOpenFor    = time.Second
	maxBearer     = 16 << 10
)

// DeciderOptions say how deciders are reached.
type DeciderOptions struct {
	// Namespace is Gatewright's own, where revisions and their Services are.
	Namespace string
	// Pods is the transport to decider pods: it presents the gate's certificate.
	Pods http.RoundTripper
	// Tokens is a folder with the bearer tokens of deciders of runtime External, by workload.TokenFile.
	Tokens string
	Log    *slog.Logger
}

// revision is a revision that calls can be judged with. It is kept as long as it is active or a candidate: it knows how
// many calls are in flight, and whether its server answers.
type revision struct {
	name  string
	made  [sha256.Size]byte // digest of what it was made of
	spec  v1alpha1.DeciderModelSpec
	guard *inference.Guard
	seen  *fingerprinted
	tally *gate.Tally
}

// fingerprinted remembers the fingerprint of the last answer.
type fingerprinted struct {
	inference.Decider
	last atomic.Pointer[string]
}

// Decide implements inference.Decider.
func (f *fingerprinted) Decide(ctx context.Context, r inference.Request) (inference.Result, error) {
	result, err := f.Decider.Decide(ctx, r)
	if err == nil {
		f.last.Store(&result.Fingerprint)
	}
	return result, err
}

func (f *fingerprinted) fingerprint() string {
	if last := f.last.Load(); last != nil {
		return *last
	}
	return ""
}

// placed is a revision in its place, or why there is none.
type placed struct {
	revision *revision
	isOurs   bool // its bytes were checked by Gatewright itself
	name     string
	err      error
}

// places are all deciders of one snapshot.
type places struct {
	active, candidates map[string]placed
}

// hasErrors says whether a decider cannot be used for now.
func (p *places) hasErrors() bool {
	for _, all := range []map[string]placed{p.active, p.candidates} {
		for _, d := range all {
			if d.err != nil {
				return true
			}
		}
	}
	return false
}

// deciderSet makes deciders of what DeciderModels say is active. It is used by one goroutine.
type deciderSet struct {
	options DeciderOptions
	kept    map[string]*revision // by name
	failed  map[string]string    // what was logged last, by revision
}

func newDeciderSet(o DeciderOptions) *deciderSet {
	return &deciderSet{options: o, kept: map[string]*revision{}, failed: map[string]string{}}
}

// place finds a place for all DeciderModels. What is then no longer in use is returned, to be closed once nobody uses it.
func (s *deciderSet) place(models []*v1alpha1.DeciderModel, revisions map[string]*appsv1.ControllerRevision) (*places, []*revision) {
	out := &places{active: map[string]placed{}, candidates: map[string]placed{}}
	used := map[string]*revision{}
	for _, m := range models {
		for _, p := range []struct {
			into map[string]placed
			at   *v1alpha1.DeciderRevision
		}{{out.active, m.Status.Active}, {out.candidates, m.Status.Candidate}} {
			if p.at == nil {
				continue
			}
			d := s.placeOne(m, p.at, revisions[string(p.at.Name)], used)
			p.into[m.Name] = d
		}
	}
	var unused []*revision
	for name, r := range s.kept {
		if used[name] != r {
			unused = append(unused, r)
		}
	}
	s.kept = used
	return out, unused
}

func (s *deciderSet) placeOne(m *v1alpha1.DeciderModel, at *v1alpha1.DeciderRevision, c *appsv1.ControllerRevision, used map[string]*revision) placed {
	name := string(at.Name)
	r, err := s.revision(m, name, c)
	if err != nil {
		s.report(m.Name, name, err)
		return placed{name: name, err: err}
	}
	delete(s.failed, name)
	used[name] = r
	isOurs := r.spec.Runtime == v1alpha1.RuntimeEmbedded // hashed here, before it was read
	if r.spec.Runtime == v1alpha1.RuntimeLlamaCpp {
		isOurs = at.SHA256 != "" && at.SHA256 == r.spec.Artifact.SHA256 // hashed by our server, which holds our certificate
	}
	return placed{revision: r, name: name, isOurs: isOurs}
}

// report logs an error once, and again when it is another.
func (s *deciderSet) report(model, name string, err error) {
	if s.failed[name] == err.Error() {
		return
	}
	s.failed[name] = err.Error()
	s.options.Log.Error("decider cannot be used", "decider", model, "revision", name, "error", err)
}

// revision keeps one that stays as it is, and makes a new one otherwise.
func (s *deciderSet) revision(m *v1alpha1.DeciderModel, name string, c *appsv1.ControllerRevision) (*revision, error) {
	if c == nil {
		return nil, errors.New("its revision is not there")
	}
	if !metav1.IsControlledBy(c, m) {
		return nil, errors.New("its revision belongs to something else")
	}
	read, err := workload.ReadRevision(m, c)
	if err != nil {
		return nil, err
	}
	made, err := digestOf(m.Name, read.Spec, read.Replicas)
	if err != nil {
		return nil, err
	}
	if kept := s.kept[name]; kept != nil && kept.made == made {
		return kept, nil
	}
	decider, err := s.connect(&read)
	if err != nil {
		return nil, err
	}
	seen := &fingerprinted{Decider: decider}
	r := &revision{name: name, made: made, spec: read.Spec, seen: seen, guard: inference.NewGuard(seen, guardOptions(&read)), tally: &gate.Tally{}}
	if e, ok := decider.(interface{ Fingerprint() string }); ok {
		fingerprint := e.Fingerprint()
		seen.last.Store(&fingerprint)
	}
	if kept := s.kept[name]; kept != nil {
		r.tally = kept.tally // only its pods are other ones
	}
	return r, nil
}

func digestOf(parts ...any) ([sha256.Size]byte, error) {
	data, err := json.Marshal(parts)
	return sha256.Sum256(data), err
}

func guardOptions(r *workload.Revision) inference.GuardOptions {
	o := inference.GuardOptions{MaxInFlight: embeddedInFlight, Languages: r.Spec.Languages, Timeout: longestTimeout}
	switch r.Spec.Runtime {
	case v1alpha1.RuntimeLlamaCpp:
		o.MaxInFlight, o.MinTimeout, o.OpenFor = podInFlight*int(max(r.Replicas, 1)), podMinTimeout, podOpenFor
	case v1alpha1.RuntimeContainer:
		o.MaxInFlight, o.OpenFor = int(max(r.Spec.Container.MaxInFlight, 1))*int(max(r.Replicas, 1)), podOpenFor
	case v1alpha1.RuntimeExternal:
		o.MaxInFlight = int(r.Spec.External.MaxInFlight)
	case v1alpha1.RuntimeEmbedded:
	}
	return o
}

func (s *deciderSet) connect(r *workload.Revision) (inference.Decider, error) {
	switch r.Spec.Runtime {
	case v1alpha1.RuntimeEmbedded:
		return deciders.Embedded(&r.Spec)
	case v1alpha1.RuntimeLlamaCpp, v1alpha1.RuntimeContainer:
		return deciders.Pod(&r.Spec, workload.ModelName(r.Model, &r.Spec), workload.URL(s.options.Namespace, r.Name), s.options.Pods)
	case v1alpha1.RuntimeExternal:
		token, err := s.token(r.Spec.External)
		if err != nil {
			return nil, err
		}
		return deciders.External(&r.Spec, token)
	}
	return nil, fmt.Errorf("spec.runtime %s is not known to this gate", r.Spec.Runtime)
}

// token gives the bearer token that a Secret holds for the host of a server, as it is mounted: it may be replaced at any
// time, and is gone when the Secret is released for another host.
func (s *deciderSet) token(x *v1alpha1.ExternalRuntime) (func() string, error) {
	file := workload.TokenFile(x)
	if file == "" {
		return nil, nil
	}
	path := filepath.Join(s.options.Tokens, filepath.Base(file))
	if _, err := readBearer(path); err != nil {
		return nil, fmt.Errorf("spec.external.tokenSecretRef %s: %w", x.TokenSecretRef.Name, err)
	}
	return func() string {
		token, err := readBearer(path)
		if err != nil {
			return "" // the server refuses what has none
		}
		return token
	}, nil
}

func readBearer(path string) (string, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", errors.New("the token is not mounted here yet") // the error would name a path of the image
	}
	data = bytes.TrimSpace(data)
	if len(data) == 0 || len(data) > maxBearer || bytes.ContainsAny(data, "\r\n \t") {
		return "", errors.New("it holds no token of one word")
	}
	return string(data), nil
}

// serve makes the snapshot's deciders.
func (p *places) serve(models []*v1alpha1.DeciderModel) map[string]*gate.ServedDecider {
	out := map[string]*gate.ServedDecider{}
	for _, m := range models {
		active, ok := p.active[m.Name]
		if !ok || active.err != nil {
			continue
		}
		d := &gate.ServedDecider{
			Decider: active.revision.guard, Verified: active.isOurs,
			RequireVerified: m.Spec.RequireVerified != v1alpha1.Optional, Allowed: allowed(m, active.revision),
		}
		if a := active.revision.spec.Artifact; a != nil {
			d.ModelHash = string(a.SHA256)
		}
		if c, ok := p.candidates[m.Name]; ok && c.err == nil && isCompared(m, c.revision) {
			d.Candidate = &gate.Candidate{Revision: c.name, Decider: c.revision.guard, Tally: c.revision.tally}
		}
		out[m.Name] = d
	}
	return out
}

// allowed gives who may refer to a decider whose active revision this is. The spec speaks of what is to come, so what it allows
// by default for a server in the cluster is not taken for one at a URL that is still active: then the list alone counts.
func allowed(m *v1alpha1.DeciderModel, active *revision) func(namespace string) bool {
	a := m.Spec.AllowedNamespaces
	if !leavesSpec(m, active) || a != nil && a.From == v1alpha1.NamespacesListed {
		return m.Spec.AllowsNamespace
	}
	return func(string) bool { return false }
}

// leavesSpec says that a revision sends what it is asked to a URL although the spec has no such server.
func leavesSpec(m *v1alpha1.DeciderModel, r *revision) bool {
	return r.spec.Runtime == v1alpha1.RuntimeExternal && m.Spec.Runtime != v1alpha1.RuntimeExternal
}

// isCompared says whether live calls go to a candidate too: the manager says so once its evaluation has passed, by a result
// that is there and empty, and no longer when enough were compared or it fell back.
func isCompared(m *v1alpha1.DeciderModel, candidate *revision) bool {
	return m.Spec.Rollout != nil && m.Spec.Rollout.Shadow != nil && m.Status.Candidate.IsCompared() && !leavesSpec(m, candidate)
}

// state is what is said of a revision.
func (p placed) state() served.Decider {
	if p.err != nil {
		return served.Decider{Revision: p.name, Error: p.err.Error()}
	}
	out := served.Decider{Revision: p.name, Fingerprint: p.revision.seen.fingerprint(), Verified: p.isOurs, Available: p.revision.guard.Available()}
	if a := p.revision.spec.Artifact; a != nil && p.isOurs {
		out.SHA256 = string(a.SHA256)
	}
	if !out.Available {
		out.Error = "it failed a moment ago and has not been seen well since"
	}
	return out
}
