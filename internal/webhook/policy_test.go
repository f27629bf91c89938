package webhook

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/manifest"
	"gatewright.dev/gatewright/internal/testkit"
)

func withBadRule(name string) testkit.Option {
	return testkit.WithTool(name, "Write", testkit.Rule("bad", "args.", v1alpha1.StricterOutcome(v1alpha1.OutcomeBlock)))
}

func TestWhatIsAdmittedCompiles(t *testing.T) {
	for name, tt := range map[string]struct {
		policy *v1alpha1.ToolPolicy
		want   string // the field of the only error
	}{
		"a policy that compiles is taken":                 {testkit.ToolPolicy("p", testkit.WithTool("db.read", "ReadOnly")), ""},
		"an expression that is none is refused":           {testkit.ToolPolicy("p", withBadRule("db.read")), "spec.tools[0].rules[0].when"},
		"a class that nobody declared is refused":         {testkit.ToolPolicy("p", testkit.WithTool("db.read", "Other")), "spec.tools[0].class"},
		"a question without a decider is refused":         {testkit.ToolPolicy("p", testkit.WithClass("Write", testkit.Asks("Block", testkit.Questions("asked")))), "spec.deciderRef"},
		"a decider that may not exist is none of its own": {testkit.ToolPolicy("p", testkit.WithDecider("nobody"), testkit.WithTool("db.read", "ReadOnly")), ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := toolPolicies().ValidateCreate(t.Context(), tt.policy)
			if tt.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			status, ok := errors.AsType[*apierrors.StatusError](err)
			if !ok || !apierrors.IsInvalid(err) {
				t.Fatalf("err = %v, want one of an invalid object", err)
			}
			causes := status.ErrStatus.Details.Causes
			if len(causes) != 1 || causes[0].Field != tt.want {
				t.Errorf("causes = %+v, want the field %s", causes, tt.want)
			}
		})
	}
}

func TestUpdates(t *testing.T) {
	good := testkit.ToolPolicy("p", testkit.WithTool("db.read", "ReadOnly"))
	old := testkit.ToolPolicy("p", withBadRule("db.read"))
	now := metav1.Now()
	tests := map[string]struct {
		was, is      *v1alpha1.ToolPolicy
		wantRefused  bool
		wantWarnings []string // the beginnings
	}{
		"what was wrong before and is not touched is taken, with a warning": {
			was: old, is: testkit.ToolPolicy("p", withBadRule("db.read"), testkit.WithTool("db.list", "ReadOnly")),
			wantWarnings: []string{"still wrong, as before: spec.tools[0].rules[0].when"},
		},
		"the same when its place in the list has moved": {
			was: old, is: testkit.ToolPolicy("p", testkit.WithTool("db.list", "ReadOnly"), withBadRule("db.read")),
			wantWarnings: []string{"still wrong, as before: spec.tools[1].rules[0].when"},
		},
		"the same mistake a second time is refused": {
			was: old, is: testkit.ToolPolicy("p", withBadRule("db.read"), withBadRule("db.list")), wantRefused: true,
			wantWarnings: []string{"still wrong, as before: spec.tools[0].rules[0].when"},
		},
		// Its class is stricter, so that nothing is looser.
		"a mistake that is new is refused": {was: good, is: old, wantRefused: true},
		"a change of labels alone is not looked at": {
			was: old, is: func() *v1alpha1.ToolPolicy { p := old.DeepCopy(); p.Labels = map[string]string{"a": "b"}; return p }(),
		},
		"an object that goes away is let go": {
			was: good, is: func() *v1alpha1.ToolPolicy { p := old.DeepCopy(); p.DeletionTimestamp = &now; return p }(),
		},
		"an update that loosens is taken, with a warning": {
			was: good, is: testkit.ToolPolicy("p", testkit.InAudit(), testkit.WithTool("db.read", "ReadOnly")),
			wantWarnings: []string{"loosened: spec.mode: was Enforce, is Audit", "spec.mode: Audit enforces nothing"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			warnings, err := toolPolicies().ValidateUpdate(t.Context(), tt.was, tt.is)
			if (err != nil) != tt.wantRefused {
				t.Errorf("err = %v, want refused: %v", err, tt.wantRefused)
			}
			if len(warnings) != len(tt.wantWarnings) {
				t.Fatalf("warnings = %q, want %q", warnings, tt.wantWarnings)
			}
			for i, w := range tt.wantWarnings {
				if !strings.HasPrefix(warnings[i], w) {
					t.Errorf("warning %q, want it to begin with %q", warnings[i], w)
				}
			}
		})
	}
}

