package gate

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gatewright.dev/gatewright/internal/strictjson"
)

// redact replaces sensitive arguments by their length and digest. The tree that runs is not touched.
func redact(arguments map[string]any, sensitive []string) any {
	pointers := make([][]string, len(sensitive))
	for i, p := range sensitive {
		pointers[i] = strings.Split(strings.TrimPrefix(p, "/"), "/")
	}
	return redactTree(arguments, pointers)
}

// redactTree hides what the pointers name. Where the tree has another shape than a pointer expects, such as a list for an
// object, all of that part counts as sensitive: the value that was meant may be anywhere in it.
func redactTree(v any, pointers [][]string) any {
	if len(pointers) == 0 {
		return v
	}
	if slices.ContainsFunc(pointers, func(p []string) bool { return len(p) == 0 }) {
		return hidden(v)
	}
	switch parent := v.(type) {
	case map[string]any:
		out := maps.Clone(parent)
		for key, rest := range below(pointers) {
			if child, ok := parent[key]; ok {
				out[key] = redactTree(child, rest)
			}
		}
		return out
	case []any:
		out := slices.Clone(parent)
		for key, rest := range below(pointers) {
			i, err := strconv.Atoi(key)
			if err != nil || i < 0 {
				return hidden(v)
			}
			if i < len(out) {
				out[i] = redactTree(out[i], rest)
			}
		}
		return out
	}
	return hidden(v)
}

// below groups pointers by their first step.
func below(pointers [][]string) map[string][][]string {
	out := map[string][][]string{}
	for _, p := range pointers {
		key := strictjson.UnescapeToken(p[0])
		out[key] = append(out[key], p[1:])
	}
	return out
}

func hidden(v any) string {
	canonical, err := strictjson.Canonical(v)
	if err != nil {
		return "(not shown)"
	}
	return fmt.Sprintf("(%d bytes, %s)", len(canonical), digestOf(string(canonical)))
}
