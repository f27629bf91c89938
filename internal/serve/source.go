package serve

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/gate"
	"gatewright.dev/gatewright/internal/inference"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/policy"
	"gatewright.dev/gatewright/internal/policy/effects"
)

// source builds snapshots from a folder of manifests, whole and off the request path.
type source struct {
	folder string
	gate   *gate.Gate
	log    *slog.Logger
	// reloads are counted.
	reloads *reloadMetrics
	// deciders of the snapshot in force, by name.
	deciders map[string]keptDecider
	// failuresToOpen is how many failures in a row keep calls from a decider; 0 is the default of the guard.
	failuresToOpen int
	// given, if set, gives deciders in place of those that manifests are about.
	given func(m *v1alpha1.DeciderModel) inference.Decider
	// generations count the changes of each policy since this process began, as an API server does.
	generations map[string]generation

	// llama says with what deciders of runtime LlamaCpp are run. candidates are their processes, by name, that are to take
	// the place of others once they are ready.
	llama      LlamaConfig
	candidates map[string]*process
	// shared are processes that others started and end.
	shared  *Processes
	ending  sync.WaitGroup
	closing chan struct{}
}

// generation is how often a policy was changed, and what it was last.
type generation struct {
	number int64
	spec   [sha256.Size]byte
}

// generation numbers a policy: one more than before when its spec is another.
func (s *source) generation(kind, namespace, name string, spec any) int64 {
	key := kind + "/" + namespace + "/" + name
	data, err := json.Marshal(spec)
	if err != nil {
		data = nil // cannot be: the spec was just read from JSON; a number too few only makes a record less exact
	}
	last, sum := s.generations[key], sha256.Sum256(data)
	if last.number == 0 || last.spec != sum {
		last = generation{last.number + 1, sum}
		s.generations[key] = last
	}
	return last.number
}

func newSource(folder string, g *gate.Gate, log *slog.Logger) *source {
	return &source{
		folder: folder, gate: g, log: log, reloads: newReloadMetrics(), generations: map[string]generation{},
		candidates: map[string]*process{}, closing: make(chan struct{}),
	}
}

// load puts the folder in force, and notes whether it could.
func (s *source) load() error {
	err := s.read()
	s.reloads.loaded(err)
	return err
}

// read reads the folder and puts it in force. A manifest that is refused blocks the callers it was about and leaves the
// others as they are.
func (s *source) read() error {
	if err := checkFolder(s.folder); err != nil {
		return err
	}
	set, err := manifest.LoadDir(s.folder)
	if err != nil {
		return err
	}
	for _, i := range set.Ignored {
		s.log.Info("manifest ignored", "file", i.File, "document", i.Document, "reason", i.Reason)
	}
	policies := s.policies(set)
	snapshot := &gate.Snapshot{Policies: policy.NewSet(policies), Deciders: map[string]*gate.ServedDecider{}}
	deciders := s.serveDeciders(set.DeciderModels())
	for name, d := range deciders {
		snapshot.Deciders[name] = d.served
	}
	if slices.ContainsFunc(policies, (*policy.Compiled).UsesSQL) {
		if err := effects.Warm(); err != nil {
			return fmt.Errorf("preparing the SQL parsers: %w", err)
		}
	}
	s.gate.SetSnapshot(snapshot)
	s.replace(deciders)
	s.log.Info("policies in force", "policies", len(policies), "deciders", len(snapshot.Deciders), "blocking", countInvalid(policies), "refused", len(set.Problems))
	return nil
}

// keptDecider is a decider with the spec that it was made of. As long as the spec stays, so does the decider: it knows how
// many calls are in flight, and whether its server answers.
type keptDecider struct {
	spec   [sha256.Size]byte
	served *gate.ServedDecider
	guard  *inference.Guard
	// process is where a decider of runtime LlamaCpp runs, nil for others.
	process *process
}

func (s *source) serveDeciders(models []*v1alpha1.DeciderModel) map[string]keptDecider {
	out := make(map[string]keptDecider, len(models))
	for _, m := range models {
		d, err := s.serveOne(m)
		if err != nil {
			s.log.Error("decider cannot be used", "decider", m.Name, "error", err)
			continue
		}
		out[m.Name] = d
	}
	for name := range s.candidates {
		if out[name].process == nil {
			s.dropCandidate(name)
		}
	}
	return out
}

// serveOne keeps a decider whose spec and process stay, and makes a new one otherwise.
func (s *source) serveOne(m *v1alpha1.DeciderModel) (keptDecider, error) {
	spec, err := json.Marshal(m.Spec)
	if err != nil {
		return keptDecider{}, err
	}
	if err := checkServed(&m.Spec); err != nil {
		return keptDecider{}, err
	}
	var p *process
	if m.Spec.Runtime == v1alpha1.RuntimeLlamaCpp {
		if p, err = s.process(m); err != nil {
			return keptDecider{}, err
		}
	}
	sum := sha256.Sum256(spec)
	if kept, ok := s.deciders[m.Name]; ok && kept.spec == sum && kept.process == p {
		return kept, nil
	}
	if s.given != nil {
		if d := s.given(m); d != nil {
			served, guard := serveAs(m, nil, d, s.failuresToOpen)
			return keptDecider{sum, served, guard, nil}, nil
		}
	}
	served, guard, err := serveDecider(m, p, s.failuresToOpen)
	return keptDecider{sum, served, guard, p}, err
}

