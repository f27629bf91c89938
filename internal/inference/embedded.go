package inference

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gatewright.dev/gatewright/internal/questions"
)

// EmbeddedV0Name is the model name of EmbeddedV0.
const EmbeddedV0Name = "embedded-v0"

// The ranks that EmbeddedV0 gives. They order three cases and are calibrated against nothing: 0.9 does not mean that nine
// in ten such calls are fine. A threshold between two ranks is all that they are for.
const (
	rankGrounded = 0.9 // every value is the user's, a fact's or the schema's
	rankInDoubt  = 0.5 // some value came from a tool's result, where it may have been planted, or was found only in part
	rankNowhere  = 0.1 // some value was not seen anywhere before
)

// EmbeddedV0 is the decider that needs no model: a rule over the sources that code found for the arguments. It answers
// args_grounded and nothing else.
type EmbeddedV0 struct{}

// NewEmbeddedV0 returns the rule.
func NewEmbeddedV0() EmbeddedV0 { return EmbeddedV0{} }

// Fingerprint identifies the rule; it changes with the ranks and with what counts as a source.
func (EmbeddedV0) Fingerprint() string { return fingerprintOf(EmbeddedV0Name, "1") }

// Decide answers at once; a request with any other question is refused whole.
func (e EmbeddedV0) Decide(ctx context.Context, r Request) (Result, error) {
	return decide(ctx, r, nil, func(_ context.Context, _ []byte, group []questions.Question) (Result, error) {
		for _, q := range group {
			if q.Name != "args_grounded" || q.Type != questions.YesNo {
				return Result{}, fail(QuestionNotSupported, "%s answers only args_grounded, not %s", EmbeddedV0Name, q.Name)
			}
		}
		rank := groundedRank(r.State.Arguments, r.State.Facts.ArgumentSources)
		return Result{
			Answers: questions.Answers{"args_grounded": {Type: questions.YesNo, Probability: rank, Coverage: 1}},
			Model:   EmbeddedV0Name, Fingerprint: e.Fingerprint(),
		}, nil
	})
}

// groundedRank takes the worst source. A value for which no source was stated counts as seen nowhere.
func groundedRank(arguments any, sources []questions.ArgumentSource) float64 {
	known := make(map[string]string, len(sources))
	rank := rankGrounded
	for _, s := range sources {
		known[s.Pointer] = s.Source
		rank = min(rank, sourceRank(s.Source))
	}
	for _, pointer := range leaves(nil, "", arguments) {
		if !isCovered(known, pointer) {
			return rankNowhere
		}
	}
	return rank
}

func sourceRank(source string) float64 {
	switch source {
	case questions.SourceUser, questions.SourceFacts, questions.SourceSchema:
		return rankGrounded
	case questions.SourceTool, questions.SourcePartly:
		return rankInDoubt
	default:
		return rankNowhere
	}
}

// isCovered says whether the value or something that holds it has a source.
func isCovered(known map[string]string, pointer string) bool {
	for {
		if _, ok := known[pointer]; ok {
			return true
		}
		at := strings.LastIndexByte(pointer, '/')
		if at < 0 {
			return false
		}
		pointer = pointer[:at]
	}
}

// leaves lists JSON pointers to all values that hold no others. Empty objects and arrays hold nothing to be grounded.
func leaves(found []string, at string, v any) []string {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			found = leaves(found, at+"/"+pointerEscaper.Replace(key), v[key])
		}
	case []any:
		for i, item := range v {
			found = leaves(found, at+"/"+strconv.Itoa(i), item)
		}
	default:
		found = append(found, at)
	}
	return found
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")
