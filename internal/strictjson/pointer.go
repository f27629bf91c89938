package strictjson

import "strings"

// EscapeToken writes a name as a reference token of a JSON Pointer (RFC 6901, section 3).
func EscapeToken(name string) string {
	if !strings.ContainsAny(name, "~/") {
		return name
	}
	return strings.ReplaceAll(strings.ReplaceAll(name, "~", "~0"), "/", "~1")
}

// UnescapeToken reads the name that a reference token stands for (RFC 6901, section 4).
func UnescapeToken(token string) string {
	return strings.ReplaceAll(strings.ReplaceAll(token, "~1", "/"), "~0", "~")
}
