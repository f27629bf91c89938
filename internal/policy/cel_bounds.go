package policy

import (
	"fmt"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/functions"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// longestText is the longest text in bytes that an expression may make of others: as long as all arguments of a call are at
// most.
const longestText = 1 << 20

// textFunctions return texts, or lists of them, as long as what they are given. CEL counts each as one step.
var textFunctions = map[string]bool{
	"format": true, "join": true, "lowerAscii": true, "replace": true, "reverse": true, "split": true, "strings.quote": true,
	"substring": true, "trim": true, "upperAscii": true,
}

// textCosts charges texts by their length, as CEL itself does for those that it puts together.
type textCosts struct{}

// CallCost implements interpreter.ActualCostEstimator.
func (textCosts) CallCost(function, _ string, _ []ref.Val, result ref.Val) *uint64 {
	if !textFunctions[function] {
		return nil
	}
	cost := 1 + uint64(sizeOf(result, 10*runLimit))/10
	return &cost
}

// growing are the functions that can make much of little, and how much that would be.
var growing = map[string]func(args []ref.Val) int{
	"replace": func(args []ref.Val) int {
		text, old, by := textOf(args[0]), textOf(args[1]), textOf(args[2])
		return len(text) + strings.Count(text, old)*len(by)
	},
	"join": func(args []ref.Val) int {
		size := sizeOf(args[0], longestText)
		if list, ok := args[0].(traits.Lister); ok && len(args) > 1 {
			if n, ok := list.Size().(types.Int); ok {
				size += int(n) * len(textOf(args[1]))
			}
		}
		return size
	},
	"format": func(args []ref.Val) int { return sizeOf(args[0], longestText) + sizeOf(args[1], longestText) },
}

func textOf(v ref.Val) string {
	s, _ := v.(types.String)
	return string(s)
}

// sizeOf is about how long a value is when it is written out, as far as a bound.
func sizeOf(v ref.Val, most int) int {
	size := 0
	switch v := v.(type) {
	case types.String:
		return len(v)
	case types.Bytes:
		return len(v)
	case traits.Mapper:
		for i := v.Iterator(); size < most && i.HasNext() == types.True; {
			key := i.Next()
			size += sizeOf(key, most-size) + sizeOf(v.Get(key), most-size)
		}
	case traits.Lister:
		for i := v.Iterator(); size < most && i.HasNext() == types.True; {
			size += 1 + sizeOf(i.Next(), most-size)
		}
	default:
		size = 32
	}
	return size
}

// boundTexts gives the option by which expressions make no text that is too long.
func boundTexts(e *cel.Env) cel.ProgramOption {
	bindings := map[string]*functions.Overload{}
	for name := range growing {
		f, ok := e.Functions()[name]
		if !ok {
			continue
		}
		overloads, err := f.Bindings()
		if err != nil {
			continue // a call of it is refused below
		}
		for _, o := range overloads {
			bindings[o.Operator] = o
		}
	}
	return cel.CustomDecoratorV2(func(i interpreter.InterpretableV2) (interpreter.InterpretableV2, error) {
		call, ok := i.(interpreter.InterpretableCall)
		if !ok || growing[call.Function()] == nil {
			return i, nil
		}
		o := bindings[call.OverloadID()]
		if o == nil {
			return nil, fmt.Errorf("%s is called with values of types that are not known: convert them with string()", call.Function())
		}
		size := growing[call.Function()]
		return interpreter.NewCall(call.ID(), call.Function(), call.OverloadID(), call.Args(), func(args ...ref.Val) ref.Val {
			if size(args) > longestText {
				return types.NewErr("%s makes a text that is too long", o.Operator)
			}
			return invoke(o, args)
		}), nil
	})
}

func invoke(o *functions.Overload, args []ref.Val) ref.Val {
	switch {
	case o.Unary != nil && len(args) == 1:
		return o.Unary(args[0])
	case o.Binary != nil && len(args) == 2:
		return o.Binary(args[0], args[1])
	case o.Function != nil:
		return o.Function(args...)
	}
	return types.NewErr("%s cannot be called so", o.Operator)
}
