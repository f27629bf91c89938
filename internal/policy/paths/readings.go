package paths

import (
	"cmp"
	"strings"
	"unicode"

	"gatewright.dev/gatewright/internal/policy/paths/plain"
)

// inspect refuses a value if any reading of it is dangerous. A tool may use the value as it is, percent-decode it once or
// several times, or replace Unicode characters by plain ones. Instead of guessing which, every form has to be harmless:
//
//	value ─▶ folded ─▶ decoded ─▶ folded ─▶ decoded ─▶ ...      until nothing changes
//	  ✓        ✓          ✓          ✓          ✓
//
// None of the readings may hold "..", so none can leave the directory that the written form begins with.
func inspect(value string) *Violation {
	if value == "" {
		return &Violation{Empty, "the path is empty"}
	}
	if len(value) > MaxLength {
		return &Violation{TooLong, "the path is longer than 4096 bytes"}
	}
	absolute := isAbsolute(value)
	reading := value
	var rewritten *Violation // told only if no reading holds anything worse
	for range plain.MaxLayers + 1 {
		if v := inspectReading(reading, absolute); v != nil {
			return v
		}
		if folded := fold(reading); folded != reading {
			if v := inspectFolded(folded, absolute); v != nil {
				return v
			}
			reading = folded
		}
		if rewritten == nil {
			rewritten = inspectEnds(reading)
		}
		decoded, changed := plain.Unescape(reading)
		if !changed {
			return cmp.Or(inspectVariable(reading), rewritten)
		}
		reading = decoded
	}
	return &Violation{Escape, "the path is percent-encoded too many times"}
}

// inspectReading applies all rules to one reading. URLs and Windows forms come first: they say best what is wrong.
func inspectReading(reading string, absolute bool) *Violation {
	if v := inspectText(reading); v != nil {
		return v
	}
	if v := inspectPrefix(reading, absolute); v != nil {
		return v
	}
	if v := inspectElements(reading); v != nil {
		return v
	}
	return inspectCharacters(reading)
}

// inspectFolded applies what still matters once look-alikes are replaced. Characters that Windows forbids are left out: a
// full-width colon or question mark is an ordinary character of file names in East Asia.
func inspectFolded(reading string, absolute bool) *Violation {
	if v := inspectPrefix(reading, absolute); v != nil {
		return v
	}
	return inspectElements(reading)
}

func inspectText(reading string) *Violation {
	if plain.Text(reading) {
		return nil
	}
	if hasOverlong(reading) {
		return &Violation{Escape, "the path holds an overlong UTF-8 sequence"}
	}
	return &Violation{NotText, "the path holds control or invisible characters, or is not UTF-8"}
}

// hasOverlong finds UTF-8 sequences that spend more bytes than their character needs, which is how "." and "/" are hidden
// from checks that look at bytes.
func hasOverlong(s string) bool {
	for i := range len(s) - 1 {
		following := s[i+1]
		if following&0xc0 != 0x80 {
			continue
		}
		switch s[i] {
		case 0xc0, 0xc1:
			return true
		case 0xe0:
			if following < 0xa0 {
				return true
			}
		case 0xf0:
			if following < 0x90 {
				return true
			}
		case 0xf8, 0xfc: // five and six bytes were legal once and are overlong for all that exists
			return true
		}
	}
	return false
}

// inspectPrefix looks at how a reading begins, which decides what it is relative to.
func inspectPrefix(reading string, absolute bool) *Violation {
	if strings.HasPrefix(reading, "//") || strings.HasPrefix(reading, `\\`) {
		// POSIX leaves exactly two leading slashes to the system, Windows reads a share, a browser reads a host.
		return &Violation{WindowsPath, "the path begins like a network share"}
	}
	if reading != "" && isAbsolute(reading) != absolute {
		return &Violation{Escape, "the path is relative as written and absolute when decoded"}
	}
	if v := inspectScheme(reading); v != nil {
		return v
	}
	first, _, _ := next(reading)
	first = strings.TrimLeftFunc(first, unicode.IsSpace)
	switch {
	case strings.HasPrefix(first, "~"):
		// Only the first element: nothing expands a tilde further down, where it is part of names such as "~$plan.docx".
		if !absolute {
			return &Violation{HomeOrVariable, "the path begins with a home directory (~)"}
		}
	case strings.HasPrefix(first, "-"):
		// "./-x" is safe for option parsers, but the dot is lost as soon as a tool cleans the path.
		if !absolute {
			return &Violation{Option, "the path begins with a dash and may be read as an option"}
		}
	}
	return nil
}

// inspectScheme tells drive letters ("C:") and URLs ("file:") by what stands before the first colon.
func inspectScheme(reading string) *Violation {
	colon := strings.IndexByte(reading, ':')
	if colon <= 0 {
		return nil
	}
	before := strings.TrimLeftFunc(reading[:colon], unicode.IsSpace)
	if before == "" || !isLetter(before[0]) {
		return nil
	}
	if len(before) == 1 {
		return &Violation{WindowsPath, "the path begins with a drive letter"}
	}
	for i := range len(before) {
		// A dot is legal in a scheme, but "notes.txt:x" is a stream of a file and is reported as such.
		if c := before[i]; !isLetter(c) && !isDigit(c) && c != '+' && c != '-' {
			return nil
		}
	}
	return &Violation{URLForm, "the value is a URL, not a path"}
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
