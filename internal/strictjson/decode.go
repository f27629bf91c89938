package strictjson

import (
	"encoding"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Object is a field that must be an object whose members are free, such as a
// tool's arguments: null is refused, and nil means that the field is absent.
// Canonical and Digest take it as it is.
type Object map[string]any

// Decode parses data as Parse does and fills the value that into points to,
// replacing all of it: what data does not name is zero. Refusals are *Error
// and leave into unchanged. Structs go by their json tags; a field of type
// any, map[string]any or Object receives the tree that Parse gives. Null fits
// only pointers and any. A Go type that cannot be filled exactly is an error
// whatever the data.
func Decode(data []byte, l Limits, into any) error {
	target, err := targetOf(into)
	if err != nil {
		return err
	}
	tree, err := Parse(data, l)
	if err != nil {
		return err
	}
	if f := fillTarget(target, tree); f != nil {
		return f.asError(offsetOf(data, f.path, f.atKey))
	}
	return nil
}

// Fill is Decode from a tree that Parse gave. It shares subtrees with the
// tree, and its errors have no offset.
func Fill(tree, into any) error {
	target, err := targetOf(into)
	if err != nil {
		return err
	}
	if f := fillTarget(target, tree); f != nil {
		return f.asError(-1)
	}
	return nil
}

func targetOf(into any) (reflect.Value, error) {
	v := reflect.ValueOf(into)
	if v.Kind() != reflect.Pointer || v.IsNil() {
		return reflect.Value{}, errors.New("strictjson: target must be a pointer that is not nil")
	}
	if err := fillable(v.Type().Elem()); err != nil {
		return reflect.Value{}, fmt.Errorf("strictjson: %w", err)
	}
	return v.Elem(), nil
}

func fillTarget(target reflect.Value, tree any) *fault {
	fresh := reflect.New(target.Type()).Elem()
	if f := fill(fresh, tree); f != nil {
		slices.Reverse(f.path)
		return f
	}
	target.Set(fresh)
	return nil
}

// fault is a value that does not fit. Its path grows from the leaf outwards.
type fault struct {
	code   Code
	path   []string
	atKey  bool // the key is at fault, not its value
	detail string
}

func misfit(format string, args ...any) *fault {
	return &fault{code: WrongType, detail: fmt.Sprintf(format, args...)}
}

func (f *fault) within(name string) *fault {
	f.path = append(f.path, name)
	return f
}

func (f *fault) asError(offset int64) error {
	var p jsontext.Pointer
	for _, name := range f.path {
		p = p.AppendToken(name)
	}
	return newError(f.code, string(p), offset, "%s", f.detail)
}

// fill sets dst, whose type is fillable, to the value of a tree.
func fill(dst reflect.Value, tree any) *fault {
	if dst.Kind() == reflect.Pointer {
		if tree == nil {
			return nil
		}
		fresh := reflect.New(dst.Type().Elem())
		if f := fill(fresh.Elem(), tree); f != nil {
			return f
		}
		dst.Set(fresh)
		return nil
	}
	if isText(dst.Type()) {
		return fillText(dst, tree)
	}
	switch dst.Kind() {
	case reflect.Interface:
		if tree != nil {
			dst.Set(reflect.ValueOf(tree))
		}
		return nil
	case reflect.Struct:
		return fillStruct(dst, tree)
	case reflect.Map:
		return fillMap(dst, tree)
	case reflect.Slice:
		return fillSlice(dst, tree)
	case reflect.String:
		s, ok := tree.(string)
		if !ok {
			return mismatch("a string", tree)
		}
		dst.SetString(s)
	case reflect.Bool:
		b, ok := tree.(bool)
		if !ok {
			return mismatch("true or false", tree)
		}
		dst.SetBool(b)
	default:
		return fillNumber(dst, tree)
	}
	return nil
}

func fillText(dst reflect.Value, tree any) *fault {
	s, ok := tree.(string)
	if !ok {
		return mismatch("a string", tree)
	}
	// The cause is left out, since it may repeat the text.
	if dst.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(s)) != nil {
		return misfit("text is not a valid %s, correct it", dst.Type().Name())
	}
	return nil
}

func fillStruct(dst reflect.Value, tree any) *fault {
	m, ok := tree.(map[string]any)
	if !ok {
		return mismatch("an object", tree)
	}
	info := infoOf(dst.Type())
	if f := info.checkKeys(m); f != nil {
		return f
	}
	for _, field := range info.fields {
		v, ok := m[field.name]
		if !ok {
			continue
		}
		if f := fill(dst.FieldByIndex(field.index), v); f != nil {
			return f.within(field.name)
		}
	}
	return nil
}

func fillMap(dst reflect.Value, tree any) *fault {
	m, ok := tree.(map[string]any)
	if !ok {
		return mismatch("an object", tree)
	}
	t := dst.Type()
	if v := reflect.ValueOf(m); v.CanConvert(t) {
		dst.Set(v.Convert(t))
		return nil
	}
	out := reflect.MakeMapWithSize(t, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		v := reflect.New(t.Elem()).Elem()
		if f := fill(v, m[k]); f != nil {
			return f.within(k)
		}
		out.SetMapIndex(reflect.ValueOf(k).Convert(t.Key()), v)
	}
	dst.Set(out)
	return nil
}

func fillSlice(dst reflect.Value, tree any) *fault {
	a, ok := tree.([]any)
	if !ok {
		return mismatch("an array", tree)
	}
	out := reflect.MakeSlice(dst.Type(), len(a), len(a))
	for i, v := range a {
		if f := fill(out.Index(i), v); f != nil {
			return f.within(strconv.Itoa(i))
		}
	}
	dst.Set(out)
	return nil
}

func fillNumber(dst reflect.Value, tree any) *fault {
	if dst.Kind() == reflect.Float64 {
		switch v := tree.(type) {
		case int64:
			dst.SetFloat(float64(v))
		case float64:
			dst.SetFloat(v)
		default:
			return mismatch("a number", tree)
		}
		return nil
	}
	v, ok := tree.(int64)
	if !ok {
		return mismatch("a whole number within ±2^53", tree)
	}
	if dst.CanInt() {
		if dst.OverflowInt(v) {
			return misfit("number is out of range, send one that fits %s", dst.Kind())
		}
		dst.SetInt(v)
		return nil
	}
	if v < 0 || dst.OverflowUint(uint64(v)) {
		return misfit("number is out of range, send one that fits %s", dst.Kind())
	}
	dst.SetUint(uint64(v))
	return nil
}

func mismatch(want string, tree any) *fault {
	if tree == nil {
		return misfit("value is null, send %s or leave the field out", want)
	}
	return misfit("value is %s, send %s", kindOf(tree), want)
}

func kindOf(tree any) string {
	switch tree.(type) {
	case bool:
		return "true or false"
	case string:
		return "a string"
	case int64, float64:
		return "a number"
	case []any:
		return "an array"
	case map[string]any:
		return "an object"
	default:
		return "of an unknown kind"
	}
}
