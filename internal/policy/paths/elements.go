package paths

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// inspectElements looks at each element between slashes.
func inspectElements(reading string) *Violation {
	if strings.IndexByte(reading, '\\') >= 0 {
		// A separator on Windows, an escape in shells; never needed in a path that is meant plainly.
		return &Violation{Escape, "the path holds a backslash: separate elements with /"}
	}
	for element, rest, ok := next(reading); ok; element, rest, ok = next(rest) {
		if v := inspectElement(element); v != nil {
			return v
		}
	}
	return nil
}

// inspectEnds looks for names that Windows shortens when it opens them ("a.txt." is "a.txt") and that others trim.
func inspectEnds(reading string) *Violation {
	for element, rest, ok := next(reading); ok; element, rest, ok = next(rest) {
		last, _ := utf8.DecodeLastRuneInString(element)
		first, _ := utf8.DecodeRuneInString(element)
		if last == '.' || unicode.IsSpace(last) || unicode.IsSpace(first) {
			return &Violation{WindowsPath, "an element begins or ends with a space, or ends with a dot"}
		}
	}
	return nil
}

func inspectElement(element string) *Violation {
	switch {
	case isParent(element):
		return &Violation{Escape, "the path holds a parent directory element (..)"}
	case isDevice(element):
		return &Violation{WindowsPath, "an element is a device name on Windows"}
	case isDotPattern(element):
		return &Violation{Pattern, "an element is a pattern that may match the parent directory"}
	}
	return nil
}

// isParent reports elements of two or more dots and nothing that counts: spaces and a plus (a space in form encoding) are
// trimmed by some readers, combining marks and variation selectors are ignored by some file systems, and three dots meant
// the grandparent once.
func isParent(element string) bool {
	dots := 0
	for _, r := range element {
		switch {
		case r == '.':
			dots++
		case r == '+' || unicode.IsSpace(r) || r >= utf8.RuneSelf && unicode.Is(unicode.M, r):
		default:
			return false
		}
	}
	return dots >= 2
}

// isDevice reports names that Windows reserves in every directory, in any case and with any extension.
func isDevice(element string) bool {
	stem, _, _ := strings.Cut(element, ".")
	stem = strings.TrimRight(stem, " ")
	switch len(stem) {
	case 3:
		return strings.EqualFold(stem, "CON") || strings.EqualFold(stem, "PRN") ||
			strings.EqualFold(stem, "AUX") || strings.EqualFold(stem, "NUL")
	case 4, 5: // five bytes with a superscript digit, which Windows counts as a digit
		prefix, number := stem[:3], stem[3:]
		return (strings.EqualFold(prefix, "COM") || strings.EqualFold(prefix, "LPT")) &&
			(len(number) == 1 && isDigit(number[0]) || number == "¹" || number == "²" || number == "³")
	case 6, 7:
		return strings.EqualFold(stem, "CONIN$") || strings.EqualFold(stem, "CONOUT$")
	}
	return false
}

// isDotPattern reports character classes that could match "..". Other classes pass: "[id].tsx" is a usual name in web
// projects, and read as a pattern it still matches only names in the same directory. "[.]." and "[.][.]" match the parent.
func isDotPattern(element string) bool {
	open, end := strings.IndexByte(element, '['), strings.LastIndexByte(element, ']')
	if open < 0 || end < open {
		return false
	}
	outside := strings.Trim(element[:open], ".") + strings.Trim(element[end+1:], ".")
	if outside != "" {
		return false
	}
	return open > 0 || end < len(element)-1 || strings.Contains(element, "][")
}

// inspectCharacters refuses characters that make a shell or a library put something else in the path's place. "*", "?" and
// braces are refused everywhere, not only in front: a pattern names several files, "/srv/data/.*" may match "..", and
// "{.,x}." expands to it. List files one by one instead.
func inspectCharacters(reading string) *Violation {
	for i := range len(reading) {
		switch reading[i] {
		case '*', '?', '{', '}':
			return &Violation{Pattern, "the path holds a pattern character (* ? { })"}
		case '(':
			if i > 0 && strings.IndexByte("+@!", reading[i-1]) >= 0 {
				return &Violation{Pattern, "the path holds an extended pattern such as @(...)"}
			}
		case '$', '`':
			return &Violation{HomeOrVariable, "the path holds a variable or command ($ or `)"}
		case ':':
			return &Violation{WindowsPath, "the path holds a colon, which names a stream on Windows"}
		case '<', '>', '"', '|':
			return &Violation{WindowsPath, `the path holds one of < > " |, which Windows reserves`}
		case '%':
			if isWideEscape(reading[i:]) {
				return &Violation{Escape, "the path holds a %u escape"}
			}
		}
	}
	return nil
}

// isWideEscape recognises %uXXXX, which is no standard but is decoded by some servers.
func isWideEscape(s string) bool {
	if len(s) < 6 || s[1]|0x20 != 'u' {
		return false
	}
	return plain.IsHex(s[2]) && plain.IsHex(s[3]) && plain.IsHex(s[4]) && plain.IsHex(s[5])
}

// inspectVariable finds %NAME% in the last reading. In earlier ones a pair of percent signs is percent-encoding.
func inspectVariable(reading string) *Violation {
	for rest := reading; ; {
		_, after, found := strings.Cut(rest, "%")
		if !found {
			return nil
		}
		name, _, closed := strings.Cut(after, "%")
		if closed && isVariableName(name) {
			return &Violation{HomeOrVariable, "the path holds a variable (%NAME%)"}
		}
		rest = after
	}
}

func isVariableName(name string) bool {
	if name == "" || !isLetter(name[0]) && name[0] != '_' {
		return false
	}
	for i := range len(name) {
		if c := name[i]; !isLetter(c) && !isDigit(c) && strings.IndexByte("_()-", c) < 0 {
			return false
		}
	}
	return true
}
