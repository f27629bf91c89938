package strictjson

import (
	"encoding"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"golang.org/x/text/unicode/norm"
)

// structInfo is what a struct type accepts, in the order of its fields.
type structInfo struct {
	fields []fieldInfo
	byName map[string]struct{}
}

type fieldInfo struct {
	name  string
	index []int
}

var (
	infos     sync.Map // reflect.Type of a struct -> *structInfo
	fillables sync.Map // reflect.Type -> error or nil, for targets of Decode
)

var textType = reflect.TypeFor[encoding.TextUnmarshaler]()

func isText(t reflect.Type) bool { return reflect.PointerTo(t).Implements(textType) }

// readsJSON is implemented by types that want to read JSON by themselves,
// which would be a second parse.
type readsJSON interface{ UnmarshalJSON([]byte) error }

var readsJSONType = reflect.TypeFor[readsJSON]()

// fillable tells whether every part of a type can be filled exactly.
func fillable(t reflect.Type) error {
	if known, ok := fillables.Load(t); ok {
		err, _ := known.(error)
		return err
	}
	err := checkType(t, map[reflect.Type]bool{})
	if err == nil {
		fillables.Store(t, nil)
		return nil
	}
	fillables.Store(t, err)
	return err
}

func checkType(t reflect.Type, seen map[reflect.Type]bool) error {
	if seen[t] {
		return nil
	}
	seen[t] = true
	if t.Kind() != reflect.Pointer {
		if isText(t) {
			return nil
		}
		if reflect.PointerTo(t).Implements(readsJSONType) {
			return fmt.Errorf("type %s reads JSON by itself", t)
		}
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return nil
	case reflect.Pointer:
		return checkType(t.Elem(), seen)
	case reflect.Struct:
		return checkStruct(t, seen)
	case reflect.Interface:
		if t.NumMethod() == 0 {
			return nil
		}
	case reflect.Map:
		if t.Key().Kind() == reflect.String && !isText(t.Key()) {
			return checkType(t.Elem(), seen)
		}
	case reflect.Slice:
		if t.Elem().Kind() != reflect.Uint8 {
			return checkType(t.Elem(), seen)
		}
	}
	return fmt.Errorf("type %s cannot be filled from JSON", t)
}

func checkStruct(t reflect.Type, seen map[reflect.Type]bool) error {
	info := &structInfo{byName: map[string]struct{}{}}
	if err := info.add(t, nil); err != nil {
		return err
	}
	for _, f := range info.fields {
		if err := checkType(t.FieldByIndex(f.index).Type, seen); err != nil {
			return fmt.Errorf("field %q: %w", f.name, err)
		}
	}
	infos.Store(t, info)
	return nil
}

// infoOf gives what checkStruct found; targets are checked before they are
// filled.
func infoOf(t reflect.Type) *structInfo {
	info, _ := infos.Load(t)
	return info.(*structInfo)
}

func (s *structInfo) add(t reflect.Type, prefix []int) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		index := append(slices.Clip(prefix), i)
		switch {
		case name == "-" && options == "":
			continue
		case strings.Contains(","+options+",", ",string,"):
			return fmt.Errorf("field %s.%s: option string is not supported", t, f.Name)
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			if err := s.add(f.Type, index); err != nil {
				return err
			}
			continue
		case f.Anonymous && name == "":
			return fmt.Errorf("type %s embeds %s, which needs a name", t, f.Type)
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		if _, twice := s.byName[name]; twice {
			return fmt.Errorf("type %s has two fields named %q", t, name)
		}
		s.byName[name] = struct{}{}
		s.fields = append(s.fields, fieldInfo{name: name, index: index})
	}
	return nil
}

// checkKeys refuses the first key, in byte order, that no field has.
func (s *structInfo) checkKeys(m map[string]any) *fault {
	bad, found := "", false
	for k := range m {
		if _, ok := s.byName[k]; !ok && (!found || k < bad) {
			bad, found = k, true
		}
	}
	if !found {
		return nil
	}
	code, detail := s.explain(bad)
	return (&fault{code: code, atKey: true, detail: detail}).within(bad)
}

func (s *structInfo) explain(key string) (Code, string) {
	form := norm.NFKC.String(key)
	for _, f := range s.fields {
		switch {
		case strings.EqualFold(f.name, key):
			return KeyCase, fmt.Sprintf("key %s differs from %q in case only, write %q", echo(key), f.name, f.name)
		case strings.EqualFold(f.name, form):
			return KeyNormalization, fmt.Sprintf("key %s only looks like %q, write %q", echo(key), f.name, f.name)
		}
	}
	if near := s.near(key); len(near) > 0 {
		return UnknownField, fmt.Sprintf("field %s is unknown, did you mean %s", echo(key), quoteAll(near))
	}
	return UnknownField, fmt.Sprintf("field %s is unknown, leave it out", echo(key))
}
