package effects

import (
	"math"

	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/interpreter"

	"gatewright.dev/gatewright/internal/policy/effects/sqltext"
	"gatewright.dev/gatewright/internal/policy/effects/weburl"
	"gatewright.dev/gatewright/internal/policy/effects/words"
)

// cost is what a call costs: a fixed part, and a part for each character up to the bound beyond which nothing is parsed.
type cost struct{ fixed, perChar, maxChars uint64 }

// A unit of cost stands for about 50 ns. Measured: a short command line takes 15 microseconds, a short SQL text 150 in
// either dialect. A character of flat SQL adds about a microsecond, hence 20 units; one of deeply nested SQL adds up to
// twenty times that, which the bound on nesting keeps below a tenth of a second in all.
var costs = map[string]cost{
	shellOverload:   {fixed: 100, perChar: 2, maxChars: words.MaxLength},
	kubectlOverload: {fixed: 100, perChar: 2, maxChars: words.MaxLength},
	urlOverload:     {fixed: 20, perChar: 1, maxChars: weburl.MaxLength},
	sqlOverload:     {fixed: 3000, perChar: 20, maxChars: sqltext.MaxLength},
}

func (c cost) of(chars uint64) uint64 { return c.fixed + c.perChar*min(chars, c.maxChars) }

func costEstimates() []checker.CostOption {
	var options []checker.CostOption
	for overload, c := range costs {
		options = append(options, checker.OverloadCostEstimate(overload,
			func(estimator checker.CostEstimator, _ *checker.AstNode, args []checker.AstNode) *checker.CallEstimate {
				size := sizeOf(estimator, args[0])
				return &checker.CallEstimate{CostEstimate: checker.CostEstimate{Min: c.of(size.Min), Max: c.of(size.Max)}}
			}))
	}
	return options
}

func sizeOf(estimator checker.CostEstimator, node checker.AstNode) checker.SizeEstimate {
	if size := node.ComputedSize(); size != nil {
		return *size
	}
	if size := estimator.EstimateSize(node); size != nil {
		return *size
	}
	return checker.SizeEstimate{Min: 0, Max: math.MaxUint64}
}

func costTrackers() []interpreter.CostTrackerOption {
	var options []interpreter.CostTrackerOption
	for overload, c := range costs {
		options = append(options, interpreter.OverloadCostTracker(overload, func(args []ref.Val, _ ref.Val) *uint64 {
			var chars uint64
			if text, ok := args[0].(types.String); ok {
				chars = uint64(len(text))
			}
			total := c.of(chars)
			return &total
		}))
	}
	return options
}

// maxListItems bounds each list of a result.
const maxListItems = 256

// EstimateSize bounds the fields of the library's results. A caller's checker.CostEstimator asks it for the nodes that it
// does not know itself; nil means that the node is none of these fields.
func EstimateSize(node checker.AstNode) *checker.SizeEstimate {
	expr := node.Expr()
	if expr == nil || expr.Kind() != ast.SelectKind || expr.AsSelect().Operand().Kind() != ast.CallKind {
		return nil
	}
	switch expr.AsSelect().Operand().AsCall().FunctionName() {
	case "shell", "sql", "kubectl", "url":
	default:
		return nil
	}
	switch node.Type().Kind() {
	case types.ListKind:
		return &checker.SizeEstimate{Max: maxListItems}
	case types.StringKind:
		return &checker.SizeEstimate{Max: words.MaxLength}
	}
	return nil
}
