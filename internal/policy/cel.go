package policy

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/checker"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/ext"
	"github.com/google/cel-go/interpreter"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"gatewright.dev/gatewright/internal/policy/effects"
)

const (
	// estimateLimit is the most that an expression may cost by estimate at compile time, with every input as large as a
	// call can make it. It is far above any sane rule and below nested loops over the arguments.
	estimateLimit = 50_000_000
	// runLimit is what all expressions of one call may cost together. Unit costs are tens of nanoseconds, so the limit
	// is some tens of milliseconds.
	runLimit = 1_000_000
	// interruptEvery is after how many loop steps an expression looks at its deadline.
	interruptEvery = 100
	// inputSize is the size of an input for estimates: a list, map or string that is nested in the arguments.
	inputSize = 4096
)

var (
	boolType   = cel.BoolType
	stringType = cel.StringType
)

// environment holds one CEL environment. Building it takes milliseconds, so it is built once.
type environment struct {
	build func() (*cel.Env, error)
	// bounds keeps texts short; see boundTexts.
	bounds func() cel.ProgramOption
}

func newEnvironment(extra ...cel.EnvOption) environment {
	build := sync.OnceValues(func() (*cel.Env, error) { return newEnv(extra...) })
	return environment{build, sync.OnceValue(func() cel.ProgramOption {
		e, _ := build() // nobody asks for its bounds where it could not be built
		return boundTexts(e)
	})}
}

