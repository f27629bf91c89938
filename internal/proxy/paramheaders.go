package proxy

import (
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"gatewright.dev/gatewright/internal/strictjson"
)

// paramHeader begins the name of a header that repeats an argument, so that a server can route by it.
const paramHeader = "Mcp-Param-"

// checkParamHeaders refuses a header that brings a value which none of the arguments has. Which argument a header
// repeats only the tool's schema says, and the tool server has to compare that; what no argument holds it never gets.
func checkParamHeaders(header http.Header, arguments map[string]any) *denial {
	var known map[string]bool
	for name, values := range header {
		if !strings.HasPrefix(name, paramHeader) {
			continue
		}
		if known == nil {
			known = map[string]bool{}
			leaves(arguments, known)
		}
		if len(values) != 1 || !known[decodeParam(values[0])] {
			return bad(CodeBadHeader, "a header repeats an argument that the body does not have")
		}
	}
	return nil
}

// leaves gathers all values within a tree as a header writes them.
func leaves(v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			leaves(inner, into)
		}
	case []any:
		for _, inner := range v {
			leaves(inner, into)
		}
	case string:
		into[v] = true
	case bool:
		into[strconv.FormatBool(v)] = true
	case int64, float64:
		if text, err := strictjson.Canonical(v); err == nil {
			into[string(text)] = true
		}
	}
}

// decodeParam undoes the form in which a header carries what is not plain text.
func decodeParam(s string) string {
	inner, hasStart := strings.CutPrefix(s, "=?base64?")
	inner, hasEnd := strings.CutSuffix(inner, "?=")
	if !hasStart || !hasEnd {
		return s
	}
	if decoded, err := base64.StdEncoding.Strict().DecodeString(inner); err == nil {
		return string(decoded)
	}
	return s
}
