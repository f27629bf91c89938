package policy

import (
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gatewright.dev/gatewright/api/v1alpha1"
	"gatewright.dev/gatewright/internal/policy/hosts"
	"gatewright.dev/gatewright/internal/policy/paths"
	"gatewright.dev/gatewright/internal/policy/sources"
	"gatewright.dev/gatewright/internal/questions"
)

// Compiled is a policy that can judge. It is immutable and safe for concurrent use.
type Compiled struct {
	ID         PolicyID
	Generation int64
	// Invalid says that the policy does not compile: it blocks the callers that it selects.
	Invalid bool

	label       string // ID as text, computed once
	stamp       string // ID with generation, for records
	cluster     bool
	audit       bool
	minEnforce  bool
	subjects    map[string]bool // nil: all
	namespaces  map[string]bool // cluster policies; nil: all
	unknown     v1alpha1.UnknownTools
	trust       v1alpha1.ContextTrust
	attestors   []attestor
	decider     *deciderUse
	timeout     time.Duration
	disclose    v1alpha1.Disclosure
	capture     v1alpha1.CaptureState
	clarify     int
	approvals   v1alpha1.ApprovalSettings
	grants      []grant
	facts       map[string]v1alpha1.FactSource
	exact       map[toolName]*tool
	prefixes    []*tool // longest first, a server before none
	unknownTool *tool
	usesSQL     bool
}

// UsesSQL says that an expression may parse SQL, whose parser takes a second to be ready.
func (p *Compiled) UsesSQL() bool { return p.usesSQL }

// toolName is a match key: a tool and the server that offers it.
type toolName struct{ name, server string }

// deciderUse is the decider of a policy, with what its thresholds were set for.
type deciderUse struct {
	name        string
	fingerprint string
	// mayAllow: a ladder ends in Allow, so the numbers must belong to a known model.
	mayAllow bool
}

type grant struct {
	namespace, account string
	scopes             []string
	until              time.Time // zero: no end
}

func (g grant) holds(c Caller, now time.Time) bool {
	if g.account != c.ServiceAccount || g.namespace != c.Namespace {
		return false
	}
	// Without a time of the request nothing is known to be still good.
	return g.until.IsZero() || !now.IsZero() && now.Before(g.until)
}

// tool is a compiled tool rule with the settings of its class applied for every class that a call of it may have.
type tool struct {
	rule    *v1alpha1.ToolRule
	prefix  string // without the star; only in Compiled.prefixes
	class   *class
	lower   []lowering
	digest  string // of everything in the policy that bears on this tool
	effects []v1alpha1.Effect

	scopes []string
	schema *jsonschema.Schema
	offers *sources.ArgumentsSchema
	// schemaTree is the schema as it is written; only while compiling.
	schemaTree any
	paths      []pathCheck
	hosts      []hostCheck
	sources    []sourceCheck
	rules      []callCheck
	confirm    *expression
	// ladders of the tool's own by the class that a call of it may have; none: the class's.
	ladders map[*class]*ladder
}

// ladder returns the ladder for calls that have this class.
func (t *tool) ladder(k *class) *ladder {
	if own := t.ladders[k]; own != nil {
		return own
	}
	return &k.ladder
}

type lowering struct {
	class   *class
	program *expression
}

type pathCheck struct {
	pointer []string
	text    string
	roots   *paths.Roots
}

type hostCheck struct {
	pointer []string
	text    string
	hosts   *hosts.Hosts
}

type sourceCheck struct {
	pointer string // as a prefix; "/*" for every argument that no other names
	parts   []string
	accept  map[sources.Source]bool
	outcome Outcome
}

type callCheck struct {
	by      string
	outcome Outcome
	reason  Reason
	message string
	program *expression
}

// class is a compiled class.
type class struct {
	name        string
	base        v1alpha1.Base
	forbidden   bool
	always      bool
	ladder      ladder
	unavailable Outcome
	// selfApproval and channels say who may approve its calls.
	selfApproval bool
	channels     []v1alpha1.ApprovalChannel
}

// ladder decides what answers mean. Without questions it is only its end.
type ladder struct {
	questions   []questions.Question // asked together
	withResults []questions.Question // asked apart, with tool results in sight
	steps       []step
	end         Obligation
	endAllows   bool
	// ownSteps and ownEnd say what of it the tool rule gives; the class gives the rest.
	ownSteps, ownEnd bool
}

func (l *ladder) asks() bool { return len(l.questions)+len(l.withResults) > 0 }

func (l *ladder) mayAllow() bool {
	if !l.asks() {
		return false
	}
	for _, s := range l.steps {
		if s.allows {
			return true
		}
	}
	return l.endAllows
}

// step is one threshold.
type step struct {
	when       []comparison
	floor      float64
	floorOf    []string
	allows     bool
	obligation Obligation
}

type comparison struct {
	question questions.Question
	option   string
	level    string
	is       string
	operator operator
	number   float64
}

type operator uint8

const (
	above operator = iota
	atLeast
	below
	atMost
	is
)

// selects says whether the policy applies to a caller of its namespace.
func (p *Compiled) selects(c Caller) bool {
	if !p.cluster && p.ID.Namespace != c.Namespace || p.namespaces != nil && !p.namespaces[c.Namespace] {
		return false
	}
	return p.subjects == nil || p.subjects[c.ServiceAccount]
}

// match finds the most specific rule for a tool: an exact name before a prefix, a longer prefix before a shorter one,
// and of equal names the one that names the server. nil: the policy does not list it.
func (p *Compiled) match(name, server string) *tool {
	if !isToolName(name) {
		return nil
	}
	if t := p.exact[toolName{name, server}]; t != nil {
		return t
	}
	if t := p.exact[toolName{name: name}]; t != nil {
		return t
	}
	for _, t := range p.prefixes {
		if len(name) > len(t.prefix) && name[:len(t.prefix)] == t.prefix && (t.rule.Server == "" || t.rule.Server == server) {
			return t
		}
	}
	return nil
}

// isToolName says whether a name has only the characters that a policy can write. Names are compared byte for byte, so
// a name with another letter of the same look, a space or a control character is a tool that nobody listed.
func isToolName(s string) bool {
	if s == "" || len(s) > 128 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		isWord := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
		if !isWord && (i == 0 || c != '.' && c != ':' && c != '/' && c != '-') {
			return false
		}
	}
	return true
}
