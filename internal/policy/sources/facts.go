package sources

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// flagSet holds which boolean values the facts state under one name.
type flagSet uint8

const (
	flagFalse flagSet = 1 << iota
	flagTrue
)

func flagOf(b bool) flagSet {
	if b {
		return flagTrue
	}
	return flagFalse
}

// factTexts gathers the leaves of the fact tree. Names of facts are not values, so keys are no source; a boolean
// fact speaks only for an argument of the same name, since a bare true stands for nothing.
type factTexts struct {
	texts []string
	flags map[string]flagSet
}

func (f *factTexts) add(name string, value any) {
	switch v := value.(type) {
	case string:
		f.texts = append(f.texts, v)
	case bool:
		f.flags[name] |= flagOf(v)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			f.add(k, v[k])
		}
	case []any:
		for _, e := range v {
			f.add(name, e)
		}
	case []string:
		f.texts = append(f.texts, v...)
	default:
		if text, ok := numberText(v); ok {
			f.texts = append(f.texts, text)
		}
	}
}

// numberText writes a number in plain decimal digits.
func numberText(value any) (string, bool) {
	switch v := value.(type) {
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case float32:
		return strconv.FormatFloat(float64(v), 'f', -1, 32), true
	case int:
		return strconv.Itoa(v), true
	case int32:
		return strconv.FormatInt(int64(v), 10), true
	case int64:
		return strconv.FormatInt(v, 10), true
	case uint64:
		return strconv.FormatUint(v, 10), true
	case json.Number:
		if f, err := v.Float64(); err == nil && !isPlainNumber(v.String()) {
			return strconv.FormatFloat(f, 'f', -1, 64), true
		}
		return v.String(), true
	}
	return "", false
}

func isPlainNumber(s string) bool {
	for i := range len(s) {
		if !isDigit(s[i]) && s[i] != '.' && (s[i] != '-' || i > 0) {
			return false
		}
	}
	return s != ""
}
