package effects

import (
	"reflect"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/ext"

	"gatewright.dev/gatewright/internal/policy/effects/sqltext"
)

// Overload ids.
const (
	shellOverload   = "effects_shell_string"
	sqlOverload     = "effects_sql_string_string"
	kubectlOverload = "effects_kubectl_string"
	urlOverload     = "effects_url_string"
)

// Library gives CEL the functions shell(command), sql(text, dialect), kubectl(command) and url(text). Their results have
// typed fields, so that a misspelt one does not compile. An argument that is no string is an error, never true.
func Library() cel.EnvOption {
	return cel.Lib(library{})
}

// Warm makes the slow parser ready. Without it the first sql() takes a second or more.
func Warm() error { return sqltext.Warm() }

type library struct{}

// LibraryName keeps the library from being added twice.
func (library) LibraryName() string { return "gatewright.dev/effects" }

// CompileOptions declares types, functions and their estimated costs.
func (library) CompileOptions() []cel.EnvOption {
	return []cel.EnvOption{
		ext.NativeTypes(reflect.TypeFor[*Shell](), reflect.TypeFor[*SQL](), reflect.TypeFor[*Kubectl](), reflect.TypeFor[*URL](),
			ext.ParseStructTags(true)),
		withAdapter,
		cel.CostEstimatorOptions(costEstimates()...),
	}
}

// ProgramOptions declares the costs at run time.
func (library) ProgramOptions() []cel.ProgramOption {
	return []cel.ProgramOption{cel.CostTrackerOptions(costTrackers()...)}
}

// withAdapter declares the functions once the environment knows the types, since their results need its adapter.
func withAdapter(env *cel.Env) (*cel.Env, error) {
	adapter := env.CELTypeAdapter()
	text := []*cel.Type{cel.StringType}
	options := []cel.EnvOption{
		cel.Function("shell", cel.Overload(shellOverload, text, cel.ObjectType("effects.Shell"), unary(adapter, shellOf))),
		cel.Function("kubectl", cel.Overload(kubectlOverload, text, cel.ObjectType("effects.Kubectl"), unary(adapter, kubectlOf))),
		cel.Function("url", cel.Overload(urlOverload, text, cel.ObjectType("effects.URL"), unary(adapter, urlOf))),
		cel.Function("sql", cel.Overload(sqlOverload, []*cel.Type{cel.StringType, cel.StringType}, cel.ObjectType("effects.SQL"),
			cel.BinaryBinding(func(a, b ref.Val) ref.Val {
				text, ok := a.(types.String)
				dialect, too := b.(types.String)
				if !ok || !too {
					return types.MaybeNoSuchOverloadErr(a)
				}
				return adapter.NativeToValue(sqlOf(string(text), string(dialect)))
			}))),
	}
	for _, option := range options {
		var err error
		if env, err = option(env); err != nil {
			return nil, err
		}
	}
	return env, nil
}

func unary[T any](adapter types.Adapter, parse func(string) T) cel.OverloadOpt {
	return cel.UnaryBinding(func(v ref.Val) ref.Val {
		text, ok := v.(types.String)
		if !ok {
			return types.MaybeNoSuchOverloadErr(v)
		}
		return adapter.NativeToValue(parse(string(text)))
	})
}