var (
	// argumentsEnv sees only what cannot be claimed in prose: used where an expression makes a call less strict.
	argumentsEnv = newEnvironment()
	// callEnv sees everything: used where an expression can only make a call stricter.
	callEnv = newEnvironment(
		cel.Variable("facts", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("scopes", cel.ListType(cel.StringType)),
		cel.Variable("sources", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("user", cel.StringType),
	)
)

func newEnv(extra ...cel.EnvOption) (*cel.Env, error) {
	options := append([]cel.EnvOption{
		cel.Variable("args", cel.MapType(cel.StringType, cel.DynType)),
		cel.Variable("tool", cel.MapType(cel.StringType, cel.StringType)),
		cel.Variable("caller", cel.MapType(cel.StringType, cel.StringType)),
		cel.CrossTypeNumericComparisons(true),
		cel.EagerlyValidateDeclarations(true),
		cel.DefaultUTCTimeZone(true),
		ext.Strings(ext.StringsVersion(4)),
		ext.Sets(),
		ext.Lists(ext.ListsVersion(3)),
		effects.Library(),
	}, extra...)
	return cel.NewEnv(options...)
}

// program compiles an expression of the wanted type. Errors are recorded, and give no program.
func (c *compiler) program(text string, env environment, want *cel.Type, path *field.Path) *expression {
	c.out.usesSQL = c.out.usesSQL || callsSQL.MatchString(text)
	if !c.takesExpression(text, path) {
		return nil
	}
	e, err := env.build()
	if err != nil {
		c.errs = append(c.errs, field.InternalError(path, err))
		return nil
	}
	ast, issues := e.Compile(text)
	if issues.Err() != nil {
		c.fail(path, text, issues.Err().Error())
		return nil
	}
	if !ast.OutputType().IsExactType(want) {
		c.fail(path, text, fmt.Sprintf("is of type %s, want %s: compare a value of an argument with == true or convert it with string()", ast.OutputType(), want))
		return nil
	}
	cost, err := e.EstimateCost(ast, sizes{})
	if err != nil || cost.Max > estimateLimit {
		c.fail(path, text, "may cost more than a rule is given: avoid nested loops over arguments")
		return nil
	}
	patterns, err := patternsOf(ast.NativeRep().Expr())
	if err != nil {
		c.fail(path, text, err.Error())
		return nil
	}
	if !c.takes(path, &c.used.patterns, patterns, maxPatterns, "steps of regular expressions") {
		return nil
	}
	program, err := e.Program(ast,
		cel.EvalOptions(cel.OptOptimize, cel.OptTrackCost),
		cel.CostTracking(textCosts{}),
		env.bounds(),
		cel.CostLimit(runLimit),
		cel.InterruptCheckFrequency(interruptEvery))
	if err != nil {
		c.fail(path, text, err.Error())
		return nil
	}
	return &expression{program: program, reads: readingsOf(ast.NativeRep().Expr())}
}

// callsSQL finds expressions that may parse SQL.
var callsSQL = regexp.MustCompile(`\bsql\s*\(`)

// sizes tells the cost estimator how large inputs can be.
type sizes struct{}

func (sizes) EstimateSize(checker.AstNode) *checker.SizeEstimate {
	return &checker.SizeEstimate{Min: 0, Max: inputSize}
}

func (sizes) EstimateCallCost(string, string, *checker.AstNode, []checker.AstNode) *checker.CallEstimate {
	return nil
}

var (
	errNotCompiled = errors.New("expression was not compiled")
	errBudget      = errors.New("the rules of this call cost more than one call is given")
	errOversized   = errors.New("a list or map in the arguments has more entries than expressions are given")
	errSpelling    = errors.New("an argument that the expression reads may stand there under another spelling of its name")
	errType        = errors.New("expression gave a value of another type")
)

// budget is what the expressions of one call may still cost.
type budget struct {
	left uint64
	// measured and oversized remember whether the arguments are too large for expressions.
	measured, oversized bool
	// spent says that something was charged for which nothing was left.
	spent bool
	// folded are names of the arguments that have been folded.
	folded map[string]string
}

// charge takes from what is left. Where there is less than that, the call is given no more.
func (b *budget) charge(cost uint64) {
	if cost > b.left {
		b.left, b.spent = 0, true
		return
	}
	b.left -= cost
}

// admits says whether the arguments are small enough. Tracking what an expression costs takes time that grows with the
// square of a list, so the bound on costs alone would not bound the time.
func (b *budget) admits(arguments map[string]any) bool {
	if !b.measured {
		b.measured, b.oversized = true, isOversized(arguments)
	}
	return !b.oversized
}

// isOversized says whether a list or map has more entries than estimates reckon with.
func isOversized(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		if len(v) > inputSize {
			return true
		}
		for _, e := range v {
			if isOversized(e) {
				return true
			}
		}
	case []any:
		return len(v) > inputSize || slices.ContainsFunc(v, isOversized)
	}
	return false
}

func (b *budget) eval(ctx context.Context, x *expression, in looker) (any, error) {
	if x == nil {
		return nil, errNotCompiled
	}
	arguments := in.arguments()
	if !b.admits(arguments) {
		return nil, errOversized
	}
	for _, r := range x.reads {
		misspelt := r.isMisspelt(arguments, b)
		switch {
		case b.spent:
			return nil, errBudget
		case misspelt:
			return nil, errSpelling
		}
	}
	out, details, err := x.program.ContextEval(ctx, in)
	if details != nil {
		if cost := details.ActualCost(); cost != nil {
			if b.charge(*cost); b.spent {
				return nil, errBudget
			}
		}
	}
	if err != nil {
		return nil, err
	}
	if types.IsUnknownOrError(out) {
		return nil, errType
	}
	return out.Value(), nil
}

func (b *budget) isTrue(ctx context.Context, x *expression, in looker) (bool, error) {
	v, err := b.eval(ctx, x, in)
	if err != nil {
		return false, err
	}
	truth, ok := v.(bool)
	if !ok {
		return false, errType
	}
	return truth, nil
}

// looker is an activation that knows the arguments which it gives.
type looker interface {
	interpreter.Activation
	arguments() map[string]any
}

// activation gives an expression its variables, computed when they are read.
type activation struct{ e *evaluation }

func (a activation) arguments() map[string]any { return a.e.request.Arguments }

// ResolveName implements interpreter.Activation.
func (a activation) ResolveName(name string) (any, bool) {
	r := a.e.request
	switch name {
	case "args":
		if r.Arguments == nil {
			return map[string]any{}, true
		}
		return r.Arguments, true
	case "tool":
		return map[string]string{"name": r.Tool, "server": r.Server}, true
	case "caller":
		return map[string]string{"namespace": r.Caller.Namespace, "serviceAccount": r.Caller.ServiceAccount, "onBehalfOf": a.e.onBehalfOf(), "session": r.Session}, true
	case "facts":
		return a.e.facts(), true
	case "scopes":
		return a.e.scopes(), true
	case "sources":
		return a.e.sourceMap(), true
	case "user":
		return a.e.latestWords(), true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (a activation) Parent() interpreter.Activation { return nil }

// argumentsActivation is an activation that shows only what argumentsEnv declares, so that nothing claimed in prose can
// make a call less strict even by mistake.
type argumentsActivation struct{ activation }

// ResolveName implements interpreter.Activation.
func (a argumentsActivation) ResolveName(name string) (any, bool) {
	switch name {
	case "args", "tool":
		return a.activation.ResolveName(name)
	case "caller":
		// The end user and the session are what the caller says they are.
		c := a.e.request.Caller
		return map[string]string{"namespace": c.Namespace, "serviceAccount": c.ServiceAccount}, true
	}
	return nil, false
}
