package policy

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/overloads"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// What one policy may hold. A gate keeps every policy compiled, beside those of all others: who may write one for a namespace
// of their own must not be able to fill the memory of all gates, or to keep the changes of others waiting. At its bounds a
// policy takes some 30 MiB and a second to compile; without them, one of half a megabyte takes a gigabyte.
const (
	maxExpressions     = 1024
	maxExpressionBytes = 96 << 10
	maxSchemaBytes     = 256 << 10
	// maxPattern and maxPatterns bound regular expressions, one and all together, in steps of their machines: some 100 bytes
	// each, and a call is held against each of them letter by letter.
	maxPattern, maxPatterns = 4096, 64 << 10
	// maxPatternBytes bounds the text of one pattern, which is read before its steps can be counted.
	maxPatternBytes = 16 << 10
	// classBounds are so many bounds of ranges in a class of letters as take the room of a step. Classes such as \pL have more
	// than a thousand, and a machine may hold a copy of them for each step.
	classBounds = 32
	// longestNumber and largestExponent bound a number in a schema, which a validator writes out to the last digit.
	longestNumber, largestExponent = 400, 400
)

// usage is what a policy holds as far as it has been compiled.
type usage struct{ expressions, expressionBytes, schemaBytes, patterns int }

// takes counts what is about to be compiled. Beyond the bound it is not, and the first that is beyond is an error.
func (c *compiler) takes(path *field.Path, used *int, n, most int, what string) bool {
	before := *used
	if *used += n; *used <= most {
		return true
	}
	if before <= most {
		c.fail(path, "", fmt.Sprintf("is beyond the %d %s that one policy may hold: write another policy for other service accounts, or for other tools with unknownTools: Defer", most, what))
	}
	return false
}

func (c *compiler) takesExpression(text string, path *field.Path) bool {
	return c.takes(path, &c.used.expressions, 1, maxExpressions, "expressions") &&
		c.takes(path, &c.used.expressionBytes, len(text), maxExpressionBytes, "bytes of expressions")
}

var (
	errPatternTooLarge   = fmt.Errorf("regular expression of more than %d steps: repeat less, or check the length apart", maxPattern)
	errPatternNotLiteral = errors.New("matches wants a pattern that is written out in the expression")
)

// patternSize is about how many steps a regular expression has once its repetitions are written out. What is none has none.
func patternSize(text string) int {
	if len(text) > maxPatternBytes {
		return maxPattern + 1
	}
	re, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return 0
	}
	return stepsOf(re)
}

func stepsOf(re *syntax.Regexp) int {
	sum := 1
	switch re.Op {
	case syntax.OpLiteral:
		sum = len(re.Rune)
	case syntax.OpCharClass:
		sum += len(re.Rune) / classBounds
	}
	for _, sub := range re.Sub {
		sum = min(sum+stepsOf(sub)+1, maxPatterns+1)
	}
	if re.Op == syntax.OpRepeat {
		sum *= max(re.Min, re.Max, 1)
	}
	return min(sum, maxPatterns+1)
}

// boundedRegexp compiles the patterns of schemas, and the arguments that a schema wants to be patterns.
func boundedRegexp(text string) (jsonschema.Regexp, error) {
	if patternSize(text) > maxPattern {
		return nil, errPatternTooLarge
	}
	return regexp.Compile(text)
}

// hugeNumber is the first number of a schema that takes long to reckon with; empty: there is none.
func hugeNumber(tree any) string {
	switch v := tree.(type) {
	case json.Number:
		_, text, hasExponent := strings.Cut(strings.ToLower(v.String()), "e")
		exponent, err := strconv.Atoi(text)
		if len(v) > longestNumber || hasExponent && (err != nil || max(exponent, -exponent) > largestExponent) {
			return v.String()[:min(len(v), 40)]
		}
	case []any:
		for _, e := range v {
			if found := hugeNumber(e); found != "" {
				return found
			}
		}
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			if found := hugeNumber(v[name]); found != "" {
				return found
			}
		}
	}
	return ""
}

// takesSchema says whether a schema can be compiled at all. It looks everywhere: a reference may lead to any place.
func (c *compiler) takesSchema(tree any, path *field.Path) bool {
	if n := hugeNumber(tree); n != "" {
		c.fail(path, n, fmt.Sprintf("is a number of more than %d digits", longestNumber))
		return false
	}
	return c.takes(path, &c.used.patterns, patternsIn(tree), maxPatterns, "steps of regular expressions")
}

func patternsIn(tree any) int {
	sum := 0
	for text := range patternTexts(tree) {
		if sum += patternSize(text); sum > maxPatterns { // the rest would only take time
			break
		}
	}
	return sum
}

// patternTexts gives all that may be a pattern in a schema.
func patternTexts(tree any) iter.Seq[string] {
	return func(yield func(string) bool) { yieldPatterns(tree, yield) }
}

func yieldPatterns(tree any, yield func(string) bool) bool {
	switch v := tree.(type) {
	case []any:
		for _, e := range v {
			if !yieldPatterns(e, yield) {
				return false
			}
		}
	case map[string]any:
		if text, ok := v["pattern"].(string); ok && !yield(text) {
			return false
		}
		of, _ := v["patternProperties"].(map[string]any)
		for text := range of {
			if !yield(text) {
				return false
			}
		}
		for _, e := range v {
			if !yieldPatterns(e, yield) {
				return false
			}
		}
	}
	return true
}

// patternsOf adds up the patterns of an expression. One that is made while a call is judged could be anything.
func patternsOf(e ast.Expr) (int, error) {
	sum, err := 0, error(nil)
	ast.PreOrderVisit(e, ast.NewExprVisitor(func(e ast.Expr) {
		if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != overloads.Matches {
			return
		}
		args := e.AsCall().Args()
		last := args[len(args)-1]
		text, ok := "", false
		if last.Kind() == ast.LiteralKind {
			text, ok = last.AsLiteral().Value().(string)
		}
		size := patternSize(text)
		switch {
		case !ok:
			err = errPatternNotLiteral
		case size > maxPattern:
			err = errPatternTooLarge
		}
		sum += size
	}))
	return sum, err
}