// replace puts deciders in the place of those before. What is no longer there ends its attempts in the background; calls
// that began with it come to their end.
func (s *source) replace(deciders map[string]keptDecider) {
	for name, next := range s.candidates {
		if deciders[name].process == next {
			delete(s.candidates, name) // it has taken over
		}
	}
	for name, old := range s.deciders {
		if deciders[name].guard != old.guard {
			old.guard.Close()
		}
		if old.process != nil && deciders[name].process != old.process {
			s.retire(old.process)
		}
	}
	s.deciders = deciders
}

// countInvalid counts policies that block their callers because they do not compile.
func countInvalid(policies []*policy.Compiled) int {
	n := 0
	for _, p := range policies {
		if p.Invalid {
			n++
		}
	}
	return n
}

func (s *source) policies(set *manifest.Set) []*policy.Compiled {
	var out []*policy.Compiled
	add := func(p *policy.Compiled, errs field.ErrorList) {
		if err := errs.ToAggregate(); err != nil {
			s.log.Error("policy does not compile and blocks its callers", "policy", p.ID.String(), "error", err)
		}
		if p.NeedsFingerprint() {
			s.log.Warn("policy allows by numbers of an unpinned decider, so its decider is not asked: set deciderRef.fingerprint", "policy", p.ID.String())
		}
		out = append(out, p)
	}
	for _, p := range set.ToolPolicies() {
		p.Generation = s.generation(v1alpha1.KindToolPolicy, p.Namespace, p.Name, &p.Spec)
		add(policy.Compile(p))
	}
	for _, p := range set.ClusterToolPolicies() {
		p.Generation = s.generation(v1alpha1.KindClusterToolPolicy, "", p.Name, &p.Spec)
		add(policy.CompileCluster(p))
	}
	for _, p := range set.Problems {
		s.log.Error("manifest refused", "file", p.File, "error", p.Err)
		if !p.Scope.Nobody {
			id := policy.PolicyID{Kind: p.Kind, Namespace: p.Namespace, Name: p.Name}
			out = append(out, policy.Invalid(id, p.Scope.Namespaces, p.Scope.Subjects))
		}
	}
	return out
}

// openWatcher watches the folder. Nil: it cannot be, and is only looked at in turn.
func (s *source) openWatcher() *fsnotify.Watcher {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		s.log.Warn("folder cannot be watched: changes are seen a little later", "error", err)
		return nil
	}
	s.watchFolders(w)
	return w
}

// watch reads the folder again when something in it has changed since it had this stamp.
func (s *source) watch(ctx context.Context, w *fsnotify.Watcher, seen string) {
	var events chan fsnotify.Event
	var failures chan error
	if w != nil {
		events, failures = w.Events, w.Errors
	}
	due := newSettling()
	// A folder that is taken away and put back ends its watch without a word, so what is there is also looked at in turn.
	turn := time.NewTicker(lookEvery)
	defer turn.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-events:
			due.changed()
		case <-turn.C:
			now := s.stamp()
			if now != seen || s.candidateReady() {
				seen = now
				due.changed()
			}
		case err := <-failures:
			s.log.Error("watching manifests", "error", err)
			due.changed() // events may have been lost
		case <-due.quiet.C:
			seen = s.readAgain(w, due)
		case <-due.overdue.C:
			seen = s.readAgain(w, due)
		}
	}
}

// readAgain puts what is in the folder now in force, and returns the stamp that it had before it was read.
func (s *source) readAgain(w *fsnotify.Watcher, due *settling) (seen string) {
	due.done()
	if w != nil {
		s.watchFolders(w) // before reading: a new folder may be written to meanwhile
	}
	seen = s.stamp()
	if err := s.load(); err != nil {
		s.log.Error("manifests could not be read, the policies in force stay", "error", err)
	}
	return seen
}

// settling says when a change is read: when the folder is quiet, or at last when the change has waited long enough.
type settling struct {
	quiet, overdue *time.Timer
	isWaiting      bool
}

func newSettling() *settling {
	d := &settling{quiet: time.NewTimer(settle), overdue: time.NewTimer(longestSettle)}
	d.done()
	return d
}

func (d *settling) changed() {
	d.quiet.Reset(settle)
	if !d.isWaiting {
		d.isWaiting = true
		d.overdue.Reset(longestSettle)
	}
}

func (d *settling) done() {
	d.quiet.Stop()
	d.overdue.Stop()
	d.isWaiting = false
}

// root ends in a slash, so that a folder that is itself a link, as a mount may be, is walked and not only looked at.
func (s *source) root() string {
	return strings.TrimSuffix(s.folder, string(filepath.Separator)) + string(filepath.Separator)
}

// lookEvery is how often the folder is looked at without an event.
const lookEvery = 2 * time.Second

// stamp changes when a file of the folder does.
func (s *source) stamp() string {
	h := sha256.New()
	_ = filepath.WalkDir(s.root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			_, _ = fmt.Fprintln(h, path, "unreadable") // load says why
			return nil
		}
		if info, err := os.Stat(path); err == nil {
			_, _ = fmt.Fprintln(h, path, info.Size(), info.ModTime().UnixNano(), d.IsDir())
		}
		return nil
	})
	return string(h.Sum(nil))
}

// watchFolders watches the folder and those below it, new ones too: a watch is for one folder only.
func (s *source) watchFolders(w *fsnotify.Watcher) {
	err := filepath.WalkDir(s.root(), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return w.Add(path)
	})
	if err != nil {
		s.log.Error("folder cannot be watched whole: restart to read changes", "error", err)
	}
}

// close ends everything, and waits until it has ended. Nothing may use the source after that.
func (s *source) close() {
	close(s.closing)
	for name := range s.candidates {
		s.dropCandidate(name)
	}
	s.replace(nil)
	s.ending.Wait()
}
