// Package sources says where each value of a tool call's arguments comes from: the user's words, a fact stated by the
// harness, a tool result, what the arguments schema offers, or nowhere. It is pure: no I/O, no clock, no model.
// Whatever is in doubt is given the less trusted source.
package sources

// Source names where a value stands.
type Source string

// The sources of a value. Tool and Nowhere are the untrusted ones.
const (
	User    Source = "User"    // the user's own words
	Facts   Source = "Facts"   // a fact or a policy text that the harness states
	Schema  Source = "Schema"  // an enum member, const or default of the arguments schema, or a declared boolean
	Tool    Source = "Tool"    // a tool result, which anyone may have written
	Nowhere Source = "Nowhere" // nobody stated it; the model's own words count for nothing
)

// Match says how well a value stands in its source.
type Match string

// The matches, best first. The first three are whole matches, Partial is not.
const (
	Exact     Match = "Exact"     // the whole value, spelled alike up to case, white space and Unicode form
	Rewritten Match = "Rewritten" // the whole value in another spelling: number, date, time, URL, grouped digits, name case
	Words     Match = "Words"     // (nearly) all its content words, and every number and address in it
	Partial   Match = "Partial"   // at least half of its content words, part of a compound, or a relative date
	None      Match = "None"
)

var ranks = map[Match]int{Exact: 4, Rewritten: 3, Words: 2, Partial: 1, None: 0}

// atLeast reports whether m is as good a match as other.
func (m Match) atLeast(other Match) bool { return ranks[m] >= ranks[other] }

func (m Match) whole() bool { return m.atLeast(Words) }

// better returns the better of two matches.
func better(a, b Match) Match {
	if a.atLeast(b) {
		return a
	}
	return b
}

// Set is a set of sources.
type Set uint8

// trusted lists the sources of a Set in order of precedence.
var trusted = [...]Source{User, Facts, Schema, Tool}

// Has reports whether the source is in the set.
func (s Set) Has(source Source) bool {
	for i, t := range trusted {
		if t == source {
			return s&(1<<i) != 0
		}
	}
	return false
}

// Sources lists the set in order of precedence.
func (s Set) Sources() []Source {
	var out []Source
	for i, t := range trusted {
		if s&(1<<i) != 0 {
			out = append(out, t)
		}
	}
	return out
}

// Conversation is what was said before a call, by who said it.
type Conversation struct {
	UserTurns   []string       // all turns of the user, the latest last
	System      []string       // policy and session facts that the harness states: source Facts
	Facts       map[string]any // tree of strings, numbers, booleans, nil, maps and slices; its values have source Facts
	ToolResults []string       // untrusted
	Assistant   []string       // the model's own words, never a source
}

// Index is a conversation prepared for Trace. It is immutable and safe for concurrent use.
type Index struct {
	user, facts, tool *corpus
	flags             map[string]flagSet
}

// Finding is the source of one leaf of the arguments.
type Finding struct {
	Pointer string // RFC 6901
	Source  Source
	Match   Match
	Seen    Set // every source in which the value stands at least as well as Match says; empty for Nowhere
}

// IsPartial says that only a part of the value was found, as one name of two or a day in words. Such a value is in doubt:
// what somebody added to it may be what matters.
func (f Finding) IsPartial() bool { return f.Match == Partial }

// Certain is the source of a value that stands somewhere whole. One that is in doubt counts as Nowhere.
func (f Finding) Certain() Source {
	if f.IsPartial() {
		return Nowhere
	}
	return f.Source
}

// NewIndex prepares a conversation. The assistant's words are left out on purpose: a model can say anything.
func NewIndex(c Conversation) *Index {
	f := factTexts{flags: map[string]flagSet{}, texts: append([]string(nil), c.System...)}
	f.add("", c.Facts)
	results := make([]string, len(c.ToolResults))
	for i, r := range c.ToolResults {
		results[i] = unescape(r)
	}
	return &Index{
		user:  newCorpus(c.UserTurns),
		facts: newCorpus(f.texts),
		tool:  newCorpus(results),
		flags: f.flags,
	}
}

// matches holds how well one value stands in each source, in the order of trusted.
type matches [len(trusted)]Match

// finding applies the precedence: a whole match beats any partial one, then the order of trusted decides.
func (m matches) finding(pointer string) Finding {
	pick := func(ok func(Match) bool) (int, bool) {
		for i, x := range m {
			if ok(x) {
				return i, true
			}
		}
		return 0, false
	}
	i, found := pick(Match.whole)
	if !found {
		i, found = pick(func(x Match) bool { return x == Partial })
	}
	if !found {
		return Finding{Pointer: pointer, Source: Nowhere, Match: None}
	}
	out := Finding{Pointer: pointer, Source: trusted[i], Match: m[i]}
	for j, x := range m {
		if x.atLeast(m[i]) {
			out.Seen |= 1 << j
		}
	}
	return out
}
