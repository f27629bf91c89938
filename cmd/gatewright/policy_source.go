package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/evaluation/local"
)

// policySource is where a command takes the policies of its own gates from.
type policySource struct {
	manifests              string
	forCases               bool
	ladder, decider, print string
}

func (s *policySource) bind(c *cobra.Command, manifests string) {
	f := c.Flags()
	f.StringVar(&s.manifests, "manifests", "", manifests)
	f.BoolVar(&s.forCases, "policy-for-cases", false, "list the tools of the cases in a policy of their own; --manifests then only gives deciders")
	f.StringVar(&s.ladder, "ladder", "", "with --policy-for-cases: file with a ToolPolicy that gives classes, questions and decider; by default matches_request alone decides")
	f.StringVar(&s.decider, "decider", "", "with --policy-for-cases: DeciderModel to ask; the ladder's own by default, else the embedded one")
	f.StringVar(&s.print, "fingerprint", "", "with --policy-for-cases: fingerprint of the decider; known for the embedded one")
}

// validate says whether the flags name either policies or, by its address, a gate that has some.
func (s *policySource) validate(url, purpose string) error {
	switch {
	case (url != "") == (s.manifests != "" || s.forCases):
		return errors.New("name what to " + purpose + ": --manifests, --policy-for-cases or --url")
	case !s.forCases && (s.ladder != "" || s.decider != "" || s.print != ""):
		return errors.New("--ladder, --decider and --fingerprint are for --policy-for-cases")
	}
	return nil
}

// load reads the policies, or makes those for the cases, for a caller as NAMESPACE/NAME.
func (s *policySource) load(cases []*evaluation.Case, caller string) (evaluation.Policies, error) {
	if !s.forCases {
		return local.LoadPolicies(s.manifests)
	}
	namespace, _, _ := strings.Cut(caller, "/")
	return local.ForCases(cases, local.CasesPolicy{
		Ladder: s.ladder, Manifests: s.manifests, Decider: s.decider, Fingerprint: s.print, Namespace: namespace,
	})
}