func TestDeletingIsNeverRefused(t *testing.T) {
	if warnings, err := toolPolicies().ValidateDelete(t.Context(), testkit.ToolPolicy("p", withBadRule("x"))); err != nil || warnings != nil {
		t.Errorf("%v, %v", warnings, err)
	}
}

// What the project ships is taken.
func TestSamplesAreTaken(t *testing.T) {
	count := 0
	for _, dir := range []string{"samples", "deciders", "samples-llama"} {
		set, err := manifest.LoadDir(filepath.Join("..", "..", "config", dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range set.Objects {
			var err error
			switch v := o.Object.(type) {
			case *v1alpha1.ToolPolicy:
				_, err = toolPolicies().ValidateCreate(t.Context(), v)
			case *v1alpha1.ClusterToolPolicy:
				_, err = clusterToolPolicies().ValidateCreate(t.Context(), v)
			case *v1alpha1.DeciderModel:
				_, err = deciderModels().ValidateCreate(t.Context(), v)
			default:
				continue
			}
			count++
			if err != nil {
				t.Errorf("%s: %v", o.File, err)
			}
		}
	}
	if count < 20 {
		t.Errorf("looked at %d manifests only", count)
	}
}

func TestAdvice(t *testing.T) {
	amounts := v1alpha1.Question{Name: "much", Type: v1alpha1.QuestionYesNo, Instructions: "Is the amount more than 100?"}
	dates := v1alpha1.Question{Name: "late", Type: v1alpha1.QuestionYesNo, Instructions: "Was it ordered before the deadline?"}
	tool := testkit.WithTool("db.read", "ReadOnly")
	tests := map[string]struct {
		options []testkit.Option
		want    []string
	}{
		"nothing is said about a plain policy": {[]testkit.Option{tool}, nil},
		"no tools block everybody":             {nil, []string{"spec.tools: lists no tool, so every call of the callers is blocked: list the tools that they may call"}},
		"mode Audit": {[]testkit.Option{tool, testkit.InAudit()},
			[]string{"spec.mode: Audit enforces nothing: calls are decided and recorded, and let through unless another policy objects"}},
		"a question that compares amounts": {[]testkit.Option{tool, testkit.WithQuestion(amounts)},
			[]string{"spec.questions: question much compares amounts: do that in a rule over arguments and facts"}},
		"a question that compares dates": {[]testkit.Option{tool, testkit.WithQuestion(dates)},
			[]string{"spec.questions: question late compares dates: do that in code, and state the result as a fact"}},
		"irreversible calls without a person": {[]testkit.Option{tool, testkit.WithClass("Destructive", testkit.Approval(v1alpha1.ApprovalWhenUnsure))},
			[]string{"spec.classes[Destructive].approval: WhenUnsure lets calls that cannot be undone run without a person"}},
		"a class of one's own with base External": {[]testkit.Option{tool, testkit.WithClass("Mail", testkit.Base("External"), testkit.Approval(v1alpha1.ApprovalWhenUnsure))},
			[]string{"spec.classes[Mail].approval: WhenUnsure lets calls that cannot be undone run without a person"}},
		"approving oneself what destroys": {[]testkit.Option{tool, testkit.WithClass("Destructive", func(k *v1alpha1.ClassPolicy) { k.SelfApproval = v1alpha1.SelfApprovalAllow })},
			[]string{"spec.classes[Destructive].selfApproval: Allow lets the user for whom an agent acts approve what destroys"}},
		"a ladder that allows by an unpinned model": {[]testkit.Option{tool, testkit.WithUnpinnedDecider("judge", ""), testkit.WithClass("Write", testkit.Asks("Allow", testkit.Questions("asked")))},
			[]string{"spec.deciderRef.fingerprint: is empty although a ladder may allow: until it is set the policy is not resolved, FingerprintRequired"}},
		"calls kept as they are": {[]testkit.Option{tool, testkit.WithRules(func(r *v1alpha1.PolicyRules) { r.CaptureState = v1alpha1.CapturePlain })},
			[]string{"spec.captureState: Plain keeps whole calls and conversations where whoever reads the files can read them"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, advice := toolPolicies().judge(testkit.ToolPolicy("p", tt.options...))
			if diff := cmp.Diff(tt.want, advice); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestWarningsAreBounded(t *testing.T) {
	var many []string
	for range 20 {
		many = append(many, strings.Repeat("é", 300))
	}
	got := atMost(many)
	if len(got) != mostWarnings+1 || got[mostWarnings] != "6 more warnings are not shown" {
		t.Errorf("%d warnings, the last is %q", len(got), got[len(got)-1])
	}
	if n := len([]rune(got[0])); n != longestWarning {
		t.Errorf("the first has %d characters, want %d", n, longestWarning)
	}
}

func TestRatchetExcusesOneForOne(t *testing.T) {
	at := func(i int) *field.Error { return field.Invalid(field.NewPath("spec", "tools").Index(i), "x", "is bad") }
	refused, tolerated := ratchet(field.ErrorList{at(0)}, field.ErrorList{at(3), at(4)})
	if len(refused) != 1 || len(tolerated) != 1 || tolerated[0].Field != "spec.tools[3]" {
		t.Errorf("refused %v, tolerated %v", refused, tolerated)
	}
}

// 2,048 expressions, of 8,192 that a policy may have, in the five seconds that an API server waits.
func BenchmarkLargePolicy(b *testing.B) {
	var options []testkit.Option
	for i := range 256 {
		var rules []testkit.ToolOption
		for j := range 8 {
			rules = append(rules, testkit.Rule(fmt.Sprintf("r%d", j), v1alpha1.Expression(fmt.Sprintf("args.a%d == \"x\" && size(string(args.b)) > %d", j, i)), "Block"))
		}
		options = append(options, testkit.WithTool(fmt.Sprintf("tool%d", i), "Write", rules...))
	}
	p := testkit.ToolPolicy("p", options...)
	for b.Loop() {
		if errs, _ := toolPolicies().judge(p); len(errs) > 0 {
			b.Fatal(errs)
		}
	}
}

// Who writes many policies at once waits, and is told so when the API server no longer does.
func TestFewPoliciesAreCompiledAtATime(t *testing.T) {
	v := toolPolicies()
	v.slots = make(slots, 1)
	p := testkit.ToolPolicy("p", testkit.WithTool("db.read", "ReadOnly"))
	other := p.DeepCopy()
	other.Spec.UnknownTools = v1alpha1.UnknownToolsConfirm
	both := func(ctx context.Context) [2]error {
		_, created := v.ValidateCreate(ctx, p)
		_, updated := v.ValidateUpdate(ctx, p, other)
		return [2]error{created, updated}
	}
	give, err := v.slots.take(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for i, err := range both(gone) {
		if !apierrors.IsTooManyRequests(err) {
			t.Errorf("%d: %v, want it to be told to try again", i, err)
		}
	}
	if _, err := v.ValidateUpdate(gone, p, p.DeepCopy()); err != nil {
		t.Errorf("a label waits for a slot: %v", err)
	}
	give()
	for range 2 { // what is taken is given back
		for i, err := range both(t.Context()) {
			if err != nil {
				t.Errorf("%d: %v", i, err)
			}
		}
	}
}
