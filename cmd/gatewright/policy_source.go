package main

import (
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"gatewright.dev/gatewright/internal/evaluation"
	"gatewright.dev/gatewright/internal/evaluation/local"
)

// policySource is where a command takes the policies of its own gates from, or the address of a gate that has some.
type policySource struct {
	manifests              string
	forCases               bool
	ladder, decider, print string
	url, tokenFile         string
}

// bind takes what --manifests and --url mean to the command.
func (s *policySource) bind(c *cobra.Command, manifests, url string) {
	f := c.Flags()
	f.StringVar(&s.url, "url", "", url)
	f.StringVar(&s.tokenFile, "token-file", "", "with --url: file with the bearer token")
	f.StringVar(&s.manifests, "manifests", "", manifests)
	f.BoolVar(&s.forCases, "policy-for-cases", false, "list the tools of the cases in a policy of their own; --manifests then only gives deciders")
	f.StringVar(&s.ladder, "ladder", "", "with --policy-for-cases: file with a ToolPolicy that gives classes, questions and decider; by default matches_request alone decides")
	f.StringVar(&s.decider, "decider", "", "with --policy-for-cases: DeciderModel to ask; the ladder's own by default, else the embedded one")
	f.StringVar(&s.print, "fingerprint", "", "with --policy-for-cases: fingerprint of the decider; known for the embedded one")
}

// validate says whether the flags name either policies or a gate.
func (s *policySource) validate(purpose string) error {
	switch {
	case (s.url != "") == (s.manifests != "" || s.forCases):
		return errors.New("name what to " + purpose + ": --manifests, --policy-for-cases or --url")
	case !s.forCases && (s.ladder != "" || s.decider != "" || s.print != ""):
		return errors.New("--ladder, --decider and --fingerprint are for --policy-for-cases")
	case s.tokenFile != "" && s.url == "":
		return errors.New("--token-file is for --url")
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
