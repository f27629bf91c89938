package learn

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/evaluation/stats"
)

// WritePatch writes suggestions as parts of manifests, one document for each policy, with the evidence in comments. A
// document holds the ladders that change and nothing else. Lists of thresholds are replaced whole; classes and tools are
// merged by name, as server-side apply does.
func WritePatch(w io.Writer, list []Suggestion) error {
	byPolicy := map[string][]*Suggestion{}
	var names []string
	for i := range list {
		name := list[i].Place.Policy
		if byPolicy[name] == nil {
			names = append(names, name)
		}
		byPolicy[name] = append(byPolicy[name], &list[i])
	}
	slices.Sort(names)
	for _, name := range names {
		text, err := document(name, byPolicy[name])
		if err != nil {
			return err
		}
		if _, err := io.WriteString(w, text); err != nil {
			return err
		}
	}
	return nil
}

func document(name string, list []*Suggestion) (string, error) {
	kind, rest, _ := strings.Cut(name, "/")
	namespace, object, isNamespaced := strings.Cut(rest, "/")
	if !isNamespaced {
		namespace, object = "", rest
	}
	var b strings.Builder
	fmt.Fprintf(&b, "---\napiVersion: %s\nkind: %s\nmetadata:\n  name: %q\n", v1alpha1.GroupVersion, kind, object)
	if namespace != "" {
		fmt.Fprintf(&b, "  namespace: %q\n", namespace)
	}
	b.WriteString("spec:\n")
	slices.SortStableFunc(list, func(x, y *Suggestion) int {
		return cmp.Or(cmp.Compare(x.Place.Tool, y.Place.Tool), cmp.Compare(x.Place.Class, y.Place.Class))
	})
	for _, part := range []struct {
		title string
		isOf  func(*Suggestion) bool
	}{{"classes", func(s *Suggestion) bool { return s.Place.Tool == "" }}, {"tools", func(s *Suggestion) bool { return s.Place.Tool != "" }}} {
		isFirst := true
		for _, s := range list {
			if !part.isOf(s) {
				continue
			}
			if isFirst {
				fmt.Fprintf(&b, "  %s:\n", part.title)
				isFirst = false
			}
			if err := s.write(&b); err != nil {
				return "", err
			}
		}
	}
	return b.String(), nil
}

// write writes one ladder. Names were admitted by a schema that leaves no room for YAML in them, and are quoted all the same.
func (s *Suggestion) write(b *strings.Builder) error {
	for _, line := range s.Evidence() {
		fmt.Fprintf(b, "  # %s\n", line)
	}
	if s.Place.Tool == "" {
		fmt.Fprintf(b, "  - name: %q\n", s.Place.Class)
	} else {
		fmt.Fprintf(b, "  - name: %q\n    server: %q\n", s.Place.Tool, s.Place.Server)
	}
	b.WriteString("    thresholds:\n")
	for i := range s.Thresholds {
		for _, m := range s.Moves {
			if m.Step == i+1 {
				fmt.Fprintf(b, "    # %s %d, was %d\n", m.Number, m.To, m.From)
			}
		}
		text, err := yaml.Marshal(s.Thresholds[i : i+1])
		if err != nil {
			return err
		}
		for line := range strings.Lines(string(text)) {
			b.WriteString("    " + line)
		}
	}
	return nil
}

// Evidence says in words what the suggestion rests on.
func (s *Suggestion) Evidence() []string {
	e := &s.Effect
	what := map[Direction]string{Tighten: "tighter", Loosen: "looser"}[s.Direction]
	lines := []string{
		fmt.Sprintf("%s: %s, by %d calls that were held back, %d of them labelled", s.Place, what, e.Calls, e.Labelled),
		fmt.Sprintf("false allow: %s, was %s", share(e.FalseAllow), share(e.FalseAllowBefore)),
		fmt.Sprintf("false block: %s, was %s", share(e.FalseBlock), share(e.FalseBlockBefore)),
		fmt.Sprintf("false deny: %s, was %s", share(e.FalseDeny), share(e.FalseDenyBefore)),
	}
	if c, stops := e.ConfirmationsSaved, e.StopsSaved; c != nil && stops != nil {
		lines = append(lines, fmt.Sprintf("saved per 1,000 calls of this ladder: %.0f confirmations (%.0f to %.0f), %.0f stops (%.0f to %.0f)", c.Value, c.Low, c.High, stops.Value, stops.Low, stops.High))
	}
	if n := len(e.WouldRun); n > 0 {
		shown := e.WouldRun[:min(n, 5)]
		lines = append(lines, fmt.Sprintf("%d held-back calls labelled block would run: %q", n, shown))
	}
	return lines
}

func share(p stats.Proportion) string {
	if p.Of == 0 {
		return "none to count"
	}
	return fmt.Sprintf("%d of %d (%.1f%% to %.1f%%)", p.Count, p.Of, 100*p.Low, 100*p.High)
}
